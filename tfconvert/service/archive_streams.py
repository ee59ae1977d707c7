"""Files as readers of archives see them: no archive decides how much is read at once, or for how long."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Protocol

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.entry_names import refused

_CHUNK = 1 << 15
_LONGEST_READ = 1 << 20
# Bytes of all that a tar says of its entries.
_MAX_HEADERS = 1 << 26

# zlib's number of the format.
_GZIP = 31


class Readable(Protocol):
    """A stream that is read part by part."""

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, none at the end."""


class _Stream(Readable, Protocol):
    def tell(self) -> int: ...


class DirectoryReader(io.RawIOBase):
    """A zip, whose directory is read at once.

    Args:
        file: The file.
        longest: Bytes that the directory may have.
    """

    def __init__(self, file: IO[bytes], longest: int) -> None:
        super().__init__()
        self._file = file
        self._longest = max(longest, _LONGEST_READ)

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes.

        Raises:
            ConversionError: These are more than are read at once (`bad-archive`).
        """
        if size > self._longest:
            raise _too_much()
        data = self._file.read(size if size >= 0 else self._longest + 1)
        if len(data) > self._longest:
            raise _too_much()
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to another place, and returns it."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Returns the place."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Returns that the place can be chosen."""
        return True

    def readable(self) -> bool:
        """Returns that it can be read."""
        return True


class ForwardReader(io.RawIOBase):
    """A tar, which is read forward; its headers are counted.

    Args:
        stream: The file, or what is inflated of it.

    Attributes:
        last: What was read last.
    """

    def __init__(self, stream: _Stream) -> None:
        super().__init__()
        self.last = b""
        self._stream = stream
        self._headers = 0
        self._is_content = False

    @contextmanager
    def content(self, place: int, size: int) -> Iterator[Readable]:
        """A context in which a file's bytes are read, straight from the archive, rather than what is said of it.

        Args:
            place: Where they begin.
            size: How many they are.

        Yields:
            The bytes.
        """
        self.seek(place)
        self._is_content = True
        yield _Content(self, size)
        self._is_content = False

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes.

        Raises:
            ConversionError: These are more than are read at once, or of headers at all (`bad-archive`).
        """
        if not 0 <= size <= _LONGEST_READ:
            raise _too_much()
        if not self._is_content:
            self._headers += size
            if self._headers > _MAX_HEADERS:
                raise _too_much()
        self.last = self._stream.read(size)
        return self.last

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves forward, and returns the place.

        Raises:
            ConversionError: The place is behind (`bad-archive`), or too far ahead, where no header can be.
        """
        distance = offset - self._stream.tell()
        if whence != os.SEEK_SET or not 0 <= distance <= _CHUNK:
            raise refused("its entries overlap, or are torn apart")
        self._stream.read(distance)
        return self._stream.tell()

    def tell(self) -> int:
        """Returns the place."""
        return self._stream.tell()

    def seekable(self) -> bool:
        """Returns that a place ahead can be chosen."""
        return True

    def readable(self) -> bool:
        """Returns that it can be read."""
        return True


class _Content:
    """So many of a stream's next bytes."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self._rest = size

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, none at the end.

        Raises:
            EOFError: The stream ends before.
        """
        data = self._stream.read(min(size, self._rest))
        self._rest -= len(data)
        if self._rest and not data:
            raise EOFError("it ends in the middle")
        return data


class Inflated:
    """The inflated contents of a gzip file, read forward.

    Python's own reader goes through names and empty parts at the beginning for as long as there are some.

    Args:
        file: The file.
        spend: Called with 0 for each part of the file that is read, so that the time is looked at.
    """

    def __init__(self, file: IO[bytes], spend: Callable[[int], None]) -> None:
        self._file = file
        self._spend = spend
        self._decoder = zlib.decompressobj(wbits=_GZIP)
        self._packed = b""
        self._place = 0

    def tell(self) -> int:
        """Returns how many bytes were read."""
        return self._place

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, as many as wanted unless there are fewer."""
        parts = []
        while size and (part := self._part(size)):
            parts.append(part)
            size -= len(part)
            self._place += len(part)
        return b"".join(parts)

    def _part(self, size: int) -> bytes:
        """Returns some of the next bytes, none at the end."""
        while True:
            self._spend(0)
            if self._decoder.eof and not self._begin_next():
                return b""
            packed = self._packed or self._file.read(_CHUNK)
            # Without more to read, the decoder may still hold something.
            part = self._decoder.decompress(packed, size)
            self._packed = self._decoder.unconsumed_tail
            if part:
                return part
            if not packed and not self._decoder.eof:
                raise EOFError("it ends in the middle")

    def _begin_next(self) -> bool:
        """Goes on to the next part of the file, and returns whether there is one; zeros may be at the end."""
        packed = self._decoder.unused_data.lstrip(b"\0")
        while not packed and (more := self._file.read(_CHUNK)):
            self._spend(0)
            packed = more.lstrip(b"\0")
        if packed:
            self._packed = packed
            self._decoder = zlib.decompressobj(wbits=_GZIP)
        return bool(packed)


def _too_much() -> ConversionError:
    return refused("the archive says more of its entries than a model's folder needs")
