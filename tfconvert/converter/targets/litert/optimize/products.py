"""Simplifies batched matrix products: fuses transposes of the last two dimensions, and turns constants into weights.

batch_matmul(transpose(x, [..., n, n - 1]), y)  ->  batch_matmul{adj_x}(x, y)    y as well
batch_matmul(x, w)                              ->  fully_connected(x, w)        where w is a constant matrix
mul(batch_matmul(f(x), y), c)                   ->  batch_matmul(f(mul(x, c)), y)

In the last one, c is a number, x comes from a dense layer, and f only moves numbers: heads of an attention. The layer's
weights absorb the number.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.pattern import Declined, Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import PLAIN, constant_of, need_floats, option, shape_of
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLAGS = ("adj_x", "adj_y")


def _swaps_last(transpose: Operation) -> bool:
    """Returns whether a transpose only exchanges the last two dimensions."""
    permutation = constant_ints(transpose.operands[1]) or ()
    rank = len(permutation)
    return rank > 1 and permutation == (*range(rank - 2), rank - 1, rank - 2)


def _adjoint(op: Operation) -> Emit:
    for index, (operand, flag) in enumerate(zip(op.operands, _FLAGS, strict=True)):
        transpose = operand.producer("tfl.transpose")
        if transpose is not None and _swaps_last(transpose):
            operands, options = [*op.operands], {flag: not option(op, flag)}
            operands[index] = transpose.operands[0]
            return lambda build: build.again(op, operands, options=options)
    raise Declined("no operand has its last two dimensions transposed")


def _with_weights(op: Operation) -> Emit:
    x, y = op.operands
    rank = len(shape_of(x))
    weights = constant_of(y)
    need(
        len(questions.dims_of(weights)) == 2 and rank > 1, "the right side isn't a matrix, or the left side is a vector"
    )
    need_floats(x, y, *op.results)
    need(not option(op, "adj_x"), "the left side is transposed")

    def emit_product(build: FormBuilder) -> Value:
        matrix = weights if option(op, "adj_y") else questions.transposed_constant(weights, (1, 0))
        operands = (x, build.derived(matrix, y), build.absent())
        return build.tfl("fully_connected", operands, op.results[0].type, {**PLAIN, "keep_num_dims": rank > 2})

    return emit_product


_MOVES = ("tfl.reshape", "tfl.transpose")


def _from_dense(factor: Value) -> Value | None:
    """Returns the result of the dense layer with weights whose numbers alone a factor has, moved; `None` if none is."""
    while (move := factor.sole_producer(_MOVES)) is not None:
        factor = move.operands[0]
    layer = factor.sole_producer("tfl.fully_connected")
    is_plain = layer is not None and questions.is_plain(layer)
    return factor if is_plain and layer and tensor_data.constant_of(layer.operands[1]) is not None else None


def _scaled(op: Operation) -> Emit:
    value, number = required(questions.with_constant(op), "it isn't multiplied by a constant")
    is_number = questions.size_of(number) == 1 and len(questions.dims_of(number)) <= 1
    need(is_number and questions.is_plain(op), "it isn't multiplied by one number")
    product = required(value.sole_producer("tfl.batch_matmul"), "it isn't a product")
    need_floats(value)
    found = (dense for each in product.operands if (dense := _from_dense(each)) is not None)
    dense = required(next(found, None), "no factor comes from a dense layer alone")

    def emit_before(build: FormBuilder) -> Value:
        use = dense.first_use
        assert use is not None, "it has one use"
        user, index, early = use.operation, use.index, build.at(use.operation)
        factor = early.derived(number, *questions.constants_of(op))
        user.set_operand(index, early.tfl("mul", (dense, factor), dense.type, PLAIN))
        return product.results[0]

    return emit_before


NEEDS = "batch_matmul"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    planned("scale-of-product", "mul", _scaled, depth=4),
    planned("weights-of-product", "batch_matmul", _with_weights, producers={1: ("tfl.pseudo_const",)}),
    planned("transpose-into-product", "batch_matmul", _adjoint, depth=2),
)
