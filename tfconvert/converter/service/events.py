"""What happens to jobs, as lines in files: whoever follows one may begin late, and on another server."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from tfconvert.converter.service.folders import Folders
from tfconvert.converter.service.job_state import JobState

STATE = "state"
STAGE = "stage"

_FINAL = frozenset(str(state) for state in JobState if state.is_final)
_PAUSE = 0.1
"""Seconds between looks at a file."""

_QUIET = 10
"""Looks without anything new after which it is asked whether there will be more."""

_SILENT = 150
"""Looks without anything new after which a sign of life is given."""


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


def append(folders: Folders, job: str, kind: str, name: str) -> None:
    """Notes an event; a disk without room must not stop the job, so that it may be lost.

    Args:
        folders: The service's folders.
        job: The job's ID.
        kind: `STATE` or `STAGE`.
        name: Which.
    """
    try:
        descriptor = os.open(folders.progress(job), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        known = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        row = json.dumps({"n": known.count(b"\n") + 1, "type": kind, "name": name, "at": round(time.time(), 6)})
        # What a full disk has cut off is a line of its own, which nobody reads.
        os.write(descriptor, (b"\n" if known and not known.endswith(b"\n") else b"") + row.encode() + b"\n")
    except OSError:
        return
    finally:
        os.close(descriptor)


def read(folders: Folders, job: str, after: int = 0) -> list[Event]:
    """Returns the events of a job.

    Args:
        folders: The service's folders.
        job: The job's ID.
        after: The number of the last event that is known.
    """
    try:
        data = folders.progress(job).read_bytes()
    except OSError:
        return []
    return [event for event in map(_event, data.split(b"\n")[:-1]) if event is not None and event.n > after]


async def follow(
    folders: Folders, job: str, after: int, is_ended: Callable[[], Awaitable[bool]]
) -> AsyncIterator[Event | None]:
    """Yields the events of a job as they happen, and `None` now and then as a sign of life; ends with the job.

    Args:
        folders: The service's folders.
        job: The job's ID.
        after: The number of the last event that is known.
        is_ended: Returns whether the job is in a final state, or gone; asked when nothing happens.
    """
    quiet = 0
    size = -1
    while True:
        current = _size(folders, job)
        news = read(folders, job, after) if current != size else []
        size = current
        for event in news:
            after = event.n
            quiet = 0
            yield event
        if news and news[-1].is_last:
            return
        quiet += 1
        if quiet % _QUIET == 0 and await is_ended():
            for event in read(folders, job, after):
                yield event
            return
        if quiet % _SILENT == 0:
            yield None
        await asyncio.sleep(_PAUSE)


def _size(folders: Folders, job: str) -> int:
    try:
        return folders.progress(job).stat().st_size
    except OSError:
        return -1


def _event(line: bytes) -> Event | None:
    try:
        row: dict[str, Any] = json.loads(line)
        return Event(int(row["n"]), str(row["type"]), str(row["name"]), float(row["at"]))
    except (ValueError, KeyError, TypeError):
        return None  # A disk without room has cut it off.
