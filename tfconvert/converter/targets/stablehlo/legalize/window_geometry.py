"""Where windows lie: strides, dilations and padding along each spatial axis, numbers or computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import attribute, ints
from tfconvert.converter.targets.stablehlo.legalize.shaping import padded, pick
from tfconvert.converter.targets.stablehlo.legalize.sizes import Dims
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

FIRST = ("NCHW", "NCDHW", "NCW")
"""Layouts whose channels come before the spatial dimensions."""

Scalar = Value | int
Amounts = tuple[Scalar, Scalar]
"""How much is padded before an axis and behind it."""


class Axis(NamedTuple):
    """The windows along one axis.

    Attributes:
        number: The axis.
        size: Elements of a window.
        stride: Steps between windows.
        dilation: Steps between the elements of a window.
    """

    number: int
    size: int
    stride: int
    dilation: int

    @property
    def extent(self) -> int:
        """How many elements a window reaches over."""
        return (self.size - 1) * self.dilation + 1


def spatial_axes(op: Operation, rank: int) -> range:
    """Returns the axes that windows move over."""
    return range(2, rank) if attribute(op, "data_format", "NHWC") in FIRST else range(1, rank - 1)


def channel_axis(op: Operation, rank: int) -> int:
    return 1 if attribute(op, "data_format", "NHWC") in FIRST else rank - 1


def axes_of(op: Operation, rank: int, window: Sequence[int]) -> list[Axis]:
    """Returns the windows along each spatial axis.

    Args:
        op: An op with the attributes `strides` and maybe `dilations`.
        rank: The images' rank.
        window: The sizes of windows along the spatial axes.

    Raises:
        Declined: A size of the windows is not known.
    """
    if min(window, default=1) < 0:
        raise Declined("the size of the kernel is not known")
    strides = attribute(op, "strides")
    dilations = attribute(op, "dilations", ()) or (1,) * rank
    axes = spatial_axes(op, rank)
    return [Axis(axis, size, strides[axis], dilations[axis]) for axis, size in zip(axes, window, strict=True)]


def pooled_axes(op: Operation, rank: int) -> list[Axis]:
    """Returns the windows of a pooling along every axis, those of the batch and the channels included."""
    if len(op.operands) > 1:
        sizes, strides = ints(op, 1, "the windows' size"), ints(op, 2, "the strides")
    else:
        sizes, strides = attribute(op, "ksize"), attribute(op, "strides")
    if len(sizes) != rank or len(strides) != rank:
        raise Declined("its windows don't have the rank of its operand")
    return [Axis(number, size, stride, 1) for number, (size, stride) in enumerate(zip(sizes, strides, strict=True))]


def padding_of(emit: StableHLOBuilder, op: Operation, dims: Dims, axes: Sequence[Axis]) -> list[Amounts]:
    """Returns how much is padded before and behind each axis."""
    mode = attribute(op, "padding", "VALID")
    if mode == "EXPLICIT":
        amounts = attribute(op, "explicit_paddings", ())
        return [(amounts[2 * axis.number], amounts[2 * axis.number + 1]) for axis in axes]
    if mode == "VALID":
        return [(0, 0)] * len(axes)
    return [same(emit, dims[axis.number], axis) for axis in axes]


def same(emit: StableHLOBuilder, dim: int, axis: Axis) -> Amounts:
    """Returns the padding by which there are as many windows as strides fit into an axis."""
    if axis.stride == 1:
        missing: Scalar = axis.extent - 1
    elif axis.extent == 1:
        missing = 0
    else:
        windows = emit.compute("divide", emit.compute("add", emit.size(dim), axis.stride - 1), axis.stride)
        covered = emit.compute("add", emit.compute("multiply", windows, axis.stride), axis.extent - axis.stride)
        missing = emit.compute("maximum", emit.compute("subtract", covered, emit.size(dim)), 0)
    low = emit.compute("divide", missing, 2)
    return low, emit.compute("subtract", missing, low)


def slid(emit: StableHLOBuilder, op: Operation, dim: int, axis: Axis, amounts: Amounts) -> int:
    """Returns how many windows fit along an axis of a size, with padding."""
    if attribute(op, "padding", "VALID") == "SAME":
        if axis.stride == 1:
            return dim
        return emit.size_of(emit.compute("divide", emit.compute("add", emit.size(dim), axis.stride - 1), axis.stride))
    if axis.extent == axis.stride == 1 and amounts == (0, 0):
        return dim
    padded = emit.compute("add", emit.compute("add", emit.size(dim), amounts[0]), amounts[1])
    reached = emit.at_least_zero(emit.compute("add", padded, axis.stride - axis.extent))
    return emit.size_of(emit.compute("divide", reached, axis.stride))


def amounts_of(emit: StableHLOBuilder, op: Operation, index: int, rank: int) -> list[Amounts]:
    """Returns the amounts of so many axes that an operand holds, numbers where they are known."""
    values = op.operands[index]
    known = emit.sizes.elements(values) or (UNKNOWN,) * (2 * rank)
    flat = values if min(known, default=0) > UNKNOWN else emit.reshape(values, (2 * rank,))
    found = [each if each > UNKNOWN else pick(emit, flat, at) for at, each in enumerate(known)]
    return list(zip(found[::2], found[1::2], strict=True))


def pad_around(
    emit: StableHLOBuilder, value: Value, amounts: Sequence[Amounts], fill: Value, interior: Sequence[int] = ()
) -> Value:
    """Inserts padding by pairs of amounts."""
    return padded(emit, value, [low for low, _ in amounts], [high for _, high in amounts], fill, interior)


def known(amounts: Sequence[Amounts]) -> list[tuple[int, int]] | None:
    """Returns padding as numbers, `None` if some are computed at run time."""
    found = [(low, high) for low, high in amounts if isinstance(low, int) and isinstance(high, int)]
    return found if len(found) == len(amounts) else None


def table(padding: Sequence[tuple[int, int]]) -> Attribute:
    return tensor_data.of_array(np.array(padding, np.int64).reshape(-1, 2))
