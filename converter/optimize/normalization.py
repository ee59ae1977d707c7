"""A vector divided by its length becomes one op.

    x * rsqrt(maximum(sum(x * x), 1e-12))  ->  l2_normalization(x)
    x / sqrt(maximum(sum(x * x), 1e-12))   ->  l2_normalization(x)

The sum goes over the last dimension and keeps it. The kernel treats a length below 1e-6 as 1e-6, which is what the
maximum does; another bound, or none, is something else.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from converter.optimize import matching
from converter.rewrite.pattern import Failure, Pattern
from converter.rewrite.rewriter import Rewriter
from schema.dialects import tfl

_LEAST = 1e-12
_MAX_RANK = 4
_SQUARES = frozenset({"tfl.square", "tfl.mul"})


def _match_product(op: Operation) -> tuple[SSAValue, list[Operation]] | Failure:
    for value, length in (op.operands, op.operands[::-1]):
        root = matching.sole_producer(length, "tfl.rsqrt")
        if root is not None:
            return _match_length(op, value, root)
    return Failure("no factor is a reciprocal root that nothing else uses")


def _match_quotient(op: Operation) -> tuple[SSAValue, list[Operation]] | Failure:
    value, length = op.operands
    root = matching.sole_producer(length, "tfl.sqrt")
    return Failure("the divisor is no root that nothing else uses") if root is None else _match_length(op, value, root)


def _match_length(op: Operation, value: SSAValue, root: Operation) -> tuple[SSAValue, list[Operation]] | Failure:
    """Matches a root of the bounded sum of a value's squares."""
    bound = matching.sole_producer(root.operands[0], "tfl.maximum")
    split = None if bound is None else matching.with_constant(bound)
    if bound is None or split is None:
        return Failure("the sum of squares isn't bounded")
    limit = next(operand for operand in bound.operands if operand is not split[0])
    if not matching.is_close(matching.number(limit), _LEAST, relative=1e-4):
        return Failure("the bound isn't the kernel's")
    total = matching.sole_producer(split[0], "tfl.sum")
    square = None if total is None else matching.sole_producer(total.operands[0], _SQUARES)
    if total is None or square is None or set(square.operands) != {value} or not matching.is_plain(square):
        return Failure("it isn't the sum of the value's own squares")
    dims, axes = matching.shape(value), matching.integers(total.operands[1])
    if dims is None or len(dims) > _MAX_RANK or axes not in ((-1,), (len(dims) - 1,)):
        return Failure("the sum goes over more than the last dimension, or the rank is too high")
    if not tfl.attribute(total, "keep_dims") or not matching.is_plain(op) or not matching.is_float(value):
        return Failure("the summed dimension is dropped, an activation follows, or the elements aren't 32-bit floats")
    return value, [square, total, bound, root]


def _rewrite(op: Operation, match: tuple[SSAValue, list[Operation]], rewriter: Rewriter) -> None:
    value, absorbed = match
    rewriter.replace(rewriter.insert(tfl.build("l2_normalization", [value], [op.results[0].type]), *absorbed))


PATTERNS: tuple[Pattern[tuple[SSAValue, list[Operation]]], ...] = (
    Pattern("l2-normalization-mul", "tfl.mul", _match_product, _rewrite),
    Pattern("l2-normalization-div", "tfl.div", _match_quotient, _rewrite),
)
