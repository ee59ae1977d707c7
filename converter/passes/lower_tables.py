"""Pass `lower-tables`: static tables are filled with constants, and are of the kinds that LiteRT has (design §8).

LiteRT looks up integers by strings and strings by integers, 64 bits wide. Any other table becomes tables of these that
tell at which index an entry is, and a gather. What a vocabulary file holds is read now.

Before:

    func.func @main(%key: tensor<2x!tf_type.string>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<["a", "b"]> : tensor<2x!tf_type.string>}> : () -> tensor<2x!tf_type.string>
      %1 = "tf.Const"() <{value = dense<[0.5, 3.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
      %2 = "tf.Const"() <{value = dense<-1.0> : tensor<f32>}> : () -> tensor<f32>
      %3 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = f32}> : () -> tensor<!tf_type.resource>
      "tf.LookupTableImportV2"(%3, %0, %1)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<2xf32>) -> ()
      %4 = "tf.LookupTableFindV2"(%3, %key, %2)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<f32>) -> tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }

After:

    func.func @main(%key: tensor<2x!tf_type.string>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<["a", "b"]> : tensor<2x!tf_type.string>}> : () -> tensor<2x!tf_type.string>
      %1 = "tf.Const"() <{value = dense<[0, 1]> : tensor<2xi64>}> : () -> tensor<2xi64>
      %2 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = i64}> : () -> tensor<!tf_type.resource>
      "tf.LookupTableImportV2"(%2, %0, %1)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<2xi64>) -> ()
      %3 = "tf.Const"() <{value = dense<2> : tensor<i64>}> : () -> tensor<i64>
      %4 = "tf.HashTableV2"() <{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = i64}> : () -> tensor<!tf_type.resource>
      %5 = "tf.LookupTableFindV2"(%4, %key, %3)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<i64>) -> tensor<2xi64>
      %6 = "tf.Const"() <{value = dense<[0.5, 3.0, -1.0]> : tensor<3xf32>}> : () -> tensor<3xf32>
      %7 = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %8 = "tf.GatherV2"(%6, %5, %7) <{batch_dims = 0}>
          : (tensor<3xf32>, tensor<2xi64>, tensor<i32>) -> tensor<2xf32>
      func.return %8 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from converter.rewrite import symbols
from converter.rewrite.edit import erase, restate_results
from converter.vocabulary_files import Array, Format, column, read_lines
from schema.dialects import tensor_data, tf, types
from schema.dialects.locations import error_at, node_of
from schema.dialects.tf_saved_model import AssetOp

_TABLE = "tf.HashTableV2"
_FIND, _SIZE = "tf.LookupTableFindV2", "tf.LookupTableSizeV2"
_IMPORTS = frozenset({"tf.LookupTableImportV2", "tf.InitializeTableV2"})
_FROM_FILE = "tf.InitializeTableFromTextFileV2"
_HANDLE = types.tensor(types.RESOURCE, ())
_SECOND = "/second"
"""What the name of the table has at its end that leads on from strings, where no one table does."""


@dataclass(slots=True)
class _Table:
    """A table by its name.

    Attributes:
        name: The name that its handles share.
        handles: The ops that make handles.
        users: What uses these.
        keys, values: What fills it.
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
        """Returns the ops that fill it."""
        return [op for op in self.users if op.name in _IMPORTS or op.name == _FROM_FILE]


@dataclass(frozen=True, slots=True)
class LowerTables:
    """Reads what fills static tables, fills tables that LiteRT has with it, and looks up in those."""

    name: ClassVar[str] = "lower-tables"

    def apply(self, module: ModuleOp) -> Counter[str]:
        """Rewrites every function; returns how many tables there are.

        Raises:
            ConversionError: A table is looked up that nothing fills (`empty-table`), or its file is no good.
        """
        functions = symbols.functions_of(module)
        tables = _tables(functions.values())
        if not tables:
            return Counter()
        assets = {_text(op.properties["filename"]) for op in module.ops if isinstance(op, AssetOp)}
        for table in tables.values():
            if _read(table, assets):
                made = _lower(table)
                for op in table.fills():
                    for name, keys, values in made:
                        _fill(op, name, keys, values)
                    erase(op)
        for asset in [op for op in module.ops if isinstance(op, AssetOp)]:
            erase(asset)
        for function in functions.values():
            _erase_unused(function)
            restate_results(function)
        return Counter({"tables": len(tables)})


def _text(attribute: Attribute | None) -> str:
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _tables(functions: Iterable[FuncOp]) -> dict[str, _Table]:
    """Returns the tables of functions by name; one without a name has that of its node from here on."""
    tables: dict[str, _Table] = {}
    for function in functions:
        for op in function.body.walk():
            if op.name == _TABLE:
                name = _text(op.properties.get("shared_name")) or node_of(op.location)
                op.properties["shared_name"] = StringAttr(name)
                table = tables.setdefault(name, _Table(name))
                table.handles.append(op)
                table.users += [use.operation for use in op.results[0].uses]
    return tables


def _read(table: _Table, assets: set[str]) -> bool:
    """Reads what fills a table; tells whether it is known when the model is converted."""
    fills = table.fills()
    finds = [op for op in table.users if op.name in (_FIND, _SIZE)]
    if not fills:
        if finds:
            raise error_at(finds[0], "empty-table", f"nothing in the model fills the table {table.name!r}",
                           "export a SavedModel whose tables are tracked, with its init op and assets")  # fmt: skip
        return False
    first = fills[0]
    constants = [tensor_data.constant_of(operand) for operand in first.operands[1:]]
    if first.name == _FROM_FILE:
        if constants[0] is None:
            return False
        _read_file(table, first, tensor_data.to_array(constants[0]).item(), assets)
        return True
    if len(constants) != 2 or constants[0] is None or constants[1] is None:
        return False
    table.keys, table.values = (tensor_data.to_array(each).reshape(-1) for each in constants if each is not None)
    return len(fills) == 1 or all(tensor_data.constant_of(op.operands[1]) == constants[0] for op in fills)


def _read_file(table: _Table, op: Operation, path: bytes, assets: set[str]) -> None:
    file = path.decode(errors="replace")
    if file not in assets:
        raise error_at(
            op, "missing-asset", f"the table {table.name!r} is filled from {Path(file).name!r}, no asset of the model",
            "export a SavedModel: it holds the files that it needs",
        )  # fmt: skip
    form = Format(tf.get(op, "delimiter", "\t").encode(), tf.get(op, "vocab_size", -1), tf.get(op, "offset", 0))
    lines = read_lines(Path(file), form)
    key, value = table.kind()
    table.keys = column(lines, tf.get(op, "key_index"), types.numpy_dtype(key), form)
    table.values = column(lines, tf.get(op, "value_index"), types.numpy_dtype(value), form)


def _lower(table: _Table) -> list[tuple[str, Array, Array]]:
    """Rewrites the lookups of a table; returns the tables of the runtime's kinds that stand for it."""
    key, value = table.kind()
    for op in table.users:
        if op.name == _SIZE:
            _replace(op, _constant(op, np.array(len(_distinct(table.keys)), np.int64)))
    finds = [op for op in table.users if op.name == _FIND]
    if not finds:
        return []
    numbers = np.arange(len(table.keys), dtype=np.int64)
    names = np.array([b"%d" % number for number in numbers], object)
    by_string, by_number = key == types.STRING, key in (types.I32, types.I64)
    if not (by_string or by_number):
        return [(table.name, table.keys, table.values)]
    keys = table.keys if by_string else table.keys.astype(np.int64)
    if by_number and value == types.STRING:
        for op in finds:
            _replace(op, _look_up(op, table.name, _as_i64(op, op.operands[1]), op.operands[2], value))
        return [(table.name, keys, table.values)]
    entries = table.values if value == types.I64 else numbers
    made = [(table.name, keys, entries)] if by_string else [
        (table.name, keys, names), (table.name + _SECOND, names, entries)
    ]  # fmt: skip
    if by_string and value == types.I64:
        return made
    for op in finds:
        _find(op, table, by_string=by_string)
    return made


def _distinct(keys: Array) -> set[Any]:
    return set(keys.tolist())


def _find(op: Operation, table: _Table, *, by_string: bool) -> None:
    """Replaces a lookup by lookups in the runtime's tables, and a gather where these only tell an index."""
    element = types.element_of(op.results[0].type)
    found = op.operands[1]
    shape = types.shape_of(found.type)
    name = table.name
    if not by_string:
        keys = _as_i64(op, found)
        nothing = _constant(op, _strings([b""], ()))
        found = _look_up(op, name, keys, nothing, types.STRING)
        name += _SECOND
    if element == types.I64:
        _replace(op, _look_up(op, name, found, op.operands[2], types.I64))
        return
    count = len(table.values)
    index = _look_up(op, name, found, _constant(op, np.array(count, np.int64)), types.I64)
    default = tensor_data.constant_of(op.operands[2])
    if default is None:
        one = _insert(
            op, "Reshape", (op.operands[2], _constant(op, np.array([1], np.int32))), types.tensor(element, (1,))
        )
        parts = (_constant(op, table.values), one, _constant(op, np.array(0, np.int32)))
        entries = _insert(op, "ConcatV2", parts, types.tensor(element, (count + 1,)))
    else:
        both = np.concatenate([table.values, tensor_data.to_array(default).reshape(1)])
        entries = _constant(op, both.astype(types.numpy_dtype(element)))
    axis = _constant(op, np.array(0, np.int32))
    _replace(op, _insert(op, "GatherV2", (entries, index, axis), types.tensor(element, shape), {"batch_dims": 0}))


def _strings(values: list[bytes], shape: tuple[int, ...]) -> Array:
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


def _look_up(op: Operation, name: str, keys: SSAValue, default: SSAValue, element: Attribute) -> SSAValue:
    handle = _table_op(name, types.element_of(keys.type), element)
    _put(op, handle)
    result = types.tensor(element, types.shape_of(keys.type))
    return _insert(op, "LookupTableFindV2", (handle.results[0], keys, default), result)


def _table_op(name: str, key: Attribute, value: Attribute) -> Operation:
    attributes: dict[str, Any] = {
        "container": "", "shared_name": name, "use_node_name_sharing": False, "key_dtype": key, "value_dtype": value,
    }  # fmt: skip
    return tf.build("HashTableV2", (), (_HANDLE,), attributes)


def _as_i64(op: Operation, value: SSAValue) -> SSAValue:
    if types.element_of(value.type) == types.I64:
        return value
    return _insert(op, "Cast", (value,), types.tensor(types.I64, types.shape_of(value.type)), {"Truncate": False})


def _put(anchor: Operation, op: Operation) -> None:
    assert anchor.parent is not None
    op.location = anchor.location
    anchor.parent.insert_op_before(op, anchor)


def _insert(
    anchor: Operation, name: str, operands: Iterable[SSAValue], result: Attribute, attributes: Any = None
) -> SSAValue:
    op = tf.build(name, tuple(operands), (result,), attributes)
    _put(anchor, op)
    return op.results[0]


def _constant(anchor: Operation, value: Array) -> SSAValue:
    op = tf.constant(tensor_data.of_array(value))
    _put(anchor, op)
    return op.results[0]


def _replace(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    erase(op)


def _fill(anchor: Operation, name: str, keys: Array, values: Array) -> None:
    """Inserts what fills a table."""
    constants = [_constant(anchor, each) for each in (keys, values)]
    table = _table_op(name, *(types.element_of(each.type) for each in constants))
    _put(anchor, table)
    _put(anchor, tf.build("LookupTableImportV2", (table.results[0], *constants), ()))


def _erase_unused(function: FuncOp) -> None:
    for op in reversed(list(function.body.walk())):
        if op.name in (_TABLE, "tf.Const") and op.results[0].first_use is None:
            erase(op)
