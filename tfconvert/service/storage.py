"""The service's files, uploads and results, in a directory that all servers of a database share.

A failure to write a file is a server error, not a client error. Each result is published atomically and is then
immutable.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from tfconvert.converter.targets.output_form import form_of
from tfconvert.schema.diagnostics import error
from tfconvert.service.jobs import JobRecord


@contextmanager
def storing() -> Iterator[None]:
    """A context manager for writing files of the service.

    Raises:
        ConversionError: Writing fails (`storage-failed`).
    """
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or os.strerror(errno.EIO)
        raise error(
            "storage-failed", f"the server can't keep files: {reason}", hint="make room on its disk, or try again later"
        ) from problem


def sync(path: Path) -> None:
    """Flushes a file, or the names in a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


REPORT = "report.json"
PAGE = "report.html"
LOG = "log.txt"


def result_name(settings: Mapping[str, Any]) -> str:
    """Returns the name of a job's result, with the extension of the target.

    Args:
        settings: The job's settings.
    """
    return f"model{form_of('', settings).ending}"


class Folders:
    """The layout of the data directory.

    Args:
        data: The directory, created if missing; only this user can read it.

    Attributes:
        database: The file of the embedded database.
        installation: The file with the ID of the database that belongs to it.
        incoming: Uploads that are not complete.
        models: The uploads, named by the SHA-256 of their contents.
        jobs: The working directories of attempts.
        results: The results; each directory is published atomically.
        events: A file of progress for each job.
        servers: A locked file for each server that runs on this machine.
    """

    def __init__(self, data: Path) -> None:
        # Jobs run in directories of their own.
        data = data.absolute()
        self.data = data
        self.database = data / "service.db"
        self.installation = data / "installation"
        self.incoming = data / "incoming"
        self.models = data / "models"
        self.jobs = data / "jobs"
        self.results = data / "results"
        self.events = data / "events"
        self.servers = data / "servers"

    def create(self) -> None:
        """Creates missing directories.

        Raises:
            ConversionError: It fails (`storage-failed`).
        """
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.incoming, self.models, self.jobs, self.results, self.events, self.servers):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise error(
                "storage-failed",
                f"the directory {self.data} can't be used: {problem.strerror}",
                hint="name another one with --data",
            ) from None

    @property
    def is_empty(self) -> bool:
        """Whether no file belongs to rows of a database."""
        return not any(any(folder.iterdir()) for folder in (self.models, self.results, self.events))

    def model(self, sha256: str) -> Path:
        """Returns the path of an uploaded file."""
        return self.models / sha256

    def attempt(self, job: str, attempt: int) -> Path:
        """Returns the working directory of an attempt, with `model/` and `out/`."""
        return self.jobs / job / str(attempt)

    def result(self, job: str, attempt: int) -> Path:
        """Returns the directory of an attempt's result."""
        return self.results / job / str(attempt)

    def progress(self, job: str) -> Path:
        """Returns the file of a job's events."""
        return self.events / f"{job}.jsonl"

    def lock(self, server: str) -> Path:
        """Returns the file that a server keeps locked while it runs."""
        return self.servers / f"{server}.lock"


# Maximum number of parts that are written without joining them.
_MAX_PARTS = 64


class Upload(NamedTuple):
    """An uploaded file.

    Attributes:
        sha256: The digest of its bytes, and its name below `models/`.
        size: Its bytes.
    """

    sha256: str
    size: int


class Incoming:
    """An upload in progress, as a context manager: its file is removed afterwards unless it is kept.

    Args:
        folders: The service's directories.
        most: The maximum number of bytes.
        what: The name of its field, for messages.
    """

    def __init__(self, folders: Folders, most: int, what: str = "model") -> None:
        self._folders = folders
        self._folder = folders.incoming / secrets.token_hex(16)
        self._part = self._folder / f"{what}.part"
        self._most = most
        self._what = what
        self._digest = hashlib.sha256()
        self._descriptor = -1
        # A thread may still be writing when the upload breaks off, and the descriptor's number be in use again.
        self._turn = threading.Lock()
        self.size = 0

    def __enter__(self) -> Incoming:
        """Creates the file."""
        with ExitStack() as undo:
            undo.callback(self.discard)
            with storing():
                self._folder.mkdir(0o700)
                self._descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the file."""
        self.discard()

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Appends bytes, as they were received.

        Raises:
            ConversionError: They are too many (`upload-too-large`), or can't be written (`storage-failed`).
        """
        self.size += sum(map(len, parts))
        if self.size > self._most:
            raise error(
                "upload-too-large",
                f"the {self._what} has more than {self._most} bytes",
                hint="pack it, or name a place that the server can read",
            )
        if len(parts) > _MAX_PARTS:
            parts = [b"".join(parts)]
        for part in parts:
            self._digest.update(part)
        with self._turn, storing():
            written = os.writev(self._descriptor, parts) if parts else 0
            for part in parts:
                rest = memoryview(part)[written:]
                written = max(written - len(part), 0)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]

    def keep(self) -> Upload:
        """Moves the complete file to where jobs find it; it survives a loss of power."""
        upload = Upload(self._digest.hexdigest(), self.size)
        with self._turn, storing():
            os.fsync(self._descriptor)
            # An equal file is replaced, so that the janitor does not take it for an old one.
            self._part.replace(self._folders.model(upload.sha256))
            sync(self._folders.models)
        return upload

    def discard(self) -> None:
        """Removes the file."""
        with self._turn:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
        remove(self._folder)


def publish(folders: Folders, job: JobRecord, *, is_failed: bool = False) -> None:
    """Publishes the files of an attempt.

    Args:
        folders: The service's directories.
        job: The job.
        is_failed: Whether to publish the log alone.
    """
    out = folders.attempt(job.id, job.attempt) / "out"
    result = folders.result(job.id, job.attempt)
    with storing():
        for path in out.iterdir():
            # A job that ran other people's code may have left anything there, such as a link to a file of the service.
            if (is_failed and path.name != LOG) or not _is_own(path):
                remove(path)
            else:
                sync(path)
        sync(out)
        result.parent.mkdir(mode=0o700, exist_ok=True)
        remove(result)
        out.rename(result)
        sync(result.parent)


def _is_own(path: Path) -> bool:
    """Returns whether a path is a file, and has no other name."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def link(folders: Folders, source: JobRecord, job: str, attempt: int) -> bool:
    """Links the result of an equal job to a job; returns whether there is one.

    Args:
        folders: The service's directories.
        source: The equal job.
        job: The job's ID.
        attempt: Which attempt of it gets the result.
    """
    result = folders.result(job, attempt)
    part = result.with_name(f"{attempt}.part")
    is_there = False
    try:
        with storing():
            try:
                _copy(folders.result(source.id, source.result_attempt), part)
                is_there = True
            except FileNotFoundError:
                return False
            remove(result)
            part.rename(result)
            sync(result.parent)
    finally:
        if not is_there:
            remove(part)
    return True


def remove(path: Path) -> None:
    """Removes a file or a directory with all in it, and ignores failures.

    The directories in it are first moved up into it, since they may be nested deeper than a path can be long.
    """
    if path.is_symlink() or not path.is_dir():
        _remove(path)
        return
    moved = [os.fspath(path)]
    prefix = os.path.join(path, f"removed-{secrets.token_hex(8)}-")  # noqa: PTH118  # There may be many.
    # Each directory is read when it is in the list, and removed once all of its own are.
    for folder in moved:
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                _move_up(entry.path, f"{prefix}{len(moved)}", moved)
            else:
                _remove(Path(entry.path))
    for folder in reversed(moved):
        with suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106


def _move_up(folder: str, target: str, moved: list[str]) -> None:
    with suppress(OSError):
        os.chmod(folder, 0o700)  # noqa: PTH101  # Moving a directory changes its entry for the parent.
        os.rename(folder, target)  # noqa: PTH104
        moved.append(target)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def remove_job(folders: Folders, job: str) -> None:
    """Removes all files of a deleted job, except the model."""
    for path in (folders.results / job, folders.jobs / job, folders.progress(job)):
        remove(path)


def _copy(result: Path, part: Path) -> None:
    remove(part)
    part.mkdir(mode=0o700, parents=True)
    for path in result.iterdir():
        _link(path, part / path.name)


def _link(path: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(path)
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP):
            raise
        shutil.copyfile(path, copy)
        sync(copy)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # The janitor tries again.
