"""The constants of a .tflite file: handles of byte ranges of the file, which are checked but not read."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import boxes, tensor_data, types
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.dialects.sources import BufferSource, DataSource, FileSlice, bytes_of
from tfconvert.schema.dialects.tensor_data import SMALL, Constant, TensorData
from tfconvert.schema.files import LARGEST, InputFile
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER, View, malformed

PACKED = {"int4": 4, "uint4": 4, "int2": 2}
"""Bits of an element of types of which several share a byte, by TensorFlow's names."""

MAX_ELEMENTS = 1 << 40
"""The limit of shapes: products of dimensions must not overflow 64 bits."""


def check_size(name: str, shape: tuple[int, ...]) -> None:
    """Checks that a shape is not larger than any tensor can be.

    Args:
        name: The tensor's name.
        shape: Its shape, without dynamic dimensions.

    Raises:
        ConversionError: It is (`malformed-tflite`).
    """
    if len(shape) > types.MAX_RANK:
        raise malformed(f"tensor {name!r} has {len(shape)} dimensions, more than the limit of {types.MAX_RANK}")
    if math.prod(shape) > MAX_ELEMENTS:
        raise malformed(f"tensor {name!r} of shape {list(shape)} is larger than any memory")


class Content(Protocol):
    """A file's bytes, and a source for a range of them."""

    view: memoryview  # The bytes that tables may be in.
    size: int  # The number of bytes.

    def read(self, offset: int, length: int) -> bytes:
        """Returns a range of the file."""

    def source(self, offset: int, length: int) -> DataSource:
        """Returns the source of a constant."""


class FileContent:
    """A file on disk, which is read during the import; constants are read again when they are used.

    Attributes:
        view: Its bytes within reach of the tables' offsets.
        size: The number of bytes.
    """

    def __init__(self, path: str) -> None:
        self._file = InputFile(path)
        self.size = self._file.size
        self.view = bytes_of(self._file, 0, min(self.size, LARGEST)).data

    def read(self, offset: int, length: int) -> bytes:
        """Returns a range of the file."""
        return bytes_of(self._file, offset, length).tobytes()

    def source(self, offset: int, length: int) -> DataSource:
        """Returns a slice of the file."""
        return FileSlice(self._file, offset, length)


class BytesContent:
    """Bytes in memory.

    Attributes:
        view: The bytes.
        size: Their number.
    """

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.view = memoryview(data).cast("B")
        self.size = len(self.view)

    def read(self, offset: int, length: int) -> bytes:
        """Returns a range of the bytes."""
        return self.view[offset : offset + length].tobytes()

    def source(self, offset: int, length: int) -> DataSource:
        """Returns a view that shares the memory."""
        return BufferSource(np.frombuffer(self.view, np.uint8, length, offset))


@dataclass(eq=False, slots=True)
class PackedSource(DataSource):
    """Narrow integers, several in a byte."""

    packed: DataSource  # The source of the bytes.
    size: int  # Their number.
    bits: int  # Width of an element.

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        return boxes.reshaped(lambda flat: self._unpacked(dtype, *flat), (math.prod(shape),), shape, box)

    def _unpacked(self, dtype: np.dtype[Any], wanted: slice) -> Array:
        """Returns a range of the elements."""
        each = 8 // self.bits
        place = slice(wanted.start // each, -(-wanted.stop // each))
        data = self.packed.part(np.dtype(np.uint8), (self.size,), (place,))
        parts = data[:, None] >> np.arange(0, 8, self.bits, dtype=np.uint8) & ((1 << self.bits) - 1)
        start = place.start * each
        values = parts.reshape(-1)[wanted.start - start : wanted.stop - start].astype(np.int8)
        if not dtype.name.startswith("u"):
            values -= (values >> (self.bits - 1)) << self.bits
        return values.astype(dtype)

    def release(self) -> None:
        self.packed.release()

    def fingerprint(self) -> tuple[Any, ...]:
        return ("packed", self.bits, self.packed.fingerprint())


@dataclass(eq=False, slots=True)
class StringSource(DataSource):
    """Strings in the runtime's encoding: their number, the offset of each and of the end, then the bytes."""

    data: memoryview  # The bytes, with checked offsets.

    def part(self, dtype: np.dtype[Any], shape: types.Shape, box: Box) -> Array:
        count = math.prod(shape)
        ends = np.frombuffer(self.data, "<i4", count + 1, 4).tolist()
        values = np.empty(count, object)
        for index, (start, end) in enumerate(pairwise(ends)):
            values[index] = bytes(self.data[start:end])
        return boxes.view(values.reshape(shape), box)

    def release(self) -> None:
        """Does nothing: the bytes are the only copy."""

    def fingerprint(self) -> tuple[Any, ...]:
        return ("strings", id(self))


def _check_strings(name: str, data: memoryview, count: int) -> None:
    if len(data) < 4 * (count + 2) or int.from_bytes(data[:4], "little") != count:
        raise malformed(f"tensor {name!r} of {count} strings has a buffer that does not hold {count}")
    ends = np.frombuffer(data, "<i4", count + 1, 4)
    if ends[0] < 4 * (count + 2) or ends[-1] > len(data) or bool((np.diff(ends) < 0).any()):
        raise malformed(f"the strings of tensor {name!r} are outside of its buffer")


def content_of(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Content:
    """Returns the contents of a file.

    Args:
        source: Its path, or its bytes.

    Raises:
        ConversionError: It can't be read (`model-not-found`), or is another kind of file (`foreign-format`,
            `malformed-tflite`).
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return BytesContent(source)
    try:
        content = FileContent(os.fspath(source))
    except OSError as problem:
        raise unreadable(source, problem) from problem
    check_identifier(source, content.view)
    return content


def unreadable(path: str | os.PathLike[str], problem: OSError) -> ConversionError:
    """Returns the error about a path that can't be read as a file."""
    if isinstance(problem, IsADirectoryError):
        return _not_tflite(path)
    return error("model-not-found", f"can't read {os.fspath(path)}: {problem.strerror or problem}")


def check_identifier(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Checks that a file begins as a .tflite file does.

    Raises:
        ConversionError: It is another kind of file (`foreign-format`, `malformed-tflite`).
    """
    if content[4:8] != TFLITE_IDENTIFIER:
        raise _not_tflite(path)


def _not_tflite(path: str | os.PathLike[str]) -> ConversionError:
    from tfconvert.importers.foreign_files import not_tflite

    return not_tflite(path)


class BufferReader:
    """The buffers of a model.

    Attributes:
        content: The file.
    """

    def __init__(self, model: View, content: Content) -> None:
        self.content = content
        self._views: list[View] = model["buffers"] or []
        self._places: dict[int, tuple[int, int]] = {}
        self._sources: dict[tuple[int, Attribute], DataSource] = {}

    def place(self, index: int) -> tuple[int, int]:
        """Returns the position and the length of a buffer's bytes, length 0 if it has none.

        Raises:
            ConversionError: There is no such buffer, or it does not lie in the file.
        """
        known = self._places.get(index)
        if known is None:
            if not 0 <= index < len(self._views):
                raise malformed(f"there is no buffer {index}")
            known = self._places[index] = self._place(self._views[index])
        return known

    def _place(self, view: View) -> tuple[int, int]:
        offset: int = view["offset"]
        if offset > 1:
            return self.outside(offset, view["size"])
        return view.place("data")

    def outside(self, offset: int, size: int) -> tuple[int, int]:
        """Returns a range outside of the tables after a check that it is in the file.

        Raises:
            ConversionError: It is not.
        """
        if offset + size > self.content.size:
            raise malformed("a buffer is longer than the file")
        return offset, size

    def data(self, index: int) -> bytes:
        """Returns a buffer's bytes."""
        offset, length = self.place(index)
        return self.content.read(offset, length)

    def constant(self, name: str, index: int, tensor_type: TensorType) -> Constant:
        """Returns the constant of a buffer.

        Args:
            name: The tensor's name, for messages.
            index: The buffer's index.
            tensor_type: Static type of the value.

        Raises:
            ConversionError: The buffer's size is not that of the type.
        """
        row = types.from_mlir(tensor_type.element_type)
        assert row is not None
        offset, length = self.place(index)
        count = math.prod(types.shape_of(tensor_type) or ())
        if row.name == "string":
            return self._strings(name, index, count, tensor_type)
        if row.dtype == object:
            raise malformed(f"tensor {name!r} is a constant, which a {row.name} can't be")
        bits = PACKED.get(row.name, 8 * row.dtype.itemsize)
        if length != -(-count * bits // 8):
            raise malformed(f"tensor {name!r} of {count} {row.name} has a buffer of {length} bytes")
        source = self._sources.get((index, tensor_type.element_type))
        if source is None:
            source = self.content.source(offset, length)
            if row.name in PACKED:
                source = PackedSource(source, length, bits)
            self._sources[index, tensor_type.element_type] = source
        handle = TensorData.get(tensor_type, source)
        return handle if length > SMALL or row.name in PACKED else tensor_data.of_array(handle.array(), row.mlir)

    def _strings(self, name: str, index: int, count: int, tensor_type: TensorType) -> Constant:
        offset, length = self.place(index)
        data = memoryview(self.content.read(offset, length))
        _check_strings(name, data, count)
        source = self._sources.setdefault((index, tensor_type.element_type), StringSource(data))
        return TensorData.get(tensor_type, source)


def zeros(tensor_type: TensorType) -> Constant:
    """Returns the initial value of state, which takes hardly any memory."""
    dtype = types.numpy_dtype(tensor_type.element_type)
    shape = types.shape_of(tensor_type) or ()
    if math.prod(shape) * dtype.itemsize <= SMALL and not dtype.hasobject:
        return tensor_data.of_array(np.zeros(shape, dtype), tensor_type.element_type)
    return TensorData.get(tensor_type, BufferSource(np.broadcast_to(np.zeros((), dtype), shape)))
