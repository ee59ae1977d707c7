"""Ops that move elements and compute nothing: transposes, joins, cuts, padding, blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    Attr,
    BuiltinRow,
    Entry,
    Lowering,
    all_of,
    constant_operand,
    ints,
    max_rank,
    number_operand,
    rank_is_known,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ANY = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32>"
_MOVABLE = "f32 f16 bf16 i8 ui8 i16 i32 i64 i1"


def _axis(value: Value, rank: int | None) -> int:
    axis = ints(value)[0]
    return axis + rank if axis < 0 and rank is not None else axis


def _concat(emit: LiteRTBuilder, op: Operation, values: Sequence[Value], axis: Value) -> Value:
    shape = op.results[0].shape
    options = {"axis": _axis(axis, None if shape is None else len(shape)), **tfl.NOT_FUSED}
    return emit.tfl("concatenation", values, op.results[0].type, options)


def _concat_v2(op: Operation, emit: LiteRTBuilder) -> Value:
    return _concat(emit, op, op.operands[:-1], op.operands[-1])


def _concat_v1(op: Operation, emit: LiteRTBuilder) -> Value:
    return _concat(emit, op, op.operands[1:], op.operands[0])


def _pack(op: Operation, emit: LiteRTBuilder) -> Value:
    options = {"values_count": len(op.operands), "axis": tf.get(op, "axis", 0)}
    return emit.tfl("pack", op.operands, op.results[0].type, options)


def _unpack(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    options = {"num": len(op.results), "axis": tf.get(op, "axis", 0)}
    return emit.tfl_op("unpack", op.operands, [result.type for result in op.results], options).results


def _rank_of_result(op: Operation) -> Failure | None:
    return Failure("the result's rank is not known") if op.results[0].shape is None else None


def _pack_by_joining(op: Operation, emit: LiteRTBuilder) -> Value:
    shape = list(op.results[0].shape or ())
    axis = tf.get(op, "axis", 0) % len(shape)
    shape[axis] = 1
    one_type = types.tensor(op.results[0].element, shape)
    place = emit.constant(np.array(axis, np.int32))
    parts = [emit.tf("ExpandDims", (operand, place), one_type) for operand in op.operands]
    return emit.tf("ConcatV2", (*parts, place), op.results[0].type)


def _unpack_by_cutting(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    shape = list(op.operands[0].shape or ())
    axis = tf.get(op, "axis", 0) % len(shape)
    shape[axis] = 1
    part_type = types.tensor(op.operands[0].element, shape)
    size = emit.ints([1 if i == axis else -1 for i in range(len(shape))])
    results = []
    for index, result in enumerate(op.results):
        begin = emit.ints([index if i == axis else 0 for i in range(len(shape))])
        part = emit.tf("Slice", (op.operands[0], begin, size), part_type)
        results.append(emit.tf("Squeeze", (part,), result.type, {"squeeze_dims": [axis]}))
    return results


def _split(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    operands, options = (emit.i32(op.operands[0]), op.operands[1]), {"num_splits": len(op.results)}
    return emit.tfl_op("split", operands, [result.type for result in op.results], options).results


def _split_v(op: Operation, emit: LiteRTBuilder) -> Sequence[Value]:
    operands = (op.operands[0], emit.i32(op.operands[1]), emit.i32(op.operands[2]))
    options = {"num_splits": len(op.results)}
    return emit.tfl_op("split_v", operands, [result.type for result in op.results], options).results


def _reverse(op: Operation, emit: LiteRTBuilder) -> Value:
    """Reverses along each group of neighbouring axes: the kernel refuses axes with others in between."""
    value: Value = op.operands[0]
    if tensor_data.constant_of(op.operands[1]) is not None:
        axes = [emit.ints(group) for group in _neighbours(value, ints(op.operands[1]))]
    else:
        computed = emit.i32(op.operands[1])
        count = (computed.shape or ())[0]
        axes = [computed] if count == 1 else [emit.slice(computed, (index,), (1,)) for index in range(count)]
    for axis in axes:
        value = emit.tfl("reverse_v2", (value, axis), op.results[0].type)
    return value


def _neighbours(value: Value, axes: Sequence[int]) -> list[list[int]]:
    """Returns the axes of a tensor in groups without a gap; one at a time if its rank is unknown."""
    shape = value.shape
    if shape is None:
        return [[axis] for axis in axes]
    groups: list[list[int]] = []
    for axis in sorted(axis % len(shape) for axis in axes):
        if groups and groups[-1][-1] == axis - 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _axes_are_counted(op: Operation) -> Failure | None:
    shape = op.operands[1].shape
    return None if shape is not None and len(shape) == 1 and shape[0] >= 0 else Failure("how many axes is not known")


def _blocks_constraint(op: Operation) -> Failure | None:
    for index in (1, 2):
        if (reason := constant_operand(index, f"operand {index}")(op)) is not None:
            return reason
    shape = op.operands[0].shape
    if shape is None or not types.is_static(shape[1:]):
        return Failure("only the batch may be of unknown size")
    blocks, margins = ints(op.operands[1]), ints(op.operands[2])
    if not 0 < len(blocks) < len(shape) or len(margins) != 2 * len(blocks) or min(blocks) < 1 or min(margins) < 0:
        return Failure("the blocks and margins don't fit the dimensions")
    return None


def _kernel_takes_blocks(op: Operation) -> Failure | None:
    """The kernels support one or two dimensions of blocks between a batch and channels."""
    shape, blocks = op.operands[0].shape, op.operands[1].shape
    if shape is None or len(shape) not in (3, 4):
        return Failure("the kernel takes 3 or 4 dimensions")
    return (
        None
        if blocks == (len(shape) - 2,)
        else Failure("the kernel requires blocks in all dimensions but the first and last")
    )


def _space_to_batch(op: Operation, emit: LiteRTBuilder) -> Value:
    """Pads, splits every blocked dimension, and moves the positions within a block to the front."""
    value, blocks, paddings = op.operands[0], ints(op.operands[1]), ints(op.operands[2])
    count = len(blocks)
    pads = [(0, 0), *zip(paddings[::2], paddings[1::2], strict=True)]
    rank = len(value.shape or ())
    padded = emit.pad(value, [*pads, *([(0, 0)] * (rank - count - 1))])
    batch, *sizes = padded.shape or ()
    cut = [part for size, block in zip(sizes, blocks, strict=False) for part in (size // block, block)]
    value = emit.reshape(padded, (batch, *cut, *sizes[count:]))
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    value = emit.transpose(value, (*inner, 0, *outer, *range(2 * count + 1, rank + count)))
    batch = -1 if batch < 0 else batch * math.prod(blocks)
    return emit.reshape(value, (batch, *cut[::2], *sizes[count:]))


def _batch_to_space(op: Operation, emit: LiteRTBuilder) -> Value:
    """Splits the positions within a block off the batch, moves them beside their dimension, and crops."""
    value, blocks, crops = op.operands[0], ints(op.operands[1]), ints(op.operands[2])
    count = len(blocks)
    batch, *sizes = value.shape or ()
    rank = len(sizes) + 1
    batch = -1 if batch < 0 else batch // math.prod(blocks)
    value = emit.reshape(value, (*blocks, batch, *sizes))
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    value = emit.transpose(value, (count, *pairs, *range(2 * count + 1, rank + count)))
    whole = [size * block for size, block in zip(sizes, blocks, strict=False)]
    value = emit.reshape(value, (batch, *whole, *sizes[count:]))
    begins = [0, *crops[::2], *([0] * (rank - count - 1))]
    left = [size - before - after for size, before, after in zip(whole, crops[::2], crops[1::2], strict=True)]
    extents = emit.ints([-1, *left, *sizes[count:]])
    return emit.tf("Slice", (value, emit.ints(begins), extents), op.results[0].type)


def _channels_last(op: Operation) -> Failure | None:
    data_format = tf.get(op, "data_format", "NHWC")
    return None if data_format == "NHWC" else Failure(f"data_format is {data_format}")


def _mirrors(op: Operation) -> Failure | None:
    mode = tf.get(op, "mode")
    return None if mode in ("REFLECT", "SYMMETRIC") else Failure(f"mode is {mode}")


def merged(shape: Sequence[int], permutation: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the shape and permutation of a transpose whose dimensions that stay neighbours are one, and none is 1.

    `[1, 2, 3, 4]` by `[2, 3, 0, 1]` is `[2, 12]` by `[1, 0]`.
    """
    runs: list[list[int]] = []
    kept = [axis for axis, dim in enumerate(shape) if dim != 1]
    place = {axis: index for index, axis in enumerate(kept)}
    for index in (place[axis] for axis in permutation if axis in place):
        if runs and runs[-1][-1] + 1 == index:
            runs[-1].append(index)
        else:
            runs.append([index])
    in_order = sorted(runs)
    sizes = [[shape[kept[index]] for index in run] for run in in_order]
    return [-1 if -1 in dims else math.prod(dims) for dims in sizes], [in_order.index(run) for run in runs]


def _mergeable(op: Operation) -> Failure | None:
    shape = op.operands[0].shape
    if (reason := rank_is_known(op) or constant_operand(1, "the permutation")(op)) is not None or shape is None:
        return reason
    permutation = [axis % len(shape) for axis in ints(op.operands[1])] if shape else []
    if sorted(permutation) != list(range(len(shape))):
        return Failure("the permutation doesn't fit the dimensions")
    if len(merged(shape, permutation)[0]) > _MAX_RANK:
        return max_rank(_MAX_RANK)(op)
    unknown = shape.count(-1)
    if len(shape) > _MAX_RANK and (unknown > 1 or (unknown and 0 in shape)):
        return Failure(f"more than {_MAX_RANK} dimensions can be merged if at most one is of unknown size")
    return None


def _transpose(op: Operation, emit: LiteRTBuilder) -> Value:
    """Leaves all dimensions to the kernel: few runtimes take more than six, and none more than eight."""
    return emit.tfl("transpose", (op.operands[0], emit.i32(op.operands[1])), op.results[0].type)


def _transpose_merged(op: Operation, emit: LiteRTBuilder) -> Value:
    """Transposes after dropping dimensions of size 1 and joining dimensions that stay neighbours."""
    shape = op.operands[0].shape or ()
    permutation = [axis % len(shape) for axis in ints(op.operands[1])]
    sizes, order = merged(shape, permutation)
    value = emit.transpose(emit.reshape(op.operands[0], sizes), order)
    return emit.reshape(value, [shape[axis] for axis in permutation])


_MAX_RANK = 6
_BLOCK_SIZE = {"block_size": Attr("block_size")}
_MODE = {"mode": Attr("mode")}
_BLOCKED = _ANY

ENTRIES: tuple[Entry, ...] = (
    BuiltinRow("Transpose", "transpose", _ANY, narrow=(1,), constraint=max_rank(_MAX_RANK)),
    Lowering("Transpose", "reshape Transpose", _transpose_merged, _ANY, _mergeable),
    Lowering("Transpose", "transpose", _transpose, _ANY, benefit=0, name="Transpose-of-many"),
    Lowering("ConcatV2", "concatenation", _concat_v2, f"{_MOVABLE} ui32", number_operand(-1, "the axis")),
    Lowering("Concat", "concatenation", _concat_v1, f"{_MOVABLE} ui32", number_operand(0, "the axis"), typed=1),
    Lowering("Pack", "pack", _pack, "f32 i32 i64 ui8 i8 i16 ui32", benefit=2),
    Lowering("Pack", "ExpandDims ConcatV2", _pack_by_joining, _MOVABLE, _rank_of_result),
    Lowering("Unpack", "unpack", _unpack, "f32 i32 ui8 i8 i16 i1 f16 bf16", benefit=2),
    Lowering("Unpack", "Slice Squeeze", _unpack_by_cutting, _ANY, rank_is_known),
    Lowering("Split", "split", _split, "f32 i32 i64 ui8 i8 i16", typed=1),
    Lowering("SplitV", "split_v", _split_v, "f32 i32 i64 ui8 i8 i16"),
    BuiltinRow("Tile", "tile", f"{_ANY} !tf_type.string", narrow=(1,)),
    BuiltinRow("Pad", "pad", _MOVABLE, narrow=(1,)),
    BuiltinRow("PadV2", "padv2", _MOVABLE, narrow=(1,)),
    BuiltinRow("MirrorPad", "mirror_pad", _ANY, narrow=(1,), options=_MODE, constraint=_mirrors),
    Lowering("ReverseV2", "reverse_v2", _reverse, _MOVABLE, _axes_are_counted),
    BuiltinRow("SpaceToDepth", "space_to_depth", "f32 i32 i64 ui8 i8", options=_BLOCK_SIZE, constraint=_channels_last),
    BuiltinRow("DepthToSpace", "depth_to_space", "f32 i32 i64 ui8 i8", options=_BLOCK_SIZE, constraint=_channels_last),
    BuiltinRow("SpaceToBatchND", "space_to_batch_nd", _BLOCKED, narrow=(1, 2), constraint=_kernel_takes_blocks),
    BuiltinRow("BatchToSpaceND", "batch_to_space_nd", _BLOCKED, narrow=(1, 2), constraint=_kernel_takes_blocks),
    Lowering(
        "SpaceToBatchND", "Pad reshape Transpose", _space_to_batch, _BLOCKED, all_of(_blocks_constraint, max_rank(5))
    ),
    Lowering(
        "BatchToSpaceND", "reshape Transpose Slice", _batch_to_space, _BLOCKED, all_of(_blocks_constraint, max_rank(5))
    ),
)
