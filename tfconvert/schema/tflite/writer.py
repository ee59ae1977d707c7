"""Writes any table of a schema as a flatbuffer.

A table is passed as a mapping of field names to Python values: numbers, names of enum members, strings, bytes,
sequences, mappings for tables, `(table, mapping)` pairs for unions. A field that is not in the mapping is not stored.

Unlike the usual builders, which write children first, this one writes a table before its children. That costs
nothing, since an offset can be patched, and leaves the end of the file open: the vectors that a `Later` represents are
written by the caller, after all tables. Equal strings, vectors of numbers and union tables are stored once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter, sub
from typing import Any, NamedTuple

import numpy as np

from tfconvert.schema.tflite.tables import SCALARS, SIZES, Field, Schema

_OFFSET = struct.Struct("<I")
_DISTANCE = struct.Struct("<i")
_REFERENCE, _TYPE, _SCALAR = range(3)

SHARED_ITEMS = 1 << 16
"""Vectors of numbers up to this length are looked up among those already written, as zero points of channels."""

# Vectors of numbers up to this length are packed by a function that is kept.
_USUAL_ITEMS = 64


class Later(NamedTuple):
    """Represents a vector that the caller writes."""

    key: Hashable  # The caller's key of the vector.


class Vectors(NamedTuple):
    """Represents tables with one field, a vector that the caller writes."""

    field: str  # The field.
    keys: Sequence[Hashable]  # The caller's keys of the vectors.
    before: Sequence[Mapping[str, Any]] = ()  # Tables before these.


class Encoded(NamedTuple):
    """Tables in their final form, except for offsets to later data."""

    data: bytearray  # The bytes.
    later: list[tuple[int, Hashable]]  # Where the offset of each `Later` belongs, with its key.

    def resolve(self, place: int, target: int) -> None:
        """Stores the position of a `Later` vector."""
        _OFFSET.pack_into(self.data, place, target - place)


_Known = dict[int, tuple[object, list[int]]]

_Reference = tuple[int, _Known, Callable[["_Writer", int, Any, Field], None], Field]
"""A field with an offset: its position, the values that are shared, its writer, and the field."""


class _Layout:
    """The layout of a table with a certain set of fields.

    Attributes:
        pack: Returns the table's bytes without offsets of references.
        get: Returns a table's values, those of fields in it first.
        inline: The number of fields in it.
        enums: The fields of an enum or the type of a union: the index, whether it is one, the numbers by names.
        references: The fields with an offset.
        align: The table's alignment.
        place: The position of the layout in the file.
    """

    __slots__ = ("align", "enums", "get", "inline", "pack", "place", "references")

    def __init__(
        self,
        pack: Callable[..., bytes],
        fields: list[str],
        enums: list[tuple[int, bool, Mapping[str, int]]],
        references: list[_Reference],
        align: int,
        place: int,
    ) -> None:
        self.pack = pack
        self.get: Callable[[Any], Sequence[Any]] = (
            itemgetter(*fields) if len(fields) > 1 else lambda values: [values[field] for field in fields]
        )
        self.inline = len(fields) - len(references)
        self.enums = enums
        self.references = references
        self.align = align
        self.place = place


class _Items:
    """The items of a kind of vectors of numbers."""

    __slots__ = ("align", "code", "packs", "size")

    def __init__(self, kind: str) -> None:
        self.code = SCALARS[kind]
        self.size = SIZES[kind]
        self.align = max(self.size, 4)
        self.packs: dict[int, Callable[..., bytes]] = {}

    def pack(self, count: int) -> Callable[..., bytes]:
        """Returns the function that packs a vector: its length and its items."""
        known = self.packs.get(count)
        if known is None:
            known = struct.Struct(f"<I{count}{self.code}").pack
            if count <= _USUAL_ITEMS:
                self.packs[count] = known
        return known


@cache
def _items(kind: str) -> _Items:
    """Returns the items of vectors of a field's kind, `[int]`."""
    return _Items(kind[1:-1])


class _Writer:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.data = bytearray()
        self.later: list[tuple[int, Hashable]] = []
        self.layouts: dict[Hashable, _Layout] = {}
        # Shared data is written last, so that all references precede it: key -> places of offsets.
        self.unions: dict[tuple[str, Any], tuple[Mapping[str, Any], list[int]]] = {}
        # Texts, and the bytes of vectors, with their alignment where it isn't 4.
        self.leaves: dict[str | bytes | tuple[int, bytes], list[int]] = {}
        # The places of shared data by the kind of field and the identity of the value, which is kept alive: comparing
        # values takes longer.
        self.known: dict[tuple[str, str, int], _Known] = {}

    def pad(self, align: int, ahead: int = 0) -> int:
        """Pads so that the data after `ahead` bytes is aligned; returns the position."""
        missing = -(len(self.data) + ahead) % align
        if missing:
            self.data.extend(bytes(missing))
        return len(self.data)

    def table(self, name: str, values: Mapping[str, Any]) -> int:
        """Writes a table and everything that only it refers to; returns its position."""
        return self.tables(name, (values,))[0]

    def tables(self, name: str, items: Iterable[Mapping[str, Any]]) -> list[int]:
        """Writes tables, each with everything that only it refers to; returns their positions."""
        data, places = self.data, []
        for values in items:
            layout = self.layouts.get(key := (name, *values))
            if layout is None:
                layout = self.layouts[key] = self.layout(name, values)
            missing = -len(data) % layout.align
            if missing:
                data.extend(bytes(missing))
            place = len(data)
            places.append(place)
            own = layout.get(values)
            numbers = [*own[: layout.inline]]
            for index, is_type, enum in layout.enums:
                value = numbers[index][0] if is_type else numbers[index]
                numbers[index] = enum[value] if value.__class__ is str else value
            data += layout.pack(place - layout.place, *numbers)
            for (offset, known, write, field), value in zip(layout.references, own[layout.inline :], strict=True):
                if value.__class__ is str:
                    self.leaves.setdefault(value, []).append(place + offset)
                elif (shared := known.get(id(value))) is not None:
                    shared[1].append(place + offset)
                else:
                    write(self, place + offset, value, field)
        return places

    def layout(self, name: str, values: Mapping[str, Any]) -> _Layout:
        """Writes the layout of tables with certain fields: wide ones first, which requires the least padding."""
        known = self.schema.fields(name)
        items: list[tuple[int, int, str, int, Field]] = []
        for key in values:
            field = known[key]
            if field.kind in SCALARS:
                items.append((-SIZES[field.kind], field.slot, SCALARS[field.kind], _SCALAR, field))
                continue
            items.append((-4, field.slot, "4x", _REFERENCE, field))
            if field.kind == "union":
                items.append((-1, field.slot - 1, "B", _TYPE, field))
        items.sort(key=lambda item: item[:2])
        wide = bool(items) and items[0][0] == -8
        form, position = ("<i4x", 8) if wide else ("<i", 4)
        slots = [0] * max((item[1] + 1 for item in items), default=0)
        inline: list[str] = []
        enums: list[tuple[int, bool, Mapping[str, int]]] = []
        references: list[_Reference] = []
        for size, slot, code, mode, field in items:
            slots[slot] = position
            if mode == _REFERENCE:
                write = _WRITERS.get(field.kind, _Writer.numbers)
                references.append((position, self.known_of(field), write, field))
            else:
                if field.refers:
                    enums.append((len(inline), mode == _TYPE, self.schema.enums[field.refers]))
                inline.append(field.name)
            form += code
            position -= size
        place = self.pad(2)
        self.data += struct.pack(f"<{len(slots) + 2}H", 4 + 2 * len(slots), position, *slots)
        fields = [*inline, *(field.name for *_, field in references)]
        return _Layout(struct.Struct(form).pack, fields, enums, references, 8 if wide else 4, place)

    def known_of(self, field: Field) -> _Known:
        """Returns the shared values of fields that store equal values in equal form."""
        return self.known.setdefault((field.kind, field.refers, field.align), {})

    # Writers of a field's target: each writes or queues it, and stores its offset at `place`.

    def own_table(self, place: int, value: Mapping[str, Any], field: Field) -> None:
        """Writes a table."""
        _OFFSET.pack_into(self.data, place, self.table(field.refers, value) - place)

    def union(self, place: int, value: tuple[str, Mapping[str, Any]], field: Field) -> None:
        """Queues the table of a union."""
        name, content = value
        try:
            places = self.unions.setdefault((name, tuple(content.items())), (content, []))[1]
        except TypeError:  # a list among the values: not worth a key
            _OFFSET.pack_into(self.data, place, self.table(name, content) - place)
            return
        places.append(place)
        self.known_of(field)[id(value)] = (value, places)

    def string(self, place: int, value: str, field: Field) -> None:
        """Queues a string."""
        self.leaves.setdefault(value, []).append(place)

    def strings(self, place: int, value: Sequence[str], field: Field) -> None:
        """Writes a vector of strings."""
        for slot, item in zip(self.offsets(place, len(value)), value, strict=True):
            self.leaves.setdefault(item, []).append(slot)

    def children(self, place: int, value: Sequence[Mapping[str, Any]] | Vectors, field: Field) -> None:
        """Writes a vector of tables."""
        if isinstance(value, Vectors):
            self.vectors(place, value, field)
            return
        name, slots = field.refers, self.offsets(place, len(value))
        targets = self.tables(name, value)
        struct.pack_into(f"<{len(slots)}I", self.data, slots.start, *map(sub, targets, slots))

    def vectors(self, place: int, value: Vectors, field: Field) -> None:
        """Writes a vector of tables that have one vector each, which comes later."""
        slots = self.offsets(place, len(value.before) + len(value.keys))
        targets = self.tables(field.refers, value.before)
        if value.keys:
            first = self.table(field.refers, {value.field: Later(value.keys[0])})
            size = len(self.data) - first
            # They differ in their distance to the layout only.
            (distance,) = _DISTANCE.unpack_from(self.data, first)
            rows: np.ndarray[Any, np.dtype[np.int32]] = np.zeros((len(value.keys), size // 4), "<i4")
            rows[:, 0] = np.arange(distance, distance + size * len(value.keys), size)
            self.data[first:] = rows.tobytes()
            places = range(first, first + size * len(value.keys), size)
            offset = self.later[-1][0] - first
            self.later += [(start + offset, key) for start, key in zip(places[1:], value.keys[1:], strict=True)]
            targets += places
        struct.pack_into(f"<{len(slots)}I", self.data, slots.start, *map(sub, targets, slots))

    def numbers(self, place: int, value: Any, field: Field) -> None:
        """Writes or queues a vector of numbers."""
        if value.__class__ is Later:
            self.later.append((place, value.key))
            return
        item = _items(field.kind)
        count = len(value)
        if value.__class__ is tuple and not field.refers:
            content = (item.packs.get(count) or item.pack(count))(count, *value)
        elif isinstance(value, bytes | bytearray):
            count //= item.size
            content = _OFFSET.pack(count) + bytes(value)
        elif value.__class__ is np.ndarray:
            count = value.size
            content = _OFFSET.pack(count) + value.astype(f"<{item.code}", copy=False).tobytes()
        else:
            if field.refers:
                enum = self.schema.enums[field.refers]
                value = [enum[item] if item.__class__ is str else item for item in value]
            content = (item.packs.get(count) or item.pack(count))(count, *value)
        align = max(field.align, item.align)
        if count <= SHARED_ITEMS:
            places = self.leaves.setdefault(content if align == 4 else (align, content), [])
            places.append(place)
            if len(places) > 1 and value.__class__ is tuple:
                self.known_of(field)[id(value)] = (value, places)
        else:
            _OFFSET.pack_into(self.data, place, self.pad(align, 4) - place)
            self.data.extend(content)

    def offsets(self, place: int, count: int) -> range:
        """Writes a vector of offsets to fill in later; returns their places."""
        start = self.pad(4)
        _OFFSET.pack_into(self.data, place, start - place)
        self.data.extend(_OFFSET.pack(count) + bytes(4 * count))
        return range(start + 4, start + 4 + 4 * count, 4)

    def finish(self) -> Encoded:
        """Writes the shared data."""
        for (name, _), (content, places) in self.unions.items():
            target = self.table(name, content)
            for place in places:
                _OFFSET.pack_into(self.data, place, target - place)
        pieces: list[bytes] = []
        targets: list[int] = []
        target = len(self.data)
        for leaf in self.leaves:
            align = 4
            if isinstance(leaf, str):
                text = leaf.encode("utf-8", "surrogateescape")
                leaf = _OFFSET.pack(len(text)) + text + b"\0"
            elif isinstance(leaf, tuple):
                align, leaf = leaf
            missing = -(target + 4) % align
            if missing:
                pieces.append(bytes(missing))
                target += missing
            pieces.append(leaf)
            targets.append(target)
            target += len(leaf)
        self.data += b"".join(pieces)
        # All offsets are aligned.
        slots = np.array([*chain.from_iterable(self.leaves.values())], np.int64)
        ends = np.repeat(np.array(targets, np.int64), [*map(len, self.leaves.values())])
        np.frombuffer(self.data, "<u4", len(self.data) // 4)[slots // 4] = ends - slots
        return Encoded(self.data, self.later)


# The writers of fields' targets by kind, except for vectors of numbers.
_WRITERS: Mapping[str, Callable[[_Writer, int, Any, Field], None]] = {
    "table": _Writer.own_table,
    "string": _Writer.string,
    "union": _Writer.union,
    "[table]": _Writer.children,
    "[string]": _Writer.strings,
}


def encode(schema: Schema, root: Mapping[str, Any], identifier: bytes = b"") -> Encoded:
    """Writes a flatbuffer.

    Args:
        schema: The schema; its root table is written.
        root: The root table's fields.
        identifier: The file identifier, four bytes; empty for none.

    Returns:
        The bytes, with the places that still need an offset.
    """
    writer = _Writer(schema)
    writer.data.extend(_OFFSET.pack(0) + identifier)
    _OFFSET.pack_into(writer.data, 0, writer.table(schema.root, root))
    return writer.finish()
