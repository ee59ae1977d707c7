"""The model's constants: each distinct value once, read only when it is written, and then a block at a time."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.expressions import Handle
from tfconvert.schema.dialects.sources import BLOCK
from tfconvert.schema.dialects.tensor_data import Array, Constant, Deferred, SplatSource, TensorData
from tfconvert.schema.limits import budget

PACKED = {"INT4": 2, "UINT4": 2, "INT2": 4}
"""Types of which several elements share a byte, and how many."""

# How many times as large as what is stored all that is made of it may be, by casts and other layouts, at no charge.
_REUSED = 16


class Buffer:
    """The bytes of one buffer.

    Attributes:
        size: Their number.
        blocks: Yields them in pieces, whose memory is given back when the next one is asked for.
    """

    __slots__ = ("blocks", "size")

    def __init__(self, size: int, blocks: Callable[[], Iterable[bytes | memoryview]]) -> None:
        self.size = size
        self.blocks = blocks

    @staticmethod
    def of_bytes(data: bytes) -> Buffer:
        """Returns the buffer of bytes in memory."""
        return Buffer(len(data), lambda: (data,))


def string_bytes(values: Array) -> bytes:
    """Returns the form in which the runtime keeps a tensor of strings.

    That is the number of strings, the offset of each and of the end, then the strings, with nothing between them.
    """
    texts = [bytes(value) if isinstance(value, bytes) else str(value).encode() for value in values.ravel().tolist()]
    ends = np.cumsum([4 * (len(texts) + 2), *map(len, texts)], dtype=np.int64)
    return struct.pack(f"<{len(ends) + 1}i", len(texts), *ends.tolist()) + b"".join(texts)


def _repeated_text(text: bytes, count: int) -> Buffer:
    """Returns the buffer of a tensor that holds one string many times, in the form of `string_bytes`.

    Raises:
        ConversionError: The offsets, of 32 bits, don't reach to its end (`absurd-shape`).
    """
    size = 4 * (count + 2) + len(text) * count
    if size >= 1 << 31:
        raise error("absurd-shape", f"{count} strings are beyond LiteRT")

    def blocks() -> Iterator[bytes]:
        yield struct.pack("<i", count)
        number = max(1, BLOCK // max(8, len(text)))
        for start in range(0, count + 1, number):
            places = np.arange(start, min(start + number, count + 1), dtype=np.int64)
            yield (4 * (count + 2) + len(text) * places).astype("<i4").tobytes()
        for start in range(0, count, number):
            yield text * min(number, count - start)

    return Buffer(size, blocks)


def packed_bytes(values: Array, per_byte: int) -> bytes:
    """Returns narrow integers several in a byte, the first in the lowest bits; they come one in a byte."""
    width = 8 // per_byte
    flat = values.reshape(-1).view(np.uint8)
    packed: Array = np.zeros(-(-flat.size // per_byte), np.uint8)
    for place in range(per_byte):
        part = flat[place::per_byte] & ((1 << width) - 1)
        packed[: part.size] |= part << (place * width)
    return packed.tobytes()


def _packed_blocks(handle: TensorData, per_byte: int) -> Iterator[bytes]:
    """Yields narrow integers several in a byte; what fills no byte of a block goes into the next one."""
    left = np.zeros(0, np.uint8)
    for block in handle.blocks():
        values = block.reshape(-1).view(np.uint8)
        if left.size:
            values = np.concatenate((left, values))
        whole = values.size // per_byte * per_byte
        left = values[whole:].copy()
        yield packed_bytes(values[:whole], per_byte)
        del block, values  # before the next one is made
    if left.size:
        yield packed_bytes(left, per_byte)


def _blocks(handle: TensorData, per_byte: int) -> Iterator[bytes | memoryview]:
    if per_byte > 1:
        yield from _packed_blocks(handle, per_byte)
        return
    for block in handle.blocks():
        yield block.reshape(-1).view(np.uint8).data
        del block  # before the next one is made


def _size_of(handle: Handle) -> int:
    return math.prod(handle.shape) * handle.dtype.itemsize


class Buffers:
    """All buffers of a model; index 0 is the empty one that computed tensors have.

    Attributes:
        entries: The buffers from index 1 on.
    """

    def __init__(self) -> None:
        self.entries: list[Buffer] = []
        self._small: dict[bytes, int] = {}
        self._large: dict[tuple[int, Hashable], list[tuple[TensorData, int]]] = {}
        self._texts: dict[tuple[bytes, int], int] = {}
        self._free = 0
        self._read: set[int] = set()  # the ids of the sources that something was made of, which constants keep alive

    def add_bytes(self, data: bytes) -> int:
        """Adds bytes, unless they are there; returns the buffer's index."""
        index = self._small.get(data)
        if index is None:
            index = self._small[data] = self._append(Buffer.of_bytes(data))
        return index

    def add(self, constant: Constant, type_name: str) -> int:
        """Adds a constant, unless an equal one is there; returns the buffer's index.

        Args:
            constant: The value.
            type_name: Enumerator of `TensorType`, which decides on the form of strings and 4-bit integers.
        """
        if type_name == "STRING":
            return self._add_strings(constant)
        per_byte = PACKED.get(type_name, 1)
        if isinstance(constant, TensorData):
            return self._add_handle(constant, per_byte)
        value = tensor_data.to_array(constant)
        return self.add_bytes(packed_bytes(value, per_byte) if per_byte > 1 else value.tobytes())

    def _add_strings(self, constant: Constant) -> int:
        source = constant.source if isinstance(constant, TensorData) else None
        if not isinstance(source, SplatSource):
            return self.add_bytes(string_bytes(tensor_data.to_array(constant)))
        count = math.prod(constant.shape)
        known = self._texts.get((source.value.item(), count))
        if known is None:
            buffer = _repeated_text(source.value.item(), count)
            budget().take_bytes(buffer.size, f"a constant of the shape {list(constant.shape)}")
            known = self._texts[source.value.item(), count] = self._append(buffer)
        return known

    def _add_handle(self, handle: TensorData, per_byte: int) -> int:
        candidates = self._large.setdefault((per_byte, handle.source.fingerprint()), [])
        for other, index in candidates:
            if other.source is handle.source or _equal(other, handle):
                return index
        size = -(-handle.nbytes // per_byte)
        self._pay(handle, size)
        index = self._append(Buffer(size, lambda: _blocks(handle, per_byte)))
        candidates.append((handle, index))
        return index

    def _pay(self, handle: TensorData, size: int) -> None:
        """Takes a constant's bytes from the conversion's budget, but for those that are the model's own."""
        pending = [(handle.source, handle.nbytes)]
        while pending:
            source, length = pending.pop()
            if id(source) in self._read:
                continue
            self._read.add(id(source))
            if isinstance(source, Deferred):
                pending += [(argument.source, _size_of(argument)) for argument in source.arguments]
            elif not isinstance(source, SplatSource):
                self._free += length * _REUSED
        paid = max(0, size - self._free)
        self._free -= size - paid
        budget().take_bytes(paid, f"a constant of the shape {list(handle.shape)}")

    def _append(self, buffer: Buffer) -> int:
        self.entries.append(buffer)
        return len(self.entries)


def _equal(first: TensorData, second: TensorData) -> bool:
    """Compares bytes: a checksum in common makes it likely that they are equal, but not certain."""
    if first.nbytes != second.nbytes:
        return False
    blocks = [_blocks(handle, 1) for handle in (first, second)]
    pieces: list[bytes | memoryview] = [b"", b""]
    left = first.nbytes
    while left:
        pieces = [piece or next(source) for piece, source in zip(pieces, blocks, strict=True)]
        length = min(map(len, pieces))
        one, other = (np.frombuffer(piece[:length], np.uint8) for piece in pieces)
        if not np.array_equal(one, other):
            return False
        pieces = [piece[length:] for piece in pieces]
        left -= length
    return True
