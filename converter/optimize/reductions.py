"""Reductions of reductions, and sums that are means.

    mean(mean(x, a), b)    ->  mean(x, a + b)      also sums, products, maxima and minima
    mul(sum(x, a), 1 / n)  ->  mean(x, a)          where n is the number of elements summed

Both reductions keep the dimensions they reduce, or neither does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from converter.optimize import matching
from converter.rewrite.declarative import rule
from converter.rewrite.pattern import Failure, Pattern
from converter.rewrite.rewriter import Rewriter
from converter.rewrite.terms import array, attr, check, number, tfl, value
from schema.dialects import tfl as dialect
from schema.dialects.tensor_data import Array

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
    keeps = dialect.attribute(inner, "keep_dims")
    if keeps != dialect.attribute(op, "keep_dims"):
        return Failure("one keeps the reduced dimensions, the other doesn't")
    reduced = {axis % len(dims) for axis in first}
    left = [index for index in range(len(dims)) if keeps or index not in reduced]
    reduced.update(left[axis % len(left)] for axis in second)
    return inner, tuple(sorted(reduced))


def _rewrite_twice(op: Operation, match: tuple[Operation, tuple[int, ...]], rewriter: Rewriter) -> None:
    inner, axes = match
    value = matching.insert_constant(rewriter, np.array(axes, np.int32), op.operands[1])
    rewriter.replace(rewriter.insert(matching.rebuild(op, [inner.operands[0], value])))


def _is_one_by_count(x: SSAValue, axes: Array, factor: float) -> bool:
    dims = matching.shape(x)
    count = 0 if dims is None else math.prod(dims[axis] for axis in axes.ravel())
    return count > 0 and matching.is_close(factor * count, 1)


X = value("x")
_SUM = tfl.sum(X, array("axes"), keep_dims=attr("keep")).element(np.float32).once()

_MEAN = rule(
    "sum-to-mean",
    tfl.mul(_SUM.named("total"), number("factor"), **matching.PLAIN).commutative(),
    tfl.mean(X, array("axes"), keep_dims=attr("keep")),
    where=[
        check("it broadcasts", lambda total, root: matching.same_shape_as_result(total.results[0], root)),
        check("the factor isn't one by the number of elements", _is_one_by_count),
    ],
    benefit=1,
)

PATTERNS: tuple[Pattern[Any], ...] = (
    *(Pattern(f"twice-{name}", f"tfl.{name}", _match_twice, _rewrite_twice, depth=2) for name in _REDUCTIONS),
    _MEAN,
)
