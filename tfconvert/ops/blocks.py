"""Blocks of space moved to the batch or to the channels and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.ops.windows import channels_first, image_shape, spatial
from tfconvert.schema.dialects.dims import (
    MismatchError,
    add,
    divide,
    multiply,
    product,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.relations.rules import at_least, is_vector, rank, same_dims, size
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape


def _depth_to_space_shape(operands: Operands) -> Shapes:
    shape, block = operands.shape(0), operands.integer("block_size")
    if operands.text("data_format", "NHWC") == "NCHW_VECT_C":
        return (None,)
    shape, layout = with_rank(shape, 4), operands.text("data_format")
    depth = divide(shape[1] if channels_first(layout) else shape[3], block * block)
    space = [multiply(dim, block) for dim in spatial(shape, layout)]
    return (image_shape(shape[0], space, depth, layout),)


def _space_to_depth_shape(operands: Operands) -> Shapes:
    shape, block = operands.shape(0), operands.integer("block_size")
    if operands.text("data_format", "NHWC") == "NCHW_VECT_C":
        return (None,)
    shape, layout = with_rank(shape, 4), operands.text("data_format")
    depth = multiply(shape[1] if channels_first(layout) else shape[3], block * block)
    space = [divide(dim, block) for dim in spatial(shape, layout)]
    return (image_shape(shape[0], space, depth, layout),)


def _blocks(operands: Operands) -> tuple[tuple[int, ...] | None, int]:
    """Returns the block shape and the place of the paddings or crops among the operands."""
    if operands.op.name.endswith("ND"):
        return operands.ints(1), 2
    return (operands.integer("block_size"),) * 2, 1


def _batch_exchange(operands: Operands) -> tuple[Shape, tuple[int, ...], list[tuple[int, int]]] | None:
    """Returns the shape, the block and the pads or crops (-1 where unknown), `None` if too little is known."""
    shape = operands.shape(0)
    blocks, index = _blocks(operands)
    if shape is None or blocks is None:
        return None
    if len(shape) < len(blocks) + 1:
        raise MismatchError(f"{len(blocks)} blocks are more than shape {text(shape)} has dimensions")
    if any(block < 1 for block in blocks):
        raise MismatchError(f"block shape {text(blocks)} should be positive")
    value = operands.value(index)
    if value is None:
        return shape, blocks, [(-1, -1)] * len(blocks)
    if value.shape != (len(blocks), 2):
        raise MismatchError(f"{text(value.shape)} paddings don't fit {len(blocks)} blocks")
    return shape, blocks, [(int(before), int(after)) for before, after in value]


def _space_to_batch_shape(operands: Operands) -> Shapes:
    found = _batch_exchange(operands)
    if found is None:
        return _same_rank(operands)
    shape, blocks, pads = found
    space = [
        -1 if before < 0 else divide(add(dim, before + after), block)
        for dim, block, (before, after) in zip(shape[1:], blocks, pads, strict=False)
    ]
    return ((multiply(shape[0], product(blocks)), *space, *shape[1 + len(blocks) :]),)


def _batch_to_space_shape(operands: Operands) -> Shapes:
    found = _batch_exchange(operands)
    if found is None:
        return _same_rank(operands)
    shape, blocks, crops = found
    space = []
    for dim, block, (before, after) in zip(shape[1:], blocks, crops, strict=False):
        whole = multiply(dim, block)
        if before < 0 or (whole < 0 and before + after > 0):
            space.append(-1)
        elif 0 <= whole < before + after:
            raise MismatchError(f"crops ({before}, {after}) are more than dimension {whole} has")
        else:
            space.append(whole if before + after == 0 else whole - before - after)
    return ((divide(shape[0], product(blocks)), *space, *shape[1 + len(blocks) :]),)


def _same_rank(operands: Operands) -> Shapes:
    """The dimensions after the blocks stay as they are; only the number of blocks may be known."""
    shape, blocks = operands.shape(0), operands.elements(1)
    if shape is None:
        return (None,)
    if blocks is not None:
        with_rank_at_least(shape, 1 + len(blocks))
    kept = shape[1 + len(blocks) :] if blocks is not None else ()
    return ((*(-1,) * (len(shape) - len(kept)), *kept),)


def _blocked(call: Call) -> tuple[Array, tuple[int, ...], Array]:
    """Returns the operand, the block sizes, which the older ops have as an attribute, and the paddings or crops."""
    if call.op.endswith("ND"):
        x, sizes, margins = call.inputs
        return x, ints(sizes), margins
    x, margins = call.inputs
    return x, (call.integer("block_size"),) * 2, margins


def _space_to_batch(call: Call) -> Results:
    x, blocks, pads = _blocked(call)
    rank, rest = len(blocks), x.ndim - 1 - len(blocks)
    padded = np.pad(x, [(0, 0), *(ints(pair) for pair in pads), *[(0, 0)] * rest])
    dims, depth = padded.shape[1 : 1 + rank], padded.shape[1 + rank :]
    if any(dim % block for dim, block in zip(dims, blocks, strict=True)):
        raise call.bad(f"the padded dimensions {list(dims)} are not multiples of {list(blocks)}")
    split = [part for dim, block in zip(dims, blocks, strict=True) for part in (dim // block, block)]
    order = (*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank, 2), *range(2 * rank + 1, 2 * rank + 1 + rest))
    cut = padded.reshape(x.shape[0], *split, *depth).transpose(order)
    return (cut.reshape(-1 if x.size else 0, *split[::2], *depth),)


def _batch_to_space(call: Call) -> Results:
    x, blocks, crops = _blocked(call)
    rank = len(blocks)
    dims, depth = x.shape[1 : 1 + rank], x.shape[1 + rank :]
    batch = x.shape[0] // int(np.prod(blocks))
    order = [rank]
    for i in range(rank):
        order += [rank + 1 + i, i]
    order += range(2 * rank + 1, 2 * rank + 1 + len(depth))
    merged = [dim * block for dim, block in zip(dims, blocks, strict=True)]
    whole = x.reshape(*blocks, batch, *dims, *depth).transpose(order).reshape(batch, *merged, *depth)
    spans = (slice(int(crop[0]), dim - int(crop[1])) for dim, crop in zip(merged, crops, strict=True))
    return (whole[(slice(None), *spans)],)


def _space_to_depth(call: Call) -> Results:
    (x,) = call.inputs
    block = call.integer("block_size")
    first = call.text("data_format", "NHWC") == "NCHW"
    images = np.moveaxis(x, 1, -1) if first else x
    batch, height, width, depth = images.shape
    cut = images.reshape(batch, height // block, block, width // block, block, depth).transpose(0, 1, 3, 2, 4, 5)
    result = cut.reshape(batch, height // block, width // block, depth * block * block)
    return (np.moveaxis(result, -1, 1) if first else result,)


def _depth_to_space(call: Call) -> Results:
    (x,) = call.inputs
    block = call.integer("block_size")
    first = call.text("data_format", "NHWC") == "NCHW"
    images = np.moveaxis(x, 1, -1) if first else x
    batch, height, width, depth = images.shape
    cut = images.reshape(batch, height, width, block, block, depth // (block * block)).transpose(0, 1, 3, 2, 4, 5)
    result = cut.reshape(batch, height * block, width * block, depth // (block * block))
    return (np.moveaxis(result, -1, 1) if first else result,)


def _older(name: str, **same: Any) -> OpDeclaration:
    """Declares an op whose block is as high as wide, and an attribute."""

    def with_block(x: Tensor, amounts: Tensor, *, block_size: int = 2) -> Tensor:
        return x.op(f"{name}ND", x, [block_size, block_size], amounts)  # type: ignore[no-any-return]

    return op(name, decompose=(Decomposition(with_block, "", example=((4, 4, 4, 3), (2, 2))),), **same)


def _within_whole(view: View) -> None:
    """Refuses a result that is larger than its blocks, however they are cropped."""
    for index in (1, 2):
        whole, made = view.dim("input", index) * view.integer("block_size", 1), view.dim("output", index)
        if 0 <= whole < made:
            view.fail(f"dimension {index} of 'output' must be at most {whole}, found {made}")


def _batch_to_space_nd(view: View) -> None:
    blocks, crops = view.shape("block_shape"), view.shape("crops")
    if blocks is None or crops is None or -1 in (*blocks, *crops) or not blocks:
        return
    if crops != (blocks[0], 2):
        view.fail(f"'crops' must have the shape [{blocks[0]}, 2], found {view.type('crops')}")


def _space_to_batch_nd(view: View) -> None:
    source, blocks, pads = view.shape("input"), view.integers("block_shape"), view.constant("paddings")
    count = max(view.dim("block_shape", 0), view.dim("paddings", 0))
    if source is None or count < 0:
        return
    if len(source) < count + 1:
        view.fail(f"'input' must have at least rank {count + 1}, found {view.type('input')}")
    if -1 in source or blocks is None or pads is None:
        return
    for index, block in enumerate(blocks):
        padded = source[index + 1] + int(pads[index][0]) + int(pads[index][1])
        if padded % block:
            view.fail(f"dimension {index + 1} of 'input' with its paddings ({padded}) must be a multiple of {block}")


OPS = (
    _older(
        "BatchToSpace",
        shape=_batch_to_space_shape,
        compute=_batch_to_space,
        relations=(
            rank("input", 4),
            rank("output", 4),
            rank("crops", 2),
            size("crops", 0, 2),
            size("crops", 1, 2),
            at_least("crops", 0),
            _within_whole,
        ),
        verified=True,
    ),
    op("BatchToSpaceND", shape=_batch_to_space_shape, compute=_batch_to_space, relations=(_batch_to_space_nd,)),
    op("DepthToSpace", shape=_depth_to_space_shape, compute=_depth_to_space),
    _older("SpaceToBatch", shape=_space_to_batch_shape, compute=_space_to_batch),
    op(
        "SpaceToBatchND",
        shape=_space_to_batch_shape,
        compute=_space_to_batch,
        relations=(
            is_vector("block_shape"),
            rank("paddings", 2),
            size("paddings", 1, 2),
            same_dims("block_shape", 0, "paddings", 0),
            at_least("block_shape", 1),
            at_least("paddings", 0),
            _space_to_batch_nd,
        ),
    ),
    op("SpaceToDepth", shape=_space_to_depth_shape, compute=_space_to_depth),
)
