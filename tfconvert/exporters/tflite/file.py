"""The finished file: tables that are ready, and buffers that are streamed behind them when it is written."""

from __future__ import annotations

import io
import math
import os
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from tfconvert.exporters.output_file import Parts, write_whole
from tfconvert.schema.diagnostics import Diagnostic, error
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.expressions import Handle
from tfconvert.schema.dialects.sources import BLOCK
from tfconvert.schema.dialects.tensor_data import Array, Constant, Deferred, SplatSource, TensorData
from tfconvert.schema.limits import budget
from tfconvert.schema.tflite.associated_files import moved
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.writer import Encoded, Vectors, encode

PACKED = {"INT4": 2, "UINT4": 2, "INT2": 4}
"""Types of which several elements share a byte, and how many."""

# Values derived from stored ones by casts and layouts cost no budget up to this multiple of the stored size.
_REUSED = 16


class FileBuffer:
    """The bytes of one buffer.

    Attributes:
        size: Their number.
        blocks: Yields them in pieces; the memory of each is released when the next one is requested.
    """

    __slots__ = ("blocks", "size")

    def __init__(self, size: int, blocks: Callable[[], Iterable[bytes | memoryview]]) -> None:
        self.size = size
        self.blocks = blocks

    @staticmethod
    def of_bytes(data: bytes) -> FileBuffer:
        """Returns the buffer of bytes in memory."""
        return FileBuffer(len(data), lambda: (data,))


def string_bytes(values: Array) -> bytes:
    """Returns the runtime's encoding of a tensor of strings.

    It holds the number of strings, the offset of each and of the end, and then the strings without gaps.
    """
    texts = [bytes(value) if isinstance(value, bytes) else str(value).encode() for value in values.ravel().tolist()]
    ends = np.cumsum([4 * (len(texts) + 2), *map(len, texts)], dtype=np.int64)
    return struct.pack(f"<{len(ends) + 1}i", len(texts), *ends.tolist()) + b"".join(texts)


def _repeated_text(text: bytes, count: int) -> FileBuffer:
    """Returns the buffer of a tensor that repeats one string, encoded as by `string_bytes`.

    Raises:
        ConversionError: The offsets, of 32 bits, don't reach to its end (`absurd-shape`).
    """
    size = 4 * (count + 2) + len(text) * count
    if size >= 1 << 31:
        raise error("absurd-shape", f"{count} strings are too many for LiteRT")

    def blocks() -> Iterator[bytes]:
        yield struct.pack("<i", count)
        number = max(1, BLOCK // max(8, len(text)))
        for start in range(0, count + 1, number):
            places = np.arange(start, min(start + number, count + 1), dtype=np.int64)
            yield (4 * (count + 2) + len(text) * places).astype("<i4").tobytes()
        for start in range(0, count, number):
            yield text * min(number, count - start)

    return FileBuffer(size, blocks)


def packed_bytes(values: Array, per_byte: int) -> bytes:
    """Packs narrow integers, given one a byte, several in a byte, the first in the lowest bits."""
    width = 8 // per_byte
    flat = values.reshape(-1).view(np.uint8)
    packed: Array = np.zeros(-(-flat.size // per_byte), np.uint8)
    for place in range(per_byte):
        part = flat[place::per_byte] & ((1 << width) - 1)
        packed[: part.size] |= part << (place * width)
    return packed.tobytes()


def _packed_blocks(handle: TensorData, per_byte: int) -> Iterator[bytes]:
    """Yields narrow integers packed several in a byte; a rest that fills no byte goes into the next block."""
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


class BufferWriter:
    """All buffers of a model; computed tensors have the empty buffer 0.

    Attributes:
        entries: The buffers from index 1 on.
    """

    def __init__(self) -> None:
        self.entries: list[FileBuffer] = []
        self._small: dict[bytes, int] = {}
        self._large: dict[tuple[int, Hashable], list[tuple[TensorData, int]]] = {}
        self._texts: dict[tuple[bytes, int], int] = {}
        self._free = 0
        self._read: set[int] = set()  # the ids of sources of derived values, which constants keep alive

    def add_bytes(self, data: bytes) -> int:
        """Adds bytes, unless they are there; returns the buffer's index."""
        index = self._small.get(data)
        if index is None:
            index = self._small[data] = self._append(FileBuffer.of_bytes(data))
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
        return self.add_bytes(packed_bytes(tensor_data.to_array(constant), per_byte) if per_byte > 1 else constant.data)

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
        candidates = self._large.setdefault((per_byte, _key(handle)), [])
        for other, index in candidates:
            if other.source is handle.source or tensor_data.are_equal(other, handle):
                return index
        size = -(-handle.nbytes // per_byte)
        self._pay(handle, size)
        index = self._append(FileBuffer(size, lambda: _blocks(handle, per_byte)))
        candidates.append((handle, index))
        return index

    def _pay(self, handle: TensorData, size: int) -> None:
        """Takes a constant's bytes from the conversion's budget, except for those stored in the model."""
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

    def _append(self, buffer: FileBuffer) -> int:
        self.entries.append(buffer)
        return len(self.entries)


def _key(handle: TensorData) -> Hashable:
    """Returns a key that equal constants share."""
    source = handle.source
    # Different numbers may become the same integers, such as zeros, and models may hold an embedding table once more,
    # transposed, to multiply by it. So some of the numbers are the key.
    if (isinstance(source, Deferred) and source.function == "quantize") or tensor_data.is_table(handle):
        return handle.nbytes, tensor_data.probe(handle)
    return source.fingerprint()


ALIGNMENT = 16
"""Alignment in bytes of every buffer from the start of the file."""

LARGE = 2**31 - 2**20
"""Files from this size on have the large form; readers verify offsets as signed 32-bit numbers."""

INLINE = 16
"""In large files, buffers up to this size stay in the tables: readers treat sizes 0 and 1 as no buffer."""

_LENGTH = struct.Struct("<I")


class TFLiteFile:
    """A converted model.

    Attributes:
        size: Size of the file in bytes.
        signatures: Keys of its signatures.
        operators: Number of calls of each operator, custom ones by their own name.
        bytes_by_operator: Bytes of constants by the operator that is the first to use them.
        versions: The version of each operator.
        custom_operators: Number of calls of each custom operator that the app must register.
        min_runtime_version: The first release of the runtime that has them all; empty if nothing is known.
        arena: Bytes of the main graph's arena, with open sizes as stored; `None` if unknown.
        notes: Notes for its users.

    Args:
        model: The tables without the buffers.
        buffers: The buffers.
        large: Size in bytes from which on the file has the form for large files.
        archive: An archive of files to append, with offsets from its start.
    """

    def __init__(
        self, model: Mapping[str, Any], buffers: list[FileBuffer], large: int = LARGE, archive: bytes = b""
    ) -> None:
        self.signatures: tuple[str, ...] = tuple(item["signature_key"] for item in model.get("signature_defs", ()))
        self.operators: Counter[str] = Counter()
        self.bytes_by_operator: Counter[str] = Counter()
        self.versions: dict[str, int] = {}
        self.custom_operators: Counter[str] = Counter()
        self.min_runtime_version = ""
        self.arena: int | None = None
        self.notes: list[Diagnostic] = []
        tables = _encode(model, Vectors("data", range(len(buffers)), [{}]))
        places, end = _arrange(len(tables.data), buffers, 4)
        self._external = end >= large
        self._streamed: list[tuple[int, FileBuffer]]
        if self._external:
            model, buffers = _marked(model, buffers)
            tables, places, end = _encode_large(model, buffers)
        else:
            for slot, index in tables.later:
                assert isinstance(index, int)
                tables.resolve(slot, places[index] - 4)
        self._tables = tables.data
        self._streamed = [(place, buffer) for place, buffer in zip(places, buffers, strict=True) if place]
        # Readers of the tables don't look behind them.
        self._appendix = moved(archive, end)
        self._end = end
        self.size = end + len(self._appendix)

    @property
    def tables(self) -> bytes | bytearray:
        """The flatbuffer without the constants that are streamed after it."""
        return self._tables

    def write(self, stream: BinaryIO) -> None:
        """Writes the file; weights are read a block at a time and released when written.

        Raises:
            ValueError: A buffer has another size than when the tables were built.
        """
        stream.write(self._tables)
        position = len(self._tables)
        for place, buffer in self._streamed:
            head = b"" if self._external else _LENGTH.pack(buffer.size)
            stream.write(bytes(place - len(head) - position) + head)
            position = place
            for block in buffer.blocks():
                position += len(block)
                stream.write(block)
                del block  # before the next one is made
            if position != place + buffer.size:
                raise ValueError(f"a buffer of {buffer.size} bytes came as {position - place} bytes")
        stream.write(bytes(self._end - position))
        stream.write(self._appendix)

    @property
    def parts(self) -> Parts:
        """The files of the result: this one."""
        return {"": self.write}

    def to_bytes(self) -> bytes:
        """Returns the file's contents."""
        stream = io.BytesIO()
        self.write(stream)
        return stream.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file atomically."""
        write_whole(path, self.write)


def _encode(model: Mapping[str, Any], buffers: Sequence[Mapping[str, Any]] | Vectors) -> Encoded:
    return encode(TFLITE, {**model, "buffers": buffers}, TFLITE_IDENTIFIER)


def _arrange(start: int, buffers: list[FileBuffer], head: int) -> tuple[list[int], int]:
    """Returns the positions of the buffers' bytes, one after the other and aligned, and where they end."""
    places = []
    for buffer in buffers:
        start += head
        start += -start % ALIGNMENT
        places.append(start)
        start += buffer.size
    return places, start


def _marked(model: Mapping[str, Any], buffers: list[FileBuffer]) -> tuple[Mapping[str, Any], list[FileBuffer]]:
    """Adds the metadata entry that marks a large file for tools."""
    text = b"outside flatbuffers"
    entry = {"name": "buffer_location", "buffer": len(buffers) + 1}
    marker = FileBuffer.of_bytes(text)
    return {**model, "metadata": [*model.get("metadata", ()), entry]}, [*buffers, marker]


def _encode_large(model: Mapping[str, Any], buffers: list[FileBuffer]) -> tuple[Encoded, list[int], int]:
    """Returns the tables of a large file, the position of each buffer (0: it is in the tables), and the file's size."""
    outside = [buffer for buffer in buffers if buffer.size > INLINE]

    def tables(places: Iterable[int]) -> Encoded:
        place = iter(places)
        items: list[Mapping[str, Any]] = [{}]
        for buffer in buffers:
            if buffer.size > INLINE:
                items.append({"offset": next(place), "size": buffer.size})
            else:
                items.append({"data": b"".join(buffer.blocks())})
        return _encode(model, items)

    # The tables' size doesn't depend on the positions that they state.
    places, end = _arrange(len(tables([2] * len(outside)).data), outside, 0)
    by_buffer = dict(zip(map(id, outside), places, strict=True))
    # Kernels read whole vectors and may look a little beyond the last buffer.
    return tables(places), [by_buffer.get(id(buffer), 0) for buffer in buffers], end + ALIGNMENT
