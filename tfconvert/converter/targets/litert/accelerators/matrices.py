"""Products of matrices, and convolutions with a bias that is computed."""

from __future__ import annotations

import math
from typing import Any

from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.accelerators.builder import AcceleratorBuilder, form, option, static_shape
from tfconvert.converter.targets.litert.accelerators.pieces import is_constant, matrices_turned, product, sum_of
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.values import Value


def _plain(op: tfl.TFLOp, build: AcceleratorBuilder) -> tuple[Value, Value]:
    """Returns the matrices that a product multiplies as they are, turned where the op does that."""
    x, y = op.operands
    if option(op, "adj_x"):
        x = matrices_turned(build, x)
    if option(op, "adj_y"):
        y = matrices_turned(build, y)
    return x, y


def _turned_before(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A product of matrices that it turns: they are turned before it."""
    need(option(op, "adj_x") or option(op, "adj_y"), "it turns no matrix")
    x, y = _plain(op, build)
    need(static_shape(x)[:-2] == static_shape(y)[:-2], "its batches differ")
    return product(build, x, y)


def _rows(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A product of many matrices with one: of the rows of them all."""
    x, y = _plain(op, build)
    matrix = static_shape(y)[-2:]
    need(math.prod(static_shape(y)) == math.prod(matrix), "the second operand has several matrices")
    rows = math.prod(static_shape(x)[:-1])
    made = product(build, build.reshape(x, (1, 1, rows, matrix[0])), build.reshape(y, (1, 1, *matrix)))
    return build.reshape(made, static_shape(op.results[0]))


def _columns(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A product of a matrix with many, or of constants with anything: all is turned, and the operands are exchanged."""
    x, y = op.operands
    left = y if option(op, "adj_y") else matrices_turned(build, y)
    right = x if option(op, "adj_x") else matrices_turned(build, x)
    matrix = static_shape(right)[-2:]
    if math.prod(static_shape(right)) == math.prod(matrix):
        shape = static_shape(left)
        rows = build.reshape(left, (1, 1, math.prod(shape[:-1]), shape[-1]))
        made = product(build, rows, build.reshape(right, (1, 1, *matrix)))
        made = build.reshape(made, (*shape[:-1], matrix[1]))
    else:
        need(static_shape(left)[:-2] == static_shape(right)[:-2], "its batches differ")
        made = product(build, left, right)
    return build.reshape(matrices_turned(build, made), static_shape(op.results[0]))


def _repeated(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A product whose batches are broadcast: of matrices that are repeated."""
    x, y = _plain(op, build)
    result = static_shape(op.results[0])
    batches = (1,) * (4 - len(result)) + result[:-2]
    need(len(batches) == 2, "it has more than two batch dimensions")
    new = []
    for value in (x, y):
        shape = static_shape(value)
        lifted = (1,) * (4 - len(shape)) + shape
        counts = [after // before for after, before in zip(batches, lifted[:2], strict=True)]
        new.append(build.tile(build.reshape(value, lifted), (*counts, 1, 1)))
    return build.reshape(product(build, *new), result)


def _bias_apart(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A product with weights or a bias that are computed: the bias is added to it."""
    at = {"transpose_conv": 3}.get(op.op_name, 2)
    need(tfl.has_operand(op, at), "it has no bias")
    bias = op.operands[at]
    weights = op.operands[1]
    need(not (is_constant(weights) and is_constant(bias)), "its weights and its bias are constants")
    options: dict[str, Any] = {"fused_activation_function": "NONE"}
    product_only = build.again(op, op.operands[:at], options=options).results[0]
    rank = len(static_shape(product_only))
    row = (*[1] * (rank - 1), math.prod(static_shape(bias)))
    return sum_of(build, op, product_only, build.reshape(bias, row))


def _rows_of_dense(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A dense layer of an operand that it flattens: the operand is flattened before it."""
    shape, depth = static_shape(op.operands[0]), static_shape(op.operands[1])[1]
    rows = math.prod(shape) // depth
    need(shape != (rows, depth), "its operand is a matrix already")
    value = build.reshape(op.operands[0], (rows, depth))
    width = static_shape(op.operands[1])[0]
    options: dict[str, Any] = {"keep_num_dims": False}
    made = build.again(op, (value, *op.operands[1:]), [(rows, width)], options).results[0]
    return build.reshape(made, static_shape(op.results[0]))


def _product_of_dense(op: tfl.TFLOp, build: AcceleratorBuilder) -> Value:
    """A dense layer with computed weights: a product of matrices."""
    need(not is_constant(op.operands[1]), "its weights are constants")
    need(not tfl.has_operand(op, 2), "it has a bias")
    need(option(op, "fused_activation_function") == "NONE", "an activation is fused")
    depth = static_shape(op.operands[1])[1]
    rows = math.prod(static_shape(op.operands[0])) // depth
    x = build.reshape(op.operands[0], (1, 1, rows, depth))
    y = matrices_turned(build, op.operands[1])
    return build.reshape(product(build, x, build.reshape(y, (1, 1, *static_shape(y)))), static_shape(op.results[0]))


PATTERNS = (
    form("product-of-turned-matrices", "batch_matmul", _turned_before, 4),
    form("product-of-rows", "batch_matmul", _rows, 3),
    form("product-of-columns", "batch_matmul", _columns, 2),
    form("product-of-repeated-matrices", "batch_matmul", _repeated, 0),
    form("bias-after-dense", "fully_connected", _bias_apart, 3),
    form("dense-of-rows", "fully_connected", _rows_of_dense, 2),
    form("dense-as-product", "fully_connected", _product_of_dense, 0),
    *(form(f"bias-after-{name}", name, _bias_apart, 3) for name in ("conv_2d", "depthwise_conv_2d", "transpose_conv")),
)
