"""Sources: where the bytes of a constant come from, as a slice of a mapped file or a buffer in memory.

A source gives its value whole, any box of it, or all of it as a sequence of blocks, for which it takes memory for a
block at a time only, however large the value is.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import boxes, types
from tfconvert.schema.dialects.boxes import Array, Box

BLOCK = 1 << 23
"""Size of a block in bytes: large enough that calls cost nothing, small enough to stay near the processor."""


class MappedFile:
    """A read-only file whose pages are mapped on first use and can be given back."""

    __slots__ = ("_map", "path", "size")

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = Path(path).stat().st_size
        self._map: mmap.mmap | None = None

    def view(self, offset: int, length: int) -> memoryview:
        """Returns `length` bytes from `offset`, without a copy."""
        if self._map is None:
            with Path(self.path).open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return memoryview(self._map)[offset : offset + length]

    def release(self, offset: int, length: int) -> None:
        """Gives the pages wholly inside a range back to a system that takes them; they are read anew when needed."""
        # Windows takes pages back when it needs them, and can't be asked to.
        advice = getattr(mmap, "MADV_DONTNEED", None)
        start = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (offset + length - start) // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and length > 0 and advice is not None:
            self._map.madvise(advice, start, length)


class Source(ABC):
    """Where the bytes of a constant come from. Sources are compared by identity."""

    __slots__ = ()

    @abstractmethod
    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        """Returns a box of the value, without a copy where possible; not to be written to.

        Args:
            dtype: Type of the value's elements.
            shape: The value's shape.
            box: What of it is needed.
        """

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Returns the value, C-contiguous, without a copy where possible; not to be written to."""
        return np.ascontiguousarray(self.part(dtype, shape, boxes.whole(shape))).reshape(shape)

    def blocks(self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK) -> Iterator[Array]:
        """Yields the value's elements in row-major order as C-contiguous arrays, none of them to be written to.

        Each block's memory is given back when the next one is asked for, so none should be kept.

        Args:
            dtype: Type of the value's elements.
            shape: The value's shape.
            size: About how many bytes a block may have.

        Raises:
            ConversionError: What was read is damaged (`bad-checksum`); that may be known after the last block only.
        """
        for box in boxes.split(boxes.whole(shape), shape, dtype.itemsize, size):
            yield np.ascontiguousarray(self.part(dtype, shape, box))
            self.release()

    @abstractmethod
    def release(self) -> None:
        """Gives memory back that can be had again."""

    @abstractmethod
    def fingerprint(self) -> Hashable:
        """Returns a key that equal sources share; unequal ones may collide only if `exact` bytes are compared."""


class FileSlice(Source):
    """Bytes of a memory-mapped file, checked against a checksum when they are first read.

    Attributes:
        file: The mapped file.
        offset: First byte.
        length: Number of bytes.
        crc32c: Unmasked CRC-32C of the bytes, `None` if the format has none.
        name: What the slice is, for error messages: a checkpoint key.
    """

    __slots__ = ("_checked", "_touched", "crc32c", "file", "length", "name", "offset")

    def __init__(self, file: MappedFile, offset: int, length: int, crc32c: int | None = None, name: str = "") -> None:
        self.file = file
        self.offset = offset
        self.length = length
        self.crc32c = crc32c
        self.name = name
        self._checked: bool = False
        # First byte that was read since the last release, and the one after the last.
        self._touched: tuple[int, int] | None = None

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        """Returns a view of the file, after all of the slice has been checked once.

        Raises:
            ConversionError: The bytes don't have the checksum that the file's index promises (`bad-checksum`).
        """
        if self.length == 0 or 0 in boxes.extent(box):
            return np.zeros(boxes.extent(box), dtype)
        if not self._checked:
            for _ in self._checked_pieces(BLOCK):
                pass
        low, high = (number * dtype.itemsize for number in boxes.offsets(box, shape))
        touched = self._touched or (low, high)
        self._touched = (min(low, touched[0]), max(high, touched[1]))
        data = np.frombuffer(self.file.view(self.offset, self.length), dtype)
        return boxes.view(data.reshape(shape), box)

    def blocks(self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK) -> Iterator[Array]:
        """Yields pieces of the file; its checksum is worked out on the way.

        Raises:
            ConversionError: The bytes don't have the checksum that the file's index promises (`bad-checksum`).
        """
        for piece in self._checked_pieces(max(dtype.itemsize, size // dtype.itemsize * dtype.itemsize)):
            yield np.frombuffer(piece, dtype)

    def _checked_pieces(self, size: int) -> Iterator[memoryview]:
        """Yields the bytes in pieces, each of which is given back when the next is asked for, and checks them all."""
        expected = None if self._checked else self.crc32c
        crc32c = 0
        for start in range(0, self.length, size):
            length = min(size, self.length - start)
            piece = self.file.view(self.offset + start, length)
            if expected is not None:
                crc32c = google_crc32c.extend(crc32c, np.frombuffer(piece, np.uint8))
            yield piece
            self.file.release(self.offset + start, length)
        if expected is not None and self.length and crc32c != expected:
            raise self._damaged()
        self._checked = True

    def _damaged(self) -> ConversionError:
        return error(
            "bad-checksum",
            f"the data of {self.name!r} in {self.file.path} is damaged: its CRC-32C is not the index's",
            hint="copy or download the model again",
        )

    def release(self) -> None:
        """Gives back the mapped pages that were read."""
        touched, self._touched = self._touched, None
        if touched is not None:
            self.file.release(self.offset + touched[0], touched[1] - touched[0])

    def fingerprint(self) -> Hashable:
        """Returns the checksum and length where known, else the place."""
        if self.crc32c is not None:
            return ("crc", self.crc32c, self.length)
        return ("file", id(self.file), self.offset, self.length)


class BufferSource(Source):
    """A value in memory."""

    __slots__ = ("value",)

    def __init__(self, value: Array) -> None:
        self.value = value

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Returns the buffer itself."""
        return self.value.view(dtype).reshape(shape) if self.value.dtype != object else self.value.reshape(shape)

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        """Returns a view of the buffer."""
        return boxes.view(self.array(dtype, shape), box)

    def release(self) -> None:
        """Does nothing: the buffer is the only copy."""

    def fingerprint(self) -> Hashable:
        """Returns a checksum of the contents and their length."""
        if self.value.dtype == object:
            return ("strings", tuple(self.value.ravel()))
        crc32c = 0
        for block in self.blocks(self.value.dtype, self.value.shape):
            crc32c = google_crc32c.extend(crc32c, block.reshape(-1).view(np.uint8))
        return ("crc", crc32c, self.value.nbytes)
