"""Activations that are spelt out become single ops.

    x * relu6(x + 3) / 6, in any order of factors  ->  hard_swish(x)
    maximum(x, 0)                                  ->  relu(x)
    minimum(relu(x), 6), minimum(maximum(x, 0), 6) ->  relu6(x)
    minimum(maximum(x, -1), 1)                     ->  relu_n1_to_1(x)
    maximum(x, x * a), 0 < a < 1                   ->  leaky_relu{a}(x)
    relu(x) + a * relu(-x)                         ->  prelu(x, -a)

Ops in between have no other users, or they would have to stay anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from converter.optimize import matching
from converter.rewrite.pattern import Failure, Pattern
from converter.rewrite.rewriter import Rewriter
from schema.dialects import tensor_data, tfl
from schema.dialects.tensor_data import Constant

_MAX_FACTORS = 4
_INNER = {"tfl.maximum": frozenset({"tfl.minimum"}), "tfl.minimum": frozenset({"tfl.maximum", "tfl.relu"})}
"""What gives the other bound, by the op that gives one."""

_BETWEEN = {(0.0, 6.0): "relu6", (-1.0, 1.0): "relu_n1_to_1"}
"""Activations by their bounds."""


def _factors(op: Operation, absorbed: list[Operation]) -> Iterator[SSAValue]:
    """Yields the factors of a product of products that nothing else uses; the products but the root are absorbed."""
    for operand in op.operands:
        inner = matching.sole_producer(operand, "tfl.mul")
        if inner is not None and matching.is_plain(inner) and len(absorbed) < _MAX_FACTORS:
            absorbed.append(inner)
            yield from _factors(inner, absorbed)
        else:
            yield operand


def _match_hard_swish(op: Operation) -> tuple[SSAValue, list[Operation]] | Failure:
    if not matching.is_plain(op) or not matching.is_float(op.results[0]):
        return Failure("an activation follows, or the elements aren't 32-bit floats")
    absorbed: list[Operation] = []
    factor, values = 1.0, []
    for value in _factors(op, absorbed):
        known = matching.number(value)
        if known is None:
            values.append(value)
        else:
            factor *= known
    if len(values) != 2 or not matching.is_close(factor, 1 / 6):
        return Failure("it isn't the product of two values and 1/6")
    for gate, value in (values, values[::-1]):
        steps = _shifted_relu6(gate, value)
        if steps:
            return value, absorbed + steps
    return Failure("neither factor is relu6(x + 3) of the other")


def _shifted_relu6(gate: SSAValue, value: SSAValue) -> list[Operation]:
    """Returns the ops that compute `relu6(value + 3)`, none if `gate` is something else."""
    steps = []
    relu6 = matching.sole_producer(gate, "tfl.relu6")
    if relu6 is not None:
        steps.append(relu6)
        gate = relu6.operands[0]
    add = matching.sole_producer(gate, "tfl.add")
    if add is None or matching.activation(add) != ("NONE" if steps else "RELU6"):
        return []
    split = matching.with_constant(add)
    if split is None or split[0] is not value or len(matching.dims_of(split[1])) > len(matching.shape(value) or ()):
        return []
    three = next(operand for operand in add.operands if operand is not value)
    return [add, *steps] if matching.is_close(matching.number(three), 3) else []


def _rewrite_hard_swish(op: Operation, match: tuple[SSAValue, list[Operation]], rewriter: Rewriter) -> None:
    value, absorbed = match
    rewriter.replace(rewriter.insert(tfl.build("hard_swish", [value], [op.results[0].type]), *absorbed))


def _match_clamp(op: Operation) -> tuple[str, SSAValue, tuple[Operation, ...]] | Failure:
    """Matches a maximum or minimum of a value and one number."""
    limited = _limited(op)
    if limited is None:
        return Failure("it isn't a limit by one number")
    value, limit = limited
    inner = matching.sole_producer(value, _INNER[op.name])
    before = None if inner is None else (inner.operands[0], 0.0) if inner.name == "tfl.relu" else _limited(inner)
    if inner is not None and before is not None:
        # A lower bound above the upper one is no activation: which limit comes last tells which bound wins.
        name = _BETWEEN.get((limit, before[1]) if op.name == "tfl.maximum" else (before[1], limit))
        if name is not None:
            return name, before[0], (inner,)
    if op.name == "tfl.maximum" and limit == 0:
        return "relu", value, ()
    clamped = isinstance(value.owner, Operation) and matching.activation(value.owner) == "RELU"
    if op.name == "tfl.minimum" and limit == 6 and clamped:
        return "relu6", value, ()
    return Failure("there is no activation with these limits")


def _limited(op: Operation) -> tuple[SSAValue, float] | None:
    split = matching.with_constant(op)
    if split is None or matching.shape(split[0]) != matching.shape(op.results[0]) or not matching.is_float(split[0]):
        return None
    limit = matching.number(next(value for value in op.operands if value is not split[0]))
    return None if limit is None else (split[0], limit)


def _rewrite_clamp(op: Operation, match: tuple[str, SSAValue, tuple[Operation, ...]], rewriter: Rewriter) -> None:
    name, value, absorbed = match
    rewriter.replace(rewriter.insert(tfl.build(name, [value], [op.results[0].type]), *absorbed))


def _match_leaky_relu(op: Operation) -> tuple[SSAValue, float, Operation] | Failure:
    for value, other in (op.operands, op.operands[::-1]):
        mul = matching.sole_producer(other, "tfl.mul")
        split = None if mul is None or not matching.is_plain(mul) else matching.with_constant(mul)
        if mul is None or split is None or split[0] is not value or not matching.is_float(value):
            continue
        alpha = matching.number(next(operand for operand in mul.operands if operand is not value))
        if alpha is not None and 0 < alpha < 1 and matching.shape(value) == matching.shape(op.results[0]):
            return value, alpha, mul
    return Failure("it isn't the maximum of a value and a fraction of it")


def _rewrite_leaky_relu(op: Operation, match: tuple[SSAValue, float, Operation], rewriter: Rewriter) -> None:
    value, alpha, mul = match
    rewriter.replace(rewriter.insert(tfl.build("leaky_relu", [value], [op.results[0].type], {"alpha": alpha}), mul))


def _match_prelu(op: Operation) -> tuple[SSAValue, Constant, list[Operation]] | Failure:
    if not matching.is_plain(op) or not matching.is_float(op.results[0]):
        return Failure("an activation follows, or the elements aren't 32-bit floats")
    for positive, negative in (op.operands, op.operands[::-1]):
        relu = matching.sole_producer(positive, "tfl.relu")
        mul = matching.sole_producer(negative, "tfl.mul")
        if relu is not None and mul is not None and matching.is_plain(mul):
            found = _scaled_negative_part(mul, relu.operands[0])
            if found is not None:
                return relu.operands[0], found[0], [*found[1], mul, relu]
    return Failure("it isn't the sum of relu(x) and a multiple of relu(-x)")


def _scaled_negative_part(mul: Operation, value: SSAValue) -> tuple[Constant, list[Operation]] | None:
    """Matches `a * relu(-value)` with a constant `a` without a batch dimension; returns it and the absorbed ops."""
    split = matching.with_constant(mul)
    relu = None if split is None else matching.sole_producer(split[0], "tfl.relu")
    negated = None if relu is None else _negated(relu.operands[0])
    rank = len(matching.shape(value) or ())
    if split is None or relu is None or negated is None or negated[0] is not value or rank < 2:
        return None
    dims = matching.dims_of(split[1])
    if len(dims) == rank and dims[0] == 1:
        dims = dims[1:]
    if len(dims) >= rank:
        return None
    return tensor_data.defer("reshape", (split[1],), dims, dims), [negated[1], relu]


def _negated(value: SSAValue) -> tuple[SSAValue, Operation] | None:
    """Returns what a value is the negative of, and the op that negates."""
    neg = matching.sole_producer(value, "tfl.neg")
    if neg is not None:
        return neg.operands[0], neg
    mul = matching.sole_producer(value, "tfl.mul")
    split = None if mul is None or not matching.is_plain(mul) else matching.with_constant(mul)
    if mul is None or split is None:
        return None
    factor = next(operand for operand in mul.operands if operand is not split[0])
    return (split[0], mul) if matching.number(factor) == -1 else None


def _rewrite_prelu(op: Operation, match: tuple[SSAValue, Constant, list[Operation]], rewriter: Rewriter) -> None:
    value, slope, absorbed = match
    minus = tensor_data.of_array(np.array(-1, np.float32))
    alpha = tensor_data.defer("mul", (slope, minus), matching.dims_of(slope))
    operands = [value, matching.insert_constant(rewriter, alpha)]
    rewriter.replace(rewriter.insert(tfl.build("prelu", operands, [op.results[0].type]), *absorbed))


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("hard-swish", "tfl.mul", _match_hard_swish, _rewrite_hard_swish, benefit=15),
    Pattern("clamp-maximum", "tfl.maximum", _match_clamp, _rewrite_clamp, benefit=5),
    Pattern("clamp-minimum", "tfl.minimum", _match_clamp, _rewrite_clamp, benefit=5),
    Pattern("leaky-relu", "tfl.maximum", _match_leaky_relu, _rewrite_leaky_relu),
    Pattern("prelu", "tfl.add", _match_prelu, _rewrite_prelu, benefit=5),
)
