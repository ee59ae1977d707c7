"""Activations and per-channel constants move before a reshape, where the op before it can absorb them.

    relu(reshape(conv(x), s))    ->  reshape(relu(conv(x)), s)
    add(reshape(conv(x), s), c)  ->  reshape(add(conv(x), c), s)     where the last dimension stays; mul as well
    add(reshape(conv(x), s), c)  ->  reshape(add(conv(x), d), s)     where s cuts the last dimension into those of c

One-dimensional convolutions are written like this: a reshape is between the convolution and its bias.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import fuse_activation, matching, weighted_ops
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class _Moved(NamedTuple):
    """A reshape that an op moves before.

    Attributes:
        reshape: The reshape.
        constant: The op's constant, as a vector of channels; `None` for an activation.
    """

    reshape: Operation
    constant: Constant | None = None


def _reshape_of(value: Value, sources: frozenset[str]) -> Operation | Failure:
    """Returns the reshape that defines a value, if it and its operand have no other users."""
    reshape = matching.sole_producer(value, "tfl.reshape")
    if reshape is None:
        return Failure("no reshape comes before, or it is used elsewhere too")
    source = matching.sole_producer(reshape.operands[0], sources)
    if source is None or not matching.is_float(value):
        return Failure("the producer of the reshape's operand can't absorb the op")
    return reshape if matching.is_plain(source) else Failure("the producer of the reshape's operand has an activation")


def _match_activation(op: Operation) -> _Moved | Failure:
    reshape = _reshape_of(op.operands[0], fuse_activation.CLAMPING)
    return reshape if isinstance(reshape, Failure) else _Moved(reshape)


def _match_binary(op: Operation) -> _Moved | Failure:
    split = matching.with_constant(op)
    if split is None:
        return Failure("not exactly one operand is constant")
    value, constant = split
    reshape = _reshape_of(value, weighted_ops.NAMES)
    if isinstance(reshape, Failure):
        return reshape
    before, after = matching.shape(reshape.operands[0]), matching.shape(value)
    if not before or not after or before[-1] < 0 or after != matching.shape(op.results[0]):
        return Failure("the shape is unknown or changes")
    flat = constant if before[-1] == after[-1] else _flat(constant, before[-1], after)
    vector = flat if isinstance(flat, Failure) else matching.as_vector(flat, before[-1], len(after))
    return vector if isinstance(vector, Failure) else _Moved(reshape, vector)


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


def _rewrite(op: Operation, match: _Moved, rewriter: Rewriter) -> None:
    source = match.reshape.operands[0]
    operands = [source]
    if match.constant is not None:
        old = next(value for value in op.operands if value.owner is not match.reshape)
        operands.append(matching.insert_constant(rewriter, match.constant, old))
    moved = rewriter.insert(rebuild(op, operands, [source.type]))
    reshape = rebuild(match.reshape, [moved.results[0], match.reshape.operands[1]], [op.results[0].type])
    rewriter.replace(rewriter.insert(reshape))


PATTERNS: tuple[Pattern[_Moved], ...] = (
    *(Pattern(f"{name}-before-reshape", f"tfl.{name}", _match_binary, _rewrite, depth=2) for name in ("add", "mul")),
    *(
        Pattern(
            f"{root[4:]}-before-reshape", root, _match_activation, _rewrite, depth=2, producers={0: ("tfl.reshape",)}
        )
        for root in fuse_activation.ACTIVATIONS
    ),
)
