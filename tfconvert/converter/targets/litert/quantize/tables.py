"""Embedding tables as integers: only the rows that are looked up become floats.

`GATHER` copies integers, and a `DEQUANTIZE` after it converts them to floats. `EMBEDDING_LOOKUP` does both at once with
a scale for each row, but only accepts a vector of indices and a matrix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.quantize.hybrid import MIN_ELEMENTS, Form, is_float_constant, size_of
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.values import Value
from tfconvert.settings.quantization import Quantize

# The operators that look up rows, and the indices of their operands: the table and the indices.
_OPERANDS = {"gather": (0, 1), "embedding_lookup": (1, 0)}

_TO_I32 = {"in_data_type": "INT64", "out_data_type": "INT32"}


class Lookup(NamedTuple):
    """A lookup in a table that becomes integers.

    Attributes:
        op: The operator.
        table: The table.
        indices: Indices of the rows.
        form: The table's new form.
        by_row: Whether it becomes an `EMBEDDING_LOOKUP`.
    """

    op: tfl.TFLOp
    table: Value
    indices: Value
    form: Form
    by_row: bool


def lookup_of(op: tfl.TFLOp, settings: Quantize, shared: Form | None) -> Lookup | None:
    """Returns an op as a lookup; `None` if it isn't one, or its table stays floats.

    Args:
        op: The op.
        settings: How to quantize.
        shared: The form that another operator uses the same table in, if any.
    """
    if op.op_name not in _OPERANDS:
        return None
    table, indices = (op.operands[at] for at in _OPERANDS[op.op_name])
    if not is_float_constant(table) or size_of(table) < MIN_ELEMENTS:
        return None
    if op.op_name == "embedding_lookup" and len(types.shape_of(table.type) or ()) != 2:
        return Lookup(op, table, indices, Form(8), by_row=True)
    if _takes_rows(op, table, indices):
        if shared is not None and shared.axis in (None, 0):
            return Lookup(op, table, indices, shared._replace(dequantized=False), by_row=True)
        if settings.weights == 4:
            return Lookup(op, table, indices, Form(4, 0 if settings.per_channel else None), by_row=True)
    # One operator by row, two as a gather: no more than by row with a cast, and fewer than with reshapes.
    is_vector = types.element_of(indices.type) == types.I32 and len(types.shape_of(indices.type) or ()) == 1
    return Lookup(op, table, indices, Form(8), is_vector and _takes_rows(op, table, indices))


def _takes_rows(op: tfl.TFLOp, table: Value, indices: Value) -> bool:
    """Returns whether a lookup can be an `EMBEDDING_LOOKUP`, if its indices are made a vector of `i32`."""
    if op.op_name == "embedding_lookup":
        return True
    shape = types.shape_of(indices.type)
    if shape is None or len(types.shape_of(table.type) or ()) != 2:
        return False
    # The shape of the result must be a constant.
    return tfl.attribute(op, "axis") in (0, -2) and not tfl.attribute(op, "batch_dims") and shape.count(-1) <= 1


def rewrite(lookup: Lookup, table: Value) -> None:
    """Rewrites a lookup to use its table as integers.

    Args:
        lookup: The lookup.
        table: The table in the lookup's form.
    """
    op, result = lookup.op, lookup.op.results[0]
    builder = TFLBuilder(op)
    if lookup.by_row:
        replace_op(op, _by_row(builder, lookup, table))
        return
    integers = types.tensor(types.element_of(table.type), types.shape_of(result.type))
    builder.location = NameLoc.get(f"{node_of(op.location) or op.op_name}/integers", op.location)
    gathered = builder.tfl("gather", (table, lookup.indices), integers, op.properties)
    builder.location = op.location
    replace_op(op, builder.tfl("dequantize", (gathered,), result.type))


def _by_row(builder: TFLBuilder, lookup: Lookup, table: Value) -> Value:
    indices, result = lookup.indices, lookup.op.results[0]
    shape = types.shape_of(indices.type)
    if types.element_of(indices.type) != types.I32:
        indices = builder.tfl("cast", (indices,), types.tensor(types.I32, shape), _TO_I32)
    if shape is None or len(shape) == 1:
        return builder.tfl("embedding_lookup", (indices, table), result.type)
    width = (types.shape_of(table.type) or ())[1]
    count = -1 if -1 in shape else math.prod(shape)
    flat = _reshape(builder, indices, (count,))
    rows = builder.tfl("embedding_lookup", (flat, table), types.tensor(types.F32, (count, width)))
    return _reshape(builder, rows, (*shape, width))


def _reshape(builder: TFLBuilder, value: Value, shape: types.Shape) -> Value:
    result = types.tensor(types.element_of(value.type), shape)
    return builder.tfl("reshape", (value, builder.ints(shape)), result, {"new_shape": shape})
