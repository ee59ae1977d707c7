"""The finished file: tables that are ready, and buffers that are streamed behind them when it is written.

Where everything lies is known before the first buffer is read, so the tables are complete and the size is certain. A
file beyond the reach of the format's 32-bit offsets keeps its buffers outside of the flatbuffer and states their
position from the start of the file.
"""

from __future__ import annotations

import io
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

from tfconvert.exporters.output_file import Parts, write_whole
from tfconvert.exporters.tflite.buffers import Buffer
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.writer import Encoded, Later, encode

ALIGNMENT = 16
"""Of every buffer's bytes, from the start of the file."""

LARGE = 2**31 - 2**20
"""Files of this size and more have the form for large files; readers verify offsets as signed 32-bit numbers."""

INLINE = 16
"""In large files, buffers up to this size stay in the tables: readers take sizes 0 and 1 for no buffer at all."""

_LENGTH = struct.Struct("<I")


class TFLiteFile:
    """A converted model.

    Attributes:
        size: Size of the file in bytes.
        signatures: Keys of its signatures.
        operators: How often each operator is called, custom ones by their own name.
        bytes_by_operator: Bytes of constants by the operator that is the first to use them.
        versions: The version of each operator.
        custom_operators: How often each custom operator is called that the app must register.
        min_runtime_version: The first release of the runtime that has them all; empty if nothing is known.
        notes: What its users should know.

    Args:
        model: The tables without the buffers.
        buffers: The buffers.
        large: Size in bytes from which on the file has the form for large files.
        appendix: Returns what follows the file, by its size.
    """

    def __init__(
        self,
        model: Mapping[str, Any],
        buffers: list[Buffer],
        large: int = LARGE,
        appendix: Callable[[int], bytes] | None = None,
    ) -> None:
        self.signatures: tuple[str, ...] = tuple(item["signature_key"] for item in model.get("signature_defs", ()))
        self.operators: Counter[str] = Counter()
        self.bytes_by_operator: Counter[str] = Counter()
        self.versions: dict[str, int] = {}
        self.custom_operators: Counter[str] = Counter()
        self.min_runtime_version = ""
        self.notes: list[Diagnostic] = []
        tables = _encode(model, [{}] + [{"data": Later(index)} for index in range(len(buffers))])
        places, end = _arrange(len(tables.data), buffers, 4)
        self._external = end >= large
        self._streamed: list[tuple[int, Buffer]]
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
        self._appendix = b"" if appendix is None else appendix(end)
        self._end = end
        self.size = end + len(self._appendix)

    @property
    def tables(self) -> bytes | bytearray:
        """The flatbuffer without what is streamed behind it: all of the file but its constants."""
        return self._tables

    def write(self, stream: BinaryIO) -> None:
        """Writes the file; weights are read a block at a time, and given back when written.

        Raises:
            ValueError: A buffer has not as many bytes as was said when the tables were made.
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
        """Writes the file beside its place and moves it there, so that there is never a half-written one."""
        write_whole(path, self.write)


def _encode(model: Mapping[str, Any], buffers: Iterable[Mapping[str, Any]]) -> Encoded:
    return encode(TFLITE, {**model, "buffers": list(buffers)}, TFLITE_IDENTIFIER)


def _arrange(start: int, buffers: list[Buffer], head: int) -> tuple[list[int], int]:
    """Returns the positions of the buffers' bytes, one after the other and aligned, and where they end."""
    places = []
    for buffer in buffers:
        start += head
        start += -start % ALIGNMENT
        places.append(start)
        start += buffer.size
    return places, start


def _marked(model: Mapping[str, Any], buffers: list[Buffer]) -> tuple[Mapping[str, Any], list[Buffer]]:
    """Adds the metadata entry by which tools know a large file."""
    text = b"outside flatbuffers"
    entry = {"name": "buffer_location", "buffer": len(buffers) + 1}
    marker = Buffer.of_bytes(text)
    return {**model, "metadata": [*model.get("metadata", ()), entry]}, [*buffers, marker]


def _encode_large(model: Mapping[str, Any], buffers: list[Buffer]) -> tuple[Encoded, list[int], int]:
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
