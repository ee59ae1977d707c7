"""Events are numbered, whoever appends them, and can be followed from anywhere."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tfconvert.service.events import STAGE, STATE, Event, EventLog
from tfconvert.service.storage import Folders


def followed(log: EventLog, after: int = 0, *, is_ended: bool = False) -> list[list[Event]]:
    async def ended() -> bool:
        return is_ended

    async def collect() -> list[list[Event]]:
        return [events async for events in log.follow("a", after, ended)]

    return asyncio.run(asyncio.wait_for(collect(), 20))


def names_in(found: list[list[Event]]) -> list[str]:
    return [event.name for events in found for event in events]


def test_events_are_numbered(folders: Folders) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: EventLog(folders).append("a", STAGE, str(number)), range(40)))
    found = EventLog(folders).read("a")
    assert [event.n for event in found] == list(range(1, 41))
    assert {event.name for event in found} == set(map(str, range(40)))
    assert EventLog(folders).read("a", 39) == found[39:]
    assert EventLog(folders).read("b") == []


def test_lines_that_were_cut_off_are_passed_over(folders: Folders) -> None:
    EventLog(folders).append("a", STATE, "queued")
    with folders.progress("a").open("a") as file:
        file.write('{"n": 2, "ty')
    EventLog(folders).append("a", STATE, "running")
    with folders.progress("a").open("a") as file:
        file.write('{"n": 4')
    assert [(event.n, event.name) for event in EventLog(folders).read("a")] == [(1, "queued"), (2, "running")]


def test_a_full_disk_stops_no_job(folders: Folders) -> None:
    folders.events.rmdir()
    EventLog(folders).append("a", STATE, "queued")
    assert EventLog(folders).read("a") == []


@pytest.mark.parametrize("after", [0, 1, 2])
def test_following_ends_with_the_job(folders: Folders, after: int) -> None:
    for name in ("queued", "running", "succeeded"):
        EventLog(folders).append("a", STATE, name)
    found = followed(EventLog(folders), after)
    assert len(found) == 1, "events that are there are yielded together"
    assert names_in(found) == ["queued", "running", "succeeded"][after:]


@pytest.mark.parametrize("is_own", [True, False])
def test_following_sees_later_events(folders: Folders, is_own: bool) -> None:
    # What this server does is told to those who follow it: they wait for longer than this test may take.
    followed_log = EventLog(folders, poll_seconds=1000 if is_own else 0.01)
    log = followed_log if is_own else EventLog(folders)

    async def act() -> list[str]:
        async def ended() -> bool:
            return False

        names = []
        log.append("a", STATE, "queued")
        async for (event,) in followed_log.follow("a", 0, ended):
            names.append(event.name)
            if event.name == "queued":
                log.append("a", STAGE, "open")
            if event.name == "open":
                await asyncio.to_thread(log.append, "a", STATE, "failed")
        return names

    assert asyncio.run(asyncio.wait_for(act(), 20)) == ["queued", "open", "failed"]


def test_who_is_woken_without_news_asks_whether_there_will_be_more(folders: Folders) -> None:
    log = EventLog(folders, poll_seconds=1000)
    log.append("a", STATE, "running")
    is_stopping = False

    async def ended() -> bool:
        return is_stopping

    async def act() -> list[str]:
        nonlocal is_stopping
        names = []
        async for events in log.follow("a", 0, ended):
            names += [event.name for event in events] or [""]
            is_stopping = True
            asyncio.get_running_loop().call_later(0.01, log.wake)
        return names

    assert asyncio.run(asyncio.wait_for(act(), 20)) == ["running"]


def test_following_ends_where_the_last_event_was_lost(folders: Folders) -> None:
    EventLog(folders).append("a", STATE, "running")
    assert names_in(followed(EventLog(folders), is_ended=True)) == ["running"]
    assert followed(EventLog(folders), 1, is_ended=True) == []


def test_there_are_signs_of_life(folders: Folders) -> None:
    assert [] in followed(EventLog(folders, heartbeat_polls=2), is_ended=True)


def test_heartbeats_go_on_and_the_state_is_read_every_few_seconds(folders: Folders) -> None:
    log = EventLog(folders, poll_seconds=0.001)
    asked = 0

    async def ended() -> bool:
        nonlocal asked
        asked += 1
        return asked == 5

    async def collect() -> list[list[Event]]:
        return [events async for events in log.follow("a", 0, ended)]

    # After 4, 8 and 16 polls, and with each heartbeat.
    assert asyncio.run(asyncio.wait_for(collect(), 20)) == [[], []]


def test_who_follows_looks_at_the_state_at_once_if_an_event_is_lost(folders: Folders) -> None:
    log = EventLog(folders, poll_seconds=1000)
    log.append("a", STATE, "running")
    is_full = False

    async def ended() -> bool:
        return is_full

    async def act() -> list[str]:
        nonlocal is_full
        names = []
        async for events in log.follow("a", 0, ended):
            names += [event.name for event in events] or [""]
            shutil.rmtree(folders.events)
            is_full = True
            asyncio.get_running_loop().call_later(0.01, log.append, "a", STATE, "succeeded")
        return names

    assert asyncio.run(asyncio.wait_for(act(), 20)) == ["running"]
