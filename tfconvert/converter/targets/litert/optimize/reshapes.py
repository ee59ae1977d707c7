"""Removes reshapes that change nothing or that a neighbour can do, and merges chains.

    reshape(reshape(x, s), t)         ->  reshape(x, t)
    reshape(x, shape(x)'s value)      ->  x
    reshape(constant, s)              ->  constant
    squeeze(x), expand_dims(x)        ->  reshape(x, s)
    expand_dims(squeeze(x), axis)     ->  x                              where that is the removed axis
    reshape(mean(x, axes), s)         ->  mean{keep_dims}(x, axes)       where s puts ones at the axes
    reshape(fully_connected(x), s)    ->  fully_connected{keep_num_dims}(x)
                                          where s has the leading dimensions of x, also of one that is reshaped to rows

One dimension of a shape may be unknown: it follows from the number of elements. A reshape to rows stays if nothing
restores the leading dimensions: `fully_connected` can flatten its operand, but delegates and tools that read files
handle that incorrectly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import array, attr, check, computed, constant, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _keeps_elements(x: Value, root: Operation) -> bool:
    return questions.same_shape(x.shape, root.results[0].shape)


def _reshaped(c: Constant, root: Operation) -> Constant | Failure:
    dims = questions.known_shape(root.results[0])
    if dims is None or math.prod(dims) != questions.size_of(c):
        return Failure("the shape is unknown")
    return tensor_data.defer("reshape", (c,), dims, dims)


def _target(root: Operation) -> Array | Failure:
    dims = constant_target(root.results[0].shape)
    return Failure("more than one dimension is unknown") if dims is None else np.array(dims, np.int32)


def _is_axis_that_went(x: Value, squeezed: list[int] | None, axis: Array) -> bool:
    dims = x.shape
    return dims is not None and [each % len(dims) for each in squeezed or ()] == [axis.item(0) % len(dims)]


def _keeps_reduced(reduction: Operation, root: Operation) -> bool:
    """Returns whether a reshape restores the reduced dimensions as ones."""
    dims = reduction.operands[0].shape
    reduced = questions.axes(reduction.operands[1], dims)
    if reduced is None or dims is None:
        return False
    kept = tuple(1 if index in reduced else dim for index, dim in enumerate(dims))
    return questions.same_shape(kept, root.results[0].shape)


def _restores_leading(x: Value, w: Value, dims: Value, product: Operation, root: Operation) -> bool:
    """Returns whether a reshape restores the leading dimensions of a product's operand in its result."""
    before, after = x.shape, root.results[0].shape
    weights, flat = w.shape, product.results[0].shape
    if not before or not after or not weights or not flat or after[-1] != weights[0] or before[-1] != weights[1]:
        return False
    return questions.same_shape(before[:-1], after[:-1]) or _is_leading_and_one(dims, x)


def _is_leading_and_one(dims: Value, x: Value) -> bool:
    """Returns whether sizes are the leading sizes of `x` and one more, as in `tf.tensordot`."""
    joined = dims.producer("tfl.concatenation")
    rank = len(x.shape or ())
    if joined is None or len(joined.operands) != 2 or joined.operands[1].shape != (1,):
        return False
    chosen = joined.operands[0].producer("tfl.gather")
    sizes = chosen.operands[0].producer("tfl.shape") if chosen is not None else None
    if chosen is None or sizes is None or sizes.operands[0] is not x:
        return False
    return constant_ints(chosen.operands[1]) == tuple(range(rank - 1))


X, W, DIMS, ROWS, REST = value("x"), value("w"), value("dims"), value("rows"), rest("more")
_REDUCTIONS = ("tfl.mean", "tfl.sum", "tfl.reduce_max", "tfl.reduce_min", "tfl.reduce_prod")

_RESHAPED, _TARGET = computed(_reshaped, "reshaped"), computed(_target, "target")
_OUTER = tfl.reshape(op(("tfl.reshape", "tfl.squeeze", "tfl.expand_dims"), X, REST), DIMS)
_REDUCTION = op(_REDUCTIONS, X, W).once().named("reduction")
_PRODUCT = tfl.fully_connected(X, W, REST).once().named("product")
_OF_ROWS = tfl.fully_connected(tfl.reshape(X, ROWS), W, REST, keep_num_dims=False).once().named("product")

PATTERNS: tuple[Pattern[Any], ...] = (
    own_rule(
        "no-reshape",
        tfl.reshape(X, DIMS),
        X,
        where=[check("the shape changes, or may change", _keeps_elements)],
        benefit=20,
    ),
    own_rule("fold-reshape", tfl.reshape(constant("c"), DIMS), _RESHAPED, where=[_RESHAPED], benefit=15),
    own_rule("reshape-reshape", _OUTER, _OUTER.rebuilt(X, DIMS), benefit=12),
    own_rule(
        "squeeze-expand-dims",
        tfl.expand_dims(tfl.squeeze(X, squeeze_dims=attr("squeezed")), array("axis")),
        X,
        where=[questions.KEEPS_TYPE, check("another axis went", _is_axis_that_went)],
        benefit=20,
    ),
    own_rule(
        "keep-dims",
        tfl.reshape(_REDUCTION, DIMS),
        _REDUCTION.rebuilt(X, W, keep_dims=True),
        benefit=5,
        where=[check("the shape isn't that of the reduction with its dimensions kept", _keeps_reduced)],
    ),
    *(
        own_rule(
            name,
            tfl.reshape(product, DIMS),
            product.rebuilt(X, W, REST, keep_num_dims=True),
            benefit=benefit,
            where=[check("the leading dimensions aren't the operand's", _restores_leading)],
        )
        for name, product, benefit in (("keep-num-dims", _PRODUCT, 5), ("unflatten", _OF_ROWS, 8))
    ),
    *(
        own_rule(f"{name}-to-reshape", op(f"tfl.{name}", X, REST), tfl.reshape(X, _TARGET), where=[_TARGET], benefit=5)
        for name in ("squeeze", "expand_dims")
    ),
)
