"""Convolutions: filters are transposed where they are constants, explicit padding becomes a pad."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import INT32, LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_FLOAT = "f32"

Pads = tuple[tuple[int, int], ...]
Properties = tuple[tuple[str, Attribute], ...]

# Maximum number of different convolutions that are remembered.
_ENTRIES = 256


def _channels_last(op: Operation) -> Failure | None:
    data_format = str(tf.get(op, "data_format", "NHWC"))
    return None if data_format in ("NHWC", "NDHWC") else Failure(f"data_format is {data_format}")


def slides(op: Operation, names: Sequence[str], rank: int) -> Failure | None:
    """Returns why windows can't slide over an image like this; `None` if they do so between batch and channels.

    Args:
        op: The op.
        names: Its attributes that have a number for each dimension; an empty one other than `strides` represents ones.
        rank: The image's rank.
    """
    for name in names:
        values = tf.get(op, name)
        if not values and name != "strides":
            values = (1,) * rank
        if len(values) != rank or not all(0 < value <= INT32[1] for value in values):
            return Failure(f"{name} {list(values)} are not {rank} sizes")
        if values[0] != 1 or values[-1] != 1:
            return Failure(f"{name} {list(values)} reach over batch or channels")
    if tf.get(op, "padding") not in ("SAME", "VALID", "EXPLICIT"):
        return Failure(f"padding is {tf.get(op, 'padding')}")
    pads = explicit_pads(op)
    if pads is None:
        return _channels_last(op)
    if len(pads) != rank or any(not 0 <= amount <= INT32[1] for pad in pads for amount in pad):
        return Failure(f"explicit_paddings are not {rank} pairs of sizes")
    return Failure("batch or channels are padded") if any(pads[0]) or any(pads[-1]) else _channels_last(op)


def _windows(op: Operation, rank: int) -> Failure | None:
    return _windows_of(op.name, tuple(op.properties.items()), rank)


# Networks repeat their convolutions.
@lru_cache(_ENTRIES)
def _windows_of(name: str, properties: Properties, rank: int) -> Failure | None:
    return slides(Operation(name, properties=dict(properties)), ("strides", "dilations"), rank)


def _rank(op: Operation, rank: int, operand: int = 0) -> Failure | None:
    shape = op.operands[operand].shape
    if shape is not None and len(shape) == rank:
        return None
    return Failure(f"the input is not known to have {rank} dimensions")


def explicit_pads(op: Operation) -> Pads | None:
    """Returns the padding of each dimension if the op names it, `None` for SAME and VALID."""
    if tf.get(op, "padding") != "EXPLICIT":
        return None
    values = tf.get(op, "explicit_paddings") or ()
    return tuple(zip(values[::2], values[1::2], strict=False))


def _padded(op: Operation, emit: LiteRTBuilder) -> tuple[Value, str]:
    """Returns the input, padded if that needs an op of its own, and the builtin's kind of padding."""
    pads = explicit_pads(op)
    if pads is None:
        return op.operands[0], str(tf.get(op, "padding"))
    return (emit.pad(op.operands[0], pads) if any(map(any, pads)) else op.operands[0]), "VALID"


@lru_cache(_ENTRIES)
def _geometry_of(name: str, properties: Properties, padding: str, target: str) -> dict[str, Attribute]:
    return tfl.to_properties(target, _geometry(Operation(name, properties=dict(properties)), padding))


def _geometry(op: Operation, padding: str) -> dict[str, Any]:
    strides: Sequence[int] = tf.get(op, "strides")
    dilations: Sequence[int] = tf.get(op, "dilations") or (1,) * len(strides)
    names = ("d", "h", "w")[-(len(strides) - 2) :]
    options: dict[str, Any] = {"padding": padding, **tfl.NOT_FUSED}
    for name, stride, dilation in zip(names, strides[1:-1], dilations[1:-1], strict=True):
        options[f"stride_{name}"] = stride
        options[f"dilation_{name}_factor"] = dilation
    return options


def _zero_bias(emit: LiteRTBuilder, channels: int) -> Value:
    # Large ones are not compared by value, so that each has to be a constant of its own.
    zeros = _zeros(channels) if 4 * channels <= tensor_data.SMALL else np.zeros(channels, np.float32)
    return emit.constant(zeros)


@lru_cache(_ENTRIES)
def _zeros(channels: int) -> tensor_data.Constant:
    return tensor_data.of_array(np.zeros(channels, np.float32))


def _conv_2d_constraint(op: Operation) -> Failure | None:
    image, filters = op.operands[0].shape, op.operands[1].shape
    if filters is None or len(filters) != 4 or filters[3] < 0:
        return Failure("the number of output channels is not known")
    if image is not None and len(image) == 4 and image[3] > 0 and filters[2] > 0 and image[3] % filters[2]:
        return Failure(f"{image[3]} channels can't be cut into groups of {filters[2]}")
    return _rank(op, 4) or _windows(op, 4)


def _conv_2d(op: Operation, emit: LiteRTBuilder) -> None:
    image, padding = _padded(op, emit)
    filters = op.operands[1].shape
    assert filters is not None
    operands = (image, emit.transpose(op.operands[1], (3, 0, 1, 2)), _zero_bias(emit, filters[3]))
    properties = _geometry_of(op.name, tuple(op.properties.items()), padding, "conv_2d")
    emit.turn_into("conv_2d", dict(properties), operands)


def _depthwise_constraint(op: Operation) -> Failure | None:
    if not types.is_static(op.operands[1].shape):
        return Failure("the filter's shape is not known")
    return _rank(op, 4) or _windows(op, 4)


def _depthwise_conv_2d(op: Operation, emit: LiteRTBuilder) -> Value:
    image, padding = _padded(op, emit)
    filters = op.operands[1].shape
    assert filters is not None
    height, width, channels, multiplier = filters
    weights = emit.reshape(op.operands[1], (1, height, width, channels * multiplier))
    options = _geometry(op, padding) | {"depth_multiplier": multiplier}
    operands = (image, weights, _zero_bias(emit, channels * multiplier))
    return emit.tfl("depthwise_conv_2d", operands, op.results[0].type, options)


def _transpose_conv_constraint(op: Operation) -> Failure | None:
    filters = op.operands[1].shape
    if filters is None or len(filters) != 4 or filters[2] < 0:
        return Failure("the number of output channels is not known")
    if any(dilation != 1 for dilation in tf.get(op, "dilations") or ()):
        return Failure("tfl.transpose_conv has no dilation")
    if (reason := _rank(op, 4, 2) or _windows(op, 4)) is not None or explicit_pads(op) is None:
        return reason
    known = types.is_static((op.results[0].shape or (-1, -1))[1:])
    return None if known else Failure("explicit padding needs a known height and width")


def _output_shape(op: Operation, emit: LiteRTBuilder) -> Value:
    shape = op.results[0].shape
    if shape is not None and types.is_static(shape):
        return emit.ints(shape)
    sizes = op.operands[0].shape
    if sizes == (2,) and shape is not None:
        batch = emit.tfl(
            "slice", (emit.shape(op.operands[2]), emit.ints((0,)), emit.ints((1,))), types.tensor(types.I32, (1,))
        )
        parts = (batch, emit.i32(op.operands[0]), emit.ints(shape[-1:]))
        return emit.tfl("concatenation", parts, types.tensor(types.I32, (4,)), {"axis": 0})
    return emit.i32(op.operands[0])


def _transpose_conv(op: Operation, emit: LiteRTBuilder) -> Value:
    filters = op.operands[1].shape
    assert filters is not None
    weights = emit.transpose(op.operands[1], (2, 0, 1, 3))
    bias = _zero_bias(emit, filters[2])
    strides = tf.get(op, "strides")
    options = {"stride_h": strides[1], "stride_w": strides[2], **tfl.NOT_FUSED}
    pads = explicit_pads(op)
    if pads is None:
        options["padding"] = tf.get(op, "padding")
        operands = (_output_shape(op, emit), weights, op.operands[2], bias)
        return emit.tfl("transpose_conv", operands, op.results[0].type, options)
    options["padding"] = "VALID"
    return _cropped_transpose_conv(emit, op, (weights, op.operands[2], bias), options)


def _cropped_transpose_conv(
    emit: LiteRTBuilder, op: Operation, operands: tuple[Value, ...], options: dict[str, Any]
) -> Value:
    """Explicit padding of the forward convolution is cut off the transposed one's result."""
    pads, shape = explicit_pads(op), op.results[0].shape
    assert pads is not None
    assert shape is not None
    full = tuple(dim if dim < 0 else dim + sum(pad) for dim, pad in zip(shape, pads, strict=True))
    if types.is_static(full):
        size = emit.ints(full)
    else:
        amounts = emit.ints([0 if dim < 0 else sum(pad) for dim, pad in zip(shape, pads, strict=True)])
        size = emit.binary("AddV2", _output_shape(op, emit), amounts)
    result = emit.tfl("transpose_conv", (size, *operands), types.tensor(types.F32, full), options)
    begin, extent = emit.ints([pad[0] for pad in pads]), emit.ints([dim if dim >= 0 else -1 for dim in shape])
    return emit.tfl("slice", (result, begin, extent), op.results[0].type)


def _conv_3d_constraint(op: Operation) -> Failure | None:
    image, filters = op.operands[0].shape, op.operands[1].shape
    if filters is None or len(filters) != 5:
        return Failure("the filter's rank is not known")
    if image is not None and len(image) == 5 and image[4] != filters[3]:
        return Failure("tfl.conv_3d has no groups")
    return _rank(op, 5) or _windows(op, 5)


def _conv_3d(op: Operation, emit: LiteRTBuilder) -> Value:
    image, padding = _padded(op, emit)
    return emit.tfl("conv_3d", (image, op.operands[1]), op.results[0].type, _geometry(op, padding))


def _conv_3d_transpose_constraint(op: Operation) -> Failure | None:
    if any(dilation != 1 for dilation in tf.get(op, "dilations") or ()):
        return Failure("dilated transposed convolution in three dimensions is not supported by the kernel")
    if (reason := _rank(op, 5, 2) or _windows(op, 5)) is not None:
        return reason
    return Failure("the padding is named") if explicit_pads(op) is not None else None


def _conv_3d_transpose(op: Operation, emit: LiteRTBuilder) -> Value:
    operands = (_output_shape(op, emit), op.operands[1], op.operands[2])
    return emit.tfl("conv_3d_transpose", operands, op.results[0].type, _geometry(op, str(tf.get(op, "padding"))))


ENTRIES: tuple[Entry, ...] = (
    Lowering("Conv2D", "conv_2d", _conv_2d, _FLOAT, _conv_2d_constraint),
    Lowering("DepthwiseConv2dNative", "depthwise_conv_2d", _depthwise_conv_2d, _FLOAT, _depthwise_constraint),
    Lowering("Conv2DBackpropInput", "transpose_conv", _transpose_conv, _FLOAT, _transpose_conv_constraint, typed=2),
    Lowering("Conv3D", "conv_3d", _conv_3d, _FLOAT, _conv_3d_constraint),
    Lowering(
        "Conv3DBackpropInputV2", "conv_3d_transpose", _conv_3d_transpose, _FLOAT, _conv_3d_transpose_constraint, typed=2
    ),
)
