"""Biases and normalizations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"


def _channels_last(op: Operation) -> Failure | None:
    data_format = tf.get(op, "data_format", "NHWC")
    return None if data_format in ("NHWC", "NDHWC") else Failure(f"data_format is {data_format}")


def _bias_add(op: Operation, emit: LiteRTBuilder) -> None:
    emit.rewriter.turn_root_into(tf.TFOp, "tf.AddV2", {})


def _inference(op: Operation) -> Failure | None:
    if tf.get(op, "is_training", True):
        return Failure("it normalizes with the batch's own statistics")
    return _channels_last(op)


def _normalize(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """`x * m + a` with `m = scale / sqrt(variance + epsilon)` and `a = offset - mean * m`."""
    x, _, _, mean, variance = op.operands
    factor, addend = _folded(op, emit) or _computed(op, emit)
    product = emit.tfl("mul", (x, factor), op.results[0].type, tfl.NOT_FUSED)
    result = emit.tfl("add", (product, addend), op.results[0].type, tfl.NOT_FUSED)
    return [result, mean, variance, *_for_gradients(op, emit, mean, variance)]


def _for_gradients(op: Operation, emit: LiteRTBuilder, mean: Value, variance: Value) -> list[Value]:
    """Returns the results for gradients; the third is a GPU's, and empty elsewhere."""
    is_third_used = any(result.first_use is not None for result in op.results[5:])
    third = emit.constant(np.zeros(0, np.float32)) if is_third_used else mean
    return [mean, variance, third][: len(op.results) - 3]


def _folded(op: Operation, emit: LiteRTBuilder) -> tuple[Value, Value] | None:
    """Returns the factor and the addend if the statistics are constants."""
    arrays = []
    for operand in op.operands[1:]:
        constant = tensor_data.constant_of(operand)
        if constant is None:
            return None
        arrays.append(tensor_data.to_array(constant).astype(np.float64))
    scale, offset, mean, variance = arrays
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + tf.get(op, "epsilon", 1e-4))
        addend = offset - mean * factor
    return emit.constant(factor.astype(np.float32)), emit.constant(addend.astype(np.float32))


def _computed(op: Operation, emit: LiteRTBuilder) -> tuple[Value, Value]:
    _, scale, offset, mean, variance = op.operands
    epsilon = tf.get(op, "epsilon", 1e-4)
    factor = emit.binary("Mul", scale, emit.unary("Rsqrt", emit.binary("AddV2", variance, epsilon)))
    return factor, emit.binary("Sub", offset, emit.binary("Mul", mean, factor))


def _training(op: Operation) -> Failure | None:
    if not tf.get(op, "is_training", True):
        return Failure("it normalizes with statistics that are operands")
    if op.operands[0].shape is None:
        return Failure("the input's rank is not known")
    return _channels_last(op)


def _normalize_by_batch(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    x, scale, offset = op.operands[:3]
    axes = tuple(range(len(x.shape or ()) - 1))
    mean = emit.reduce("Mean", x, axes)
    variance = emit.reduce("Mean", emit.binary("SquaredDifference", x, mean), axes)
    deviation = emit.unary("Rsqrt", emit.binary("AddV2", variance, tf.get(op, "epsilon", 1e-4)))
    factor = emit.binary("Mul", scale, deviation)
    addend = emit.binary("Sub", offset, emit.binary("Mul", mean, factor))
    result = emit.tf("AddV2", (emit.binary("Mul", x, factor), addend), op.results[0].type)
    statistics = [mean, _unbiased(emit, x, variance) if op.results[2].first_use is not None else variance]
    factor_of_new = tf.get(op, "exponential_avg_factor", 1.0)
    if factor_of_new != 1:
        statistics = [
            emit.binary("AddV2", emit.binary("Mul", old, 1 - factor_of_new), emit.binary("Mul", new, factor_of_new))
            for old, new in zip(op.operands[3:5], statistics, strict=True)
        ]
    return [result, *statistics, *_for_gradients(op, emit, mean, variance)]


def _unbiased(emit: LiteRTBuilder, x: Value, variance: Value) -> Value:
    """Returns the variance as TensorFlow defines this result: divided by one less than the number of values."""
    shape = x.shape or ()
    if -1 not in shape:
        count = math.prod(shape[:-1])
        return emit.binary("Mul", variance, count / max(count - 1, 1))
    sizes = emit.tf(
        "Slice",
        (emit.shape(x), emit.ints((0,)), emit.ints((len(shape) - 1,))),
        types.tensor(types.I32, (len(shape) - 1,)),
    )
    number = emit.cast(emit.reduce("Prod", sizes, (0,)), types.F32)
    rest = emit.binary("Maximum", emit.binary("Sub", number, 1), 1)
    return emit.binary("Mul", variance, emit.binary("RealDiv", number, rest))


_LRN_OPTIONS: dict[str, Any] = {
    "radius": Attr("depth_radius", 5),
    "bias": Attr("bias", 1.0),
    "alpha": Attr("alpha", 1.0),
    "beta": Attr("beta", 0.5),
}

_BATCH_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")

ENTRIES: tuple[Entry, ...] = (
    Lowering("BiasAdd", "AddV2", _bias_add, constraint=_channels_last),
    Lowering("BiasAddV1", "AddV2", _bias_add),
    *(Lowering(op, "mul add", _normalize, _FLOAT, _inference) for op in _BATCH_NORMS),
    *(Lowering(op, "Mean SquaredDifference", _normalize_by_batch, _FLOAT, _training) for op in _BATCH_NORMS),
    BuiltinRow("LRN", "local_response_normalization", _FLOAT, options=_LRN_OPTIONS),
)
