"""Ops that move, repeat, pad or reinterpret elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfconvert.ops.call import Call, Results, ints
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import MAX_PARTIAL, Operands, Partials
from tfconvert.ops.requirements import constant
from tfconvert.ops.shape_functions import Shapes, same, same_with_axes, same_with_rank_at_least
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import (
    MismatchError,
    add,
    axis_of,
    dim_of_element,
    merge,
    multiply,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.relations.rules import contradict, every, is_vector, rank, size
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation


def _reverse_sequence_shape(operands: Operands) -> Shapes:
    shape, lengths = operands.shape(0), with_rank(operands.shape(1), 1, "the lengths")
    if shape is None:
        return (None,)
    axis_of(operands.integer("seq_dim"), len(shape))
    axis = axis_of(operands.integer("batch_dim"), len(shape))
    batch = merge((shape[axis],), lengths)
    assert batch is not None
    return ((*shape[:axis], *batch, *shape[axis + 1 :]),)


def _bitcast_shape(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    ratio = _item_size(operands, operands.values[0].type) / _item_size(operands, operands.op.results[0].type)
    if shape is None or ratio == 1:
        return (shape,)
    if ratio > 1:
        return ((*shape, int(ratio)),)
    with_rank_at_least(shape, 1)
    if shape[-1] >= 0 and shape[-1] != int(1 / ratio):
        raise MismatchError(f"its last dimension should be {int(1 / ratio)}, but is {shape[-1]}")
    return (shape[:-1],)


def _item_size(operands: Operands, tensor_type: Attribute) -> int:
    try:
        size = types.numpy_dtype(types.element_of(tensor_type)).itemsize
    except KeyError:
        size = 0
    if size == 0:
        raise MismatchError(f"{operands.op.name} can't reinterpret elements of {tensor_type}")
    return size


def _transpose_shape(operands: Operands) -> Shapes:
    shape, order = operands.shape(0), operands.ints(1)
    if order is None:
        unknown = operands.elements(1)
        if unknown is not None:
            shape = with_rank(shape, len(unknown))
        return (None if shape is None else (-1,) * len(shape),)
    shape = with_rank(shape, len(order))
    places = [axis_of(axis, len(order)) for axis in order]
    if len(set(places)) != len(places):
        raise MismatchError(f"{list(order)} is not a permutation")
    return (tuple(shape[place] for place in places),)


def _tile_shape(operands: Operands) -> Shapes:
    shape, times = operands.shape(0), operands.elements(1)
    if shape is None and times is None:
        return (None,)
    rank = len(times) if times is not None else len(shape or ())
    shape = with_rank(shape, rank)
    if times is None:
        return ((-1,) * rank,)
    return (tuple(multiply(dim, dim_of_element(time)) for dim, time in zip(shape, times, strict=True)),)


def _pad_shape(operands: Operands) -> Shapes:
    shape, pads, places = operands.shape(0), operands.value(1), operands.shape(1)
    if pads is None:
        rank = with_rank(places, 2)[0]
        if shape is not None:
            merge((len(shape),), (rank,))
            rank = len(shape)
        return ((-1,) * rank if rank >= 0 else None,)
    if pads.ndim != 2 or pads.shape[1] != 2:
        raise MismatchError(f"paddings {text(pads.shape)} should have shape [n, 2]")
    shape = with_rank(shape, pads.shape[0])
    if (pads < 0).any():
        raise MismatchError("paddings are negative")
    return (tuple(add(dim, before + after) for dim, (before, after) in zip(shape, pads.tolist(), strict=True)),)


def _broadcast_to_shape(operands: Operands) -> Shapes:
    shape, target = operands.shape(0), operands.elements(1)
    if target is None:
        return (None,)
    result = tuple(map(dim_of_element, target))
    if shape is not None:
        if len(shape) > len(result):
            raise MismatchError(f"shape {text(shape)} can't be broadcast to {text(result)}")
        for dim, wanted in zip(reversed(shape), reversed(result), strict=False):
            if dim >= 0 and wanted >= 0 and dim not in (1, wanted):
                raise MismatchError(f"shape {text(shape)} can't be broadcast to {text(result)}")
        # A dimension that is known and not 1 can't become another one.
        tail = [
            dim if wanted < 0 and (dim > 1 or dim == 0) else wanted
            for dim, wanted in zip(shape, result[len(result) - len(shape) :], strict=True)
        ]
        result = (*result[: len(result) - len(shape)], *tail)
    return (result,)


def _reversed_elements(operands: Operands) -> Partials:
    found, axes = operands.partial(0), operands.ints(1)
    if found is None or axes is None or operands.shape(0) == ():
        return [None]
    return [found[::-1] if axes else found]


def _tile_elements(operands: Operands) -> Partials:
    found, times = operands.partial(0), operands.scalar(1)
    if found is None or times is None or not 0 <= times * len(found) <= MAX_PARTIAL:
        return [None]
    return [found * times]


def _reverse_flagged(call: Call) -> Results:
    x, flags = call.inputs
    return (np.flip(x, tuple(int(axis) for axis in flags.nonzero()[0])),)


def _transpose(call: Call) -> Results:
    x, permutation = call.inputs
    return (x.transpose(ints(permutation)),)


def _conjugate_transpose(call: Call) -> Results:
    return (np.conj(_transpose(call)[0]),)


def _tile(call: Call) -> Results:
    x, multiples = call.inputs
    return (np.tile(x, ints(multiples)),)


def _broadcast_to(call: Call) -> Results:
    x, shape = call.inputs
    return (np.broadcast_to(x, ints(shape)).copy(),)


def _pads(call: Call) -> list[tuple[int, ...]]:
    pads = [ints(pair) for pair in call.inputs[1]]
    if any(amount < 0 for pair in pads for amount in pair):
        raise call.bad(f"paddings {pads} are negative")
    return pads


def _pad(call: Call) -> Results:
    x = call.inputs[0]
    fill: Any = call.inputs[2].reshape(())[()] if len(call.inputs) == 3 else b"" if x.dtype == object else 0
    pads = _pads(call)
    result = np.full([dim + sum(pad) for dim, pad in zip(x.shape, pads, strict=True)], fill, x.dtype)
    result[tuple(slice(pad[0], pad[0] + dim) for dim, pad in zip(x.shape, pads, strict=True))] = x
    return (result,)


def _mirror_pad(call: Call) -> Results:
    x = call.inputs[0]
    pads = _pads(call)
    symmetric = call.text("mode") == "SYMMETRIC"
    if any(max(pad) > dim - (not symmetric) for dim, pad in zip(x.shape, pads, strict=True)):
        raise call.bad(f"paddings {pads} are more than a mirror image of shape {list(x.shape)} has")
    return (np.pad(x, pads, mode="symmetric" if symmetric else "reflect"),)


def _bitcast(call: Call) -> Results:
    x = np.ascontiguousarray(call.inputs[0]).reshape(call.inputs[0].shape)
    dtype = call.dtype("type")
    ratio = dtype.itemsize / x.dtype.itemsize
    if ratio > 1:
        if x.shape[-1:] != (int(ratio),):
            raise call.bad(f"shape {list(x.shape)} can't be read as {dtype.name}")
        return (x.view(dtype).reshape(x.shape[:-1]),)
    wider = () if ratio == 1 else (int(1 / ratio),)
    return (x.reshape(*x.shape, 1).view(dtype).reshape((*x.shape, *wider)),)


def _roll(call: Call) -> Results:
    x, shift, axis = call.inputs
    return (np.roll(x, ints(shift), ints(axis)),)


def _reverse(call: Call) -> Results:
    x, axes = call.inputs
    return (np.flip(x, ints(axes)),)


def _reverse_sequence(call: Call) -> Results:
    x, lengths = call.inputs
    batch, sequence = call.integer("batch_dim"), call.integer("seq_dim")
    result = np.moveaxis(x, (batch, sequence), (0, 1)).copy()
    for row, length in zip(result, ints(lengths), strict=True):
        row[:length] = row[:length][::-1].copy()
    return (np.moveaxis(result, (0, 1), (batch, sequence)),)


def _permuted_format(view: View) -> None:
    shape = view.shape("x")
    if shape is not None and len(shape) == 1:
        size("x", 0, 2, 4)(view)
    elif shape is not None:
        every(size("x", 0, 4), size("x", 1, 2))(view)


def _tiled(view: View) -> None:
    source, result, multiples = view.shape("input"), view.shape("output"), view.integers("multiples")
    count = view.dim("multiples", 0) if multiples is None else len(multiples)
    if source is not None and count >= 0 and count != len(source):
        view.fail(f"'multiples' must have as many elements as 'input' has dimensions ({len(source)}), found {count}")
    if source is None or result is None:
        return
    if len(source) != len(result):
        view.fail(f"'output' must have the rank of 'input', found {view.type('input')} and {view.type('output')}")
    for index, times in enumerate(multiples or ()):
        expected = source[index] * times if source[index] >= 0 else -1
        if times < 0 or contradict((expected,), (result[index],)):
            view.fail(f"dimension {index} of 'output' must be {source[index]} * {times}, found {result[index]}")


def reverse_flagged(x: Tensor, flags: Tensor) -> Tensor:
    axes = [0] if flags.constant is None else flags.constant.nonzero()[0].tolist()
    return x.op("ReverseV2", x, axes) if axes else x


def roll(x: Tensor, shift: Tensor, axis: Tensor) -> Tensor:
    """Swaps two slices where the shift is known, else gathers each element from where it was."""
    axes = None if axis.constant is None else [int(each) % x.rank for each in axis.constant.reshape(-1)]
    is_sized = axes is not None and all((x.shape or ())[each] >= 0 for each in axes)
    # One gather moves strings, which become numbers for it.
    if axes is not None and is_sized and shift.constant is not None and x.dtype.kind != "O":
        for each, by in zip(axes, shift.constant.reshape(-1).tolist(), strict=True):
            x = _swapped(x, each, by)
        return x
    for each in range(x.rank) if axes is None else sorted(set(axes)):
        x = _gathered(x, each, _total_shift(shift, axis, each, x.rank))
    return x


def _swapped(x: Tensor, axis: int, by: int) -> Tensor:
    size = (x.shape or ())[axis]
    if not size or by % size == 0:
        return x

    def cut(begin: int, count: int) -> Tensor:
        begins = [begin if at == axis else 0 for at in range(x.rank)]
        return x.op("Slice", x, begins, [count if at == axis else -1 for at in range(x.rank)])  # type: ignore[no-any-return]

    return cut(size - by % size, by % size).concat([cut(0, size - by % size)], axis)


def _total_shift(shift: Tensor, axis: Tensor, at: int, rank: int) -> Tensor:
    """Returns by how much an axis is rolled: the sum of the shifts that are for it, `i64`."""
    shifts, axes = (each.cast(np.int64).reshape([-1]) for each in (shift, axis))
    if axis.constant is not None and axis.constant.size == 1:
        return shifts.reshape([])
    return (shifts * (axes % rank).equal(at).cast(np.int64)).sum([0])


def _gathered(x: Tensor, axis: int, shift: Tensor) -> Tensor:
    """Gathers along an axis, shifted and wrapped around. An empty dimension is divided by one, not by zero."""
    size = x.size(axis)
    if size == 0:
        return x
    if isinstance(size, Tensor):
        size = size.cast(np.int64).maximum(1)
    # The remaining shift is small, so that no difference overflows.
    places = (x.numbers(axis).cast(np.int64) - shift % size) % size
    return x.gather(places.cast(np.int32), axis)


def _has_a_shift_for_each_axis(op: Operation) -> str | None:
    shape, shifts, places = (operand.shape for operand in op.operands)
    if shape is None or shifts is None or places is None:
        return "the operands' ranks are not known"
    constant = tensor_data.constant_of(op.operands[2])
    axes = [] if constant is None else tensor_data.to_array(constant).reshape(-1).tolist()
    if shifts != places or len(shifts) > 1 or not all(-len(shape) <= axis < len(shape) for axis in axes):
        return "there isn't one shift for each axis"
    return None


OPS = (
    op("Bitcast", shape=_bitcast_shape, compute=_bitcast, verified=True),
    op("BroadcastTo", shape=_broadcast_to_shape, compute=_broadcast_to),
    op("ConjugateTranspose", shape=_transpose_shape, compute=_conjugate_transpose),
    op("DataFormatDimMap", shape=same, verified=True),
    op("DataFormatVecPermute", shape=same, relations=(rank("x", 1, 2), _permuted_format), verified=True),
    op("MirrorPad", shape=_pad_shape, compute=_mirror_pad, relations=(rank("paddings", 2),)),
    *ops_like("Pad PadV2", shape=_pad_shape, compute=_pad, relations=(rank("paddings", 2),)),
    op(
        "Reverse",
        compute=_reverse_flagged,
        decompose=(
            Decomposition(
                reverse_flagged,
                "",
                constant(1, "the vector that marks the reversed dimensions is"),
                example=((2, 4), (2,)),
            ),
        ),
    ),
    op("ReverseSequence", shape=_reverse_sequence_shape, compute=_reverse_sequence),
    op("ReverseV2", shape=same_with_axes, values=_reversed_elements, compute=_reverse),
    op(
        "Roll",
        shape=same_with_rank_at_least(1),
        compute=_roll,
        decompose=(Decomposition(roll, "", _has_a_shift_for_each_axis, example=((4, 4), (1,), (1,))),),
    ),
    op("Tile", shape=_tile_shape, values=_tile_elements, compute=_tile, relations=(is_vector("multiples"), _tiled)),
    op("Transpose", shape=_transpose_shape, compute=_transpose, relations=(is_vector("perm"),), verified=True),
)
