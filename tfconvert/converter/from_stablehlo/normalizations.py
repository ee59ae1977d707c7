"""Batch normalization with given statistics, with those of its operand, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.schema.ir.attributes import FloatAttr


def _per_channel(raised: RaisedOp, x: EmittedTensor, vectors: Sequence[EmittedTensor]) -> list[EmittedTensor]:
    """Returns vectors of a number for each channel in a shape that broadcasts to a tensor."""
    axis = raised.integer("feature_index")
    rest = [1] * (x.rank - 1 - axis)
    return [raised.reshaped(vector, [*raised.sizes(vector), *rest]) for vector in vectors]


def _epsilon(raised: RaisedOp) -> float:
    epsilon = raised.op.properties["epsilon"]
    assert isinstance(epsilon, FloatAttr)
    return epsilon.value


def _inference(raised: RaisedOp) -> EmittedTensor:
    x, *vectors = raised.operands
    scale, offset, mean, variance = _per_channel(raised, x, vectors)
    factor = (variance + _epsilon(raised)).rsqrt() * scale
    return x * factor + (offset - mean * factor)


def _training(raised: RaisedOp) -> Sequence[EmittedTensor]:
    x, *vectors = raised.operands
    axes = _other_axes(raised, x)
    mean = x.mean(axes, keep_dims=True)
    centered = x - mean
    variance = (centered * centered).mean(axes, keep_dims=True)
    found = centered * (variance + _epsilon(raised)).rsqrt()
    scale, offset = (raised.known(vector) for vector in vectors)
    factor, shift = _per_channel(raised, x, vectors)
    found = found if scale is not None and (scale == 1).all() else found * factor
    found = found if offset is not None and not offset.any() else found + shift
    shape = raised.sizes(vectors[0])
    return [found, *(raised.reshaped(each, shape) for each in (mean, variance))]


def _gradient(raised: RaisedOp) -> Sequence[EmittedTensor]:
    x, *vectors, gradient = raised.operands
    scale, mean, variance = _per_channel(raised, x, vectors)
    axes = _other_axes(raised, x)
    inverse = (variance + _epsilon(raised)).rsqrt()
    normalized = (x - mean) * inverse
    product = gradient * normalized
    of_x = gradient - gradient.mean(axes, keep_dims=True) - normalized * product.mean(axes, keep_dims=True)
    return [scale * inverse * of_x, product.sum(axes), gradient.sum(axes)]


def _other_axes(raised: RaisedOp, x: EmittedTensor) -> list[int]:
    return [axis for axis in range(x.rank) if axis != raised.integer("feature_index")]


ROWS: Rows = {"batch_norm_grad": _gradient, "batch_norm_inference": _inference, "batch_norm_training": _training}
