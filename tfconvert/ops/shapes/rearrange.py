"""Shapes of ops that move, join, cut or repeat elements, and of those that return shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    MismatchError,
    Partial,
    add,
    axis_of,
    broadcast,
    dim_of_element,
    divide,
    merge,
    merge_all,
    multiply,
    text,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def quotient(dims: Sequence[int], divisors: Sequence[int]) -> int:
    """Returns the product of `dims` divided by that of `divisors`, -1 if unknown.

    Equal symbols cancel out; what is left has to be a number, or one symbol.

    Raises:
        MismatchError: Numbers don't divide.
    """
    left, right = Counter(dims), Counter(divisors)
    common = left & right
    left, right = left - common, right - common
    above, below = [dim for dim in left.elements() if dim < 0], [dim for dim in right.elements() if dim < 0]
    if below or len(above) > 1:
        return -1
    top, bottom = _known_product(left), _known_product(right)
    if bottom == 0:
        return -1
    if above:
        return above[0] if top == bottom else -1
    if top % bottom:
        raise MismatchError(f"{top} elements can't be divided by {bottom}")
    return top // bottom


def _known_product(dims: Counter[int]) -> int:
    result = 1
    for dim, times in dims.items():
        if dim >= 0:
            result *= dim**times
    return result


def _reshape(operands: Operands) -> Shapes:
    target = operands.elements(1)
    if target is None:
        return (None,)
    return (reshaped(operands.shape(0), target),)


def reshaped(shape: Shape | None, target: Partial) -> Shape:
    """Returns the shape of a reshaped value.

    Args:
        shape: The shape of the operand.
        target: The requested shape, with at most one -1 for what is left over.

    Raises:
        MismatchError: There is more than one -1, or the numbers of elements differ.
    """
    if target.count(-1) > 1:
        raise MismatchError(f"only one dimension of {list(target)} may be -1")
    if any(UNKNOWN < element < -1 for element in target):
        raise MismatchError(f"{text(target)} is not a shape")
    result = list(map(dim_of_element, target))
    missing = [index for index, dim in enumerate(result) if dim == -1]
    if shape is None:
        return tuple(result)
    if not missing:
        _check_size(shape, result)
        if sum(dim < 0 for dim in result) == 1:
            _name_symbol(shape, result)
    elif len(missing) == 1:
        rest = result[: missing[0]] + result[missing[0] + 1 :]
        if 0 not in rest:
            result[missing[0]] = quotient(shape, rest)
    return tuple(result)


def _name_symbol(shape: Shape, result: list[int]) -> None:
    """The one unknown dimension among known ones is determined by the number of elements."""
    index = next(index for index, dim in enumerate(result) if dim < 0)
    rest = result[:index] + result[index + 1 :]
    if 0 not in rest and all(dim >= 0 for dim in shape):
        result[index] = quotient(shape, rest)


def _check_size(shape: Shape, result: list[int]) -> None:
    if all(dim >= 0 for dim in shape) and all(dim >= 0 for dim in result):
        have, want = _known_product(Counter(shape)), _known_product(Counter(result))
        if have != want:
            raise MismatchError(f"shapes {text(shape)} and {text(tuple(result))} have {have} and {want} elements")


def _expand_dims(operands: Operands) -> Shapes:
    shape, axis = operands.shape(0), operands.scalar(1)
    if shape is None:
        return (None,)
    if axis is None:
        return ((-1,) * (len(shape) + 1),)
    place = axis_of(axis, len(shape) + 1)
    return ((*shape[:place], 1, *shape[place:]),)


def _squeeze(operands: Operands) -> Shapes:
    shape, axes = operands.shape(0), operands.integers("squeeze_dims")
    if shape is None:
        return (None,)
    if not axes:
        return (None if any(dim < 0 for dim in shape) else tuple(dim for dim in shape if dim != 1),)
    places = {axis_of(axis, len(shape)) for axis in axes}
    if any(shape[place] >= 0 and shape[place] != 1 for place in places):
        raise MismatchError(f"dimensions {sorted(places)} of {text(shape)} should be 1")
    return (tuple(dim for index, dim in enumerate(shape) if index not in places),)


def _transpose(operands: Operands) -> Shapes:
    shape, order = operands.shape(0), operands.ints(1)
    if order is None:
        unknown = operands.elements(1)
        rank = len(shape) if shape is not None else len(unknown) if unknown is not None else None
        return (None if rank is None else (-1,) * rank,)
    shape = with_rank(shape, len(order))
    places = [axis_of(axis, len(order)) for axis in order]
    if len(set(places)) != len(places):
        raise MismatchError(f"{list(order)} is not a permutation")
    return (tuple(shape[place] for place in places),)


def _concat_shapes(shapes: list[Shape | None], axis: int | None) -> Shapes:
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


def _concat(operands: Operands) -> Shapes:
    return _concat_shapes(operands.shapes(1), operands.scalar(0))


def _concat_v2(operands: Operands) -> Shapes:
    return _concat_shapes(operands.shapes(0, -1), operands.scalar(-1))


def _concat_offset(operands: Operands) -> Shapes:
    return operands.shapes(1)


def _pack(operands: Operands) -> Shapes:
    shape = merge_all(operands.shapes())
    if shape is None:
        return (None,)
    place = axis_of(operands.integer("axis"), len(shape) + 1)
    return ((*shape[:place], operands.count, *shape[place:]),)


def _unpack(operands: Operands) -> Shapes:
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


def _split(operands: Operands) -> Shapes:
    axis, shape, count = operands.scalar(0), operands.shape(1), len(operands.op.results)
    if shape is None:
        return (None,) * count
    if axis is None:
        return ((-1,) * len(shape),) * count
    place = axis_of(axis, len(shape))
    return ((*shape[:place], divide(shape[place], count), *shape[place + 1 :]),) * count


def _split_v(operands: Operands) -> Shapes:
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


def _tile(operands: Operands) -> Shapes:
    shape, times = operands.shape(0), operands.elements(1)
    if shape is None and times is None:
        return (None,)
    rank = len(times) if times is not None else len(shape or ())
    shape = with_rank(shape, rank)
    if times is None:
        return ((-1,) * rank,)
    return (tuple(multiply(dim, dim_of_element(time)) for dim, time in zip(shape, times, strict=True)),)


def _pad(operands: Operands) -> Shapes:
    shape, pads, places = operands.shape(0), operands.value(1), operands.shape(1)
    if pads is None:
        rank = len(shape) if shape is not None else with_rank(places, 2)[0]
        return ((-1,) * rank if rank >= 0 else None,)
    if pads.ndim != 2 or pads.shape[1] != 2:
        raise MismatchError(f"paddings {text(pads.shape)} should have shape [n, 2]")
    shape = with_rank(shape, pads.shape[0])
    if (pads < 0).any():
        raise MismatchError("paddings are negative")
    return (tuple(add(dim, before + after) for dim, (before, after) in zip(shape, pads.tolist(), strict=True)),)


def _broadcast_to(operands: Operands) -> Shapes:
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


def _broadcast_args(operands: Operands) -> Shapes:
    first, second = operands.elements(0), operands.elements(1)
    if first is None or second is None:
        return ((-1,),)
    broadcast(tuple(map(dim_of_element, first)), tuple(map(dim_of_element, second)))
    return ((max(len(first), len(second)),),)


def _shape(operands: Operands) -> Shapes:
    return [(-1 if shape is None else len(shape),) for shape in operands.shapes()]


def _scalar(operands: Operands) -> Shapes:
    return ((),)


def _diagonal(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    return (None if shape is None else shape + shape,)


def _diagonal_part(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    if shape is None:
        return (None,)
    if len(shape) % 2:
        raise MismatchError(f"the rank of {text(shape)} should be even")
    return (merge(shape[: len(shape) // 2], shape[len(shape) // 2 :]),)


def _matrix_diagonal(operands: Operands) -> Shapes:
    """`MatrixDiag` and, for the main diagonal alone, its later versions."""
    shape = with_rank_at_least(operands.shape(0), 1)
    if shape is None:
        return (None,)
    is_plain = operands.count == 1 or (
        operands.ints(1) in ((0,), (0, 0)) and operands.ints(2) == (-1,) and operands.ints(3) == (-1,)
    )
    return ((*shape, shape[-1]) if is_plain else None,)


def _matrix_diagonal_part(operands: Operands) -> Shapes:
    shape = with_rank_at_least(operands.shape(0), 2)
    if shape is None or (operands.count > 1 and operands.ints(1) not in ((0,), (0, 0))):
        return (None,)
    return ((*shape[:-2], min(shape[-2:]) if min(shape[-2:]) >= 0 else -1),)


def _first(operands: Operands) -> Shapes:
    return (operands.shape(0),)


SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"), _matrix_diagonal),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"), _matrix_diagonal_part),
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _first),
    **dict.fromkeys(("MirrorPad", "Pad", "PadV2"), _pad),
    **dict.fromkeys(("Rank", "Size"), _scalar),
    **dict.fromkeys(("Shape", "ShapeN"), _shape),
    **dict.fromkeys(("ConjugateTranspose", "Transpose"), _transpose),
    "BroadcastArgs": _broadcast_args,
    "BroadcastTo": _broadcast_to,
    "Concat": _concat,
    "ConcatOffset": _concat_offset,
    "ConcatV2": _concat_v2,
    "Diag": _diagonal,
    "DiagPart": _diagonal_part,
    "ExpandDims": _expand_dims,
    "Pack": _pack,
    "Reshape": _reshape,
    "Split": _split,
    "SplitV": _split_v,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Unpack": _unpack,
}
"""Op name -> shape function."""
