"""Events are numbered, whoever appends them, and can be followed from anywhere."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tfconvert.converter.service import events
from tfconvert.converter.service.events import STAGE, STATE, Event
from tfconvert.converter.service.folders import Folders


def followed(folders: Folders, after: int = 0, *, is_ended: bool = False) -> list[Event | None]:
    async def ended() -> bool:
        return is_ended

    async def collect() -> list[Event | None]:
        return [event async for event in events.follow(folders, "a", after, ended)]

    return asyncio.run(asyncio.wait_for(collect(), 20))


def test_events_are_numbered(folders: Folders) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: events.append(folders, "a", STAGE, str(number)), range(40)))
    found = events.read(folders, "a")
    assert [event.n for event in found] == list(range(1, 41))
    assert {event.name for event in found} == set(map(str, range(40)))
    assert events.read(folders, "a", 39) == found[39:]
    assert events.read(folders, "b") == []


def test_lines_that_were_cut_off_are_passed_over(folders: Folders) -> None:
    events.append(folders, "a", STATE, "queued")
    with folders.progress("a").open("a") as file:
        file.write('{"n": 2, "ty')
    events.append(folders, "a", STATE, "running")
    with folders.progress("a").open("a") as file:
        file.write('{"n": 4')
    assert [(event.n, event.name) for event in events.read(folders, "a")] == [(1, "queued"), (2, "running")]


def test_a_full_disk_stops_nobody(folders: Folders) -> None:
    folders.events.rmdir()
    events.append(folders, "a", STATE, "queued")
    assert events.read(folders, "a") == []


@pytest.mark.parametrize("after", [0, 1, 2])
def test_following_ends_with_the_job(folders: Folders, after: int) -> None:
    for name in ("queued", "running", "succeeded"):
        events.append(folders, "a", STATE, name)
    assert [event.name for event in followed(folders, after) if event] == ["queued", "running", "succeeded"][after:]


def test_following_sees_what_happens_later(folders: Folders) -> None:
    async def act() -> list[str]:
        async def ended() -> bool:
            return False

        names = []
        events.append(folders, "a", STATE, "queued")
        async for event in events.follow(folders, "a", 0, ended):
            assert event is not None
            names.append(event.name)
            if event.name == "queued":
                events.append(folders, "a", STAGE, "open")
                events.append(folders, "a", STATE, "failed")
        return names

    assert asyncio.run(asyncio.wait_for(act(), 20)) == ["queued", "open", "failed"]


def test_following_ends_where_the_last_event_was_lost(folders: Folders) -> None:
    events.append(folders, "a", STATE, "running")
    assert [event.name for event in followed(folders, is_ended=True) if event] == ["running"]
    assert followed(folders, 1, is_ended=True) == []


def test_there_are_signs_of_life(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_SILENT", 2)
    assert None in followed(folders, is_ended=True)
