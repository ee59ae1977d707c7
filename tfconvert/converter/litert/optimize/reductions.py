"""Reductions of reductions, and sums that are means.

    mean(mean(x, a), b)    ->  mean(x, a + b)      also sums, products, maxima and minima
    mul(sum(x, a), 1 / n)  ->  mean(x, a)          where n is the number of elements summed

Both reductions keep the dimensions they reduce, or neither does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import array, attr, check, number, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.ir.operation import Operation

_REDUCTIONS = ("mean", "sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all")


def _match_twice(op: Operation) -> tuple[Operation, tuple[int, ...]] | Failure:
    inner = matching.sole_producer(op.operands[0], op.name)
    if inner is None:
        return Failure("no such reduction comes before, or it is used elsewhere too")
    if op.name == "tfl.mean" and not matching.is_float(op.results[0]):
        return Failure("each mean of integers is rounded")
    dims, between = matching.shape(inner.operands[0]), matching.shape(op.operands[0])
    first, second = matching.axes(inner.operands[1], dims), matching.axes(op.operands[1], between)
    if first is None or second is None or dims is None or between is None:
        return Failure("the axes or the rank are unknown")
    keeps = dialect.attribute(inner, "keep_dims")
    if keeps != dialect.attribute(op, "keep_dims"):
        return Failure("one keeps the reduced dimensions, the other doesn't")
    left = [index for index in range(len(dims)) if keeps or index not in first]
    if len(left) != len(between):
        return Failure("the ranks don't fit the axes")
    return inner, tuple(sorted(first | {left[axis] for axis in second}))


def _rewrite_twice(op: Operation, match: tuple[Operation, tuple[int, ...]], rewriter: Rewriter) -> None:
    inner, axes = match
    value = matching.insert_constant(rewriter, np.array(axes, np.int32), op.operands[1])
    rewriter.replace(rewriter.insert(rebuild(op, [inner.operands[0], value])))


def _is_one_by_count(total: Operation, factor: float) -> bool:
    dims = matching.shape(total.operands[0])
    reduced = matching.axes(total.operands[1], dims)
    if dims is None or reduced is None or any(dims[axis] < 0 for axis in reduced):
        return False
    return matching.is_close(factor * math.prod(dims[axis] for axis in reduced), 1)


X = value("x")
_SUM = tfl.sum(X, array("axes"), keep_dims=attr("keep")).element(np.float32).once()

_MEAN = rule(
    "sum-to-mean",
    tfl.mul(_SUM.named("total"), number("factor"), **matching.PLAIN).commutative(),
    tfl.mean(X, array("axes"), keep_dims=attr("keep")),
    where=[
        check("it broadcasts", lambda total, root: matching.same_shape_as_result(total.results[0], root)),
        check("the factor isn't one over the number of elements", _is_one_by_count),
    ],
    benefit=1,
)

PATTERNS: tuple[Pattern[Any], ...] = (
    *(Pattern(f"twice-{name}", f"tfl.{name}", _match_twice, _rewrite_twice, depth=2) for name in _REDUCTIONS),
    _MEAN,
)
