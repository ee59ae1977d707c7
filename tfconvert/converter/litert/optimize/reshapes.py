"""Reshapes: none where nothing changes, one instead of several, none where a neighbour can do it.

    reshape(reshape(x, s), t)         ->  reshape(x, t)
    reshape(x, shape(x)'s value)      ->  x
    reshape(constant, s)              ->  constant
    squeeze(x), expand_dims(x)        ->  reshape(x, s)
    expand_dims(squeeze(x), axis)     ->  x                              where that is the axis that went
    reshape(mean(x, axes), s)         ->  mean{keep_dims}(x, axes)       where s puts ones at the axes
    fully_connected(reshape(x, s))    ->  fully_connected(x)             where the last dimension stays
    reshape(fully_connected(x), s)    ->  fully_connected{keep_num_dims}(x)

One dimension of a shape may be unknown: it follows from the number of elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.shapes.ops.reshape_target import constant_target
from tfconvert.schema.dialects import attributes, tensor_data
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_TRUE = attributes.boolean(True)
_REDUCTIONS = frozenset({"tfl.mean", "tfl.sum", "tfl.reduce_max", "tfl.reduce_min", "tfl.reduce_prod"})


def _match_identity(op: Operation) -> Value | Failure:
    value = op.operands[0]
    same = matching.same_shape(matching.shape(value), matching.shape(op.results[0]))
    return value if same else Failure("the shape changes, or may change")


def _rewrite_identity(op: Operation, match: Value, rewriter: Rewriter) -> None:
    rewriter.replace(match)


X = value("x")
_OUTER = tfl.reshape(op(("tfl.reshape", "tfl.squeeze", "tfl.expand_dims"), X, rest("how")), value("dims"))

_AGAIN = rule("reshape-reshape", _OUTER, _OUTER.rebuilt(X, value("dims")), benefit=12)


def _match_constant(op: Operation) -> Constant | Failure:
    constant = tensor_data.constant_of(op.operands[0])
    dims = matching.static_shape(op.results[0])
    if constant is None or dims is None or math.prod(dims) != matching.size_of(constant):
        return Failure("the operand is computed, or the shape unknown")
    return tensor_data.defer("reshape", (constant,), dims, dims)


def _rewrite_constant(op: Operation, match: Constant, rewriter: Rewriter) -> None:
    rewriter.replace(matching.insert_constant(rewriter, match, op.operands[0]))


def _match_rank_change(op: Operation) -> tuple[int, ...] | Failure:
    dims = constant_target(matching.shape(op.results[0]))
    return Failure("more than one dimension is unknown") if dims is None else dims


def _rewrite_rank_change(op: Operation, match: tuple[int, ...], rewriter: Rewriter) -> None:
    dims = matching.insert_constant(rewriter, np.array(match, np.int32))
    rewriter.replace(rewriter.insert(dialect.build("reshape", [op.operands[0], dims], [op.results[0].type])))


def _match_restored_axis(op: Operation) -> Value | Failure:
    source = matching.producer(op.operands[0], "tfl.squeeze")
    dims, axis = matching.shape(op.results[0]), constant_ints(op.operands[1])
    if source is None or dims is None or axis is None or source.operands[0].type != op.results[0].type:
        return Failure("no squeeze of a value of the same type comes before")
    squeezed = dialect.attribute(source, "squeeze_dims")
    same = [each % len(dims) for each in squeezed] == [axis[0] % len(dims)]
    return source.operands[0] if same else Failure("another axis went")


def _match_kept_dims(op: Operation) -> Operation | Failure:
    source = matching.sole_producer(op.operands[0], _REDUCTIONS)
    if source is None:
        return Failure("no reduction comes before, or it is used elsewhere too")
    dims = matching.shape(source.operands[0])
    reduced = matching.axes(source.operands[1], dims)
    if reduced is None or dims is None:
        return Failure("the reduced axes are computed")
    kept = tuple(1 if index in reduced else dim for index, dim in enumerate(dims))
    same = matching.same_shape(kept, matching.shape(op.results[0]))
    return source if same else Failure("the shape isn't that of the reduction with its dimensions kept")


def _rewrite_kept_dims(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    reduction = rebuild(match, match.operands, [op.results[0].type], {"keep_dims": _TRUE})
    rewriter.replace(rewriter.insert(reduction))


def _match_flattened(op: Operation) -> Operation | Failure:
    """Matches a product whose operand is reshaped to rows first; it takes any rank, and flattens it by itself."""
    source = matching.producer(op.operands[0], "tfl.reshape")
    if source is None or dialect.attribute(op, "keep_num_dims"):
        return Failure("no reshape comes before, or its shape is visible in the result")
    before, after = matching.shape(source.operands[0]), matching.shape(source.results[0])
    if not before or not after or before[-1] != after[-1] or before[-1] < 0:
        return Failure("the last dimension changes, or may change")
    return source


def _rewrite_flattened(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    operands = [match.operands[0], *op.operands[1:]]
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


def _match_restored(op: Operation) -> Operation | Failure:
    """Matches a reshape that restores the leading dimensions of a product's operand in its result."""
    source = matching.sole_producer(op.operands[0], "tfl.fully_connected")
    if source is None:
        return Failure("no matrix product comes before, or it is used elsewhere too")
    before, after = matching.shape(source.operands[0]), matching.shape(op.results[0])
    weights, flat = matching.shape(source.operands[1]), matching.shape(op.operands[0])
    if not before or not after or not weights or not flat or after[-1] != weights[0] or before[-1] != weights[1]:
        return Failure("the last dimension isn't the number of channels")
    if not matching.same_shape(before[:-1], after[:-1]):
        return Failure("the leading dimensions aren't the operand's")
    return source


def _rewrite_restored(op: Operation, match: Operation, rewriter: Rewriter) -> None:
    product = rebuild(match, match.operands, [op.results[0].type], {"keep_num_dims": _TRUE})
    rewriter.replace(rewriter.insert(product))


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("no-reshape", "tfl.reshape", _match_identity, _rewrite_identity, benefit=20),
    Pattern("fold-reshape", "tfl.reshape", _match_constant, _rewrite_constant, benefit=15),
    _AGAIN,
    Pattern("squeeze-expand-dims", "tfl.expand_dims", _match_restored_axis, _rewrite_identity, benefit=20,
            producers={0: ("tfl.squeeze",)}),
    Pattern("keep-dims", "tfl.reshape", _match_kept_dims, _rewrite_kept_dims, benefit=5, depth=2,
            producers={0: _REDUCTIONS}),
    Pattern("keep-num-dims", "tfl.reshape", _match_restored, _rewrite_restored, benefit=5,
            producers={0: ("tfl.fully_connected",)}),
    Pattern("unflatten", "tfl.fully_connected", _match_flattened, _rewrite_flattened, benefit=8,
            producers={0: ("tfl.reshape",)}),
    *(Pattern(f"{root[4:]}-to-reshape", root, _match_rank_change, _rewrite_rank_change, benefit=5)
      for root in ("tfl.squeeze", "tfl.expand_dims")),
)  # fmt: skip
