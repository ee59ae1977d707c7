"""Removes old jobs, and files that a server left when it died.

A file is left over if no row of the database needs it. A server may be about to write that row, so a file is removed
only after it was left over and unchanged for some time, by this process's monotonic clock, or at the start if no other
server is alive. A transaction in which no job can be submitted checks this again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, select

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.tables import JOBS, SERVERS
from tfconvert.service.jobs import JobState
from tfconvert.service.leases import Lease
from tfconvert.service.storage import Folders, remove
from tfconvert.service.store import JobStore

LEFT_OVER_SECONDS = 600.0
"""Seconds before a leftover file is removed."""

_UPLOAD_SECONDS = 3600.0
_DAY = 86400.0
# Maximum number of parameters of a query.
_MAX_PARAMETERS = 500

T = TypeVar("T")

_FINAL = [state for state in JobState if state.is_final]


class _FileKind(NamedTuple):
    """A kind of files.

    Attributes:
        paths: Lists them.
        needed: Returns the paths that are needed.
        seconds: Seconds before a leftover file is removed.
    """

    paths: Callable[[], Iterator[Path]]
    needed: Callable[[Connection, Iterable[Path]], set[Path]]
    seconds: float


class Janitor:
    """Removes old jobs and files; used by one thread.

    Args:
        store: The jobs.
        folders: The data directory.
        config: The server's settings.
        lease: The lease, which knows the other servers.
        monotonic: The clock.
    """

    def __init__(
        self,
        store: JobStore,
        folders: Folders,
        config: ServiceConfig,
        lease: Lease,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._folders = folders
        self._config = config
        self._lease = lease
        self._monotonic = monotonic
        self._since: dict[Path, tuple[object, float]] = {}
        self._kinds = (
            _FileKind(lambda: _listed(folders.incoming), lambda connection, paths: set(), _UPLOAD_SECONDS),
            _FileKind(lambda: _listed(folders.models), _needed_models, LEFT_OVER_SECONDS),
            _FileKind(lambda: _grandchildren(folders.jobs), _needed_attempts, LEFT_OVER_SECONDS),
            _FileKind(lambda: _grandchildren(folders.results), _needed_results, LEFT_OVER_SECONDS),
            _FileKind(lambda: _listed(folders.events), _needed_events, LEFT_OVER_SECONDS),
            _FileKind(lambda: _listed(folders.servers), _needed_locks, LEFT_OVER_SECONDS),
        )

    def clean(self, *, is_start: bool = False) -> int:
        """Removes all files that can be removed now; returns the number of files and directories.

        Args:
            is_start: Whether this server takes no requests and runs no jobs yet.
        """
        self._forget_old()
        found = [(kind, _plain(kind.paths())) for kind in self._kinds]
        # If no other server is alive now, no server can need the existing files.
        is_alone = is_start and self._lease.is_alone()
        known, self._since = self._since, {}
        count = 0
        for kind, paths in found:
            with self._store.database.read() as connection:
                left = sorted(set(paths) - kind.needed(connection, paths))
            ripe = left if is_alone else [path for path in left if self._is_ripe(path, kind.seconds, known)]
            for some in _parts(ripe):
                count += self._remove(kind, some)
        return count

    def _forget_old(self) -> None:
        """Deletes jobs that ended long ago."""
        if not self._config.keep_days:
            return
        before = time.time() - self._config.keep_days * _DAY
        query = select(JOBS.c.id).where(JOBS.c.state.in_(_FINAL), JOBS.c.finished < before)
        with self._store.database.read() as connection:
            old = list(connection.execute(query).scalars())
        for job in old:
            try:
                self._store.delete(job, None)
            except ConversionError as problem:
                if problem.code not in ("job-not-found", "job-state"):  # Another server was faster.
                    raise

    def _is_ripe(self, path: Path, seconds: float, known: Mapping[Path, tuple[object, float]]) -> bool:
        now = self._monotonic()
        state = _state_of(path)
        before, since = known.get(path, (state, now))
        if before != state:
            since = now
        self._since[path] = (state, since)
        return now - since >= seconds

    def _remove(self, kind: _FileKind, paths: Sequence[Path]) -> int:
        trash = self._folders.incoming / f"trash-{secrets.token_hex(8)}"
        with self._store.database.write(is_exclusive=True) as connection:
            gone = sorted(set(paths) - kind.needed(connection, paths))
            for number, path in enumerate(gone):
                _move(path, trash / str(number))
        # Outside the transaction, since deleting may take long.
        remove(trash)
        for parent in {path.parent for path in gone}:
            if parent.parent in (self._folders.jobs, self._folders.results):
                _remove_empty(parent)
        return len(gone)


def _parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Yields the items in lists that are short enough for a query."""
    rest = iter(items)
    while some := list(islice(rest, _MAX_PARAMETERS)):
        yield some


def _move(path: Path, target: Path) -> None:
    try:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        path.rename(target)
    except OSError:
        return  # It is gone already, or the next round removes it.


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def _plain(paths: Iterable[Path]) -> list[Path]:
    """Returns the paths whose names the service may have given: databases refuse to compare with some others."""
    return [path for path in paths if path.name.isascii() and path.parent.name.isascii()]


def _grandchildren(folder: Path) -> Iterator[Path]:
    """Yields the contents of the directories of jobs, and the empty directories."""
    for each in _listed(folder):
        inside = list(_listed(each))
        yield from inside or [each]


def _listed(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:
        return


def _state_of(path: Path) -> object:
    """Returns inodes, sizes and times, which change when a server writes to a file or directory."""
    states = []
    for each in chain([path], _listed(path)):
        try:
            stat = each.stat(follow_symlinks=False)
            states.append((each.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            continue
    return sorted(states)


def _needed_models(connection: Connection, paths: Iterable[Path]) -> set[Path]:
    """Returns the uploads of all jobs: one that succeeded may be converted again, or its report get its page."""
    needed: set[Path] = set()
    for some in _parts(paths):
        names = {path.name: path for path in some}
        for column in (JOBS.c.model_sha256, JOBS.c.calibration_sha256):
            query = select(column).where(column.in_(names)).distinct()
            needed.update(names[name] for name in connection.execute(query).scalars())
    return needed


def _rows(connection: Connection, jobs: Iterable[str]) -> dict[str, tuple[str, int, int]]:
    found: dict[str, tuple[str, int, int]] = {}
    for some in _parts(jobs):
        query = select(JOBS.c.id, JOBS.c.state, JOBS.c.attempt, JOBS.c.result_attempt).where(JOBS.c.id.in_(some))
        found.update((row.id, (row.state, row.attempt, row.result_attempt)) for row in connection.execute(query))
    return found


def _needed_attempts(connection: Connection, paths: Iterable[Path]) -> set[Path]:
    paths = list(paths)
    rows = _rows(connection, {path.parent.name for path in paths})
    return {path for path in paths if _runs(rows.get(path.parent.name), path.name)}


def _needed_results(connection: Connection, paths: Iterable[Path]) -> set[Path]:
    paths = list(paths)
    rows = _rows(connection, {path.parent.name for path in paths})
    return {path for path in paths if _runs(row := rows.get(path.parent.name), path.name) or _counts(row, path.name)}


def _runs(row: tuple[str, int, int] | None, attempt: str) -> bool:
    return row is not None and row[0] == JobState.RUNNING and str(row[1]) == attempt


def _counts(row: tuple[str, int, int] | None, attempt: str) -> bool:
    return row is not None and row[2] > 0 and str(row[2]) == attempt


def _needed_events(connection: Connection, paths: Iterable[Path]) -> set[Path]:
    paths = list(paths)
    rows = _rows(connection, {path.stem for path in paths})
    return {path for path in paths if path.stem in rows}


def _needed_locks(connection: Connection, paths: Iterable[Path]) -> set[Path]:
    paths = list(paths)
    alive = set(connection.execute(select(SERVERS.c.id)).scalars())
    return {path for path in paths if path.stem in alive}
