"""Static tables: handles, their initialization, and lookups.

A handle is a scalar object array that holds the `Table`; handles of one name are of one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.converter.executor.variables import Simple
from tfconvert.ops.call import Array, Results
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.operation import Operation


@dataclass(slots=True)
class Table:
    """The object behind a handle.

    Attributes:
        name: The name that handles of the same table share.
        entries: Values by key; `None` until it is filled.
    """

    name: str
    entries: dict[Any, Any] | None = None


def _handle(machine: Machine, op: Operation, inputs: Results) -> Results:
    name = str(tf.get(op, "shared_name", "")) or node_of(op.location)
    result = np.empty((), object)
    result[()] = machine.tables.setdefault(name, Table(name))
    return (result,)


def _import(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Fills a table; one that is full stays as it is."""
    table = _table(op, inputs[0])
    if table.entries is None:
        table.entries = dict(zip(inputs[1].reshape(-1).tolist(), inputs[2].reshape(-1).tolist(), strict=True))
    return ()


def _find(machine: Machine, op: Operation, inputs: Results) -> Results:
    entries, keys, default = _entries(op, inputs[0]), inputs[1], inputs[2]
    found = np.empty(keys.size, default.dtype)
    found[:] = [entries.get(key, default.item()) for key in keys.reshape(-1).tolist()]
    return (found.reshape(keys.shape),)


def _size(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (np.array(len(_entries(op, inputs[0])), np.int64),)


def _export(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Returns all keys and values, in the order in which they were filled in."""
    entries = _entries(op, inputs[0])
    both = (list(entries), list(entries.values()))
    results = [np.empty(len(entries), types.numpy_dtype(types.element_of(result.type))) for result in op.results]
    for result, column in zip(results, both, strict=True):
        result[:] = column
    return tuple(results)


def _table(op: Operation, handle: Array) -> Table:
    table: object = handle.item() if handle.shape == () else None
    if isinstance(table, Table):
        return table
    raise bad(op, "the operand is not a handle of a table")


def _entries(op: Operation, handle: Array) -> dict[Any, Any]:
    table = _table(op, handle)
    if table.entries is None:
        raise bad(op, f"nothing has filled the table {table.name!r}", "uninitialized-variable")
    return table.entries


OPS: Mapping[str, Simple] = {
    "tf.HashTableV2": _handle,
    "tf.InitializeTableV2": _import,
    "tf.LookupTableExportV2": _export,
    "tf.LookupTableFindV2": _find,
    "tf.LookupTableImportV2": _import,
    "tf.LookupTableSizeV2": _size,
}
"""Op -> its handler."""
