"""Lookups in static tables, written with what LiteRT has: two kinds of tables, and gathers.

LiteRT looks up integers by strings and strings by integers, 64 bits wide. Any other lookup asks such tables for the
index of an entry, or works the index out where integer keys lie close together, and gathers the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import erase
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_INTEGERS = (types.I32, types.I64)
_F64 = types.from_dtype(np.dtype(np.float64)).mlir
_HANDLE = types.tensor(types.RESOURCE, ())
_SECOND = "/second"
"""What the name of the table has at its end that leads on from strings, where no one table does."""

_SPREAD, _SLACK = 4, 64
"""Integer keys are close together if they span so many times as many numbers as there are, and some more."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a table holds.

    Attributes:
        name: The table's name.
        keys, values: What fills it, vectors of one length.
        key, value: The element types of these.
    """

    name: str
    keys: Array
    values: Array
    key: Attribute
    value: Attribute


Fill = tuple[str, Array, Array]
"""A table of LiteRT's kinds: its name, its keys and its values."""


def lower(contents: Contents, finds: Sequence[Operation]) -> list[Fill]:
    """Rewrites all lookups in a table; returns the tables of LiteRT's kinds that they need.

    A table whose keys LiteRT can't look up stays as it is.
    """
    if not finds:
        return []
    lowered = _by_string if contents.key == types.STRING else _by_integer if contents.key in _INTEGERS else None
    if not len(contents.keys):
        for op in finds:
            _replace(op, _defaults(op))
        return []
    return [(contents.name, contents.keys, contents.values)] if lowered is None else lowered(contents, finds)


def _by_string(contents: Contents, finds: Sequence[Operation]) -> list[Fill]:
    if contents.value == types.I64:
        return [(contents.name, contents.keys, contents.values)]
    for op in finds:
        _gather(op, contents.values, _find(op, contents.name, op.operands[1], len(contents.keys)))
    return [(contents.name, contents.keys, _numbers(contents))]


def _by_integer(contents: Contents, finds: Sequence[Operation]) -> list[Fill]:
    keys = contents.keys.astype(np.int64)
    if _is_dense(contents.keys):
        for op in finds:
            _gather_by_key(op, contents)
        return []
    if contents.value == types.STRING:
        for op in finds:
            _replace(op, _look_up(op, contents.name, _as_i64(op, op.operands[1]), op.operands[2]))
        return [(contents.name, keys, contents.values)]
    for op in finds:
        _find_by_name(op, contents)
    names = np.array([b"%d" % number for number in range(len(keys))], object)
    entries = contents.values if contents.value == types.I64 else _numbers(contents)
    return [(contents.name, keys, names), (contents.name + _SECOND, names, entries)]


def _numbers(contents: Contents) -> Array:
    return np.arange(len(contents.keys), dtype=np.int64)


def fill(anchor: Operation, name: str, keys: Array, values: Array) -> None:
    """Inserts what fills a table of LiteRT's kinds."""
    constants = [constant(anchor, each) for each in (keys, values)]
    table = _table(name, *(types.element_of(each.type) for each in constants))
    _put(anchor, table)
    _put(anchor, tf.build("LookupTableImportV2", (table.results[0], *constants), ()))


def replace(op: Operation, *values: Array) -> None:
    """Replaces an op by constants."""
    _replace(op, *(constant(op, each) for each in values))


def constant(anchor: Operation, value: Array) -> Value:
    """Inserts a constant."""
    op = tf.constant(tensor_data.of_array(value))
    _put(anchor, op)
    return op.results[0]


def _is_dense(keys: Array) -> bool:
    """Tells whether a vector of values for all numbers between the keys is not much longer than them."""
    low, high, limits = int(keys.min()), int(keys.max()), np.iinfo(keys.dtype)
    return high - low < _SPREAD * len(keys) + _SLACK and limits.min < low and high < limits.max


def _gather_by_key(op: Operation, contents: Contents) -> None:
    """Gathers from a vector in which keys are places; keys beyond its ends are where the default value is.

    No key is ever subtracted from before it is known to be near: the difference can't overflow.
    """
    keys = contents.keys
    base, end = int(keys.min()) - 1, int(keys.max()) + 1
    count = len(contents.values)
    places = np.full(end - base + 1, count)
    places[keys - base] = np.arange(count)
    index = op.operands[1]
    for name, number in (("Maximum", base), ("Minimum", end), ("Sub", base)):
        if name != "Sub" or number:
            index = _insert(op, name, (index, constant(op, np.array(number, keys.dtype))), index.type)
    _gather(op, contents.values, index, places)


def _find_by_name(op: Operation, contents: Contents) -> None:
    """Looks up the number of an entry, written as a string, by the key, and the entry's value or index by that."""
    nothing = np.empty((), object)
    nothing[()] = b""
    name = _look_up(op, contents.name, _as_i64(op, op.operands[1]), constant(op, nothing))
    second = contents.name + _SECOND
    if contents.value == types.I64:
        _replace(op, _look_up(op, second, name, op.operands[2]))
    else:
        _gather(op, contents.values, _find(op, second, name, len(contents.keys)))


def _defaults(op: Operation) -> Value:
    """Inserts what an empty table answers."""
    keys = op.operands[1]
    shape = types.shape_of(keys.type)
    rank = -1 if shape is None else len(shape)
    size = _insert(op, "Shape", (keys,), types.tensor(types.I32, (rank,)), {"out_type": types.I32})
    return _insert(op, "Fill", (size, op.operands[2]), types.tensor(types.element_of(op.results[0].type), shape))


def _find(op: Operation, name: str, keys: Value, default: int) -> Value:
    return _look_up(op, name, keys, constant(op, np.array(default, np.int64)))


def _gather(op: Operation, values: Array, index: Value, places: Array | None = None) -> None:
    """Replaces a lookup by a gather of values; an index that none has stands for the lookup's default value.

    Args:
        op: The lookup.
        values: The values, a vector.
        index: Which of them, or of `places`.
        places: Where among the values, and the default value behind them, those are that are gathered from.
    """
    element = types.element_of(op.results[0].type)
    default, is_wide = op.operands[2], element == _F64
    if is_wide:
        # LiteRT gathers no doubles: their bits travel as integers.
        values = values.astype(np.float64).view(np.int64)
    carrier = types.I64 if is_wide else element
    entries = _entries(op, values, default, places, carrier)
    result = types.tensor(carrier, types.shape_of(index.type))
    found = _insert(op, "GatherV2", (entries, index, _axis(op)), result, {"batch_dims": 0})
    _replace(op, _bits(op, found, _F64) if is_wide else found)


def _entries(op: Operation, values: Array, default: Value, places: Array | None, carrier: Attribute) -> Value:
    """Returns values with the default value behind them; it need not be known before the model runs."""
    known = tensor_data.constant_of(default)
    if known is not None:
        one = tensor_data.to_array(known).reshape(1)
        both = np.concatenate([values, one.view(np.int64) if carrier != types.element_of(default.type) else one])
        return constant(op, (both if places is None else both[places]).astype(types.numpy_dtype(carrier)))
    if carrier != types.element_of(default.type):
        default = _bits(op, default, carrier)
    last = _insert(op, "Reshape", (default, constant(op, np.array([1], np.int32))), types.tensor(carrier, (1,)))
    parts = (constant(op, values), last, _axis(op))
    joined = _insert(op, "ConcatV2", parts, types.tensor(carrier, (len(values) + 1,)))
    if places is None:
        return joined
    return _insert(op, "GatherV2", (joined, constant(op, places), _axis(op)), types.tensor(carrier, places.shape),
                   {"batch_dims": 0})  # fmt: skip


def _axis(op: Operation) -> Value:
    return constant(op, np.array(0, np.int32))


def _bits(op: Operation, value: Value, element: Attribute) -> Value:
    kind = {"type": element}
    return _insert(op, "Bitcast", (value,), types.tensor(element, types.shape_of(value.type)), kind)


def _look_up(op: Operation, name: str, keys: Value, default: Value) -> Value:
    element = types.element_of(default.type)
    handle = _table(name, types.element_of(keys.type), element)
    _put(op, handle)
    result = types.tensor(element, types.shape_of(keys.type))
    return _insert(op, "LookupTableFindV2", (handle.results[0], keys, default), result)


def _table(name: str, key: Attribute, value: Attribute) -> Operation:
    attributes: dict[str, Any] = {
        "container": "", "shared_name": name, "use_node_name_sharing": False, "key_dtype": key, "value_dtype": value,
    }  # fmt: skip
    return tf.build("HashTableV2", (), (_HANDLE,), attributes)


def _as_i64(op: Operation, value: Value) -> Value:
    if types.element_of(value.type) == types.I64:
        return value
    return _insert(op, "Cast", (value,), types.tensor(types.I64, types.shape_of(value.type)), {"Truncate": False})


def _put(anchor: Operation, op: Operation) -> None:
    assert anchor.parent is not None
    op.location = anchor.location
    anchor.parent.insert_op_before(op, anchor)


def _insert(
    anchor: Operation, name: str, operands: Iterable[Value], result: Attribute, attributes: Any = None
) -> Value:
    op = tf.build(name, tuple(operands), (result,), attributes)
    _put(anchor, op)
    return op.results[0]


def _replace(op: Operation, *values: Value) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    erase(op)
