"""Products of matrices: without batches that broadcast, constants on the left, and biases of computed weights."""

from __future__ import annotations

import math

import numpy as np

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Rewrite, of_copies
from tfconvert.converter.targets.litert.forms.questions import MAX_RANK, array_of, option, static_shape
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.values import Value


def _constant_in_order(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product with a transposed constant: with the constant as it is multiplied."""
    need(option(op, "adj_x") or option(op, "adj_y"), "no operand is transposed")
    x, y = op.operands
    need(tfl.is_constant(x) or tfl.is_constant(y), "no operand is a constant")
    options = {}
    if tfl.is_constant(x) and option(op, "adj_x"):
        x, options["adj_x"] = _swapped(build, x), False
    if tfl.is_constant(y) and option(op, "adj_y"):
        y, options["adj_y"] = _swapped(build, y), False
    return build.again(op, [x, y], options=options).results[0]


def _swapped(build: FormBuilder, value: Value) -> Value:
    rank = len(static_shape(value))
    return build.transpose(value, [*range(rank - 2), rank - 1, rank - 2])


def _as_rows(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product with one matrix for all batches: all rows of all batches in one product."""
    x, y = op.operands
    shape, other, result = static_shape(x), static_shape(y), static_shape(op.results[0])
    need(math.prod(other[:-2]) == 1, "there are several matrices on the right")
    if option(op, "adj_x"):
        x = _swapped(build, x)
        shape = static_shape(x)
    rows = build.reshape(x, (1, math.prod(shape[:-1]), shape[-1]))
    new = build.again(
        op, [rows, build.reshape(y, (1, *other[-2:]))], [(1, math.prod(shape[:-1]), result[-1])], {"adj_x": False}
    )
    return build.reshape(new.results[0], result)


def _as_dense(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product with one constant matrix on the right: a `tfl.fully_connected`."""
    x, y = op.operands
    shape, other, result = static_shape(x), static_shape(y), static_shape(op.results[0])
    need(tfl.is_constant(y) and math.prod(other[:-2]) == 1, "the right side is no constant matrix")
    if option(op, "adj_x"):
        x = _swapped(build, x)
        shape = static_shape(x)
    weights = build.reshape(y, other[-2:])
    if not option(op, "adj_y"):
        weights = build.transpose(weights, (1, 0))
    rows = math.prod(shape[:-1])
    value = _dense(build, build.reshape(x, (rows, shape[-1])), weights, (rows, result[-1]))
    return build.reshape(value, result)


def _dense(build: FormBuilder, value: Value, weights: Value, shape: Shape) -> Value:
    element = value.element
    need(element == types.F32, "it has integers")
    bias = build.constant(np.zeros(shape[-1], np.float32))
    return build.tfl("fully_connected", (value, weights, bias), types.tensor(element, shape), {"keep_num_dims": False})


def _constant_on_the_left(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product with one constant matrix on the left: a `tfl.fully_connected` of the columns, transposed."""
    x, y = op.operands
    shape, result = static_shape(x), static_shape(op.results[0])
    need(tfl.is_constant(x) and math.prod(shape[:-2]) == 1, "the left side is no constant matrix")
    need(len(result) <= MAX_RANK, "it has too many dimensions")
    weights = build.reshape(x, shape[-2:])
    if option(op, "adj_x"):
        weights = build.transpose(weights, (1, 0))
    columns = y if option(op, "adj_y") else _swapped(build, y)
    batch, (rows, _) = static_shape(columns)[:-2], static_shape(columns)[-2:]
    count = math.prod((*batch, rows))
    flat = build.reshape(columns, (count, static_shape(weights)[1]))
    value = _dense(build, flat, weights, (count, static_shape(weights)[0]))
    value = build.reshape(value, (*batch, rows, static_shape(weights)[0]))
    return build.reshape(_swapped(build, value), result)


def _repeated(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product whose batches broadcast: with operands that are repeated."""
    result = static_shape(op.results[0])
    batch = result[:-2]
    operands = []
    for value in op.operands:
        shape = static_shape(value)
        before = (*[1] * (len(batch) - len(shape) + 2), *shape[:-2])
        counts = [after // size for size, after in zip(before, batch, strict=True)]
        operands.append(build.tile(build.reshape(value, (*before, *shape[-2:])), [*counts, 1, 1]))
    return build.again(op, operands).results[0]


def _bias_after(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.fully_connected` with a bias: the sum after the product."""
    need(tfl.has_operand(op, 2), "it has no bias")
    (value,) = build.again(op, op.operands[:2], options={"fused_activation_function": "NONE"}).results
    result = static_shape(value)
    low = (*[1] * (MAX_RANK - len(result)), *result)
    bias = build.reshape(op.operands[2], (1, 1, 1, result[-1]))
    fused = {"fused_activation_function": option(op, "fused_activation_function")}
    kind = types.tensor(value.element, low)
    total = build.tfl("add", (build.reshape(value, low), bias), kind, fused)
    return build.reshape(total, result)


def _flattened(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.fully_connected` that joins dimensions: of a matrix."""
    value, weights, *bias = op.operands
    columns = static_shape(weights)[1]
    result = static_shape(op.results[0])
    rows = math.prod(static_shape(value)) // columns
    matrix = build.reshape(value, (rows, columns))
    new = build.again(op, [matrix, weights, *bias], [(rows, result[-1])], {"keep_num_dims": False})
    return build.reshape(new.results[0], result)


def _of_constants(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """`tfl.fully_connected` of constants, which the GPU refuses: a constant."""
    value, weights, *bias = (each for each in op.operands if not tfl.is_absent(each))
    need(all(each.element == types.F32 for each in op.operands[:2]), "it is quantized")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    matrix = array_of(weights)
    product = array_of(value).reshape(-1, matrix.shape[1]) @ matrix.T
    total = product + array_of(bias[0]) if bias else product
    return build.constant(total.reshape(static_shape(op.results[0])))


def _constants_on_the_left(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """A product with constant matrices on the left: all is transposed, and the operands are exchanged."""
    x, y = op.operands
    need(tfl.is_constant(x), "the left side is computed")
    left = y if option(op, "adj_y") else _swapped(build, y)
    right = x if option(op, "adj_x") else _swapped(build, x)
    shape = (*static_shape(left)[:-1], static_shape(right)[-1])
    need(static_shape(left)[:-2] == static_shape(right)[:-2], "its batches differ")
    (value,) = build.again(op, [left, right], [shape], {"adj_x": False, "adj_y": False}).results
    return _swapped(build, value)


REWRITES = (
    Rewrite("product-with-a-copy", "batch_matmul", of_copies, 9),
    Rewrite("product-as-dense", "batch_matmul", _as_dense, 8),
    Rewrite("product-of-rows", "batch_matmul", _as_rows, 7),
    Rewrite("product-with-constant-in-order", "batch_matmul", _constant_in_order, 6),
    Rewrite("product-of-columns", "batch_matmul", _constant_on_the_left, 5),
    Rewrite("product-of-exchanged-matrices", "batch_matmul", _constants_on_the_left, 4),
    Rewrite("product-of-repeated-matrices", "batch_matmul", _repeated, 4),
    Rewrite("dense-then-bias", "fully_connected", _bias_after),
    Rewrite("dense-of-matrix", "fully_connected", _flattened, 3),
    Rewrite("dense-of-constants", "fully_connected", _of_constants, 4),
)
