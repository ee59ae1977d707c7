"""Operands of elementwise operators in the ranks that no delegate misreads.

    add(x, [c0, c1, ...])    ->  add(x, [[[[c0, c1, ...]]]])                  of integers; in full below rank 4
    add(x, c)                ->  reshape(add(reshape(x, [1, 1, ...]), c), s)  where c varies along the first dimension
    sub(x, sum(y))           ->  sub(x, sum{keep_dims}(y))                    where the sum is one number
    sub(x, x)                ->  mul(x, 0)                                    of floats

The GPU's delegate takes the first dimension for the batch, and reads the first row of a constant for all; its shaders
read vectors of integers in rank 4 only.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.forms.form import (
    Emit,
    again,
    constant_of,
    element_of,
    form,
    in_full,
    is_small,
    leading,
    reshaped,
    shape_of,
    static_shape,
    target_of,
    tensor_like,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_COMPARISONS = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
_ARITHMETIC = ("add", "div", "maximum", "minimum", "mul", "sub")
_OF_INTEGERS = (*_ARITHMETIC, *_COMPARISONS, "floor_div", "floor_mod", "logical_and", "logical_or")
_OF_FLOATS = (*_ARITHMETIC, *_COMPARISONS, "floor_div", "floor_mod", "pow", "squared_difference")
_REDUCTIONS = frozenset(("mean", "sum", "reduce_max", "reduce_min", "reduce_prod"))
_RANK = 4


def _constant_at(op: Operation) -> int:
    """Returns which of two operands is a constant; declines if none or both are."""
    found = [index for index, each in enumerate(op.operands) if tensor_data.constant_of(each) is not None]
    need(len(found) == 1, "not one operand is a constant")
    return found[0]


def _of_integers(op: Operation) -> Emit:
    index = _constant_at(op)
    constant, other = op.operands[index], op.operands[1 - index]
    need(element_of(constant) in ("i32", "i1"), "they aren't integers of 32 bits or booleans")
    shape, rank = constant_of(constant).shape, len(shape_of(op.results[0]))
    need(0 < len(shape) < _RANK and rank <= _RANK, "the rank is one that is read right")
    if rank < _RANK:
        result = static_shape(op.results[0])
        need(shape != result and is_small(result), "it is in full, or would be large")

    def emit_constant(emit: LiteRTBuilder) -> Value:
        read = emit.reshape(constant, leading(shape, _RANK)) if rank == _RANK else in_full(emit, constant, result)
        return again(emit, op, (read, other) if index == 0 else (other, read), op.results[0].type)

    return emit_constant


def _of_rows(op: Operation) -> Emit:
    index = _constant_at(op)
    constant, other, result = op.operands[index], op.operands[1 - index], op.results[0]
    need(element_of(constant) == "f32", "they aren't floats")
    shape, rank = constant_of(constant).shape, len(shape_of(result))
    need(1 < len(shape) == rank < _RANK and shape[0] > 1, "it doesn't vary along the first dimension")
    high = tensor_like(result, leading(target_of(result), _RANK))
    target_of(other)

    def emit_rank_4(emit: LiteRTBuilder) -> Value:
        both = (emit.reshape(each, leading(shape_of(each), _RANK)) for each in (constant, other))
        read, moved = both
        return reshaped(emit, again(emit, op, (read, moved) if index == 0 else (moved, read), high), result)

    return emit_rank_4


def _of_number(op: Operation) -> Emit:
    """Keeps the dimensions of a reduction to one number, which accelerators take as tensors of ones."""
    rank = len(shape_of(op.results[0]))
    found = [index for index, each in enumerate(op.operands) if shape_of(each) == ()]
    need(len(found) == 1, "not one operand is a number")
    value = op.operands[found[0]]
    owner = value.owner
    if not isinstance(owner, tfl.TFLOp) or owner.op_name not in _REDUCTIONS:
        need(False, "no reduction comes before")
    assert isinstance(owner, tfl.TFLOp)
    before = len(shape_of(owner.operands[0]))
    need(value.has_one_use() and 0 < before == rank <= _RANK, "it has other users, or another rank")

    def emit_kept(emit: LiteRTBuilder) -> Value:
        kept = emit.tfl(owner.op_name, owner.operands, tensor_like(value, (1,) * rank), {"keep_dims": True})
        operands = [kept if at == found[0] else each for at, each in enumerate(op.operands)]
        return again(emit, op, operands, op.results[0].type)

    return emit_kept


def _of_itself(op: Operation) -> Emit:
    value = op.operands[0]
    need(op.operands[1] is value and element_of(value) == "f32", "the operands differ, or aren't floats")

    def emit_product(emit: LiteRTBuilder) -> Value:
        zero = emit.scalar(0, types.element_of(value.type))
        options = {"fused_activation_function": tfl.attribute(op, "fused_activation_function")}
        return emit.tfl("mul", (value, zero), op.results[0].type, options)

    return emit_product


PATTERNS: tuple[Pattern[Any], ...] = (
    *(form(f"integers-in-rank-4-{root}", root, _of_integers) for root in _OF_INTEGERS),
    *(form(f"number-in-dimensions-{root}", root, _of_number) for root in _ARITHMETIC),
    form("minus-itself-by-zero", "sub", _of_itself),
)

OF_FLOATS: tuple[Pattern[Any], ...] = tuple(
    form(f"rows-in-rank-4-{root}", root, _of_rows, is_longer=True) for root in _OF_FLOATS
)
"""Patterns for models whose activations stay floats."""
