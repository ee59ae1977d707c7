"""Variables and lookup tables: handles, and the ops that read and write through them.

A handle is a scalar object array that holds the `Variable` or the `LookupTable`; handles of one name refer to one
object. Refs of TensorFlow 1 are handles, too; where an op needs a value, a ref represents the variable's value at that
moment. Writing replaces the array: values that were read before don't change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops import registry
from tfconvert.ops.call import Array, Call, Results, boxed, call_of
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation


@dataclass(slots=True)
class Variable:
    """The object behind a handle."""

    symbol: str  # The name that handles of the same variable share.
    value: Array | None  # The value; `None` until it is first assigned.


Simple = Callable[[Machine, Operation, Results], Results]
"""Runs an op without bodies."""


def value_behind(op: Operation, operand: Array) -> Array:
    """Returns the value of an operand; a ref is replaced by its variable's value."""
    if operand.dtype.kind != "O" or operand.shape != () or not isinstance(operand.item(), Variable):
        return operand
    return _value(op, operand)


def _handle(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs `tf.VarHandleOp` and `tf.VariableV2`; one name means one variable."""
    return (handle_of(machine, str(tf.get(op, "shared_name", "")) or node_of(op.location)),)


def handle_of(machine: Machine, symbol: str) -> Array:
    """Returns a handle of the variable with a name."""
    variable = machine.variables.get(symbol)
    if variable is None:
        variable = machine.variables[symbol] = Variable(symbol, machine.initial_value(symbol))
    return boxed(variable)


def _read(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (_value(op, inputs[0]),)


def _shape(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (np.array(_value(op, inputs[0]).shape, call_of(op, inputs).dtype("out_type", np.int32)),)


def _is_initialized(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (np.array(_variable(op, inputs[0]).value is not None),)


def _gather(machine: Machine, op: Operation, inputs: Results) -> Results:
    batch = {"batch_dims": tf.get(op, "batch_dims", 0)}
    operands = (_value(op, inputs[0]), inputs[1], np.array(batch["batch_dims"]))
    return registry.evaluate(Call("GatherV2", operands, batch))


def _gather_nd(machine: Machine, op: Operation, inputs: Results) -> Results:
    return registry.evaluate(Call("GatherNd", (_value(op, inputs[0]), inputs[1]), {}))


def _assign(machine: Machine, op: Operation, inputs: Results) -> Results:
    _variable(op, inputs[0]).value = inputs[1]
    return inputs[: len(op.results)]


def _update(compute: Callable[[Any, Any], Any], machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs an op that combines the whole value with an operand."""
    value = _value(op, inputs[0])
    _variable(op, inputs[0]).value = np.asarray(compute(value, inputs[1]))
    return inputs[: len(op.results)]


def _read_and_skip(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Moves the counter of a generator of random numbers, of 128 bits, by 256 for each number."""
    state = _value(op, inputs[0])
    low, high = state[:2].view(np.uint64).tolist()
    moved = low + (high << 64) + 256 * int(inputs[2])
    new = [moved % (1 << 64), (moved >> 64) % (1 << 64)]
    _variable(op, inputs[0]).value = np.concatenate([np.array(new, np.uint64).view(np.int64), state[2:]])
    return (state,)[: len(op.results)]


def _scatter(combine: np.ufunc | None, machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs an op that combines slices of the first dimension with updates in order, or replaces them."""
    value, indices, updates = _value(op, inputs[0]).copy(), inputs[1], value_behind(op, inputs[2])
    if not value.ndim or np.any((indices < 0) | (indices >= value.shape[0])):
        raise bad(op, f"an index is not within the {value.shape[:1]} rows of the variable")
    updates = np.broadcast_to(updates, indices.shape + value.shape[1:])
    _put(combine, value, indices, updates)
    _variable(op, inputs[0]).value = value
    return inputs[: len(op.results)]


def _scatter_nd(combine: np.ufunc | None, machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs an op that combines the elements at index vectors with updates, or replaces them."""
    value, indices, updates = _value(op, inputs[0]).copy(), inputs[1], value_behind(op, inputs[2])
    depth = indices.shape[-1]
    if np.any((indices < 0) | (indices >= np.array(value.shape[:depth]))):
        raise bad(op, f"an index is not within the variable's shape {list(value.shape)}")
    _put(combine, value, tuple(np.moveaxis(indices, -1, 0)), updates)
    _variable(op, inputs[0]).value = value
    return inputs[: len(op.results)]


def _slice_assign(machine: Machine, op: Operation, inputs: Results) -> Results:
    operands = (_value(op, inputs[0]), *inputs[1:])
    call = call_of(op, operands)._replace(op="TensorStridedSliceUpdate")
    (_variable(op, inputs[0]).value,) = registry.evaluate(call)
    return inputs[: len(op.results)]


def _put(combine: np.ufunc | None, value: Array, index: Any, updates: Array) -> None:
    if combine is None:
        value[index] = updates
        return
    with np.errstate(all="ignore"):
        combine.at(value, index, updates)


_SCATTERS: Mapping[str, np.ufunc | None] = {
    "Update": None,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
}
_SCATTERS_ND: Mapping[str, np.ufunc | None] = {
    "Update": None,
    "Add": np.add,
    "Sub": np.subtract,
    "Min": np.minimum,
    "Max": np.maximum,
}


def _variable(op: Operation, handle: Array) -> Variable:
    variable: object = handle.item() if handle.shape == () else None
    if isinstance(variable, Variable):
        return variable
    raise bad(op, "the operand is not a handle of a variable")


def _value(op: Operation, handle: Array) -> Array:
    variable = _variable(op, handle)
    if variable.value is None:
        raise bad(op, f"variable {variable.symbol!r} has no value", "uninitialized-variable")
    return variable.value


@dataclass(slots=True)
class LookupTable:
    """The object behind a handle."""

    name: str  # The name that handles of the same table share.
    entries: dict[Any, Any] | None = None  # Values by key; `None` before initialization.


def _table_handle(machine: Machine, op: Operation, inputs: Results) -> Results:
    name = str(tf.get(op, "shared_name", "")) or node_of(op.location)
    return (boxed(machine.tables.setdefault(name, LookupTable(name))),)


def _import_table(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Fills a table unless it is filled already."""
    table = _table(op, inputs[0])
    if table.entries is None:
        table.entries = dict(zip(inputs[1].reshape(-1).tolist(), inputs[2].reshape(-1).tolist(), strict=True))
    return ()


def _find_in_table(machine: Machine, op: Operation, inputs: Results) -> Results:
    entries, keys, default = _entries(op, inputs[0]), inputs[1], inputs[2]
    found = np.empty(keys.size, default.dtype)
    found[:] = [entries.get(key, default.item()) for key in keys.reshape(-1).tolist()]
    return (found.reshape(keys.shape),)


def _table_size(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (np.array(len(_entries(op, inputs[0])), np.int64),)


def _export_table(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Returns all keys and values in order of insertion."""
    entries = _entries(op, inputs[0])
    both = (list(entries), list(entries.values()))
    results = [np.empty(len(entries), types.numpy_dtype(result.element)) for result in op.results]
    for result, column in zip(results, both, strict=True):
        result[:] = column
    return tuple(results)


def _table(op: Operation, handle: Array) -> LookupTable:
    table: object = handle.item() if handle.shape == () else None
    if isinstance(table, LookupTable):
        return table
    raise bad(op, "the operand is not a handle of a table")


def _entries(op: Operation, handle: Array) -> dict[Any, Any]:
    table = _table(op, handle)
    if table.entries is None:
        raise bad(op, f"the table {table.name!r} is not initialized", "uninitialized-variable")
    return table.entries


OPS: Mapping[str, Simple] = {
    "tf.Assign": _assign,
    "tf.AssignAdd": partial(_update, np.add),
    "tf.AssignAddVariableOp": partial(_update, np.add),
    "tf.AssignSub": partial(_update, np.subtract),
    "tf.AssignSubVariableOp": partial(_update, np.subtract),
    "tf.AssignVariableOp": _assign,
    "tf.DisableCopyOnRead": lambda machine, op, inputs: (),
    "tf.IsVariableInitialized": _is_initialized,
    "tf.ReadVariableOp": _read,
    "tf.ResourceGather": _gather,
    "tf.ResourceGatherNd": _gather_nd,
    "tf.ResourceStridedSliceAssign": _slice_assign,
    "tf.RngReadAndSkip": _read_and_skip,
    "tf.RngSkip": _read_and_skip,
    "tf.StridedSliceAssign": _slice_assign,
    "tf.VarHandleOp": _handle,
    "tf.VarIsInitializedOp": _is_initialized,
    "tf.Variable": _handle,
    "tf.VariableShape": _shape,
    "tf.VariableV2": _handle,
    **{f"tf.ResourceScatter{name}": partial(_scatter, combine) for name, combine in _SCATTERS.items()},
    **{f"tf.Scatter{name}": partial(_scatter, combine) for name, combine in _SCATTERS.items()},
    **{f"tf.ResourceScatterNd{name}": partial(_scatter_nd, combine) for name, combine in _SCATTERS_ND.items()},
    **{f"tf.ScatterNd{name}": partial(_scatter_nd, combine) for name, combine in _SCATTERS_ND.items()},
    "tf.HashTableV2": _table_handle,
    "tf.InitializeTableV2": _import_table,
    "tf.LookupTableExportV2": _export_table,
    "tf.LookupTableFindV2": _find_in_table,
    "tf.LookupTableImportV2": _import_table,
    "tf.LookupTableSizeV2": _table_size,
}
"""Op -> its handler, for ops with handles."""
