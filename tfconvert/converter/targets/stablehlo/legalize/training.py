"""Losses of classifiers, as models that were trained may still hold them.

A decomposition would multiply labels of 0 by logarithms that may be infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.activations import log_softmax
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.index_checks import require_indices
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


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
    dims, index = emit.dims(logits), types.element_of(classes.type)
    require_indices(emit, classes, dims[1])
    is_class = emit.compare("EQ", emit.iota(dims, 1, index), emit.broadcast(classes, dims, (0,)))
    return _loss(emit, logits, emit.convert(is_class, types.element_of(logits.type)))


LOWERINGS: Mapping[str, Rewrite] = {
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
