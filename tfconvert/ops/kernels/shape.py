"""Shapes and ranks, what only moves or repeats elements, and ops that pass values through."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from tfconvert.ops.call import Call, Kernel, Results, ints, is_integer, scalar, typed
from tfconvert.schema.dialects.tf_traits import IDENTITIES


def _shape(call: Call) -> Results:
    dtype = call.dtype("out_type", np.int32)
    return tuple(np.array(x.shape, dtype) for x in call.inputs)


def _size(call: Call) -> Results:
    return (np.array(call.inputs[0].size, call.dtype("out_type", np.int32)),)


def _rank(call: Call) -> Results:
    return (np.array(call.inputs[0].ndim, np.int32),)


def _same(call: Call) -> Results:
    return call.inputs


def _nothing(call: Call) -> Results:
    return ()


def _const(call: Call) -> Results:
    value = call.attributes.get("value")
    if not isinstance(value, np.ndarray):
        raise call.bad("the constant has no value")
    return (value,)


def _assert(call: Call) -> Results:
    if not call.inputs[0].all():
        raise call.bad("the assertion doesn't hold")
    return ()


def _ensure_shape(call: Call) -> Results:
    (x,) = call.inputs
    shape = call.attributes.get("shape")
    if shape is not None:
        dims = call.integers("shape")
        if len(dims) != x.ndim or any(dim not in (-1, size) for dim, size in zip(dims, x.shape, strict=True)):
            raise call.bad(f"a tensor of shape {list(x.shape)} is not of shape {list(dims)}")
    return call.inputs


def _reshape(call: Call) -> Results:
    x, shape = call.inputs
    target = list(ints(shape))
    if x.size == 0 and -1 in target:
        # numpy can't resolve -1 here; TensorFlow divides by the product of the dimensions that aren't 0.
        known = math.prod(dim for dim in target if dim > 0)
        kept = math.prod(dim for dim in x.shape if dim > 0)
        target[target.index(-1)] = kept // known if 0 in target else 0
    return (x.reshape(target),)


def _expand_dims(call: Call) -> Results:
    x, axis = call.inputs
    return (np.expand_dims(x, scalar(axis)),)


def _squeeze(call: Call) -> Results:
    (x,) = call.inputs
    axes = call.integers("squeeze_dims")
    return (np.squeeze(x, tuple(axes) if axes else None),)


def _transpose(call: Call) -> Results:
    x, permutation = call.inputs
    return (x.transpose(ints(permutation)),)


def _conjugate_transpose(call: Call) -> Results:
    return (np.conj(_transpose(call)[0]),)


def _concat(call: Call) -> Results:
    return (np.concatenate(call.inputs[1:], scalar(call.inputs[0])),)


def _concat_v2(call: Call) -> Results:
    return (np.concatenate(call.inputs[:-1], scalar(call.inputs[-1])),)


def _concat_offset(call: Call) -> Results:
    axis, *shapes = call.inputs
    at, result = 0, []
    for shape in shapes:
        offset = np.zeros_like(shape)
        offset[scalar(axis)] = at
        at += int(shape[scalar(axis)])
        result.append(offset)
    return tuple(result)


def _split(call: Call) -> Results:
    axis, x = call.inputs
    count = call.integer("num_split")
    if x.shape[scalar(axis)] % count:
        raise call.bad(f"a dimension of {x.shape[scalar(axis)]} can't be split in {count}")
    return tuple(np.split(x, count, scalar(axis)))


def _split_v(call: Call) -> Results:
    x, sizes, axis = call.inputs
    dim = x.shape[scalar(axis)]
    lengths = list(ints(sizes))
    if -1 in lengths:
        lengths[lengths.index(-1)] = dim - sum(lengths) - 1
    if sum(lengths) != dim or min(lengths) < 0:
        raise call.bad(f"a dimension of {dim} can't be split in {lengths}")
    return tuple(np.split(x, np.cumsum(lengths[:-1]), scalar(axis)))


def _pack(call: Call) -> Results:
    return (np.stack(call.inputs, call.integer("axis")),)


def _unpack(call: Call) -> Results:
    return tuple(np.moveaxis(call.inputs[0], call.integer("axis"), 0))


def _tile(call: Call) -> Results:
    x, multiples = call.inputs
    return (np.tile(x, ints(multiples)),)


def _fill(call: Call) -> Results:
    dims, value = call.inputs
    return (np.full(ints(dims), value, value.dtype),)


def _empty(call: Call) -> Results:
    dtype = call.dtype("dtype")
    return (np.full(ints(call.inputs[0]), b"" if dtype.kind == "O" else 0, dtype),)


def _like(value: int, call: Call) -> Results:
    x = call.inputs[0]
    if x.dtype == object:
        return (np.full(x.shape, b"", object),)
    return (np.full(x.shape, value, x.dtype),)


def _range(call: Call) -> Results:
    start, limit, delta = (x.reshape(())[()] for x in call.inputs)
    dtype = call.inputs[0].dtype
    if delta == 0:
        raise call.bad("the step of a range is 0")
    if (limit < start) if delta > 0 else (limit > start):
        raise call.bad(f"a range from {start} to {limit} can't have steps of {delta}")
    if is_integer(dtype):
        return (np.array(range(int(start), int(limit), int(delta)), dtype),)
    # In the operands' own type: 0.3 / 0.1 is 3 in float32, though their doubles' ratio is more.
    with np.errstate(all="ignore"):
        count = float(np.ceil((limit - start) / delta))
    if not math.isfinite(count):
        raise call.bad(f"a range from {start} to {limit} in steps of {delta} has no end")
    count = int(count)
    return (typed(start + np.arange(count).astype(dtype) * delta, dtype),)


def _lin_space(call: Call) -> Results:
    start, stop, number = call.inputs
    count = scalar(number)
    if count < 1:
        raise call.bad(f"{count} values can't span a range")
    if count == 1:
        return (start.reshape(1),)
    step = (stop - start) / typed(count - 1, start.dtype)
    values = start + step * np.arange(count).astype(start.dtype)
    values[-1] = stop
    return (typed(values, start.dtype),)


def _broadcast_to(call: Call) -> Results:
    x, shape = call.inputs
    return (np.broadcast_to(x, ints(shape)).copy(),)


def _broadcast_args(call: Call) -> Results:
    first, second = call.inputs
    return (np.array(np.broadcast_shapes(ints(first), ints(second)), first.dtype),)


def _broadcast_gradient_args(call: Call) -> Results:
    first, second = call.inputs
    if ints(first) == ints(second):
        return np.zeros(0, first.dtype), np.zeros(0, first.dtype)
    pairs = list(zip_longest(reversed(ints(first)), reversed(ints(second)), fillvalue=1))[::-1]
    return (
        np.array([i for i, (one, other) in enumerate(pairs) if one == 1], first.dtype),
        np.array([i for i, (one, other) in enumerate(pairs) if other == 1], first.dtype),
    )


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


KERNELS: Mapping[str, Kernel] = {
    **dict.fromkeys(IDENTITIES | {"DeepCopy", "PlaceholderWithDefault"}, _same),
    "Assert": _assert,
    "Bitcast": _bitcast,
    "BroadcastArgs": _broadcast_args,
    "BroadcastGradientArgs": _broadcast_gradient_args,
    "BroadcastTo": _broadcast_to,
    "Concat": _concat,
    "ConcatOffset": _concat_offset,
    "ConcatV2": _concat_v2,
    "ConjugateTranspose": _conjugate_transpose,
    "Const": _const,
    "Empty": _empty,
    "EnsureShape": _ensure_shape,
    "ExpandDims": _expand_dims,
    "Fill": _fill,
    "LinSpace": _lin_space,
    "MirrorPad": _mirror_pad,
    "NoOp": _nothing,
    "OnesLike": partial(_like, 1),
    "Pack": _pack,
    "Pad": _pad,
    "PadV2": _pad,
    "Range": _range,
    "Rank": _rank,
    "Reshape": _reshape,
    "Roll": _roll,
    "Shape": _shape,
    "ShapeN": _shape,
    "Size": _size,
    "Split": _split,
    "SplitV": _split_v,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unpack": _unpack,
    "ZerosLike": partial(_like, 0),
}
"""Op name -> kernel."""
