"""Operators with weights: the operands that are weights, and the forms that kernels accept.

Hybrid kernels take float activations and integer weights: they quantize the activations as they go, multiply
integers, and convert the sums back to floats. Other operators get their weights through a `DEQUANTIZE`, which the
runtime computes once, since its operand is a constant. But GPUs, older runtimes and other converters reject that, so in
the mode `dynamic` filters that are small in comparison with the rest of a network stay floats.

Embedding tables as integers: only the rows that are looked up become floats.

`GATHER` copies integers, and a `DEQUANTIZE` after it converts them to floats. `EMBEDDING_LOOKUP` does both at once with
a scale for each row, but only accepts a vector of indices and a matrix, and converts numbers one by one. So where a
matrix product shares a table with a scale for each row, many rows are gathered as integers of the scale 1. Their scales
are gathered, too, and multiplied:

    128 rows of 768      EMBEDDING_LOOKUP 50.9 us      with scales 10.5 us      from a table of floats 9.8 us
    64 rows of 96                          3.6 us                   1.3 us                              0.9 us

The table stays integers in memory; only its scales are there twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.types import I8
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators
from tfconvert.settings.quantization import Quantize, has_channels

MIN_ELEMENTS = 1024
"""Weights of fewer elements stay floats: quantizing them would save little, and lose accuracy."""

# With at least this many elements, filters become integers even if they add up few products, and so do the matrices of
# an LSTM in the mode `int8`: one of 32 units takes 40 us with floats, and 41 us with integers.
_LARGE = 8192

# Each row of activations becomes integers at run time, which takes as long as integers save for a matrix of about this
# many elements: 16 by 96 take 0.081 us, and with floats 0.067 us; 32 by 96 take 0.093 and 0.099, 64 by 64 0.090 and
# 0.123. For 32 rows, they take 0.72 and 0.49, 0.92 and 0.90, 0.91 and 1.15.
_WORTH = 3072

# A single row gains by any matrix if sums have at least this many products: 96 by 12 take 0.100 us and 0.113 us.
_DEEP = 96

ASYMMETRIC = "asymmetric_quantize_inputs"
"""The option of a hybrid operator to give activations a zero point, which is more accurate."""


class Form(NamedTuple):
    """The form that a weight gets.

    Attributes:
        bits: Bits of its integers, or 16 for 16-bit floats.
        axis: The axis along which each slice has its own scale, `None` for one scale.
        dequantized: Whether a `DEQUANTIZE` converts it back to floats for the operator.
    """

    bits: int
    axis: int | None = None
    dequantized: bool = False

    def __str__(self) -> str:
        name = "float16" if self.bits == 16 else f"int{self.bits}"
        scales = "" if self.axis is None else " per channel"
        return f"{name}{scales}{', dequantized' if self.dequantized and self.bits < 16 else ''}"


class Row(NamedTuple):
    """An operator with weights.

    Attributes:
        weights: Indices of the weights among its operands.
        axis: The axis of output channels.
        is_hybrid: Whether it multiplies integer weights by float activations, at least as fast as floats.
        per_channel: Whether its hybrid kernel takes scales per channel.
        per_tensor: Whether its hybrid kernel takes a single scale.
        together: Whether either all or none of its weights must be integers.
        narrow: Whether 4-bit weights are an advantage.
        products: The minimum number of products in a sum of a window for integers to be faster than floats.
        channels: The minimum number of channels in it.
        elements: The minimum number of elements of a matrix for the same, or of the filters of single pixels.
        stays_float: Whether its small weights stay floats where integers would not be faster.
    """

    weights: tuple[int, ...]
    axis: int | None = None
    is_hybrid: bool = True
    per_channel: bool = True
    per_tensor: bool = True
    together: bool = False
    narrow: bool = False
    products: int = 0
    channels: int = 0
    elements: int = 0
    stays_float: bool = False


def _filtered(operator: str) -> Row:
    row = operators.filters()[operator]
    return Row((row.operand,), row.output_axis)


_LSTM = Row((*range(1, 12), 16), 0, per_channel=False, together=True)
_RNN = Row((1, 2), 0, per_channel=False, together=True)

ROWS: Mapping[str, Row] = {
    "conv_2d": _filtered("conv_2d")._replace(products=32, channels=3, elements=_WORTH, stays_float=True),
    "conv_3d": _filtered("conv_3d")._replace(is_hybrid=False),
    "depthwise_conv_2d": _filtered("depthwise_conv_2d")._replace(is_hybrid=False, per_tensor=False, stays_float=True),
    "transpose_conv": _filtered("transpose_conv"),
    "fully_connected": _filtered("fully_connected")._replace(narrow=True, elements=_WORTH),
    "batch_matmul": Row((1,), per_channel=False),
    "unidirectional_sequence_lstm": _LSTM,
    "lstm": _LSTM,
    "unidirectional_sequence_rnn": _RNN,
    "rnn": _RNN,
    "bidirectional_sequence_lstm": _LSTM._replace(weights=(*range(1, 12), *range(18, 29))),
    "bidirectional_sequence_rnn": _RNN._replace(weights=(1, 2, 5, 6)),
    "svdf": _RNN,
}
"""The operators by name. Tables that are looked up in are not among them (`tables`)."""


# Operators with these operands stay floats: the runtime computes projections and a second input incorrectly.
_UNTRIED = {"bidirectional_sequence_lstm": (16, 33, 39), "bidirectional_sequence_rnn": (9,)}


class Weight(NamedTuple):
    """A weight of an op, and the form that it gets.

    Attributes:
        operand: Its index among the operands.
        form: The form.
    """

    operand: int
    form: Form


def is_float_constant(value: Value) -> bool:
    return value.element == types.F32 and tensor_data.constant_of(value) is not None


def size_of(value: Value) -> int:
    return math.prod(value.shape or ())


def weights_of(op: tfl.TFLOp, settings: Quantize) -> list[Weight]:
    """Returns the weights to quantize of an op that computes with floats, in all modes but `float16`."""
    row = ROWS.get(op.op_name)
    if row is None:
        return []
    present = [at for at in row.weights if tfl.has_operand(op, at)]
    has_kernel = row.is_hybrid or not row.per_tensor
    if settings.mode != "weights":
        if has_kernel if settings.hybrid_only else gains(op, row):
            found = _hybrid(op, row, present, settings)
            # Recurrent layers lose more accuracy by rounded weights than others.
            if found or not (row.together and settings.is_static):
                return found
        if row.stays_float and (not row.is_hybrid or math.prod(_shape(op, row)[1:]) < row.products):
            return []
    axis = row.axis if has_channels(settings.per_channel, op.op_name) else None
    form = Form(_bits(row, settings), axis, dequantized=True)
    return [Weight(at, form) for at in present if _is_weight(op.operands[at])]


def weights_of_float(op: tfl.TFLOp, settings: Quantize) -> list[Weight]:
    """Returns the large constants of an op that computes with floats in the mode `int8`, which takes less space so."""
    if op.op_name in ROWS:
        return weights_of(op, settings)
    return [Weight(at, Form(8, dequantized=True)) for at, value in enumerate(op.operands) if _is_weight(value)]


def gains(op: tfl.TFLOp, row: Row) -> bool:
    """Returns whether an op that multiplies integers itself is as fast as with floats.

    Quantizing activations takes time, which sums of few products don't save; and XNNPACK pads channels to eight.
    """
    shape = _shape(op, row)
    if math.prod(shape[1:-1]) == 1:
        is_deep = shape[-1] >= _DEEP and math.prod(op.operands[0].shape or ()) in (shape[-1], -shape[-1])
        return row.is_hybrid and (is_deep or math.prod(shape) >= row.elements)
    is_large = math.prod(shape[1:]) >= row.products or math.prod(shape) >= _LARGE
    return row.is_hybrid and is_large and shape[-1] >= row.channels


def _shape(op: tfl.TFLOp, row: Row) -> types.Shape:
    return op.operands[row.weights[0]].shape or (0, 0)


def _hybrid(op: tfl.TFLOp, row: Row, present: list[int], settings: Quantize) -> list[Weight]:
    operands = [op.operands[at] for at in present]
    if not (_has_hybrid_kernel(op, operands, settings) if row.together else all(map(_is_weight, operands))):
        return []
    needs_channels = not row.per_tensor or is_grouped(op)
    per_channel = row.per_channel and (needs_channels or has_channels(settings.per_channel, op.op_name))
    form = Form(_bits(row, settings), row.axis if per_channel else None)
    return [Weight(at, form) for at in present]


def _bits(row: Row, settings: Quantize) -> int:
    return settings.weights if row.narrow else 8


def _is_weight(value: Value) -> bool:
    return is_float_constant(value) and size_of(value) >= MIN_ELEMENTS


def is_grouped(op: tfl.TFLOp) -> bool:
    """Returns whether each filter of a convolution uses only some of the channels; each then needs its own scale."""
    shapes = [op.operands[at].shape or () for at in (0, 1)]
    return op.op_name == "conv_2d" and len(shapes[0]) == 4 and shapes[0][3] != shapes[1][3]


def _has_hybrid_kernel(op: tfl.TFLOp, weights: list[Value], settings: Quantize) -> bool:
    """Returns whether a recurrent operator has a hybrid kernel, and each of its matrices is large enough for it.

    In the mode `int8`, in which small weights are integers, too, all of them together must be.
    """
    is_untried = any(tfl.has_operand(op, at) for at in _UNTRIED.get(op.op_name, ()))
    if is_untried or not all(map(is_float_constant, weights)):
        return False
    if op.op_name == "lstm" and tfl.attribute(op, "kernel_type") != "FULL":
        return False
    # Vectors are peepholes or diagonal recurrent matrices.
    matrices = [value for value in weights if len(value.shape or ()) == 2]
    if op.properties.get("diagonal_recurrent_tensors"):
        return False
    if settings.is_static:
        directions = 2 if op.op_name.startswith("bidirectional") else 1
        return sum(map(size_of, matrices)) >= _LARGE * directions
    return all(map(_is_weight, matrices))


# The operators that look up rows, and the indices of their operands: the table and the indices.
_OPERANDS = {"gather": (0, 1), "embedding_lookup": (1, 0)}

_TO_I32 = {"in_data_type": "INT64", "out_data_type": "INT32"}


MAX_BY_ROW = 512
"""The numbers that a lookup by row may convert."""

# The number of columns from which on the scales of a table's rows are small beside it.
_WIDE = 64

_UNSCALED = UniformType.get(Uniform(I8, (1.0,), (0,)))


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
    if op.op_name == "embedding_lookup" and len(table.shape or ()) != 2:
        return Lookup(op, table, indices, Form(8), by_row=True)
    is_small = math.prod(abs(dim) for dim in op.results[0].shape or (0,)) <= MAX_BY_ROW
    if _takes_rows(op, table, indices):
        if shared is not None and shared.axis in (None, 0):
            is_wide = shared.axis is None or (table.shape or (0,))[-1] >= _WIDE
            by_row = is_small or shared.bits < 8 or not is_wide
            return Lookup(op, table, indices, shared._replace(dequantized=False), by_row)
        if settings.weights == 4:
            return Lookup(op, table, indices, Form(4, 0 if settings.per_channel else None), by_row=True)
    # One operator by row, two as a gather: no more than by row with a cast, and fewer than with reshapes. But it
    # converts numbers one by one: 128 rows of 512 take it 36.7 us, and a gather 4.5 us.
    is_vector = indices.element == types.I32 and len(indices.shape or ()) == 1
    return Lookup(op, table, indices, Form(8), is_vector and is_small and _takes_rows(op, table, indices))


def _takes_rows(op: tfl.TFLOp, table: Value, indices: Value) -> bool:
    """Returns whether a lookup can be an `EMBEDDING_LOOKUP`, if its indices are made a vector of `i32`."""
    if op.op_name == "embedding_lookup":
        return True
    shape = indices.shape
    if shape is None or len(table.shape or ()) != 2:
        return False
    # The shape of the result must be a constant.
    return tfl.attribute(op, "axis") in (0, -2) and not tfl.attribute(op, "batch_dims") and shape.count(-1) <= 1


def rewrite_lookup(lookup: Lookup, table: Value) -> None:
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
    scales = None
    if lookup.form.axis is not None:
        table, scales = _unscaled(builder, table)
    shape = result.shape
    integers = types.tensor(table.element, shape)
    name = node_of(op.location) or op.op_name
    builder.location = NameLoc.get(f"{name}/integers", op.location)
    gathered = builder.tfl("gather", (table, lookup.indices), integers, op.properties)
    if scales is None:
        builder.location = op.location
        replace_op(op, builder.tfl("dequantize", (gathered,), result.type))
        return
    builder.location = NameLoc.get(f"{name}/scales", op.location)
    factors = types.tensor(types.F32, None if shape is None else (*shape[:-1], 1))
    factor = builder.tfl("gather", (scales, lookup.indices), factors, op.properties)
    builder.location = NameLoc.get(f"{name}/unscaled", op.location)
    floats = builder.tfl("dequantize", (gathered,), result.type)
    builder.location = op.location
    replace_op(op, builder.tfl("mul", (floats, factor), result.type))


def _unscaled(builder: TFLBuilder, table: Value) -> tuple[Value, Value]:
    """Returns the integers of a table with the scale 1, and the scale of each row as a column."""
    element = table.element
    assert isinstance(element, UniformType)
    assert isinstance(table, OpResult)
    stored = table.op.properties["value"]
    assert isinstance(stored, tensor_data.Constant)
    kind = types.tensor(_UNSCALED, table.shape)
    integers = builder.insert(tfl.constant(stored, result_type=kind)).results[0]
    return integers, builder.constant(np.array(element.data.scales, np.float32)[:, None])


def _by_row(builder: TFLBuilder, lookup: Lookup, table: Value) -> Value:
    indices, result = lookup.indices, lookup.op.results[0]
    shape = indices.shape
    if indices.element != types.I32:
        indices = builder.tfl("cast", (indices,), types.tensor(types.I32, shape), _TO_I32)
    if shape is None or len(shape) == 1:
        return builder.tfl("embedding_lookup", (indices, table), result.type)
    width = (table.shape or ())[1]
    count = -1 if -1 in shape else math.prod(shape)
    flat = _reshape(builder, indices, (count,))
    rows = builder.tfl("embedding_lookup", (flat, table), types.tensor(types.F32, (count, width)))
    return _reshape(builder, rows, (*shape, width))


def _reshape(builder: TFLBuilder, value: Value, shape: types.Shape) -> Value:
    result = types.tensor(value.element, shape)
    return builder.tfl("reshape", (value, builder.ints(shape)), result, {"new_shape": shape})
