"""Lowers lookups in static tables to LiteRT's two kinds of tables, and gathers.

LiteRT looks up 64-bit integers by strings and strings by 64-bit integers. Any other lookup reads the index of an entry
from such tables, or computes it if integer keys are dense, and gathers the entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.lookup_tables.tables import Contents
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_INTEGERS = (types.I32, types.I64)
_F64 = types.from_dtype(np.dtype(np.float64)).mlir
_HANDLE = types.tensor(types.RESOURCE, ())
_NO_BATCH = {"batch_dims": 0}
# Suffix of the name of the second table, with string keys, if one table can't do the lookup.
_SECOND = "/second"

_SPREAD, _SLACK = 4, 64
"""Integer keys are dense if their range is at most this factor times their number, plus a margin."""


Fill = tuple[str, Array, Array]
"""A table of LiteRT's kinds: its name, its keys and its values."""


def lower(contents: Contents, finds: Sequence[Operation]) -> list[Fill]:
    """Rewrites all lookups in a table; returns the LiteRT tables that they need.

    A table whose keys LiteRT can't look up stays as it is.
    """
    if not finds:
        return []
    lowered = _by_string if contents.key == types.STRING else _by_integer if contents.key in _INTEGERS else None
    if not len(contents.keys):
        for op in finds:
            replace_op(op, _defaults(op))
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
            keys_wide = TFBuilder(op).cast(op.operands[1], types.I64)
            replace_op(op, _look_up(op, contents.name, keys_wide, op.operands[2]))
        return [(contents.name, keys, contents.values)]
    for op in finds:
        _find_by_name(op, contents)
    names = np.array([b"%d" % number for number in range(len(keys))], object)
    entries = contents.values if contents.value == types.I64 else _numbers(contents)
    return [(contents.name, keys, names), (contents.name + _SECOND, names, entries)]


def _numbers(contents: Contents) -> Array:
    return np.arange(len(contents.keys), dtype=np.int64)


def fill(anchor: Operation, name: str, keys: Array, values: Array) -> None:
    """Inserts the ops that fill a table of LiteRT's kinds."""
    insert = TFBuilder(anchor)
    constants = [insert.constant(each) for each in (keys, values)]
    table = _table(insert, name, *(each.element for each in constants))
    insert.tf_op("LookupTableImportV2", (table, *constants), ())


def _is_dense(keys: Array) -> bool:
    """Returns whether a vector of values for all integers between the keys is not much longer than the keys."""
    low, high, limits = int(keys.min()), int(keys.max()), np.iinfo(keys.dtype)
    return high - low < _SPREAD * len(keys) + _SLACK and limits.min < low and high < limits.max


def _gather_by_key(op: Operation, contents: Contents) -> None:
    """Gathers from a vector that is indexed by key; keys out of range yield the default value.

    Keys are only subtracted after they are known to be in range, so the difference can't overflow.
    """
    keys = contents.keys
    base, end = int(keys.min()) - 1, int(keys.max()) + 1
    count = len(contents.values)
    places = np.full(end - base + 1, count)
    places[keys - base] = np.arange(count)
    index, insert = op.operands[1], TFBuilder(op)
    for name, number in (("Maximum", base), ("Minimum", end), ("Sub", base)):
        if name != "Sub" or number:
            index = insert.tf(name, (index, insert.constant(np.array(number, keys.dtype))), index.type)
    _gather(op, contents.values, index, places)


def _find_by_name(op: Operation, contents: Contents) -> None:
    """Looks up the number of an entry, as a string, by the key, and then the entry's value or index by that string."""
    nothing = np.empty((), object)
    nothing[()] = b""
    insert = TFBuilder(op)
    wide = insert.cast(op.operands[1], types.I64)
    name = _look_up(op, contents.name, wide, insert.constant(nothing))
    second = contents.name + _SECOND
    if contents.value == types.I64:
        replace_op(op, _look_up(op, second, name, op.operands[2]))
    else:
        _gather(op, contents.values, _find(op, second, name, len(contents.keys)))


def _defaults(op: Operation) -> Value:
    keys = op.operands[1]
    insert, result = TFBuilder(op), types.tensor(op.results[0].element, keys.shape)
    return insert.tf("Fill", (insert.shape(keys), op.operands[2]), result)


def _find(op: Operation, name: str, keys: Value, default: int) -> Value:
    return _look_up(op, name, keys, TFBuilder(op).constant(np.array(default, np.int64)))


def _gather(op: Operation, values: Array, index: Value, places: Array | None = None) -> None:
    """Replaces a lookup by a gather of values; an index out of range yields the lookup's default value.

    Args:
        op: The lookup.
        values: The values, a vector.
        index: The index into the values, or into `places`.
        places: For each index, its position among the values; the default value comes after them.
    """
    element = op.results[0].element
    default, is_wide = op.operands[2], element == _F64
    if is_wide:
        # LiteRT doesn't gather doubles, so their bits are gathered as integers.
        values = values.astype(np.float64).view(np.int64)
    carrier = types.I64 if is_wide else element
    entries = _entries(op, values, default, places, carrier)
    result = types.tensor(carrier, index.shape)
    insert = TFBuilder(op)
    found = insert.tf("GatherV2", (entries, index, 0), result, _NO_BATCH)
    replace_op(op, _bits(insert, found, _F64) if is_wide else found)


def _entries(op: Operation, values: Array, default: Value, places: Array | None, carrier: Attribute) -> Value:
    """Returns values with the default value after them; it may be computed at run time."""
    insert, known = TFBuilder(op), tensor_data.constant_of(default)
    if known is not None:
        one = tensor_data.to_array(known).reshape(1)
        both = np.concatenate([values, one.view(np.int64) if carrier != default.element else one])
        return insert.constant((both if places is None else both[places]).astype(types.numpy_dtype(carrier)))
    if carrier != default.element:
        default = _bits(insert, default, carrier)
    last = insert.tf("Reshape", (default, insert.ints([1])), types.tensor(carrier, (1,)))
    joined = insert.concat((insert.constant(values), last), (len(values) + 1,))
    if places is None:
        return joined
    return insert.tf("GatherV2", (joined, insert.constant(places), 0), types.tensor(carrier, places.shape), _NO_BATCH)


def _bits(insert: TFBuilder, value: Value, element: Attribute) -> Value:
    return insert.tf("Bitcast", (value,), types.tensor(element, value.shape), {"type": element})


def _look_up(op: Operation, name: str, keys: Value, default: Value) -> Value:
    element = default.element
    insert = TFBuilder(op)
    handle = _table(insert, name, keys.element, element)
    result = types.tensor(element, keys.shape)
    return insert.tf("LookupTableFindV2", (handle, keys, default), result)


def _table(insert: TFBuilder, name: str, key: Attribute, value: Attribute) -> Value:
    attributes: dict[str, Any] = {
        "container": "",
        "shared_name": name,
        "use_node_name_sharing": False,
        "key_dtype": key,
        "value_dtype": value,
    }
    return insert.tf("HashTableV2", (), _HANDLE, attributes)
