"""Activations and per-channel constants move before a reshape, where the op before it can absorb them.

    relu(reshape(conv(x), s))    ->  reshape(relu(conv(x)), s)
    add(reshape(conv(x), s), c)  ->  reshape(add(conv(x), c), s)     where the last dimension stays; mul as well
    add(reshape(conv(x), s), c)  ->  reshape(add(conv(x), d), s)     where s cuts the last dimension into those of c

One-dimensional convolutions are written like this: a reshape is between the convolution and its bias.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import Op, computed, constant, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert.optimize import fuse_activation, matching, weighted_ops
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation


def _vector(c: Constant, reshape: Operation, root: Operation) -> Constant | Failure:
    """Returns a constant as the vector of channels that it is before the reshape."""
    before, after = matching.shape(reshape.operands[0]), matching.shape(reshape.results[0])
    if not before or not after or before[-1] < 0 or after != matching.shape(root.results[0]):
        return Failure("the shape is unknown or changes")
    flat = c if before[-1] == after[-1] else _flat(c, before[-1], after)
    return flat if isinstance(flat, Failure) else matching.as_vector(flat, before[-1], len(after))


def _flat(constant: Constant, length: int, after: types.Shape) -> Constant | Failure:
    """Returns a constant as a vector, if it has a value for each channel of a last dimension that is cut into several.

    Args:
        constant: The constant.
        length: The number of channels.
        after: The shape whose last dimensions are the channels.
    """
    dims = matching.dims_of(constant)
    while dims and dims[0] == 1:
        dims = dims[1:]
    if math.prod(dims) == length and dims and dims == after[-len(dims) :]:
        return tensor_data.defer("reshape", (constant,), (length,), (length,))
    return constant if math.prod(dims) == 1 else Failure("the last dimension changes, or may change")


_DIMS = value("dims")
_VECTOR = computed(_vector, "vector")


def _before_reshape(root: str, sources: tuple[str, ...], *, has_constant: bool = False) -> Pattern[Any]:
    """Returns the pattern of an op that moves before a reshape, where one of some ops can absorb it."""
    source = op(sources, rest("operands"), **matching.PLAIN).once()
    reshape = tfl.reshape(source, _DIMS).element(np.float32).once().named("reshape")
    matched: Op = op(root, reshape, constant("c")).commutative() if has_constant else op(root, reshape)
    moved = matched.rebuilt(source, *([_VECTOR] if has_constant else [])).like(source)
    where = [_VECTOR] if has_constant else []
    return rule(f"{root[4:]}-before-reshape", matched, reshape.rebuilt(moved, _DIMS), where=where, benefit=1)


PATTERNS: tuple[Pattern[Any], ...] = (
    *(_before_reshape(root, tuple(weighted_ops.OPS), has_constant=True) for root in ("tfl.add", "tfl.mul")),
    *(_before_reshape(root, fuse_activation.CLAMPING) for root in fuse_activation.ACTIVATIONS),
)
