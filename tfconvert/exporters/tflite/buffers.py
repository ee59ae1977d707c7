"""The model's constants: each distinct value once, read only when it is written, and then a block at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np

from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array, Constant, TensorData

PACKED = {"INT4": 2, "UINT4": 2, "INT2": 4}
"""Types of which several elements share a byte, and how many."""


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


class Buffers:
    """All buffers of a model; index 0 is the empty one that computed tensors have.

    Attributes:
        entries: The buffers from index 1 on.
    """

    def __init__(self) -> None:
        self.entries: list[Buffer] = []
        self._small: dict[bytes, int] = {}
        self._large: dict[tuple[int, Hashable], list[tuple[TensorData, int]]] = {}

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
            return self.add_bytes(string_bytes(tensor_data.to_array(constant)))
        per_byte = PACKED.get(type_name, 1)
        if isinstance(constant, TensorData):
            return self._add_handle(constant, per_byte)
        value = tensor_data.to_array(constant)
        return self.add_bytes(packed_bytes(value, per_byte) if per_byte > 1 else value.tobytes())

    def _add_handle(self, handle: TensorData, per_byte: int) -> int:
        candidates = self._large.setdefault((per_byte, handle.source.fingerprint()), [])
        for other, index in candidates:
            if other.source is handle.source or _equal(other, handle):
                return index
        size = -(-handle.nbytes // per_byte)
        index = self._append(Buffer(size, lambda: _blocks(handle, per_byte)))
        candidates.append((handle, index))
        return index

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
