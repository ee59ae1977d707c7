"""Input files: regular ones only, which can't block or be endless.

A pipe, a device or a socket in a file's place, or a link to one, is an `OSError` as a missing file is, and so is a path
that no file can have. What is opened is looked at before and after: nothing but a regular file is ever opened, and
nothing else can take its place in between.
"""

from __future__ import annotations

import errno
import os
import stat
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tfconvert.schema.diagnostics import ConversionError, error

LARGEST = (1 << 31) - 1
"""Maximum size of a file that is read at once: no message of protocol buffers is larger."""

# Windows has no pipes or terminals among files, but text files, which are read with other bytes than they contain.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))

# Systems read less than 2 GiB at once.
_READ = 1 << 30

_CAN_READ_INTO = hasattr(os, "preadv")

# Held where a file can only be read at its own position.
_TURN = allocate_lock()

AnyPath = str | os.PathLike[str]


def is_file(path: AnyPath) -> bool:
    """Returns whether a path leads to a regular file; `False` if that can't be checked."""
    return _has_mode(path, stat.S_ISREG)


def is_folder(path: AnyPath) -> bool:
    """Returns whether a path leads to a directory; `False` if that can't be checked."""
    return _has_mode(path, stat.S_ISDIR)


def is_missing(path: AnyPath) -> bool:
    """Returns whether a path leads to nothing; `False` if that can't be checked."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def open_file(path: AnyPath, *, follow_links: bool = True) -> int:
    """Returns the descriptor of a regular file that is open for reading.

    Args:
        path: The file's path.
        follow_links: Whether the path may be a link.

    Raises:
        OSError: There is no such file, it can't be opened, or it is not a regular file.
    """
    if not os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, "the path is empty")
    try:
        _check(Path(path).stat(follow_symlinks=follow_links))
        descriptor = os.open(path, _FLAGS | (0 if follow_links else getattr(os, "O_NOFOLLOW", 0)))
    except ValueError as problem:
        # A zero byte, or a character that is missing in the system's encoding.
        raise OSError(errno.EINVAL, "no file can have this name") from problem
    try:
        _check(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_file(path: AnyPath, limit: int = LARGEST) -> bytes:
    """Returns the bytes of a regular file.

    Args:
        path: The file's path.
        limit: The maximum number of bytes.
    """
    return read_all(open_file(path), limit)


def read_input(path: AnyPath) -> bytes:
    """Returns the bytes of a file that the user names.

    Raises:
        ConversionError: It can't be read (`unreadable-file`).
    """
    try:
        return read_file(path)
    except OSError as problem:
        raise error("unreadable-file", f"can't read {os.fspath(path)}: {problem.strerror}") from None


def read_all(descriptor: int, limit: int = LARGEST) -> bytes:
    """Returns the current bytes of an open file and closes it.

    Raises:
        OSError: It can't be read, or is larger than the limit.
    """
    with open(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise OSError(errno.EFBIG, f"it has {size} bytes, more than the {limit} that are read at once")
        pieces = []
        while size > 0 and (piece := file.read(min(size, _READ))):
            pieces.append(piece)
            size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class InputFile:
    """A regular file whose bytes are read on demand.

    It isn't mapped: touching pages of a mapped file that was truncated kills the process.

    Attributes:
        path: Its path, for messages.
        size: Its size in bytes when it was opened.
    """

    __slots__ = ("_descriptor", "_identity", "path", "size")

    def __init__(self, path: AnyPath, descriptor: int | None = None, *, stays_open: bool = True) -> None:
        """Opens a file.

        Args:
            path: Its path.
            descriptor: The file, if it is open already; it is closed with this object.
            stays_open: Whether it stays open; if not, it is opened again for each part that is read.
        """
        self._descriptor: int | None = open_file(path) if descriptor is None else descriptor
        self.path = os.fspath(path)
        state = os.fstat(self._descriptor)
        self.size = state.st_size
        self._identity = (state.st_dev, state.st_ino)
        if not stays_open:
            self.close()

    def read_into(self, offset: int, target: memoryview) -> None:
        """Fills memory with the bytes from an offset."""
        if self._descriptor is not None:
            self._fill(self._descriptor, offset, target)
            return
        with self._opened() as descriptor:
            self._fill(descriptor, offset, target)

    def read_rows(self, offset: int, pitch: int, target: memoryview, length: int) -> None:
        """Fills memory with rows of the same length, the first from an offset, each a pitch after the one before."""
        with self._opened() as descriptor:
            for start in range(0, len(target), length):
                row = target[start : start + length]
                # What is read in one call, nearly always, needs no other to find that out.
                if not _CAN_READ_INTO or os.preadv(descriptor, (row,), offset) != length:
                    self._fill(descriptor, offset, row)
                offset += pitch

    def close(self) -> None:
        """Closes the file; later reads open the path again, if that is still the same file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # As the interpreter exits, the names of modules may be gone before the last file is.
        descriptor = getattr(self, "_descriptor", None)
        if descriptor is not None:
            close(descriptor)

    def _fill(self, descriptor: int, offset: int, target: memoryview) -> None:
        filled = 0
        try:
            # What is read in one call, nearly always, needs no other to find that out.
            if _CAN_READ_INTO and os.preadv(descriptor, (target,), offset) == len(target):
                return
            while filled < len(target):
                count = _read_at(descriptor, target[filled : filled + _READ], offset + filled)
                if not count:
                    raise self._changed("is shorter now than when it was opened")
                filled += count
        except OSError as problem:
            raise self._changed(f"can no longer be read: {problem.strerror}") from problem

    @contextmanager
    def _opened(self) -> Iterator[int]:
        if self._descriptor is not None:
            yield self._descriptor
            return
        descriptor = self._reopened()
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _reopened(self) -> int:
        try:
            descriptor = open_file(self.path)
        except OSError as problem:
            raise self._changed(f"can't be opened again: {problem.strerror}") from problem
        state = os.fstat(descriptor)
        if (state.st_dev, state.st_ino) != self._identity:
            os.close(descriptor)
            raise self._changed("is no longer the file that was opened")
        return descriptor

    def _changed(self, what: str) -> ConversionError:
        return error(
            "changed-input", f"{self.path} {what}", hint="don't change the model's files during the conversion"
        )


def _read_at(descriptor: int, target: memoryview, offset: int) -> int:
    """Reads into memory from an offset, and returns the number of bytes."""
    if _CAN_READ_INTO:
        return os.preadv(descriptor, [target], offset)
    with _TURN:
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(target))
    target[: len(data)] = data
    return len(data)


def _check(state: os.stat_result) -> None:
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _has_mode(path: AnyPath, test: Callable[[int], bool]) -> bool:
    try:
        return test(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False
