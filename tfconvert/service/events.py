"""Events of jobs, as lines in files, so that a reader may start late, and on another server.

A reader on the server that runs the job is notified; events of other servers are found by polling.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

from tfconvert.service.jobs import JobState
from tfconvert.service.storage import Folders

STATE = "state"
STAGE = "stage"

_FINAL = frozenset(str(state) for state in JobState if state.is_final)

# Seconds for which stages are collected; a small model passes all of them in less than a second.
_BATCH_SECONDS = 0.2

# Polls without news after which the job's state is checked, beside each heartbeat: an event may have been lost.
_STATE_POLLS = (4, 8, 16)


class Event(NamedTuple):
    """An event of a job.

    Attributes:
        n: The number of the event, from 1.
        type: `state` or `stage`.
        name: The state or stage.
        at: The time, in seconds since the epoch.
    """

    n: int
    type: str
    name: str
    at: float

    @property
    def is_last(self) -> bool:
        """Whether the job is in a final state, which only a retry changes."""
        return self.type == STATE and self.name in _FINAL


class _Follower:
    """A reader that waits for events of a job, in an event loop.

    Attributes:
        loop: The loop.
    """

    __slots__ = ("_event", "_is_notified", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._is_notified = False

    def notify(self, delay: float) -> None:
        """Wakes it after a delay; called in the loop."""
        if not delay:
            self._event.set()
        elif not self._is_notified:
            self._is_notified = True
            self.loop.call_later(delay, self._event.set)

    async def wait(self, timeout: float) -> bool:
        """Waits to be notified; returns whether it was."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
        is_notified = self._event.is_set()
        self._event.clear()
        self._is_notified = False
        return is_notified


class EventLog:
    """The events of all jobs of a data directory; used by several threads at once.

    Args:
        folders: The data directory.
        poll_seconds: Seconds between reads of a file that another server may append to. Without news, the interval
            grows to four times that.
        heartbeat_polls: Polls without news after which a heartbeat is sent; a skipped poll counts.
    """

    def __init__(self, folders: Folders, poll_seconds: float = 0.5, heartbeat_polls: int = 32) -> None:
        self._folders = folders
        self._poll_seconds = poll_seconds
        self._heartbeat_polls = heartbeat_polls
        self._lock = threading.Lock()
        self._followers: dict[str, list[_Follower]] = {}

    def append(self, job: str, kind: str, name: str) -> None:
        """Appends an event; on a full disk it is lost, so that the job goes on, and readers look at the job's state.

        Args:
            job: The job's ID.
            kind: `STATE` or `STAGE`.
            name: The state or stage.
        """
        with suppress(OSError):
            _write(_path(self._folders, job), {"type": kind, "name": name, "at": round(time.time(), 6)})
        self._notify(job, 0.0 if kind == STATE else _BATCH_SECONDS)

    def read(self, job: str, after: int = 0) -> list[Event]:
        """Returns the events of a job.

        Args:
            job: The job's ID.
            after: The number of the last known event.
        """
        found, _ = _read(_path(self._folders, job), 0)
        return [event for event in found if event.n > after]

    async def follow(self, job: str, after: int, is_ended: Callable[[], Awaitable[bool]]) -> AsyncIterator[list[Event]]:
        """Yields new events of a job as they happen, and an empty list as a heartbeat; ends with the job.

        Args:
            job: The job's ID.
            after: The number of the last known event.
            is_ended: Returns whether the job is deleted or in a final state; called without news.
        """
        path = _path(self._folders, job)
        quiet = place = 0
        is_notified = False
        with self._following(job) as follower:
            while True:
                found, place = _read(path, place)
                if news := [event for event in found if event.n > after]:
                    yield news
                    if news[-1].is_last:
                        return
                    quiet = 0
                elif quiet:
                    is_heartbeat = quiet % self._heartbeat_polls == 0
                    if is_heartbeat:
                        yield []
                    if (is_notified or is_heartbeat or quiet in _STATE_POLLS) and await is_ended():
                        if rest := _read(path, place)[0]:
                            yield rest
                        return
                polls = 4 if quiet >= 16 else 2 if quiet >= 8 else 1
                is_notified = await follower.wait(self._poll_seconds * polls)
                quiet += polls

    def wake(self) -> None:
        """Wakes all readers, so that they check whether there will be more events."""
        with self._lock:
            jobs = list(self._followers)
        for job in jobs:
            self._notify(job, 0.0)

    def _notify(self, job: str, delay: float) -> None:
        with self._lock:
            followers = list(self._followers.get(job, ()))
        for follower in followers:
            with suppress(RuntimeError):  # Its loop has ended.
                follower.loop.call_soon_threadsafe(follower.notify, delay)

    @contextmanager
    def _following(self, job: str) -> Iterator[_Follower]:
        follower = _Follower()
        with self._lock:
            self._followers.setdefault(job, []).append(follower)
        try:
            yield follower
        finally:
            with self._lock:
                self._followers[job].remove(follower)
                if not self._followers[job]:
                    del self._followers[job]


@lru_cache(1024)
def _path(folders: Folders, job: str) -> str:
    return os.fspath(folders.progress(job))


def _write(path: str, row: dict[str, Any]) -> None:
    """Appends an event to a file, with its number."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        known = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        line = json.dumps({"n": known.count(b"\n") + 1, **row}, allow_nan=False).encode()
        # Terminates a line that a full disk has truncated; readers ignore it.
        os.write(descriptor, (b"\n" if known and not known.endswith(b"\n") else b"") + line + b"\n")
    finally:
        os.close(descriptor)


def _read(path: str, place: int) -> tuple[list[Event], int]:
    """Returns the events in a file from an offset, and the offset after them."""
    try:
        if os.stat(path).st_size <= place:  # noqa: PTH116  # Most polls find no news, and a path object costs more.
            return [], place
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return [], place
    try:
        data = os.pread(descriptor, max(os.fstat(descriptor).st_size - place, 0), place)
    except OSError:
        return [], place
    finally:
        os.close(descriptor)
    end = data.rfind(b"\n") + 1
    lines = data[:end].split(b"\n")
    return [event for event in map(_event, lines) if event is not None], place + end


def _event(line: bytes) -> Event | None:
    if not line:
        return None
    try:
        row: dict[str, Any] = json.loads(line)
        return Event(int(row["n"]), str(row["type"]), str(row["name"]), float(row["at"]))
    except (ValueError, KeyError, TypeError):
        return None  # A full disk has truncated it.
