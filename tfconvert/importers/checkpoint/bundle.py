"""Reads TensorFlow's checkpoints ("tensor bundles"): an index of tensors, and shards that hold their data.

`Checkpoint(prefix)` reads `<prefix>.index`, an SSTable of `BundleEntryProto`s by tensor name, and checks the sizes of
the shards `<prefix>.data-00000-of-0000N`; no tensor's data is read. `read` returns a tensor as a source for a
`TensorData` handle: a slice of the shard, whose checksum is verified when it is first used.

May import: `schema`, protobuf, numpy, google_crc32c.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
from google.protobuf.message import DecodeError

from tfconvert.importers.checkpoint.sstable import MalformedError, read_table, read_varint, unmask
from tfconvert.importers.containment import Folder
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import boxes, types
from tfconvert.schema.dialects.boxes import Array, Box
from tfconvert.schema.dialects.sources import BufferSource, DataSource, FileSlice, bytes_of
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.files import InputFile, is_file
from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import (
    DT_STRING,
    BundleEntryProto,
    BundleHeaderProto,
    DataType,
    TensorSliceProto,
    TrackableObjectGraph,
)

_CHECKSUM_SIZE = 4


def decode_strings(data: memoryview, count: int, crc32c: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns the strings of a tensor as a flat array of `bytes`.

    Args:
        data: The tensor's bytes in the shard.
        count: Number of strings.
        crc32c: The checksum that the index has, unmasked.

    Raises:
        MalformedError: The data is damaged.
    """
    lengths, position = _lengths(data, count)
    # The checksums cover the lengths at a fixed width, not as they are stored.
    fixed = b"".join(length.to_bytes(4 if length < 1 << 32 else 8, "little") for length in lengths)
    running = google_crc32c.value(fixed)
    stored = bytes(data[position : position + _CHECKSUM_SIZE])
    position += _CHECKSUM_SIZE
    if running != unmask(int.from_bytes(stored, "little")):
        raise MalformedError("the lengths of its strings are damaged: their checksum is wrong", "bad-checksum")
    if position + sum(lengths) != len(data):
        raise MalformedError("its strings don't fill their space")
    text = bytes(data[position:])
    if google_crc32c.extend(google_crc32c.extend(running, stored), text) != crc32c:
        raise MalformedError("its strings are damaged: their checksum is wrong", "bad-checksum")
    result = np.empty(count, object)
    position = 0
    for index, length in enumerate(lengths):
        result[index] = text[position : position + length]
        position += length
    return result


def _lengths(data: memoryview, count: int) -> tuple[list[int], int]:
    """Returns the strings' lengths and the position after them."""
    lengths = []
    position = 0
    for _ in range(count):
        length, position = read_varint(data, position)
        lengths.append(length)
    return lengths, position


Extent = tuple[int, int]
"""Start and length of a slice in one dimension; the length -1 is the whole dimension."""

WHOLE = -1

_FIRST_SIGNED_BYTES = (0x80, 0xC0, 0xE0, 0xF0, 0xF8, 0xFC, 0xFE, 0xFF, 0xFF, 0xFF)
_SECOND_SIGNED_BYTES = (0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xC0)


def slice_key(name: str, extents: Sequence[Extent]) -> bytes:
    """Returns the key that a slice has in the index.

    Args:
        name: Key of the whole tensor.
        extents: The slice's place.
    """
    text = name.encode().replace(b"\x00", b"\x00\xff")  # the encoding escapes byte 255 too, but no name has it
    key = _unsigned(0) + text + b"\x00\x01" + _unsigned(len(extents))
    return key + b"".join(_signed(start) + _signed(length) for start, length in extents)


def _unsigned(value: int) -> bytes:
    """Encodes a number so that encodings sort as numbers do: the count of its bytes, then its bytes."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Encodes a number so that encodings sort as numbers do: a unary count of bytes is mixed into the leading bits."""
    size = (value if value >= 0 else ~value).bit_length() // 7 + 1
    code = bytearray(value.to_bytes(size, "big", signed=True))
    code[0] ^= _FIRST_SIGNED_BYTES[size - 1]
    if size > 1:
        code[1] ^= _SECOND_SIGNED_BYTES[size - 1]
    return bytes(code)


class PartitionedSource(DataSource):
    """A tensor whose slices are tensors of their own; it is assembled as it is read, and not cached.

    Attributes:
        parts: The place in the whole, the shape and the source of each slice.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[tuple[tuple[slice, ...], Shape, DataSource], ...]) -> None:
        self.parts = parts

    @classmethod
    def checked(cls, shape: Shape, slices: Sequence[tuple[Sequence[Extent], Shape, DataSource]]) -> PartitionedSource:
        """Returns the source of a tensor after a check that its slices cover it exactly.

        Args:
            shape: The whole's shape.
            slices: Place, shape and source of each slice.

        Raises:
            MalformedError: A slice isn't where it claims to be, two overlap, or something is missing.
        """
        if sum(prod(part_shape) for _, part_shape, _ in slices) != prod(shape):
            raise MalformedError("they don't have as many elements as the tensor")
        parts = [(_place(shape, extents, part_shape), part_shape, source) for extents, part_shape, source in slices]
        if len(parts) > 1:
            _check_disjoint(shape, [place for place, _, _ in parts])
        return cls(tuple(parts))

    def part(self, dtype: np.dtype[Any], shape: Shape, box: Box) -> Array:
        result = np.empty(boxes.extent(box), dtype)
        for place, part_shape, source in self.parts:
            overlap = boxes.common(place, box)
            if overlap is not None:
                own = source.part(dtype, part_shape, boxes.relative(overlap, place))
                result[boxes.relative(overlap, box)] = own
        return result

    def release(self) -> None:
        for _, _, source in self.parts:
            source.release()

    def fingerprint(self) -> Hashable:
        places = (tuple((part.start, part.stop) for part in place) for place, _, _ in self.parts)
        return ("parts", *zip(places, (source.fingerprint() for _, _, source in self.parts), strict=True))


class PartOfSource(DataSource):
    """A slice of a tensor.

    Attributes:
        whole: The tensor's source.
        shape: The tensor's shape.
        place: Where in it the slice is.
    """

    __slots__ = ("place", "shape", "whole")

    def __init__(self, whole: DataSource, shape: Shape, place: tuple[slice, ...]) -> None:
        self.whole = whole
        self.shape = shape
        self.place = place

    @classmethod
    def checked(cls, whole: DataSource, shape: Shape, extents: Sequence[Extent]) -> PartOfSource:
        """Returns the source of a slice after a check that it lies within the tensor."""
        lengths = tuple(dim if length == WHOLE else length for dim, (_, length) in zip(shape, extents, strict=False))
        return cls(whole, shape, _place(shape, extents, lengths))

    @property
    def part_shape(self) -> Shape:
        """The slice's shape."""
        return tuple(part.stop - part.start for part in self.place)

    def part(self, dtype: np.dtype[Any], shape: Shape, box: Box) -> Array:
        moved = zip(box, self.place, strict=True)
        inside = tuple(slice(part.start + by.start, part.stop + by.start) for part, by in moved)
        return self.whole.part(dtype, self.shape, inside)

    def release(self) -> None:
        self.whole.release()

    def fingerprint(self) -> Hashable:
        return ("part", self.shape, tuple((part.start, part.stop) for part in self.place), self.whole.fingerprint())


def _place(shape: Shape, extents: Sequence[Extent], part_shape: Shape) -> tuple[slice, ...]:
    """Returns the index expression of a slice after a check of its bounds and its shape."""
    if not len(shape) == len(extents) == len(part_shape):
        raise MalformedError("one has another rank than the tensor")
    place = []
    for dim, (start, length), part_dim in zip(shape, extents, part_shape, strict=True):
        start, length = (0, dim) if length == WHOLE else (start, length)
        if start < 0 or length != part_dim or start + length > dim:
            raise MalformedError("one lies outside of the tensor, or isn't as long as it should be")
        place.append(slice(start, start + length))
    return tuple(place)


def _check_disjoint(shape: Shape, places: Sequence[tuple[slice, ...]]) -> None:
    """Checks that no two slices overlap; since they have as many elements as the whole, they then cover it."""
    taken = np.zeros(shape, np.bool_)
    for place in places:
        if taken[place].any():
            raise MalformedError("two of them overlap")
        taken[place] = True


OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"

# The prefix of a slice's key; no tensor's own key has it.
_SLICE_MARK = b"\0"

_NEWEST_VERSION = 1

# Maximum number of shards that stay open during the conversion; if there are more, each is opened for every read, since
# a process may only have some hundred open files.
_MAX_OPEN = 64

_DAMAGE = frozenset({"bad-checksum", "bad-index", "truncated-index"})
_DAMAGE_HINT = "copy or download the model again"

_MAX_RANK = 32
# The limits of numpy; the second even where one dimension is 0.
_MAX_ELEMENTS = 1 << 58


class BundleEntry(NamedTuple):
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
        prefix: Path of its files without their extensions.
    """

    def __init__(self, prefix: os.PathLike[str] | str, folder: Folder | None = None) -> None:
        """Opens a checkpoint.

        Args:
            prefix: Path of the files without `.index` or `.data-...`.
            folder: The directory that the files must lie in; by default the one that they seem to.

        Raises:
            ConversionError: A file is missing, can't be read, is shorter than the index states, or is damaged, or
                lies elsewhere (`outside-model`).
        """
        self.prefix = os.fspath(prefix)
        self._folder = folder if folder is not None else Folder(Path(self.prefix).parent)
        self._index_path = f"{self.prefix}.index"
        self._shards: dict[int, InputFile] = {}
        self._entries: dict[str, BundleEntry] = {}
        self._slices: dict[bytes, BundleEntry] = {}
        data = _read_index(self.prefix, self._folder)
        try:
            self._parse(data)
        except MalformedError as problem:
            hint = _DAMAGE_HINT if problem.code in _DAMAGE else ""
            raise error(problem.code, f"{self._index_path} can't be read: {problem}", hint=hint) from problem

    def entries(self) -> Mapping[str, BundleEntry]:
        """Returns all tensors by their keys, sorted; a partitioned one is a single entry."""
        return MappingProxyType(self._entries)

    def read(self, key: str) -> DataSource:
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

    def read_part(self, key: str, extents: Sequence[Extent]) -> tuple[DataSource, types.Shape]:
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

    def _check_place(self, entry: BundleEntry, shards: int) -> None:
        """Checks that the entry's data lies within its shard."""
        file = self._shards.get(entry.shard_id)
        if file is None:
            if not 0 <= entry.shard_id < shards:
                raise MalformedError(f"a tensor is in shard {entry.shard_id} of {shards}")
            path = Path(f"{self.prefix}.data-{entry.shard_id:05d}-of-{shards:05d}")
            file = _open_shard(path, self._folder, stays_open=shards <= _MAX_OPEN)
            self._shards[entry.shard_id] = file
        if entry.offset + entry.size > file.size:
            needed = entry.offset + entry.size
            message = f"{file.path} is truncated: it has {file.size} bytes, the index refers to {needed} or more"
            raise error("truncated-shard", message, hint=_DAMAGE_HINT)

    def _parts(self, key: str, entry: BundleEntry) -> list[tuple[tuple[Extent, ...], BundleEntry]]:
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
            raise MalformedError("they have more bytes than their shards")
        return parts

    def _source(self, key: str, entry: BundleEntry) -> DataSource:
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

    def _numpy_dtype(self, key: str, entry: BundleEntry) -> np.dtype[Any]:
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
        hint = "it seems to be a checkpoint of the old format V1; save the model again" if legacy else _DAMAGE_HINT
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


def _parse_entry(value: bytes) -> BundleEntry:
    """Returns an entry after a check that it is consistent."""
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
    entry = BundleEntry(proto.dtype, shape, proto.shard_id, proto.offset, proto.size, unmask(proto.crc32c), slices)
    if not slices:
        _check_size(entry)
    return entry


def _extents(part: TensorSliceProto) -> tuple[Extent, ...]:
    return tuple((extent.start, extent.length if extent.HasField("length") else WHOLE) for extent in part.extent)


def _check_size(entry: BundleEntry) -> None:
    """Compares an entry's size with its shape, if the element type has a fixed width."""
    count = prod(entry.shape)
    row = types.from_number(entry.dtype)
    if entry.dtype == DT_STRING:
        # Each string takes at least one byte for its length.
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
