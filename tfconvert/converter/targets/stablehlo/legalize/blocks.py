"""Blocks of pixels moved into the batch or the channels and back, and patches of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, sizes_in, times
from tfconvert.converter.targets.stablehlo.legalize.slicing import from_to
from tfconvert.converter.targets.stablehlo.legalize.window_geometry import (
    Amounts,
    Axis,
    amounts_of,
    pad_around,
    same,
    slid,
)
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _divided(dim: int, divisor: int, emit: Emit) -> int:
    return emit.size_of(emit.compute("divide", emit.size(dim), emit.size(divisor)))


def _batch_blocks(op: Operation, emit: Emit) -> tuple[Sequence[int], list[Amounts]]:
    """Returns the blocks' size, and what is padded or cut off each spatial axis."""
    block = sizes_in(op.operands[1], emit)
    return block, amounts_of(op, 2, len(block), emit)


def _space_to_batch(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    block, amounts = _batch_blocks(op, emit)
    rank, count = len(emit.dims(value)), len(block)
    every: list[Amounts] = [(0, 0), *amounts, *[(0, 0)] * (rank - 1 - count)]
    value = pad_around(value, every, emit.scalar(0, types.element_of(value.type)), emit)
    batch, *spatial = emit.dims(value)[: count + 1]
    rest = emit.dims(value)[count + 1 :]
    counts = [_divided(dim, size, emit) for dim, size in zip(spatial, block, strict=True)]
    split = [each for pair in zip(counts, block, strict=True) for each in pair]
    value = emit.reshape(value, (batch, *split, *rest))
    order = [
        *range(2, 2 * count + 2, 2),
        0,
        *range(1, 2 * count + 1, 2),
        *range(2 * count + 1, len(rest) + 2 * count + 1),
    ]
    value = emit.transpose(value, order)
    total = batch
    for size in block:
        total = times(total, size, emit)
    return emit.reshape(value, (total, *counts, *rest))


def _batch_to_space(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    block, cuts = _batch_blocks(op, emit)
    count = len(block)
    total, *spatial = emit.dims(value)[: count + 1]
    rest = emit.dims(value)[count + 1 :]
    batch = total
    for size in block:
        batch = _divided(batch, size, emit)
    value = emit.reshape(value, (*block, batch, *spatial, *rest))
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    value = emit.transpose(value, [*order, *range(2 * count + 1, 2 * count + 1 + len(rest))])
    wide = [times(dim, size, emit) for dim, size in zip(spatial, block, strict=True)]
    value = emit.reshape(value, (batch, *wide, *rest))
    for axis, (low, high) in enumerate(cuts, 1):
        value = from_to(value, axis, low, emit.compute("subtract", emit.size(emit.dims(value)[axis]), high), emit)
    return value


def _depth_layout(op: Operation, emit: Emit) -> tuple[Value, tuple[int, ...], int, bool]:
    value, form = op.operands[0], attribute(op, "data_format", "NHWC")
    dims = emit.dims(value)
    if len(dims) != 4:
        raise DeclinedError("its layout is not one of four dimensions")
    return value, dims, int(attribute(op, "block_size", 1)), form == "NCHW"


def _space_to_depth(op: Operation, emit: Emit) -> Value:
    value, dims, block, is_first = _depth_layout(op, emit)
    batch, channels = dims[0], dims[1] if is_first else dims[3]
    height, width = (_divided(dim, block, emit) for dim in (dims[2:] if is_first else dims[1:3]))
    deep = times(channels, block * block, emit)
    if is_first:
        value = emit.reshape(value, (batch, channels, height, block, width, block))
        return emit.reshape(emit.transpose(value, (0, 3, 5, 1, 2, 4)), (batch, deep, height, width))
    value = emit.reshape(value, (batch, height, block, width, block, channels))
    return emit.reshape(emit.transpose(value, (0, 1, 3, 2, 4, 5)), (batch, height, width, deep))


def _depth_to_space(op: Operation, emit: Emit) -> Value:
    value, dims, block, is_first = _depth_layout(op, emit)
    batch, deep = dims[0], dims[1] if is_first else dims[3]
    height, width = dims[2:] if is_first else dims[1:3]
    channels = _divided(deep, block * block, emit)
    tall, wide = times(height, block, emit), times(width, block, emit)
    if is_first:
        value = emit.reshape(value, (batch, block, block, channels, height, width))
        return emit.reshape(emit.transpose(value, (0, 3, 4, 1, 5, 2)), (batch, channels, tall, wide))
    value = emit.reshape(value, (batch, height, width, block, block, channels))
    return emit.reshape(emit.transpose(value, (0, 1, 3, 2, 4, 5)), (batch, tall, wide, channels))


# The most pixels of a patch, each of which is cut out of all patches at once.
_MAX_PARTS = 1024


def _patches(op: Operation, emit: Emit) -> Value:
    """Cuts out each pixel of a patch from all patches, with a step, and puts those side by side as channels."""
    value = op.operands[0]
    dims = emit.dims(value)
    rates = attribute(op, "rates", ()) or (1,) * len(dims)
    axes = [
        Axis(axis, attribute(op, "ksizes")[axis], attribute(op, "strides")[axis], rates[axis])
        for axis in range(1, len(dims) - 1)
    ]
    amounts: list[Amounts] = [(0, 0)] * len(dims)
    counts = []
    for axis in axes:
        if attribute(op, "padding", "VALID") == "SAME":
            amounts[axis.number] = same(dims[axis.number], axis, emit)
        counts.append(slid(op, dims[axis.number], axis, (0, 0), emit))
    value = pad_around(value, amounts, emit.scalar(0, types.element_of(value.type)), emit)
    parts = [value]
    for axis, count in zip(axes, counts, strict=True):
        if len(parts) * axis.size > _MAX_PARTS:
            raise DeclinedError(f"a patch has more than {_MAX_PARTS} pixels")
        # The last element that is taken is the one behind which a whole window still ends.
        reach = emit.compute("add", emit.compute("multiply", emit.size(count), axis.stride), 1 - axis.stride)
        parts = [
            from_to(part, axis.number, at, emit.compute("add", reach, at), emit, axis.stride, count)
            for part in parts
            for at in range(0, axis.extent, axis.dilation)
        ]
    return concatenate(parts, len(dims) - 1, emit)


LOWERINGS: Mapping[str, Lowering] = {
    "BatchToSpaceND": _batch_to_space,
    "DepthToSpace": _depth_to_space,
    "ExtractImagePatches": _patches,
    "ExtractVolumePatches": _patches,
    "SpaceToBatchND": _space_to_batch,
    "SpaceToDepth": _space_to_depth,
}
