"""Sources: where the bytes of a constant come from, as a slice of a file or a buffer in memory.

A source returns its whole value, any box of it, or a sequence of blocks, of which only one at a time is in memory.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Any

import google_crc32c
import numpy as np

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import boxes, types
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.files import InputFile

BLOCK = 1 << 23
"""Size of a block in bytes: large enough that calls are cheap, small enough to stay in the processor's cache."""

# Bytes of a file that are read at once to be copied: they are still in the processor's cache when they are written.
_PIECE = 1 << 20

# Bytes of a file that are read at once if few of them are kept.
_SIFTED = 1 << 16

# Number of useless bytes whose reading costs as much as one more call.
_GAP = 1 << 14


class DataSource(ABC):
    """Where the bytes of a constant come from. Sources are compared by identity."""

    __slots__ = ()

    @abstractmethod
    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        """Returns a box of the value, without a copy where possible; not to be written to.

        Args:
            dtype: Type of the value's elements.
            shape: The value's shape.
            box: The required part.
        """

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        """Returns the value, C-contiguous, without a copy where possible; not to be written to."""
        return np.ascontiguousarray(self.part(dtype, shape, boxes.whole(shape))).reshape(shape)

    def pieces(
        self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK, box: Box | None = None
    ) -> Iterator[tuple[Box, Array]]:
        """Yields the boxes that make up the value, in row-major order, and their elements, not to be written to.

        Each array's memory is released when the next one is requested, so none may be kept.

        Args:
            dtype: Type of the value's elements.
            shape: The value's shape.
            size: Approximate maximum size of an array in bytes.
            box: The required part; everything by default.
        """
        for part in boxes.split(boxes.whole(shape) if box is None else box, shape, dtype.itemsize, size):
            yield part, self.part(dtype, shape, part)
            self.release()

    def blocks(self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK) -> Iterator[Array]:
        """Yields the arrays of `pieces`, C-contiguous."""
        for _, block in self.pieces(dtype, shape, size):
            yield np.ascontiguousarray(block)
            del block  # before the next one is made

    @abstractmethod
    def release(self) -> None:
        """Releases memory that can be read again."""

    @abstractmethod
    def fingerprint(self) -> Hashable:
        """Returns a key that equal sources share; others may only have it if `exact` bytes are compared."""


def bytes_of(file: InputFile, offset: int, length: int) -> Array:
    """Returns a range of a file."""
    data = np.empty(length, np.uint8)
    file.read_into(offset, data.data)
    return data


class FileSlice(DataSource):
    """Bytes of a file, checked against a checksum when they are first read.

    They are copied block by block, so that a change of the file in the meantime causes an error at most.

    Attributes:
        file: The file.
        offset: First byte.
        length: Number of bytes.
        crc32c: Unmasked CRC-32C of the bytes, `None` if the format has none.
        name: The name of the slice for error messages: a checkpoint key.
    """

    __slots__ = ("_checked", "crc32c", "file", "length", "name", "offset")

    def __init__(self, file: InputFile, offset: int, length: int, crc32c: int | None = None, name: str = "") -> None:
        self.file = file
        self.offset = offset
        self.length = length
        self.crc32c = crc32c
        self.name = name
        self._checked: bool = crc32c is None

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        if self.length == 0 or 0 in boxes.extent(box):
            return np.zeros(boxes.extent(box), dtype)
        if not self._checked:
            if self.length <= _SIFTED or boxes.extent(box) == shape:
                return boxes.view(self._whole().view(dtype).reshape(shape), box)
            self._check()
        result: Array = np.empty(boxes.extent(box), dtype)
        _read(self.file, self.offset, result, shape, box)
        return result

    def pieces(
        self, dtype: np.dtype[Any], shape: types.Shape, size: int = BLOCK, box: Box | None = None
    ) -> Iterator[tuple[Box, Array]]:
        if box not in (None, boxes.whole(shape)):
            yield from super().pieces(dtype, shape, size, box)
            return
        is_new = not self._checked
        crc32c = position = 0
        for part in boxes.split(boxes.whole(shape), shape, dtype.itemsize, min(size, _PIECE)):
            extent = boxes.extent(part)
            piece = bytes_of(self.file, self.offset + position, math.prod(extent) * dtype.itemsize)
            position += piece.size
            if is_new:
                crc32c = google_crc32c.extend(crc32c, piece)
            yield part, piece.view(dtype).reshape(extent)
            del piece  # before the next one is made
        if is_new and position:
            self._compare(crc32c)

    def _whole(self) -> Array:
        """Returns all bytes; each piece is checked while it is in the processor's cache."""
        data = np.empty(self.length, np.uint8)
        crc32c = 0
        for start in range(0, self.length, _PIECE):
            piece = data[start : start + _PIECE]
            self.file.read_into(self.offset + start, piece.data)
            crc32c = google_crc32c.extend(crc32c, piece)
        self._compare(crc32c)
        return data

    def _check(self) -> None:
        """Reads all bytes in pieces to verify the checksum."""
        crc32c = 0
        buffer = np.empty(_SIFTED, np.uint8)
        for start in range(0, self.length, _SIFTED):
            piece = buffer[: min(_SIFTED, self.length - start)]
            self.file.read_into(self.offset + start, piece.data)
            crc32c = google_crc32c.extend(crc32c, piece)
        self._compare(crc32c)

    def _compare(self, crc32c: int) -> None:
        if crc32c != self.crc32c:
            raise error(
                "bad-checksum",
                f"the data of {self.name!r} in {self.file.path} is damaged: its CRC-32C differs from the index",
                hint="copy or download the model again",
            )
        self._checked = True

    def release(self) -> None:
        """Does nothing: bytes that were read are not cached."""

    def fingerprint(self) -> Hashable:
        if self.crc32c is not None:
            return ("crc", self.crc32c, self.length)
        return ("file", id(self.file), self.offset, self.length)


def _read(file: InputFile, offset: int, target: Array, shape: types.Shape, box: Box) -> None:
    """Reads a box that isn't empty: at once if it is contiguous, several rows at a time if gaps are small."""
    low, high = (number * target.itemsize for number in boxes.offsets(box, shape))
    low, span = offset + low, high - low
    if span == target.nbytes:
        file.read_into(low, target.reshape(-1).view(np.uint8).data)
        return
    axis = next(at for at, count in enumerate(target.shape) if count > 1)
    rows = target.reshape(target.shape[axis:])
    pitch = math.prod(shape[axis + 1 :]) * target.itemsize
    length = span - (len(rows) - 1) * pitch
    if pitch - rows[0].nbytes <= _GAP:
        _sift(file, rows, low, length, shape[axis:])
    elif length == rows[0].nbytes:
        file.read_rows(low, pitch, rows.reshape(-1).view(np.uint8).data, length)
    else:
        for index, row in enumerate(rows):
            own = (slice(0, part.stop - part.start) for part in box[axis + 1 :])
            _read(file, low + index * pitch, row, shape[axis + 1 :], tuple(own))


def _sift(file: InputFile, target: Array, low: int, length: int, shape: types.Shape) -> None:
    """Reads rows including gaps between their elements.

    Args:
        file: The file.
        target: The elements.
        low: The position of the first in the file.
        length: Bytes from a row's first element to its last.
        shape: The shape of the whole tensor.
    """
    strides = tuple(math.prod(shape[axis + 1 :]) * target.itemsize for axis in range(len(shape)))
    count = max(1, _SIFTED // strides[0])
    buffer = np.empty((min(count, len(target)) - 1) * strides[0] + length, np.uint8)
    for start in range(0, len(target), count):
        part = target[start : start + count]
        needed = (len(part) - 1) * strides[0] + length
        file.read_into(low + start * strides[0], buffer[:needed].data)
        part[...] = np.ndarray(part.shape, target.dtype, buffer, 0, strides)


class MemorySource(DataSource):
    """A weight in memory, which passes look into as little as into one in a file."""

    __slots__ = ("value",)

    def __init__(self, value: Array) -> None:
        self.value = value

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        return self.value.view(dtype).reshape(shape)

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        return boxes.view(self.array(dtype, shape), box)

    def release(self) -> None:
        """Does nothing: the buffer is the only copy."""

    def fingerprint(self) -> Hashable:
        crc32c = 0
        for block in self.blocks(self.value.dtype, self.value.shape):
            crc32c = google_crc32c.extend(crc32c, block.reshape(-1).view(np.uint8))
        return ("crc", crc32c, self.value.nbytes)


class BufferSource(MemorySource):
    """A value that was computed or is known: a small one, or strings, as `object`s."""

    __slots__ = ()

    def array(self, dtype: np.dtype[Any], shape: types.Shape) -> Array:
        return self.value.reshape(shape) if self.value.dtype == object else super().array(dtype, shape)

    def fingerprint(self) -> Hashable:
        return ("strings", tuple(self.value.ravel())) if self.value.dtype == object else super().fingerprint()
