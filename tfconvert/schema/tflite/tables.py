"""A flatbuffer schema at run time: its tables and enums, by name.

`TFLITE` is the model format, `CONVERSION_METADATA` the small format of the metadata entry of that name. Both are
views of generated literals; a table's fields become objects only when the table is first looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

from tfconvert.schema.tflite.generated import conversion_metadata_tables, tflite_tables

SCALARS: Mapping[str, str] = {
    "bool": "?",
    "utype": "B",
    "byte": "b",
    "ubyte": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "float": "f",
    "double": "d",
}
"""Kinds of scalar fields, with their `struct` format."""

SIZES: Mapping[str, int] = {
    "bool": 1,
    "utype": 1,
    "byte": 1,
    "ubyte": 1,
    "short": 2,
    "ushort": 2,
    "int": 4,
    "uint": 4,
    "long": 8,
    "ulong": 8,
    "float": 4,
    "double": 8,
}
"""Kinds of scalar fields, with their size in bytes."""


class Field(NamedTuple):
    """One field of a table."""

    name: str  # The field's name in the `.fbs` file.
    slot: int  # Its place in the table's vtable.
    kind: str  # A key of `SCALARS`, `string`, `table`, `union`, or one of these in brackets for a vector.
    default: Any  # Value of a scalar that is not stored.
    refers: str  # The enum of a scalar or union, the table of a `table`; else empty.
    align: int  # Alignment that a vector's first element must have, 0 for its natural one.


class Schema:
    """Tables and enums by name.

    Attributes:
        root: Name of the table at the root of a file.
        enums: Members' numbers by name, for each enum; a union is an enum of table names.
    """

    def __init__(self, module: ModuleType) -> None:
        self.root: str = module.ROOT
        self.enums: Mapping[str, Mapping[str, int]] = module.ENUMS
        self._rows: Mapping[str, tuple[tuple[str, int, str, Any, str, int], ...]] = module.TABLES
        self._fields: dict[str, Mapping[str, Field]] = {}
        self._members: dict[str, Mapping[int, str]] = {}

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables."""
        return tuple(self._rows)

    def fields(self, table: str) -> Mapping[str, Field]:
        """Returns the fields of a table by name, in slot order."""
        found = self._fields.get(table)
        if found is None:
            found = self._fields[table] = {row[0]: Field(*row) for row in self._rows[table]}
        return found

    def member(self, enum: str, number: int) -> str | None:
        """Returns the name of an enum's member, `None` if the number is not in use."""
        found = self._members.get(enum)
        if found is None:
            found = self._members[enum] = {value: name for name, value in self.enums[enum].items()}
        return found.get(number)


TFLITE = Schema(tflite_tables)
CONVERSION_METADATA = Schema(conversion_metadata_tables)
