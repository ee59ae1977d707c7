"""Batch normalization, local response normalization, softmax and its losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfconvert.ops.call import Array, Call, Results, typed, wide
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, same, same_with_rank_at_least
from tfconvert.ops.windows import channels_first
from tfconvert.schema.dialects.dims import broadcast, can_broadcast, merge, merge_all, with_rank
from tfconvert.schema.dialects.relations.rules import is_vector
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.ir.operation import Operation


def _fused_batch_norm_shape(operands: Operands) -> Shapes:
    """The image, four vectors and, in the third version, a reserved result of unknown shape."""
    rank = 5 if operands.text("data_format").endswith(("DHWC", "CDHW")) else 4
    image = with_rank(operands.shape(0), rank, "the input")
    place = 1 if operands.text("data_format").startswith("NC") else rank - 1
    # In training the mean and variance may be empty: they are computed.
    shapes = operands.shapes(1, 3 if operands.attribute("is_training", True) else 5)
    vectors = [with_rank(shape, 1, "scale, offset, mean or variance") for shape in shapes]
    channels = merge_all([image[place : place + 1], *vectors])
    assert channels is not None
    result = (*image[:place], *channels, *image[place + 1 :])
    rest = len(operands.op.results) - 5
    return (result, *(channels,) * 4, *(None,) * rest)


def _global_batch_norm_shape(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the input")
    vectors = [with_rank(shape, 1, "mean, variance, beta or gamma") for shape in operands.shapes(1)]
    channels = merge_all([image[3:], *vectors])
    assert channels is not None
    return ((*image[:3], *channels),)


def _losses_shape(operands: Operands) -> Shapes:
    """Softmax cross entropy: a loss for each row, and the gradient."""
    logits = with_rank(operands.shape(0), 2, "the logits")
    if "Sparse" in operands.op.name:
        return (merge(logits[:1], with_rank(operands.shape(1), 1, "the labels")), logits)
    shape = broadcast(logits, with_rank(operands.shape(1), 2, "the labels"))
    assert shape is not None
    return (shape[:1], shape)


def _fused_batch_norm(call: Call) -> Results:
    x, scale, offset, mean, variance = call.inputs
    first = channels_first(call.text("data_format", "NHWC"))
    images = np.moveaxis(wide(x), 1, -1) if first else wide(x)
    epsilon = np.float32(call.number("epsilon", 1e-4))
    used_mean, used_variance = mean, variance
    if call.flag("is_training", True):
        axes = tuple(range(images.ndim - 1))
        used_mean = images.mean(axes, dtype=images.dtype)
        used_variance = np.square(images - used_mean).mean(axes, dtype=images.dtype)
    factor = scale / np.sqrt(used_variance + epsilon)
    y = (images - used_mean) * factor + offset
    results = _statistics(call, images, used_mean, used_variance)
    y = typed(np.moveaxis(y, -1, 1) if first else y, x.dtype)
    # The third reserved space is a GPU's.
    third = [np.zeros(0, np.float32)] if call.op == "FusedBatchNormV3" else []
    return (y, *results, used_mean, used_variance, *third)


def _statistics(call: Call, images: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Returns the mean and variance results: running ones in training (with unbiased variance), else the operands."""
    given_mean, given_variance = call.inputs[3:]
    if not call.flag("is_training", True):
        return given_mean, given_variance
    count = images.size // max(images.shape[-1], 1)
    unbiased = variance * np.float32(count / max(count - 1, 1))
    factor = np.float32(call.number("exponential_avg_factor", 1.0))
    if factor == 1:
        return mean, unbiased
    return given_mean * (1 - factor) + mean * factor, given_variance * (1 - factor) + unbiased * factor


def global_batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    beta: Tensor,
    gamma: Tensor,
    *,
    variance_epsilon: float = 0.0,
    scale_after_normalization: bool = False,
) -> Tensor:
    """`(x - mean) * gamma / sqrt(variance + epsilon) + beta`, with the statistics as one factor and one addend."""
    factor = (variance + variance_epsilon).rsqrt()
    if scale_after_normalization:
        factor = factor * gamma
    return x * factor + (beta - mean * factor)


def _local_response(call: Call) -> Results:
    (x,) = call.inputs
    radius = call.integer("depth_radius", 5)
    depth = x.shape[-1]
    squares = np.zeros((*x.shape[:-1], depth + 2 * radius), wide(x).dtype)
    squares[..., radius : radius + depth] = np.square(wide(x))
    total = sum((squares[..., i : i + depth] for i in range(2 * radius + 1)), np.zeros_like(wide(x)))
    bias, alpha, beta = (call.number(name, default) for name, default in (("bias", 1.0), ("alpha", 1.0), ("beta", 0.5)))
    return (typed(wide(x) * (total * alpha + bias) ** -beta, x.dtype),)


def _softmax(call: Call) -> Results:
    (x,) = call.inputs
    values = wide(x)
    powers = np.exp(values - values.max(-1, keepdims=True, initial=-np.inf))
    return (typed(powers / powers.sum(-1, keepdims=True), x.dtype),)


def _log_softmax(call: Call) -> Results:
    (x,) = call.inputs
    values = wide(x)
    shifted = values - values.max(-1, keepdims=True, initial=-np.inf)
    return (typed(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), x.dtype),)


def _cross_entropy(call: Call) -> Results:
    """A loss for each row, and its gradient by the logits."""
    logits, labels = call.inputs
    (logarithms,) = _log_softmax(Call("LogSoftmax", (wide(logits),), {}))
    loss = -np.sum(wide(labels) * logarithms, -1)
    return typed(loss, logits.dtype), typed(np.exp(logarithms) - wide(labels), logits.dtype)


def _sparse_cross_entropy(call: Call) -> Results:
    logits, classes = call.inputs
    if classes.size and (classes.min() < 0 or classes.max() >= logits.shape[-1]):
        raise call.bad(f"a label is not one of the {logits.shape[-1]} classes")
    labels = np.eye(logits.shape[-1], dtype=logits.dtype)[classes]
    return _cross_entropy(call._replace(inputs=(logits, labels)))


def _rows(view: View) -> None:
    features, labels = view.shape("features"), view.shape("labels")
    if features is None or labels is None:
        return
    if max(len(features), len(labels)) != 2 or not can_broadcast(features, labels):
        view.fail(
            f"'features' and 'labels' must broadcast to rank 2, found {view.type('features')} and {view.type('labels')}"
        )


def loss_and_gradient(logits: Tensor, labels: Tensor) -> Sequence[Tensor]:
    logarithms: Tensor = logits.op("LogSoftmax", logits)
    gradient: Tensor = logits.op("Softmax", logits) - labels
    return -(labels * logarithms).sum([1]), gradient


def _same_classes(op: Operation) -> str | None:
    """Rows may be one for all."""
    first, second = [operand.shape or () for operand in op.operands]
    is_same = len(first) == len(second) == 2 and first[1] == second[1]
    return None if is_same else "the number of classes is not seen to be the same in the logits and the labels"


def sparse_loss_and_gradient(logits: Tensor, classes: Tensor) -> Sequence[Tensor]:
    on, off = np.ones((), logits.dtype), np.zeros((), logits.dtype)
    return loss_and_gradient(logits, logits.op("OneHot", classes, logits.size(-1), on, off, axis=-1))


def _classes_are_known(op: Operation) -> str | None:
    shape = op.operands[0].shape
    return "the number of classes is not known" if shape is None or shape[-1] < 1 else None


OPS = (
    op(
        "BatchNormWithGlobalNormalization",
        shape=_global_batch_norm_shape,
        decompose=(Decomposition(global_batch_norm, example=((2, 4, 4, 3), *[(3,)] * 4)),),
    ),
    op(
        "FusedBatchNorm",
        shape=_fused_batch_norm_shape,
        compute=_fused_batch_norm,
        relations=(is_vector("mean", "variance"),),
        verified=True,
    ),
    *ops_like("FusedBatchNormV2 FusedBatchNormV3", shape=_fused_batch_norm_shape, compute=_fused_batch_norm),
    op("LRN", shape=same, compute=_local_response),
    op("LogSoftmax", shape=same_with_rank_at_least(1), compute=_log_softmax, verified=True),
    op("Softmax", shape=same_with_rank_at_least(1), compute=_softmax, verified=True),
    op(
        "SoftmaxCrossEntropyWithLogits",
        shape=_losses_shape,
        compute=_cross_entropy,
        decompose=(Decomposition(loss_and_gradient, requires=_same_classes, example=((4, 3), (4, 3))),),
        relations=(_rows,),
    ),
    op(
        "SparseSoftmaxCrossEntropyWithLogits",
        shape=_losses_shape,
        compute=_sparse_cross_entropy,
        decompose=(Decomposition(sparse_loss_and_gradient, requires=_classes_are_known, example=((4, 3), (4,))),),
        verified=True,
    ),
)
