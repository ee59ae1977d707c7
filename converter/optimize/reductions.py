"""Reductions of reductions, and sums that are means.

    mean(mean(x, a), b)    ->  mean(x, a + b)      also sums, products, maxima and minima
    mul(sum(x, a), 1 / n)  ->  mean(x, a)          where n is the number of elements summed

Both reductions keep the dimensions they reduce, or neither does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from xdsl.ir import Operation

from converter.optimize import matching
from converter.rewrite.pattern import Failure, Pattern
from converter.rewrite.rewriter import Rewriter
from schema.dialects import tfl

_REDUCTIONS = ("mean", "sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all")


def _match_twice(op: Operation) -> tuple[Operation, tuple[int, ...]] | Failure:
    inner = matching.sole_producer(op.operands[0], op.name)
    if inner is None:
        return Failure("no such reduction comes before, or it is used elsewhere too")
    if op.name == "tfl.mean" and not matching.is_float(op.results[0]):
        return Failure("each mean of integers is rounded")
    first, second = matching.integers(inner.operands[1]), matching.integers(op.operands[1])
    dims = matching.shape(inner.operands[0])
    if first is None or second is None or dims is None:
        return Failure("the axes or the rank are unknown")
    keeps = tfl.attribute(inner, "keep_dims")
    if keeps != tfl.attribute(op, "keep_dims"):
        return Failure("one keeps the reduced dimensions, the other doesn't")
    reduced = {axis % len(dims) for axis in first}
    left = [index for index in range(len(dims)) if keeps or index not in reduced]
    reduced.update(left[axis % len(left)] for axis in second)
    return inner, tuple(sorted(reduced))


def _rewrite_twice(op: Operation, match: tuple[Operation, tuple[int, ...]], rewriter: Rewriter) -> None:
    inner, axes = match
    value = matching.insert_constant(rewriter, np.array(axes, np.int32), op.operands[1])
    rewriter.replace(rewriter.insert(matching.rebuild(op, [inner.operands[0], value]), inner))


def _match_mean(op: Operation) -> Operation | Failure:
    split = matching.with_constant(op)
    source = None if split is None else matching.sole_producer(split[0], "tfl.sum")
    if split is None or source is None or not matching.is_plain(op) or not matching.is_float(op.results[0]):
        return Failure("it is no sum times a constant, or the sum is used elsewhere too")
    axes, dims = matching.integers(source.operands[1]), matching.shape(source.operands[0])
    factor = matching.number(next(value for value in op.operands if value is not split[0]))
    if axes is None or dims is None or factor is None or matching.shape(op.results[0]) != matching.shape(split[0]):
        return Failure("the axes, the rank or the factor are unknown")
    count = math.prod(dims[axis] for axis in axes)
    if count <= 0 or not matching.is_close(factor * count, 1):
        return Failure("the factor isn't one by the number of elements")
    return source


def _rewrite_mean(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    mean = tfl.build("mean", match.operands, [op.results[0].type], {"keep_dims": tfl.attribute(match, "keep_dims")})
    rewriter.replace(rewriter.insert(mean, match))


PATTERNS: tuple[Pattern[Any], ...] = (
    *(Pattern(f"twice-{name}", f"tfl.{name}", _match_twice, _rewrite_twice) for name in _REDUCTIONS),
    Pattern("sum-to-mean", "tfl.mul", _match_mean, _rewrite_mean),
)
