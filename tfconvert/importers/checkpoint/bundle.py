"""Reads TensorFlow's checkpoints ("tensor bundles"): an index of tensors, and shards that hold their data.

`Checkpoint(prefix)` reads `<prefix>.index`, an SSTable of `BundleEntryProto`s by tensor name, and looks at the sizes of
the shards `<prefix>.data-00000-of-0000N`; no tensor's data is read. `read` returns a tensor as a source for a
`TensorData` handle: a slice of the shard, whose checksum is verified when it is first used.

May import: `schema`, protobuf, numpy, google_crc32c.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tfconvert.importers.checkpoint.slices import WHOLE, Extent, PartitionedSource, PartOfSource, slice_key
from tfconvert.importers.checkpoint.sstable import read_table
from tfconvert.importers.checkpoint.string_tensor import decode_strings
from tfconvert.importers.checkpoint.wire import MalformedError, unmask
from tfconvert.importers.containment import Folder
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.sources import BufferSource, FileSlice, Source, bytes_of
from tfconvert.schema.files import InputFile, is_file
from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import (
    DT_STRING,
    BundleEntryProto,
    BundleHeaderProto,
    DataType,
    TensorSliceProto,
    TrackableObjectGraph,
)

OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"

# The prefix of a slice's key; no tensor's own key has it.
_SLICE_MARK = b"\0"

_NEWEST_VERSION = 1

# Shards of a checkpoint that stay open until the conversion is over; those of one with more are opened anew each time,
# since a process may have some hundred open files only.
_MAX_OPEN = 64

_DAMAGE = frozenset({"bad-checksum", "bad-index", "truncated-index"})
_DAMAGE_HINT = "copy or download the model again"

_MAX_RANK = 32
# The limits of numpy; the second even where one dimension is 0.
_MAX_ELEMENTS = 1 << 58


class Entry(NamedTuple):
    """The index's entry of one tensor.

    Attributes:
        dtype: TensorFlow's `DataType` number.
        shape: The shape, always static.
        shard_id: Number of the shard that holds the data.
        offset: First byte in the shard.
        size: Number of bytes in the shard.
        crc32c: CRC-32C of the data, unmasked.
        slices: For a partitioned tensor the part of it that each slice is: (start, length) in each dimension, the
            length -1 for a whole dimension. Its data is with the slices and not with this entry.
    """

    dtype: int
    shape: types.Shape
    shard_id: int
    offset: int
    size: int
    crc32c: int
    slices: tuple[tuple[Extent, ...], ...]


class Checkpoint:
    """A checkpoint on disk.

    Attributes:
        prefix: Path of its files without their endings.
    """

    def __init__(self, prefix: os.PathLike[str] | str, folder: Folder | None = None) -> None:
        """Opens a checkpoint.

        Args:
            prefix: Path of the files without `.index` or `.data-...`.
            folder: The folder that the files must lie in; by default the one that they seem to.

        Raises:
            ConversionError: A file is missing, can't be read, is shorter than the index states, or is damaged, or
                lies elsewhere (`outside-model`).
        """
        self.prefix = os.fspath(prefix)
        self._folder = folder if folder is not None else Folder(Path(self.prefix).parent)
        self._index_path = f"{self.prefix}.index"
        self._shards: dict[int, InputFile] = {}
        self._entries: dict[str, Entry] = {}
        self._slices: dict[bytes, Entry] = {}
        data = _read_index(self.prefix, self._folder)
        try:
            self._parse(data)
        except MalformedError as problem:
            hint = _DAMAGE_HINT if problem.code in _DAMAGE else ""
            raise error(problem.code, f"{self._index_path} can't be read: {problem}", hint=hint) from problem

    def entries(self) -> Mapping[str, Entry]:
        """Returns all tensors by their keys, sorted; a partitioned one is a single entry."""
        return MappingProxyType(self._entries)

    def read(self, key: str) -> Source:
        """Returns the source of a tensor's value, for a `TensorData` handle of the entry's type and shape.

        Only strings are read immediately; all other data stays in the shard.

        Raises:
            ConversionError: There is no such tensor (`missing-tensor`), its element type can't be read
                (`unsupported-dtype`), its slices don't make it up (`bad-index`), or its strings are damaged
                (`bad-checksum`, `bad-index`).
        """
        entry = self._entries.get(key)
        if entry is None:
            raise error("missing-tensor", f"the checkpoint {self.prefix} has no tensor {key!r}")
        if not entry.slices:
            return self._source(key, entry)
        try:
            parts = self._parts(key, entry)
            sources = [(extents, part.shape, self._source(key, part)) for extents, part in parts]
            return PartitionedSource.checked(entry.shape, sources)
        except MalformedError as problem:
            raise error(problem.code, f"{self._index_path}: the slices of {key!r} are wrong: {problem}") from problem

    def read_part(self, key: str, extents: Sequence[Extent]) -> tuple[Source, types.Shape]:
        """Returns the source of the value of a slice of a tensor, and the slice's shape.

        Args:
            key: The tensor.
            extents: Start and length of the slice in each dimension.

        Raises:
            ConversionError: As for `read`, or the slice lies outside of the tensor (`bad-slice`).
        """
        entry = self._entries.get(key)
        if entry is not None and tuple(extents) in entry.slices:
            part = self._slices.get(slice_key(key, extents))
            if part is not None and part.dtype == entry.dtype:
                return self._source(key, part), part.shape
        whole = self.read(key)
        try:
            source = PartOfSource.checked(whole, self._entries[key].shape, extents)
        except MalformedError as problem:
            raise error(
                "bad-slice",
                f"the graph reads a slice of {key!r} that the checkpoint {self.prefix} doesn't have: {problem}",
            ) from problem
        return source, source.part_shape

    def object_graph(self) -> TrackableObjectGraph | None:
        """Returns the object graph that holds the variables' keys; `None` if the checkpoint has none (TensorFlow 1).

        Raises:
            ConversionError: The graph is damaged.
        """
        entry = self._entries.get(OBJECT_GRAPH_KEY)
        if entry is None:
            return None
        if entry.dtype != DT_STRING or entry.shape or entry.slices:
            raise error("bad-index", f"{self._index_path}: {OBJECT_GRAPH_KEY} is not a string")
        try:
            return TrackableObjectGraph.FromString(self.read(OBJECT_GRAPH_KEY).array(np.dtype(object), ()).item())
        except DecodeError as problem:
            raise error("bad-index", f"the object graph of the checkpoint {self.prefix} can't be parsed") from problem

    def _parse(self, data: bytes) -> None:
        """Fills the entries."""
        table = read_table(data)
        header = next(table, None)
        if header is None or header[0]:
            raise MalformedError("the header is missing")
        shards = _parse_header(header[1])
        for key, value in table:
            entry = _parse_entry(value)
            if not entry.slices:
                self._check_place(entry, shards)
            if not key.startswith(_SLICE_MARK):
                self._entries[_text(key)] = entry
            elif entry.slices:
                raise MalformedError("a slice of a tensor has slices itself")
            else:
                self._slices[key] = entry

    def _check_place(self, entry: Entry, shards: int) -> None:
        """Checks that the entry's data is where its shard has data."""
        file = self._shards.get(entry.shard_id)
        if file is None:
            if not 0 <= entry.shard_id < shards:
                raise MalformedError(f"a tensor is in shard {entry.shard_id} of {shards}")
            path = Path(f"{self.prefix}.data-{entry.shard_id:05d}-of-{shards:05d}")
            file = _open_shard(path, self._folder, stays_open=shards <= _MAX_OPEN)
            self._shards[entry.shard_id] = file
        if entry.offset + entry.size > file.size:
            needed = entry.offset + entry.size
            message = f"{file.path} is cut off: it has {file.size} bytes, the index speaks of {needed} and more"
            raise error("truncated-shard", message, hint=_DAMAGE_HINT)

    def _parts(self, key: str, entry: Entry) -> list[tuple[tuple[Extent, ...], Entry]]:
        """Returns the places and entries of a partitioned tensor's slices."""
        parts = []
        for extents in entry.slices:
            part = self._slices.get(slice_key(key, extents))
            if part is None:
                raise MalformedError("one is missing")
            if part.dtype != entry.dtype:
                raise MalformedError("one has another element type than the tensor")
            parts.append((extents, part))
        if sum(part.size for _, part in parts) > sum(file.size for file in self._shards.values()):
            raise MalformedError("they have more bytes than there are")
        return parts

    def _source(self, key: str, entry: Entry) -> Source:
        """Returns the source of an entry that has data of its own."""
        dtype = self._numpy_dtype(key, entry)
        file = self._shards[entry.shard_id]
        if dtype.kind != "O":
            return FileSlice(file, entry.offset, entry.size, entry.crc32c, key)
        if not prod(entry.shape):
            return BufferSource(np.empty(entry.shape, object))
        data = bytes_of(file, entry.offset, entry.size).data
        try:
            strings = decode_strings(data, prod(entry.shape), entry.crc32c)
        except MalformedError as problem:
            raise error(problem.code, f"the data of {key!r} in {file.path} can't be read: {problem}") from problem
        return BufferSource(strings.reshape(entry.shape))

    def _numpy_dtype(self, key: str, entry: Entry) -> np.dtype[Any]:
        row = types.from_number(entry.dtype)
        if row is None or (row.dtype.kind == "O" and entry.dtype != DT_STRING):
            known = entry.dtype in DataType.values()
            name = DataType.Name(entry.dtype) if known else f"number {entry.dtype}"
            raise error("unsupported-dtype", f"the tensor {key!r} of the checkpoint {self.prefix} has the type {name}")
        return row.dtype


def _read_index(prefix: str, folder: Folder) -> bytes:
    path = Path(f"{prefix}.index")
    try:
        return folder.read(path)
    except FileNotFoundError as problem:
        legacy = is_file(prefix)
        hint = "it seems to be a checkpoint of the old format V1; save the model anew" if legacy else _DAMAGE_HINT
        raise error("missing-index", f"the checkpoint's index {path} doesn't exist", hint=hint) from problem
    except OSError as problem:
        raise error("unreadable-file", f"{path} can't be read: {problem.strerror}") from problem


def _open_shard(path: Path, folder: Folder, *, stays_open: bool) -> InputFile:
    try:
        return folder.input(path, stays_open=stays_open)
    except FileNotFoundError as problem:
        raise error("missing-shard", f"the checkpoint's data file {path} doesn't exist", hint=_DAMAGE_HINT) from problem
    except OSError as problem:
        raise error("unreadable-file", f"{path} can't be read: {problem.strerror}") from problem


def _parse_header(value: bytes) -> int:
    """Returns the number of shards."""
    try:
        header = BundleHeaderProto.FromString(value)
    except DecodeError as problem:
        raise MalformedError("the header can't be parsed") from problem
    if header.endianness != BundleHeaderProto.LITTLE:
        raise MalformedError("it was written on a big-endian machine, which is not supported", "big-endian")
    if header.version.min_consumer > _NEWEST_VERSION:
        needed = header.version.min_consumer
        raise MalformedError(
            f"it requires a reader of version {needed}, this one is {_NEWEST_VERSION}", "unsupported-version"
        )
    return header.num_shards


def _parse_entry(value: bytes) -> Entry:
    """Returns an entry that is consistent in itself."""
    try:
        proto = BundleEntryProto.FromString(value)
    except DecodeError as problem:
        raise MalformedError("an entry can't be parsed") from problem
    shape = tuple(dim.size for dim in proto.shape.dim)
    if proto.shape.unknown_rank or min(shape, default=0) < 0 or len(shape) > _MAX_RANK:
        raise MalformedError("a tensor's shape is not static")
    if (prod(shape) or prod(filter(None, shape))) > _MAX_ELEMENTS:
        raise MalformedError("a tensor's shape is impossibly large")
    if proto.offset < 0 or proto.size < 0:
        raise MalformedError("a tensor's place is negative")
    slices = tuple(map(_extents, proto.slices))
    entry = Entry(proto.dtype, shape, proto.shard_id, proto.offset, proto.size, unmask(proto.crc32c), slices)
    if not slices:
        _check_size(entry)
    return entry


def _extents(part: TensorSliceProto) -> tuple[Extent, ...]:
    return tuple((extent.start, extent.length if extent.HasField("length") else WHOLE) for extent in part.extent)


def _check_size(entry: Entry) -> None:
    """Compares an entry's size with its shape, as far as the element type has a width."""
    count = prod(entry.shape)
    row = types.from_number(entry.dtype)
    if entry.dtype == DT_STRING:
        # Each string takes a byte at least, for its length.
        fits = count <= entry.size
    else:
        fits = row is None or row.dtype.kind == "O" or count * row.dtype.itemsize == entry.size
    if not fits:
        raise MalformedError(f"a tensor of shape {list(entry.shape)} can't have {entry.size} bytes")


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as problem:
        raise MalformedError("a tensor's name is not text") from problem
