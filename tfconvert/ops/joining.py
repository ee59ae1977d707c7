"""Joining tensors, and cutting them into parts, along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from tfconvert.ops.call import Call, Results, ints, scalar
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands, Partials
from tfconvert.ops.requirements import all_of, constant
from tfconvert.ops.shape_functions import Shapes
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    MismatchError,
    add,
    axis_of,
    dim_of_element,
    divide,
    merge_all,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.relations.rules import (
    check_axis,
    contradict,
    is_scalar,
    is_vector,
    rank_at_least,
    rank_at_most,
)
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def concatenated(shapes: list[Shape | None], axis: int | None) -> Shapes:
    """Returns the shape of tensors joined along an axis, which may be unknown."""
    ranked = [shape for shape in shapes if shape is not None]
    if not ranked:
        return (None,)
    rank = len(ranked[0])
    if any(len(shape) != rank for shape in ranked) or rank == 0:
        raise MismatchError(f"shapes {', '.join(map(text, shapes))} can't be concatenated")
    if axis is None:
        return ((-1,) * rank,)
    place = axis_of(axis, rank)
    total = 0
    for shape in shapes:
        total = add(total, -1 if shape is None else shape[place])
    try:
        others = merge_all([(*shape[:place], *shape[place + 1 :]) for shape in ranked])
    except MismatchError:
        raise MismatchError(f"shapes {', '.join(map(text, shapes))} can't be concatenated along {axis}") from None
    assert others is not None
    return ((*others[:place], total, *others[place:]),)


def _concat_shape(operands: Operands) -> Shapes:
    return concatenated(operands.shapes(1), operands.scalar(0))


def _concat_v2_shape(operands: Operands) -> Shapes:
    return concatenated(operands.shapes(0, -1), operands.scalar(-1))


def _concat_offset_shape(operands: Operands) -> Shapes:
    vectors = [with_rank(shape, 1) for shape in operands.shapes(1)]
    return (merge_all(vectors),) * len(vectors)


def _pack_shape(operands: Operands) -> Shapes:
    shape = merge_all(operands.shapes())
    if shape is None:
        return (None,)
    place = axis_of(operands.integer("axis"), len(shape) + 1)
    return ((*shape[:place], operands.count, *shape[place:]),)


def _unpack_shape(operands: Operands) -> Shapes:
    shape, count = operands.shape(0), len(operands.op.results)
    if shape is None:
        return (None,) * count
    place = axis_of(operands.integer("axis"), with_at_least_one(shape))
    if shape[place] >= 0 and shape[place] != count:
        raise MismatchError(f"dimension {place} of {text(shape)} should be {count}")
    return ((*shape[:place], *shape[place + 1 :]),) * count


def with_at_least_one(shape: Shape) -> int:
    """Returns the rank of a shape that is not a scalar's."""
    with_rank_at_least(shape, 1)
    return len(shape)


def _split_shape(operands: Operands) -> Shapes:
    axis, shape, count = operands.scalar(0), operands.shape(1), len(operands.op.results)
    if shape is None:
        return (None,) * count
    if axis is None:
        return ((-1,) * len(shape),) * count
    place = axis_of(axis, len(shape))
    return ((*shape[:place], divide(shape[place], count), *shape[place + 1 :]),) * count


def _split_v_shape(operands: Operands) -> Shapes:
    shape, sizes, axis = operands.shape(0), operands.elements(1), operands.scalar(2)
    count = len(operands.op.results)
    if shape is None:
        return (None,) * count
    if axis is None:
        return ((-1,) * len(shape),) * count
    place = axis_of(axis, len(shape))
    if sizes is None or len(sizes) != count:
        sizes = (UNKNOWN,) * count
    lengths = [dim_of_element(size) for size in sizes]
    whole = shape[place]
    known = sum(length for length in lengths if length >= 0)
    if whole >= 0 and all(size == -1 or size >= 0 for size in sizes):
        if sizes.count(-1) > 1 or known > whole or (-1 not in sizes and known != whole):
            raise MismatchError(f"a dimension of {whole} can't be split in {list(sizes)}")
        lengths = [whole - known if length < 0 else length for length in lengths]
    return [(*shape[:place], length, *shape[place + 1 :]) for length in lengths]


def _pack_elements(operands: Operands) -> Partials:
    if any(shape != () for shape in operands.shapes()):
        return [None]
    return [tuple(element for index in range(operands.count) for element in operands.partial(index) or (UNKNOWN,))]


def _unpack_elements(operands: Operands) -> Partials:
    found, count = operands.partial(0), len(operands.op.results)
    if found is None or operands.shape(0) == () or len(found) != count:
        return [None] * count
    return [(element,) for element in found]


def _concat_elements(first: int, operands: Operands) -> Partials:
    """Joins the operands from the first one on but for the axis."""
    joined: list[int] = []
    for index in range(first, first + operands.count - 1):
        found = operands.elements(index)
        if found is None:
            return [None]
        joined += found
    return [tuple(joined)]


def _split_elements(operands: Operands) -> Partials:
    found, count = operands.partial(1), len(operands.op.results)
    if found is None or not count or len(found) % count:
        return [None] * count
    length = len(found) // count
    return [found[index : index + length] for index in range(0, len(found), length)] if length else [None] * count


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


def _split_axis(view: View) -> int | None:
    """Returns the axis of a split, `None` if it or the rank is unknown."""
    shape, axis = view.shape("value"), view.integers("split_dim")
    if shape == ():
        view.fail(f"'value' must not be a scalar, found {view.type('value')}")
    if shape is None or axis is None:
        return None
    check_axis(view, "'split_dim'", axis[0], len(shape))
    return axis[0]


def _split_sizes(view: View) -> None:
    count = view.dim("size_splits", 0)
    if count not in (-1, len(view.op.results)):
        view.fail(
            f"'size_splits' must have as many elements as there are results, {len(view.op.results)}, found {count}"
        )
    if view.shape("size_splits") is None:
        return
    is_scalar("split_dim")(view)
    axis, sizes = _split_axis(view), view.integers("size_splits")
    dim = -1 if axis is None else view.dim("value", axis)
    if dim < 0 or sizes is None:
        return
    if sizes.count(-1) > 1:
        view.fail(f"one element of 'size_splits' may be -1, found {sizes}")
    total = sum(size for size in sizes if size != -1)
    if total > dim or (total < dim and -1 not in sizes):
        view.fail(f"'size_splits' must be {dim} together, as 'value' has it, found {total}")


def _offsets(view: View) -> None:
    count = None
    for shape, offset in zip(view.values("shape"), view.values("offset"), strict=False):
        one, other = shape.shape, offset.shape
        if one is not None and other is not None and contradict(one, other):
            view.fail(f"its operand and result must have one shape, found {shape.type} and {offset.type}")
        if one is None:
            continue
        if len(one) != 1:
            view.fail(f"'shape' must have rank 1, found {shape.type}")
        if one[0] >= 0 and count not in (None, one[0]):
            view.fail(f"'shape' must have as many elements each, found {count} and {one[0]}")
        count = one[0] if one[0] >= 0 else count


def _unpack_count(view: View) -> None:
    shape, axis, count = view.shape("value"), view.integer("axis"), len(view.op.results)
    if shape is None:
        return
    check_axis(view, "the attribute 'axis'", axis, len(shape))
    if shape[axis] not in (-1, count):
        view.fail(
            f"there must be as many results as 'value' has elements along axis {axis}, {shape[axis]}, found {count}"
        )


def concat_offset(axis: Tensor, *shapes: Tensor) -> Sequence[Tensor]:
    """Adds up the dimensions along one axis; along the others, all offsets are zero."""
    first = shapes[0]
    flags = np.zeros(first.shape or (), first.dtype)
    zeros = first.of(flags.copy())
    flags[0 if axis.constant is None else int(axis.constant)] = 1
    return [zeros, *accumulate(shape * first.of(flags) for shape in shapes[:-1])]


def _rank_is_known(op: Operation) -> str | None:
    is_known = (op.operands[1].shape or (-1,))[0] > 0
    return None if is_known else "the rank of an operand is not known"


OPS = (
    op(
        "Concat",
        shape=_concat_shape,
        values=partial(_concat_elements, 1),
        compute=_concat,
        relations=(rank_at_most("concat_dim", 1),),
        verified=True,
    ),
    op(
        "ConcatOffset",
        shape=_concat_offset_shape,
        compute=_concat_offset,
        decompose=(
            Decomposition(
                concat_offset,
                "integer",
                all_of(constant(0, "the axis is"), _rank_is_known),
                typed=1,
                example=((), (4,), (4,), (4,)),
            ),
        ),
        relations=(is_scalar("concat_dim"), _offsets),
    ),
    op(
        "ConcatV2",
        shape=_concat_v2_shape,
        values=partial(_concat_elements, 0),
        compute=_concat_v2,
        relations=(rank_at_most("axis", 1),),
        verified=True,
    ),
    op("Pack", shape=_pack_shape, values=_pack_elements, compute=_pack, verified=True),
    op(
        "Split",
        shape=_split_shape,
        values=_split_elements,
        compute=_split,
        relations=(is_scalar("split_dim"), rank_at_least("value", 1)),
        verified=True,
    ),
    op("SplitV", shape=_split_v_shape, compute=_split_v, relations=(is_vector("size_splits"), _split_sizes)),
    op("Unpack", shape=_unpack_shape, values=_unpack_elements, compute=_unpack, relations=(_unpack_count,)),
)
