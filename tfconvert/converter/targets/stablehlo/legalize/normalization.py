"""Normalizations, and the losses of classifiers, which trained models may still have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.constraints import require_indices
from tfconvert.converter.targets.stablehlo.legalize.elementwise import log_softmax
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.converter.targets.stablehlo.legalize.windows import Axis, channel_axis, window_properties
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _float(op: Operation, name: str, default: float) -> float:
    return float(getattr(op.properties.get(name), "value", default))


def _scaled(
    emit: StableHLOBuilder, op: Operation, value: Value, moments: Sequence[Value], affine: Sequence[Value]
) -> Value:
    """Returns a value less its means, in its deviations, times a scale plus an offset, as one product and one sum."""
    (mean, variance), (scale, offset) = moments, affine
    dims = emit.dims(value)
    axis = channel_axis(op, len(dims))
    factor = emit.unary("rsqrt", emit.binary("add", variance, _float(op, "epsilon", 1e-4)))
    factor = emit.binary("multiply", factor, scale)
    shift = emit.binary("subtract", offset, emit.binary("multiply", mean, factor))
    element = value.element
    wide = emit.convert(value, factor.element)
    joined = tuple(emit.dims(factor)[0] if at == axis and dim < 0 else dim for at, dim in enumerate(dims))
    scaled = emit.binary("multiply", wide, emit.broadcast(factor, joined, (axis,)))
    return emit.convert(emit.binary("add", scaled, emit.broadcast(shift, joined, (axis,))), element)


def _batch_norm(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    value, scale, offset, mean, variance = op.operands
    if tf.get(op, "is_training", True):
        return _training(op, emit)
    result = _scaled(emit, op, value, (mean, variance), (scale, offset))
    return [result, mean, variance, mean, variance, mean][: len(op.results)]


def _training(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Inserts a normalization by the batch's own moments, which go into running ones."""
    value, scale, offset, mean, variance = op.operands
    dims = emit.dims(value)
    axis = channel_axis(op, len(dims))
    others = [at for at in range(len(dims)) if at != axis]
    wide = emit.convert(value, scale.element)
    element = wide.element
    count = emit.convert(emit.value(emit.product([dims[at] for at in others])), element)
    own_mean = emit.binary("divide", emit.reduce("add", wide, others, 0), count)
    centred = emit.binary("subtract", wide, emit.broadcast(own_mean, dims, (axis,)))
    squares = emit.reduce("add", emit.binary("multiply", centred, centred), others, 0)
    own_variance = emit.binary("divide", squares, count)
    result = _scaled(emit, op, value, (own_mean, own_variance), (scale, offset))
    # The variance result is the unbiased one.
    rest = emit.binary("maximum", emit.binary("subtract", count, 1), 1)
    sampled = emit.binary("divide", squares, rest)
    share = _float(op, "exponential_avg_factor", 1.0)
    running = [_mixed(emit, old, new, share) for old, new in ((mean, own_mean), (variance, sampled))]
    return [result, *running, own_mean, own_variance, own_mean][: len(op.results)]


def _mixed(emit: StableHLOBuilder, old: Value, new: Value, share: float) -> Value:
    if share == 1.0:
        return new
    return emit.binary("add", emit.binary("multiply", old, 1 - share), emit.binary("multiply", new, share))


def _local_response(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    dims, element = emit.dims(value), value.element
    radius = int(tf.get(op, "depth_radius", 5))
    alpha, beta, bias = (_float(op, name, default) for name, default in (("alpha", 1), ("beta", 0.5), ("bias", 1)))
    wide = emit.convert(value, types.F32) if element in (types.F16, types.BF16) else value
    last = len(dims) - 1
    axes = [Axis(axis, 2 * radius + 1 if axis == last else 1, 1, 1) for axis in range(len(dims))]
    properties = window_properties(axes, [*[(0, 0)] * last, (radius, radius)])
    kind = wide.element
    operands = emit.binary("multiply", wide, wide), emit.scalar(0, kind)
    total = emit.one("reduce_window", operands, properties, (emit.body("add", kind),), dims=dims)
    base = emit.binary("add", emit.binary("multiply", total, alpha), bias)
    return emit.convert(emit.binary("divide", wide, emit.binary("power", base, beta)), element)


NORMALIZATIONS: Mapping[str, Rewrite] = {
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "LRN": _local_response,
}


def _loss(emit: StableHLOBuilder, logits: Value, labels: Value) -> Sequence[Value]:
    """Emits the losses and their gradients."""
    logarithms = log_softmax(emit, logits)
    # Where a label is 0 nothing is lost, however unlikely it is.
    products = emit.select(emit.compare("EQ", labels, 0), 0, emit.binary("multiply", labels, logarithms))
    losses = emit.unary("negate", emit.reduce("add", products, (1,), 0))
    return losses, emit.binary("subtract", emit.unary("exponential", logarithms), labels)


def _cross_entropy(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    return _loss(emit, *emit.pair(*op.operands))


def _sparse_cross_entropy(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    logits, classes = op.operands
    dims, index = emit.dims(logits), classes.element
    require_indices(emit, classes, dims[1])
    is_class = emit.compare("EQ", emit.iota(dims, 1, index), emit.broadcast(classes, dims, (0,)))
    return _loss(emit, logits, emit.convert(is_class, logits.element))


LOSSES: Mapping[str, Rewrite] = {
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
