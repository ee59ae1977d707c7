"""Static tables: their contents, read at compile time, and the lookups in them, which each target lowers.

Vocabulary files, which fill tables, are read as TensorFlow's table initialisers read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import erase, replace_op, update_function_type
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at, node_of
from tfconvert.schema.dialects.tf_saved_model import AssetOp
from tfconvert.schema.files import read_file
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

WHOLE_LINE, LINE_NUMBER = -2, -1
"""Pseudo columns of keys or values: the whole line, or its number."""

_WRONG_FILE = "the file is not of this model"


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file's lines.

    Attributes:
        delimiter: The separator of columns.
        size: Number of lines to read; -1 for all.
        offset: The number of the first line.
    """

    delimiter: bytes = b"\t"
    size: int = -1
    offset: int = 0


def read_lines(path: Path, form: Format) -> list[bytes]:
    """Returns a file's lines.

    Raises:
        ConversionError: The file can't be read (`unreadable-file`) or is too short (`bad-vocabulary`).
    """
    try:
        data = read_file(path)
    except OSError as problem:
        raise error("unreadable-file", f"can't read the vocabulary {path.name}: {problem.strerror}") from None
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    if not lines[-1]:
        lines.pop()
    if form.size > len(lines) or not lines:
        expected = f"{form.size} lines" if form.size >= 0 else "some"
        raise error(
            "bad-vocabulary", f"{path.name} has {len(lines)} lines, the model expects {expected}", hint=_WRONG_FILE
        )
    lines = lines if form.size < 0 else lines[: form.size]
    if b"" in lines:
        raise error(
            "bad-vocabulary",
            f"line {lines.index(b'') + 1} of {path.name} is empty",
            hint="TensorFlow doesn't accept empty lines either",
        )
    return lines


def column(lines: list[bytes], index: int, dtype: np.dtype[Any], form: Format) -> Array:
    """Returns a column of lines.

    Args:
        lines: The lines.
        index: The column, `WHOLE_LINE` or `LINE_NUMBER`.
        dtype: The elements' dtype; `object` for strings.
        form: The format of lines.

    Raises:
        ConversionError: A line lacks the column, or its value can't be parsed (`bad-vocabulary`).
    """
    if index == LINE_NUMBER:
        return np.arange(form.offset, form.offset + len(lines)).astype(dtype)
    try:
        found = lines if index == WHOLE_LINE else [line.split(form.delimiter)[index] for line in lines]
        if dtype.kind != "O":
            return np.array([_number(each, dtype) for each in found], dtype)
    except (IndexError, ValueError, OverflowError):
        raise error(
            "bad-vocabulary", f"not every line of the vocabulary has a {dtype} in column {index}", hint=_WRONG_FILE
        ) from None
    result = np.empty(len(found), object)
    result[:] = found
    return result


def _number(text: bytes, dtype: np.dtype[Any]) -> float:
    if b"_" in text:
        raise ValueError("Python's own way of writing long numbers")
    return int(text) if dtype.kind in "iu" else float(text)


_TABLE = "tf.HashTableV2"
_FIND, _SIZE, _EXPORT = "tf.LookupTableFindV2", "tf.LookupTableSizeV2", "tf.LookupTableExportV2"
_IMPORTS = frozenset({"tf.LookupTableImportV2", "tf.InitializeTableV2"})
_FROM_FILE = "tf.InitializeTableFromTextFileV2"


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a table.

    Attributes:
        name: The table's name.
        keys, values: The entries, as vectors of one length.
        key, value: The element types of these.
    """

    name: str
    keys: Array
    values: Array
    key: Attribute
    value: Attribute


Lower = Callable[[Contents, Sequence[Operation]], Callable[[Operation], None] | None]
"""Rewrites the lookups in a table.

Returns a function that inserts the new initialization before each op that filled the table, or `None` if the table
doesn't change."""


@dataclass(slots=True)
class StaticTable:
    """A table by its name.

    Attributes:
        name: The common name of its handles.
        handles: The ops that create handles.
        users: The users of the handles.
        keys, values: Its entries.
    """

    name: str
    handles: list[Operation] = field(default_factory=list)
    users: list[Operation] = field(default_factory=list)
    keys: Array = field(default_factory=lambda: np.empty(0))
    values: Array = field(default_factory=lambda: np.empty(0))

    def kind(self) -> tuple[Attribute, Attribute]:
        """Returns the element types of keys and values."""
        key, value = (self.handles[0].properties[name] for name in ("key_dtype", "value_dtype"))
        return key, value

    def fills(self) -> list[Operation]:
        return [op for op in self.users if op.name in _IMPORTS or op.name == _FROM_FILE]


def lower_tables(module: ModuleOp, lower: Lower) -> int:
    """Reads all tables of a module and rewrites their lookups; returns the number of tables.

    Args:
        module: The module.
        lower: Rewrites the lookups in a table.
    """
    functions = functions_of(module)
    tables = _tables(functions.values())
    if not tables:
        return 0
    assets = {_text(op.properties["filename"]) for op in module.ops if isinstance(op, AssetOp)}
    for table in tables.values():
        fill = _lower(table, lower) if _read(table, assets) else None
        for op in table.fills() if fill is not None else ():
            assert fill is not None
            fill(op)
            erase(op)
    for asset in [op for op in module.ops if isinstance(op, AssetOp)]:
        erase(asset)
    for function in functions.values():
        _erase_unused(function)
        update_function_type(function)
    return len(tables)


def _lower(table: StaticTable, lower: Lower) -> Callable[[Operation], None] | None:
    """Rewrites the lookups, exports and sizes of a table."""
    key, value = table.kind()
    entries = _distinct(table)
    for op in table.users:
        _check_kinds(op, table)
        if op.name == _SIZE:
            _replace(op, np.array(len(entries), np.int64))
        elif op.name == _EXPORT:
            _replace(op, *_columns(entries, table))
    contents = Contents(table.name, *_columns(entries, table), key, value)
    return lower(contents, [op for op in table.users if op.name == _FIND])


def _replace(op: Operation, *values: Array) -> None:
    insert = TFBuilder(op)
    replace_op(op, [insert.constant(each) for each in values])


def _text(attribute: Attribute | None) -> str:
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _tables(functions: Iterable[FuncOp]) -> dict[str, StaticTable]:
    """Returns the tables of functions by name; a table without a name gets its node's."""
    tables: dict[str, StaticTable] = {}
    for function in functions:
        for op in function.body.walk():
            if op.name == _TABLE:
                name = _text(op.properties.get("shared_name")) or node_of(op.location)
                op.properties["shared_name"] = StringAttr.get(name)
                table = tables.setdefault(name, StaticTable(name))
                table.handles.append(op)
                table.users += [use.operation for use in op.results[0].uses]
    return tables


def _read(table: StaticTable, assets: set[str]) -> bool:
    """Reads a table's entries; returns whether they are known at compile time."""
    fills = table.fills()
    finds = [op for op in table.users if op.name in (_FIND, _SIZE, _EXPORT)]
    if not fills:
        if finds:
            raise error_at(
                finds[0],
                "empty-table",
                f"nothing in the model fills the table {table.name!r}",
                "export a SavedModel whose tables are tracked, with its init op and assets",
            )
        return False
    first = fills[0]
    constants = [tensor_data.constant_of(operand) for operand in first.operands[1:]]
    if first.name == _FROM_FILE:
        if constants[0] is None:
            return False
        _read_file(table, first, tensor_data.to_array(constants[0]).item(), assets)
        return True
    columns = [tensor_data.to_array(each) for each in constants if each is not None]
    if len(columns) != 2:
        return False
    if columns[0].shape != columns[1].shape:
        shapes = [list(column.shape) for column in columns]
        raise error_at(
            first,
            "bad-table",
            f"the table {table.name!r} doesn't have one value for each key, but keys of "
            f"shape {shapes[0]} and values of shape {shapes[1]}",
        )
    table.keys, table.values = (column.reshape(-1) for column in columns)
    return all(_fills_alike(op, columns) for op in fills[1:])


def _fills_alike(op: Operation, columns: Sequence[Array]) -> bool:
    """Returns whether an op fills a table with the given keys and values."""
    own = [tensor_data.constant_of(operand) for operand in op.operands[1:]]
    return len(own) == 2 and all(
        each is not None and np.array_equal(tensor_data.to_array(each), column)
        for each, column in zip(own, columns, strict=True)
    )


def _dtype(op: Operation, element: Attribute) -> np.dtype[Any]:
    row = types.from_mlir(element)
    if row is None:
        raise error_at(op, "bad-table", f"no file holds elements of the type {element}")
    return row.dtype


def _read_file(table: StaticTable, op: Operation, path: bytes, assets: set[str]) -> None:
    file = path.decode(errors="replace")
    if file not in assets:
        raise error_at(
            op,
            "missing-asset",
            f"the table {table.name!r} is filled from {Path(file).name!r}, which is not an asset of the model",
            "export a SavedModel: it holds the files that it needs",
        )
    form = Format(tf.get(op, "delimiter", "\t").encode(), tf.get(op, "vocab_size", -1), tf.get(op, "offset", 0))
    key, value = table.kind()
    try:
        lines = read_lines(Path(file), form)
        table.keys = column(lines, tf.get(op, "key_index"), _dtype(op, key), form)
        table.values = column(lines, tf.get(op, "value_index"), _dtype(op, value), form)
    except ConversionError as problem:
        raise error_at(op, problem.code, problem.diagnostics[0].message, problem.diagnostics[0].hint) from None


def _check_kinds(op: Operation, table: StaticTable) -> None:
    """Checks the element types of an op's keys and values against the table's."""
    found = {_FIND: op.operands[1:], _EXPORT: op.results}.get(op.name, op.operands[1:] if op.name in _IMPORTS else ())
    elements = tuple(value.element for value in found)
    is_scalar = op.name != _FIND or op.operands[2].shape in (None, ())
    if found and (elements != table.kind() or not is_scalar):
        used = ", ".join(str(value.type) for value in found)
        raise error_at(
            op,
            "bad-table",
            f"the table {table.name!r} has keys of {table.kind()[0]} and single values of "
            f"{table.kind()[1]}, but is used with {used}",
        )


def _distinct(table: StaticTable) -> dict[Any, Any]:
    """Returns a table's entries, values by key."""
    keys, values = table.keys.tolist(), table.values.tolist()
    entries = dict(zip(keys, values, strict=True))
    if len(entries) < len(keys):
        for key, value in zip(keys, values, strict=True):
            if entries[key] != value:
                raise error_at(
                    table.fills()[0],
                    "ambiguous-key",
                    f"the table {table.name!r} is filled with different values for the key {key!r}",
                    "name every key once: TensorFlow doesn't fill such a table either",
                )
    return entries


def _columns(entries: dict[Any, Any], table: StaticTable) -> tuple[Array, Array]:
    """Returns all keys and all values, each key once."""
    if len(entries) == len(table.keys):
        return table.keys, table.values
    keys, values = np.empty(len(entries), table.keys.dtype), np.empty(len(entries), table.values.dtype)
    keys[:], values[:] = list(entries), list(entries.values())
    return keys, values


def _erase_unused(function: FuncOp) -> None:
    for op in reversed(list(function.body.walk())):
        if op.name in (_TABLE, "tf.Const") and op.results[0].first_use is None:
            erase(op)
