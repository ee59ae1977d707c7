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
    """Returns narrow integers several in a byte, the first in the lowest bits."""
    width = 8 // per_byte
    parts = np.zeros((-(-values.size // per_byte), per_byte), np.uint8)
    parts.reshape(-1)[: values.size] = values.ravel().astype(np.int8).view(np.uint8) & ((1 << width) - 1)
    packed: Array = np.bitwise_or.reduce(parts << np.arange(0, 8, width, dtype=np.uint8), axis=1)
    return packed.tobytes()


def _blocks(handle: TensorData) -> Iterator[memoryview]:
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
        self._large: dict[Hashable, list[tuple[TensorData, int]]] = {}

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
        if type_name in PACKED:
            return self.add_bytes(packed_bytes(tensor_data.to_array(constant), PACKED[type_name]))
        if isinstance(constant, TensorData):
            return self._add_handle(constant)
        return self.add_bytes(tensor_data.to_array(constant).tobytes())

    def _add_handle(self, handle: TensorData) -> int:
        candidates = self._large.setdefault(handle.source.fingerprint(), [])
        for other, index in candidates:
            if other.source is handle.source or _equal(other, handle):
                return index
        index = self._append(Buffer(handle.nbytes, lambda: _blocks(handle)))
        candidates.append((handle, index))
        return index

    def _append(self, buffer: Buffer) -> int:
        self.entries.append(buffer)
        return len(self.entries)


def _equal(first: TensorData, second: TensorData) -> bool:
    """Compares bytes: a checksum in common makes it likely that they are equal, but not certain."""
    if first.nbytes != second.nbytes:
        return False
    blocks = [_blocks(handle) for handle in (first, second)]
    pieces = [memoryview(b""), memoryview(b"")]
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
