"""Merges reductions of reductions, and replaces sums by means.

    mean(mean(x, a), b)    ->  mean(x, a + b)      also sums, products, maxima and minima
    mul(sum(x, a), 1 / n)  ->  mean(x, a)          where n is the number of elements summed

Either both reductions keep the reduced dimensions or neither does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import array, attr, check, computed, number, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite import operators


def _both_axes(inner: Operation, second: Array, root: Operation) -> Array | Failure:
    """Returns the axes that two reductions reduce together."""
    dims, between = inner.operands[0].shape, root.operands[0].shape
    first, then = questions.axes(inner.operands[1], dims), questions.axes(root.operands[1], between)
    if first is None or then is None or dims is None or between is None:
        return Failure("the axes or the rank are unknown")
    keeps = dialect.attribute(root, "keep_dims")
    left = [index for index in range(len(dims)) if keeps or index not in first]
    if len(left) != len(between):
        return Failure("the ranks don't fit the axes")
    return np.array(sorted(first | {left[axis] for axis in then}), np.int32)


def _is_one_by_count(total: Operation, factor: float) -> bool:
    dims = total.operands[0].shape
    reduced = questions.axes(total.operands[1], dims)
    if dims is None or reduced is None or any(dims[axis] < 0 for axis in reduced):
        return False
    return questions.is_close(factor * math.prod(dims[axis] for axis in reduced), 1)


X = value("x")
_SUM = tfl.sum(X, array("axes"), keep_dims=attr("keep")).element(np.float32).once()

_MEAN = own_rule(
    "sum-to-mean",
    tfl.mul(_SUM.named("total"), number("factor"), **questions.PLAIN).commutative(),
    tfl.mean(X, array("axes"), keep_dims=attr("keep")),
    where=[
        check("it broadcasts", lambda total, root: questions.has_shape_of_result(total.results[0], root)),
        check("the factor isn't one over the number of elements", _is_one_by_count),
    ],
    benefit=1,
)

_AXES = computed(_both_axes, "axes")


def _twice(name: str) -> Pattern[Any]:
    inner = op(f"tfl.{name}", X, array("first"), keep_dims=attr("keep")).once().named("inner")
    outer = op(f"tfl.{name}", inner, array("second"), keep_dims=attr("keep"))
    # Each mean of integers is rounded.
    matched = outer.element(np.float32) if name == "mean" else outer
    return own_rule(f"twice-{name}", matched, matched.rebuilt(X, _AXES), where=[_AXES], benefit=1)


PATTERNS: tuple[Pattern[Any], ...] = (*map(_twice, operators.having("reduction")), _MEAN)
