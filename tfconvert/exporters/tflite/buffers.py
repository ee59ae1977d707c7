"""The model's constants: each distinct value once, read only when it is written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array, Constant, TensorData

PACKED = {"INT4": 2, "UINT4": 2, "INT2": 4}
"""Types of which several elements share a byte, and how many."""


@dataclass(eq=False, slots=True)
class Buffer:
    """The bytes of one buffer.

    Attributes:
        size: Their number.
        read: Returns them.
        release: Gives back what reading them took.
    """

    size: int
    read: Callable[[], bytes | memoryview]
    release: Callable[[], None]


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


def _view(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _nothing() -> None:
    pass


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
            index = self._small[data] = self._append(Buffer(len(data), lambda: data, _nothing))
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
        index = self._append(Buffer(handle.nbytes, lambda: _view(handle.array()), handle.source.release))
        candidates.append((handle, index))
        return index

    def _append(self, buffer: Buffer) -> int:
        self.entries.append(buffer)
        return len(self.entries)


def _equal(first: TensorData, second: TensorData) -> bool:
    """Compares bytes: a checksum in common makes it likely that they are equal, but not certain."""
    if first.nbytes != second.nbytes:
        return False
    one, other = np.frombuffer(_view(first.array()), np.uint8), np.frombuffer(_view(second.array()), np.uint8)
    result: Any = np.array_equal(one, other)
    first.source.release()
    second.source.release()
    return bool(result)
