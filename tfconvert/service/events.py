"""Events of jobs, as lines in files: a reader may begin late, and on another server.

Who follows a job on the server that runs it is woken; what another server does is seen by looking now and then.
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
from typing import Any, NamedTuple

from tfconvert.service.folders import Folders
from tfconvert.service.job_state import JobState

STATE = "state"
STAGE = "stage"

_FINAL = frozenset(str(state) for state in JobState if state.is_final)
# Seconds between looks at a file, if nobody says that there is something new.
_PAUSE = 0.5

# Seconds within which stages are sent together: a small model goes through all in less than a second.
_TOGETHER = 0.1

# Looks without anything new after which it is asked whether there will be more.
_QUIET = 4

# Looks without anything new after which a sign of life is given.
_SILENT = 30


class Event(NamedTuple):
    """Something that happened to a job.

    Attributes:
        n: How many events there have been.
        type: `state` or `stage`.
        name: Which.
        at: When, in seconds since the epoch.
    """

    n: int
    type: str
    name: str
    at: float

    @property
    def is_last(self) -> bool:
        """Whether nothing follows, unless somebody asks for the job to be tried again."""
        return self.type == STATE and self.name in _FINAL


class _Follower:
    """Somebody who waits for news of a job, in an event loop.

    Attributes:
        loop: The loop.
        news: Set once there are some.
    """

    __slots__ = ("_is_told", "loop", "news")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self._is_told = False

    def tell(self, delay: float) -> None:
        """Sets `news`, now or soon; called in the loop."""
        if not delay:
            self.news.set()
        elif not self._is_told:
            self._is_told = True
            self.loop.call_later(delay, self.news.set)

    async def wait(self) -> bool:
        """Waits for news, but not for long; returns whether there should be some."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE):
                await self.news.wait()
        is_told = self.news.is_set()
        self.news.clear()
        self._is_told = False
        return is_told


class EventLog:
    """The events of all jobs of a data folder; used by several threads at once.

    Args:
        folders: The data folder.
    """

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._followers: dict[str, list[_Follower]] = {}

    def append(self, job: str, kind: str, name: str) -> None:
        """Notes an event; a disk without room must not stop the job, so that it may be lost.

        Args:
            job: The job's ID.
            kind: `STATE` or `STAGE`.
            name: Which.
        """
        try:
            _write(self._folders, job, {"type": kind, "name": name, "at": round(time.time(), 6)})
        except OSError:
            return
        self._tell(job, 0.0 if kind == STATE else _TOGETHER)

    def read(self, job: str, after: int = 0) -> list[Event]:
        """Returns the events of a job.

        Args:
            job: The job's ID.
            after: The number of the last event that is known.
        """
        found, _ = _read(self._folders, job, 0)
        return [event for event in found if event.n > after]

    async def follow(
        self, job: str, after: int, is_ended: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[Event | None]:
        """Yields the events of a job as they happen, and `None` now and then as a sign of life; ends with the job.

        Args:
            job: The job's ID.
            after: The number of the last event that is known.
            is_ended: Returns whether the job is in a final state, or gone; asked when nothing happens.
        """
        quiet = place = 0
        is_told = False
        with self._following(job) as follower:
            while True:
                found, place = _read(self._folders, job, place)
                for event in found:
                    if event.n > after:
                        quiet = 0
                        yield event
                if found and found[-1].is_last and found[-1].n > after:
                    return
                quiet += 1
                if ((quiet > 1 and is_told) or quiet % _QUIET == 0) and await is_ended():
                    for event in _read(self._folders, job, place)[0]:
                        yield event
                    return
                if quiet % _SILENT == 0:
                    yield None
                is_told = await follower.wait()

    def wake(self) -> None:
        """Wakes all who follow a job, so that they see whether there will be more."""
        with self._lock:
            jobs = list(self._followers)
        for job in jobs:
            self._tell(job, 0.0)

    def _tell(self, job: str, delay: float) -> None:
        with self._lock:
            followers = list(self._followers.get(job, ()))
        for follower in followers:
            with suppress(RuntimeError):  # Its loop has ended.
                follower.loop.call_soon_threadsafe(follower.tell, delay)

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


def _write(folders: Folders, job: str, row: dict[str, Any]) -> None:
    """Appends an event to a file, with its number."""
    descriptor = os.open(folders.progress(job), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        known = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        line = json.dumps({"n": known.count(b"\n") + 1, **row}).encode()
        # What a full disk has cut off is a line of its own, which nobody reads.
        os.write(descriptor, (b"\n" if known and not known.endswith(b"\n") else b"") + line + b"\n")
    finally:
        os.close(descriptor)


def _read(folders: Folders, job: str, place: int) -> tuple[list[Event], int]:
    """Returns the events in a file from a place on, and the place behind them."""
    try:
        descriptor = os.open(folders.progress(job), os.O_RDONLY)
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
        return None  # A disk without room has cut it off.
