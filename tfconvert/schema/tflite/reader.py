"""Reads any table of a schema from a flatbuffer, field by field, on demand.

The bytes are not trusted: every offset is checked before it is followed, and one outside of the file is a
`ConversionError` (`malformed-tflite`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.tflite.tables import SCALARS, SIZES, TFLITE, Field, Schema

TFLITE_IDENTIFIER = b"TFL3"

_SCALARS = {kind: struct.Struct(f"<{form}") for kind, form in SCALARS.items()}
_UOFFSET = struct.Struct("<I")
_SOFFSET = struct.Struct("<i")
_VOFFSET = struct.Struct("<H")


def malformed(what: str, *, op: str = "", node: str = "") -> ConversionError:
    """Returns the error of a file with invalid contents."""
    return error("malformed-tflite", what, op=op, node=node, hint="make or download the file again")


def _damaged(what: str) -> ConversionError:
    return malformed(f"the file is damaged: {what}")


class Allowance:
    """The budget for reads of a file whose tables may be shared.

    A few bytes can refer to the same table again and again, at several levels, so that walking a small file would take
    exponential time. Reads are therefore counted and limited in proportion to the file's size.

    Attributes:
        left: The elements and characters that may still be read.
    """

    __slots__ = ("left",)

    PER_BYTE = 8
    """Maximum number of times that a valid file's bytes are read: equal vectors and strings may be stored once."""

    def __init__(self, size: int) -> None:
        self.left = self.PER_BYTE * size + (1 << 16)

    def spend(self, count: int) -> None:
        """Counts a read.

        Raises:
            ConversionError: It is out of proportion (`malformed-tflite`).
        """
        self.left -= count
        if self.left < 0:
            raise _damaged("its tables are shared so often that they expand to far more than its size")


class View:
    """One table in a flatbuffer.

    `view["name"]` is a field's value: a number, a string, a `View`, a list of strings or views, or a numpy array that
    shares the file's memory. A field that is not stored has its default, or is `None` if it is not a scalar.

    Attributes:
        table: The table's name in the schema.
    """

    __slots__ = ("_allowance", "_data", "_fields", "_place", "_schema", "_slots", "_vtable", "table")

    def __init__(
        self, schema: Schema, table: str, data: memoryview, place: int, allowance: Allowance | None = None
    ) -> None:
        if allowance is not None:
            allowance.spend(8)
        self.table = table
        self._allowance = allowance
        self._fields = schema.fields(table)
        self._schema = schema
        self._data = data
        self._place = place
        self._vtable = place - self._get(_SOFFSET, place)
        self._slots = self._get(_VOFFSET, self._vtable) // 2 - 2

    def _get(self, packer: struct.Struct, place: int) -> Any:
        if not 0 <= place <= len(self._data) - packer.size:
            raise _damaged(f"an offset in table {self.table} leads out of it")
        return packer.unpack_from(self._data, place)[0]

    def _at(self, slot: int) -> int:
        """Returns the position of a field, 0 if it is not stored."""
        if slot >= self._slots:
            return 0
        offset = self._get(_VOFFSET, self._vtable + 4 + 2 * slot)
        return self._place + offset if offset else 0

    def _follow(self, place: int) -> int:
        target: int = place + self._get(_UOFFSET, place)
        return target

    def _vector(self, place: int, size: int) -> tuple[int, int]:
        """Returns a vector's first element's position and its length."""
        start = self._follow(place)
        count: int = self._get(_UOFFSET, start)
        if start + 4 + count * size > len(self._data):
            raise _damaged(f"a vector in table {self.table} is longer than the file")
        return start + 4, count

    def _string(self, place: int) -> str:
        start, count = self._vector(place, 1)
        data = self._data[start : start + count]
        if self._allowance is None:
            return str(data, "utf-8", "surrogateescape")
        self._allowance.spend(count)
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise _damaged(f"a string in table {self.table} is not UTF-8") from None

    def _child(self, table: str, place: int) -> View:
        return View(self._schema, table, self._data, self._follow(place), self._allowance)

    def __getitem__(self, name: str) -> Any:
        field = self._fields[name]
        place = self._at(field.slot)
        kind = field.kind
        packer = _SCALARS.get(kind)
        if packer is not None:
            return self._get(packer, place) if place else field.default
        if not place:
            return None
        if kind == "string":
            return self._string(place)
        if kind == "table":
            return self._child(field.refers, place)
        if kind == "union":
            return self._union(field, place)
        return self._items(field, place)

    def _union(self, field: Field, place: int) -> View | None:
        kind = self._at(field.slot - 1)
        number = self._data[kind] if 0 < kind < len(self._data) else 0
        table = self._schema.member(field.refers, number)
        return self._child(table, place) if number and table else None

    def _items(self, field: Field, place: int) -> Any:
        kind = field.kind[1:-1]
        start, count = self._vector(place, SIZES.get(kind, 4))
        if self._allowance is not None and kind != "ubyte":
            self._allowance.spend(count)
        if kind in SCALARS:
            return np.frombuffer(self._data, f"<{SCALARS[kind]}", count, start) if count else np.empty(0, SCALARS[kind])
        places = range(start, start + 4 * count, 4)
        if kind == "string":
            return [self._string(item) for item in places]
        return [self._child(field.refers, item) for item in places]

    def place(self, name: str) -> tuple[int, int]:
        """Returns the position and the number of elements of a vector of numbers, zeros if it is not stored.

        Nothing is read of the vector itself.
        """
        field = self._fields[name]
        place = self._at(field.slot)
        return self._vector(place, SIZES[field.kind[1:-1]]) if place else (0, 0)

    def name(self, field: str) -> str | None:
        """Returns the name of an enum field's value, `None` if the number has no name."""
        return self._schema.member(self._fields[field].refers, self[field])

    def stored(self) -> Iterator[str]:
        """Yields the names of the stored fields."""
        return (name for name, field in self._fields.items() if self._at(field.slot))

    def tree(self) -> dict[str, Any]:
        """Returns all stored fields as plain Python values, in the form that `writer.encode` accepts."""
        result: dict[str, Any] = {}
        for name in self.stored():
            field = self._fields[name]
            if field.kind == "utype":
                continue
            value = self[name]
            if isinstance(value, View):
                value = (value.table, value.tree()) if field.kind == "union" else value.tree()
            elif isinstance(value, np.ndarray):
                value = tuple(value.tolist())
            elif isinstance(value, list):
                value = [item.tree() if isinstance(item, View) else item for item in value]
            if value is not None:
                result[name] = value
        return result


def read(
    schema: Schema, data: bytes | bytearray | memoryview, identifier: bytes = b"", allowance: Allowance | None = None
) -> View:
    """Returns the root table of a flatbuffer.

    Args:
        schema: The schema it was written with.
        data: The file's bytes; they are shared, not copied.
        identifier: The expected file identifier; empty for none.
        allowance: The read budget of an untrusted file, whose strings are also checked; `None` is without bounds.

    Raises:
        ConversionError: The bytes are not such a file.
    """
    view = memoryview(data).cast("B")
    if len(view) < 8 or (identifier and view[4:8] != identifier):
        raise malformed(f"this is not a {schema.root} file: the identifier is missing")
    return View(schema, schema.root, view, _UOFFSET.unpack_from(view)[0], allowance)


def read_model(data: bytes | bytearray | memoryview, allowance: Allowance | None = None) -> View:
    """Returns the `Model` table of a .tflite file's bytes; see `read`."""
    return read(TFLITE, data, TFLITE_IDENTIFIER, allowance)
