"""Taking tensors apart by numbers and putting parts together, and the shards of a table that only such lookups read.

`tf.nn.embedding_lookup` sends each id to its shard, looks it up there, and puts the results back into order:

    shard, row = id % 3, id // 3             (or ranges of ids, or whatever a model does)
    parts = dynamic_partition(row, shard)
    dynamic_stitch(dynamic_partition(range, shard), [gather(table, part) for table, part in zip(tables, parts)])

The shards are joined into one table again. The shard and the row of an id are computed for all ids that have rows; the
rows in the order of their ids are the one table. No other id may have a row: one of the two numbers must never fall
while ids grow (as long as they fit their types), and must be out of range for the id before the first and, finally,
after the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_int, is_enumeration
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops import registry
from tfconvert.ops.call import Array, call_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_STITCHES = ("tf.DynamicStitch", "tf.ParallelDynamicStitch")
_GATHERS = ("tf.Gather", "tf.GatherV2")

# Ops that never fall while their first operands grow, if the others are constants, and positive where they divide.
_MONOTONE = frozenset({"Add", "AddV2", "Cast", "FloorDiv", "Maximum", "Minimum", "Sub"})

# Ops that shards and rows are computed with.
_ELEMENTWISE = _MONOTONE | {"FloorMod", "Greater", "GreaterEqual", "Less", "LessEqual", "Mul", "Select", "SelectV2"}

# Largest number of ops that compute them.
_MAX_OPS = 16

# Number of ids for which they are computed at a time.
_CHUNK = 1 << 16


class _Parts(NamedTuple):
    """A lookup in shards."""

    shard: Value  # The number of each id's shard.
    row: Value  # The number of each id's row in its shard.
    tables: list[tensor_data.Constant]  # The shards.


class _Lookup(NamedTuple):
    """The same lookup in one table."""

    ids: Value  # The ids that are looked up.
    places: Array  # The id of each row, one shard after the other.
    tables: list[tensor_data.Constant]  # The shards.


_NO = Failure("it is not a lookup in the shards of a table")


def _match(op: Operation) -> _Lookup | Failure:
    parts = _parts(op)
    if parts is None:
        return _NO
    for ids in _steps(parts.shard):
        if ids.element not in (types.I32, types.I64):
            continue
        places = _row_places(ids, parts)
        if places is not None:
            return _Lookup(ids, places, parts.tables)
    return Failure("the shard and row of an id are not certain")


def _parts(op: Operation) -> _Parts | None:
    half = len(op.operands) // 2
    places = _partitioned(op.operands[:half])
    if places is None or not is_enumeration(places.operands[0]):
        return None
    gathers = [value.owner for value in op.operands[half:]]
    if any(not isinstance(each, Operation) or each.name not in _GATHERS or not _takes_rows(each) for each in gathers):
        return None
    picked = [each.operands[1] for each in gathers if isinstance(each, Operation)]
    tables = [tensor_data.constant_of(each.operands[0]) for each in gathers if isinstance(each, Operation)]
    rows = _partitioned(picked)
    if rows is None or rows.operands[1] is not places.operands[1]:
        return None
    known = [table for table in tables if table is not None]
    widths = {table.shape[1:] for table in known}
    return _Parts(places.operands[1], rows.operands[0], known) if len(known) == half and len(widths) == 1 else None


def _partitioned(values: Sequence[Value]) -> Operation | None:
    """Returns the partition whose results are the values, in order."""
    owner = values[0].owner
    if not isinstance(owner, Operation) or owner.name != "tf.DynamicPartition":
        return None
    is_vector = all(len(operand.shape or ()) == 1 for operand in owner.operands)
    return owner if is_vector and tuple(owner.results) == tuple(values) else None


def _takes_rows(gather: Operation) -> bool:
    return len(gather.operands) == 2 or constant_int(gather.operands[2]) == 0


def _steps(value: Value) -> list[Value]:
    """Returns the values that a value is computed from by a few elementwise ops, the nearest first."""
    found: list[Value] = []
    pending = [value]
    while pending and len(found) < _MAX_OPS:
        each = pending.pop(0)
        if each in found or tensor_data.constant_of(each) is not None:
            continue
        found.append(each)
        owner = each.owner
        if isinstance(owner, Operation) and owner.name.removeprefix("tf.") in _ELEMENTWISE:
            pending += owner.operands
    return found


def _row_places(ids: Value, parts: _Parts) -> Array | None:
    """Returns the id that each row has, one shard after the other; `None` if not every row has one of its own."""
    heights = np.array([(table.shape or (0,))[0] for table in parts.tables])
    starts, total, count = np.cumsum(heights) - heights, int(heights.sum()), len(heights)
    # No monotone number of a row or shard is in range again so far after the last id.
    limit = total + count
    if not _ends(ids, parts, limit, int(heights.max(initial=0))):
        return None
    places = np.full(total, -1, np.int32)
    for start in range(-1, limit, _CHUNK):
        samples = np.arange(start, min(start + _CHUNK, limit))
        found = _looked_up(ids, parts, samples)
        if found is None:
            return None
        shard, row = found
        has_shard = (shard >= 0) & (shard < count)
        is_row = has_shard & (row >= 0) & (row < heights[np.where(has_shard, shard, 0)])
        if (is_row != ((samples >= 0) & (samples < total))).any():
            return None
        places[starts[shard[is_row]] + row[is_row]] = samples[is_row]
    return places if places.min(initial=0) >= 0 else None


def _ends(ids: Value, parts: _Parts, limit: int, height: int) -> bool:
    """Returns whether certainly no id below zero, nor one from a limit on, has a row."""
    found = _looked_up(ids, parts, np.array([-1, limit]))
    if found is None:
        return False
    numbers = zip((parts.shard, parts.row), found, (len(parts.tables), height), strict=True)
    return any(at[0] < 0 and at[1] >= bound and _never_falls(value, ids) for value, at, bound in numbers)


def _looked_up(ids: Value, parts: _Parts, samples: Array) -> tuple[Array, Array] | None:
    """Returns the shards and the rows of some ids."""
    values = {ids: samples.astype(types.numpy_dtype(ids.element))}
    shard, row = (_computed(value, values) for value in (parts.shard, parts.row))
    return None if shard is None or row is None else (shard, row)


def _computed(value: Value, values: dict[Value, Array]) -> Array | None:
    """Evaluates a value that is computed from ids and numbers; `None` if it depends on anything else, or fails."""
    pending = [value]
    while pending and len(values) <= _MAX_OPS:
        each, owner = pending[-1], pending[-1].owner
        number = constant_int(each)
        if each in values:
            pending.pop()
        elif number is not None:
            values[each] = np.array(number, types.numpy_dtype(each.element))
        elif not isinstance(owner, Operation) or owner.name.removeprefix("tf.") not in _ELEMENTWISE:
            return None
        elif missing := [operand for operand in owner.operands if operand not in values]:
            pending += missing
        else:
            try:
                (values[each],) = registry.evaluate(call_of(owner, [values[operand] for operand in owner.operands]))
            except ConversionError:  # It divides by zero, for one.
                return None
    return values.get(value)


def _never_falls(value: Value, ids: Value) -> bool:
    """Returns whether a value is computed so that it never falls while ids grow."""
    pending = [value]
    while pending:
        each = pending.pop()
        if each is ids or tensor_data.constant_of(each) is not None:
            continue
        owner = each.owner
        if not isinstance(owner, Operation) or owner.name.removeprefix("tf.") not in _MONOTONE:
            return False
        pending.append(owner.operands[0])
        if owner.name in ("tf.Sub", "tf.FloorDiv"):
            number = constant_int(owner.operands[1])
            if number is None or (number <= 0 and owner.name == "tf.FloorDiv"):
                return False
        else:
            pending += owner.operands[1:]
    return True


def _rewrite(op: Operation, match: _Lookup, rewriter: Rewriter) -> None:
    emit = LiteRTBuilder(rewriter)
    row = match.tables[0].shape
    assert row is not None
    shape = (match.places.size, *row[1:])
    if (match.places == np.arange(match.places.size)).all():
        table = tensor_data.defer("concat", tuple(match.tables), shape, 0)
    else:
        table = tensor_data.defer("place", (*match.tables, tensor_data.of_array(match.places)), shape)
    axis = emit.scalar(0, types.I32)
    found = emit.tf("GatherV2", (emit.constant(table), match.ids, axis), op.results[0].type, _NO_BATCH)
    rewriter.replace(found)


_NO_BATCH: Mapping[str, int] = {"batch_dims": 0}

PATTERNS = tuple(Pattern(f"join-shards-of-{name.removeprefix('tf.')}", name, _match, _rewrite) for name in _STITCHES)
