"""Ops with a filter and a bias: where their operands are, and along which dimension of the filter the channels lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfconvert.converter.rewrite.dsl import computed, op, rest
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Weighted(NamedTuple):
    """The layout of one op.

    Attributes:
        data: Index of the operand that is filtered.
        filter: Index of the filter.
        bias: Index of the bias, which may be absent.
        rank: The filter's rank.
        out_axis: The filter's dimension of output channels.
        in_axis: The filter's dimension of input channels, `None` where it isn't one whole dimension.
    """

    data: int
    filter: int
    bias: int
    rank: int
    out_axis: int
    in_axis: int | None


OPS: Mapping[str, Weighted] = {
    "tfl.conv_2d": Weighted(0, 1, 2, 4, 0, 3),
    "tfl.depthwise_conv_2d": Weighted(0, 1, 2, 4, 3, None),
    "tfl.fully_connected": Weighted(0, 1, 2, 2, 0, 1),
    "tfl.transpose_conv": Weighted(2, 1, 3, 4, 0, 3),
    "tfl.conv_3d": Weighted(0, 1, 2, 5, 4, 3),
}

NAMES = frozenset(OPS)


def filter_shape(op: Operation) -> types.Shape | None:
    """Returns the shape of a weighted op's filter, `None` if it is unknown or not the shape of such a filter."""
    layout = OPS[op.name]
    dims = matching.shape(op.operands[layout.filter])
    return dims if dims is not None and len(dims) == layout.rank else None


def channels(op: Operation) -> int | None:
    """Returns how many output channels a weighted op has, `None` if unknown."""
    dims = filter_shape(op)
    length = -1 if dims is None else dims[OPS[op.name].out_axis]
    return None if length < 0 else length


def float_filter(op: Operation) -> Constant | None:
    """Returns a weighted op's constant filter of 32-bit floats, `None` if it is computed or holds anything else."""
    value = op.operands[OPS[op.name].filter]
    return tensor_data.constant_of(value) if matching.is_float(value) else None


def bias_of(op: Operation) -> Constant | Failure | None:
    """Returns a weighted op's constant bias, `None` if it has none, a failure if it is not one value a channel."""
    layout = OPS[op.name]
    if len(op.operands) <= layout.bias:
        return None
    bias = op.operands[layout.bias]
    if tfl.is_absent(bias):
        return None
    constant = tensor_data.constant_of(bias)
    if constant is None or matching.dims_of(constant) != (channels(op),):
        return Failure("the bias is computed, or not one value a channel")
    return constant


def is_zero(constant: Constant) -> bool:
    """Returns whether a constant is known to hold zeros only; one that would have to be read from a file is not."""
    if isinstance(constant, tensor_data.DenseElementsAttr) and not constant.data.strip(b"\0"):
        return True
    if isinstance(constant, tensor_data.TensorData) and not isinstance(constant.source, tensor_data.BufferSource):
        return False
    return not tensor_data.to_array(constant).any()


def sum_of(bias: Constant | None, vector: Constant, length: int) -> Constant:
    """Returns the bias plus a vector of `length` elements or of one."""
    if bias is None or is_zero(bias):
        if matching.size_of(vector) == length:
            return vector
        bias = tensor_data.of_array(np.zeros(length, np.float32))
    return tensor_data.defer("add", (bias, vector), (length,))


def _vector(source: Operation, c: Constant) -> Constant | Failure:
    """Returns a constant that is combined with the result of a weighted op, as a vector: a value a channel, or one."""
    dims, length = matching.shape(source.results[0]), channels(source)
    if not dims or length is None or dims[-1] != length:
        return Failure("the number of channels is unknown")
    return matching.as_vector(c, length, len(dims))


SOURCE = op(tuple(OPS), rest("operands"), **matching.PLAIN).element(np.float32).once().named("source")
"""A weighted op whose result alone is added to or multiplied by a constant `c`."""

VECTOR = computed(_vector, "vector")
"""The constant `c` as a vector of the source's channels, or of one element."""


def with_operands(op: Operation, changed: Mapping[int, Value], rewriter: Rewriter) -> list[Value]:
    """Returns an op's operands with some replaced; an absent bias is filled in."""
    operands = list(op.operands)
    while len(operands) <= max(changed):
        operands.append(rewriter.insert(tfl.no_value()).results[0])
    for index, value in changed.items():
        operands[index] = value
    return operands
