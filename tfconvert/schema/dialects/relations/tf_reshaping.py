"""Relations of `tf` ops that rearrange, cut, join and repeat elements."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.rules import (
    Rule,
    at_least,
    axis_of,
    check_axis,
    constant_axis_of,
    contradict,
    elements,
    every,
    prefix,
    rank,
    rank_at_least,
    rank_at_most,
    scalar,
    vector,
)
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape


def _reshape(view: View) -> None:
    found, wanted = view.shape("tensor"), view.integers("shape")
    if wanted is not None:
        _check_wanted(view, elements(found), wanted)
    result = view.shape("output")
    if result is None:
        return
    have, make = elements(found), elements(result)
    if have >= 0 and make >= 0 and have != make:
        view.fail(f"'output' must have as many elements as 'tensor' ({have}), found {make}")
    rank = len(wanted) if wanted is not None else view.dim("shape", 0)
    expected: Shape = (-1,) * max(rank, 0) if wanted is None else _completed(wanted, have)
    if rank >= 0 and contradict(expected, result):
        view.fail(
            f"'output' must agree with the shape {types.tensor(types.I32, expected)}, found {view.type('output')}"
        )


def _check_wanted(view: View, count: int, wanted: list[int]) -> None:
    if wanted.count(-1) > 1:
        view.fail(f"'shape' may have one dimension of -1, found {wanted}")
    if min(wanted, default=0) < -1:
        view.fail(f"'shape' must hold dimensions, or -1, found {wanted}")
    known = elements(tuple([dim for dim in wanted if dim >= 0]))
    if -1 in wanted and count > 0 and known > 0 and count % known:
        view.fail(f"the elements of 'tensor' ({count}) must be a multiple of {known}, as 'shape' has it")


def _completed(wanted: list[int], count: int) -> Shape:
    """Returns the shape that is wanted, what is left open computed if that is possible."""
    known = elements(tuple([dim for dim in wanted if dim >= 0]))
    rest = count // known if count >= 0 and known > 0 else -1
    return tuple([rest if dim < 0 else dim for dim in wanted])


def _transpose(view: View) -> None:
    source, result, perm = view.shape("x"), view.shape("y"), view.integers("perm")
    if source is not None and result is not None and len(source) != len(result):
        view.fail(f"'y' must have the rank of 'x', found {view.type('x')} and {view.type('y')}")
    count = view.dim("perm", 0) if perm is None else len(perm)
    if source is not None and result is not None and count >= 0 and count != len(source):
        view.fail(f"'perm' must have as many elements as 'x' has dimensions ({len(source)}), found {count}")
    if source is None or result is None or perm is None:
        return
    for index, axis in enumerate(perm):
        check_axis(view, "'perm'", axis, len(source))
        if contradict((source[axis],), (result[index],)):
            view.fail(
                f"dimension {index} of 'y' must be dimension {axis} of 'x' ({source[axis]}), found {result[index]}"
            )


def _tile(view: View) -> None:
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


def within(view: View) -> None:
    """Refuses a slice that is not within its operand, or not what its result has."""
    source, result = view.shape("input"), view.shape("output")
    starts, sizes = view.dim("begin", 0), view.dim("size", 0)
    if starts < 0 or sizes < 0:
        return
    if starts != sizes:
        view.fail(f"'begin' and 'size' must have as many elements, found {starts} and {sizes}")
    if source is not None and starts != len(source):
        view.fail(f"'begin' must have as many elements as 'input' has dimensions ({len(source)}), found {starts}")
    if source is not None and result is not None and len(source) != len(result):
        view.fail(f"'output' must have the rank of 'input', found {view.type('input')} and {view.type('output')}")
    begin, size = view.integers("begin"), view.integers("size")
    for index in range(starts):
        _check_slice(
            view,
            -1 if source is None else source[index],
            -1 if result is None else result[index],
            None if begin is None else begin[index],
            None if size is None else size[index],
        )


def _check_slice(view: View, dim: int, made: int, begin: int | None, size: int | None) -> None:
    """Checks a slice of one dimension; the begin and the size may be unknown, and the size -1 for all that is left."""
    if begin is not None and begin < 0:
        view.fail(f"'begin' must not be negative, found {begin}")
    if size == -1 and begin is not None and dim >= 0:
        size = dim - begin
    if begin is not None and size is not None and made >= 0 and size != made:
        view.fail(f"'output' must have the size of the slice ({size}), found {made}")
    end = (begin or 0) + (size or 0)
    if dim >= 0 and end > dim:
        view.fail(f"the slice must end within 'input', which has {dim} elements there, found {end}")


def _strided_slice(view: View) -> None:
    count = -1
    for name in ("begin", "end", "strides"):
        shape = view.known_shape(name)
        if shape is None or -1 in shape:
            continue
        if len(shape) != 1:
            view.fail(f"{name!r} must have rank 1, found {view.type(name)}")
        if count < 0 and shape[0] >= 32:
            view.fail(f"{name!r} must have less than 32 elements, found {shape[0]}")
        if count not in (-1, shape[0]):
            view.fail(f"'begin', 'end' and 'strides' must have as many elements, found {count} and {shape[0]}")
        count = shape[0]
    if 0 in (view.integers("strides") or ()):
        view.fail("'strides' must not be 0")
    if view.integer("ellipsis_mask").bit_count() > 1:
        view.fail("there may be one ellipsis, found several bits of 'ellipsis_mask'")


def _split_axis(view: View) -> int | None:
    """Returns the axis of a split, `None` if it or the rank is unknown."""
    shape, axis = view.shape("value"), view.integers("split_dim")
    if shape == ():
        view.fail(f"'value' must not be a scalar, found {view.type('value')}")
    if shape is None or axis is None:
        return None
    check_axis(view, "'split_dim'", axis[0], len(shape))
    return axis[0]


def _split(view: View) -> None:
    axis = _split_axis(view)
    dim = -1 if axis is None else view.dim("value", axis)
    count = len(view.op.results)
    if dim >= 0 and dim % count:
        view.fail(f"dimension {axis} of 'value' ({dim}) must be a multiple of the number of results, {count}")


def _split_sizes(view: View) -> None:
    count = view.dim("size_splits", 0)
    if count not in (-1, len(view.op.results)):
        view.fail(
            f"'size_splits' must have as many elements as there are results, {len(view.op.results)}, found {count}"
        )
    if view.shape("size_splits") is None:
        return
    rank("split_dim", 0)(view)
    axis, sizes = _split_axis(view), view.integers("size_splits")
    dim = -1 if axis is None else view.dim("value", axis)
    if dim < 0 or sizes is None:
        return
    if sizes.count(-1) > 1:
        view.fail(f"one element of 'size_splits' may be -1, found {sizes}")
    total = sum(size for size in sizes if size != -1)
    if total > dim or (total < dim and -1 not in sizes):
        view.fail(f"'size_splits' must be {dim} together, as 'value' has it, found {total}")


def _unpack(view: View) -> None:
    shape, axis, count = view.shape("value"), view.integer("axis"), len(view.op.results)
    if shape is not None and shape[axis] not in (-1, count):
        view.fail(
            f"there must be as many results as 'value' has elements along axis {axis}, {shape[axis]}, found {count}"
        )


def _together(view: View, *, but_one: bool) -> None:
    """Checks that the shapes of all values agree, or all dimensions but one of them."""
    common: list[int] | None = None
    free = None
    for value in view.values("values"):
        shape = types.shape_of(value.type)
        if shape is None:
            continue
        if common is None:
            common = list(shape)
        if len(shape) != len(common):
            view.fail(f"'values' must have one rank, found {len(common)} and {len(shape)}")
        for index, dim in enumerate(shape):
            if common[index] < 0:
                common[index] = dim
            elif dim not in (-1, common[index]) and index != free:
                if free is not None or not but_one:
                    view.fail(f"dimension {index} of 'values' must agree, found {common[index]} and {dim}")
                free = index


def _pack(view: View) -> None:
    _together(view, but_one=False)
    shapes = [types.shape_of(value.type) for value in view.values("values")]
    ranks = [len(shape) for shape in shapes if shape is not None]
    if ranks:
        check_axis(view, "the attribute 'axis'", view.integer("axis"), ranks[0] + 1)


def _concat(view: View) -> None:
    _together(view, but_one=True)


def _bitcast(view: View) -> None:
    source, result = view.shape("input"), view.shape("output")
    wide, narrow = _bits(view, "input"), _bits(view, "output")
    if source is None or result is None or elements(source) < 0 or elements(result) < 0 or not wide or not narrow:
        return
    if wide < narrow:
        source, result, wide, narrow = result, source, narrow, wide
    factor = wide // narrow
    expected = source if factor == 1 else (*source, factor)
    if wide % narrow or result != expected:
        view.fail(f"its types must have the same bits, found {view.type('input')} and {view.type('output')}")


def _bits(view: View, name: str) -> int:
    """Returns the width of an element in bits, 0 for what is neither an integer nor a float."""
    row = types.from_mlir(view.element(name) or types.STRING)
    if row is None or row.dtype.kind in "Oc" or row.name[0] == "q" or row.name.startswith("quint"):
        return 0
    return 1 if row.name == "bool" else row.dtype.itemsize * 8


def _squeeze(view: View) -> None:
    shape = view.shape("input")
    for axis in view.list("squeeze_dims") if shape is not None else ():
        check_axis(view, "'squeeze_dims'", axis, len(shape or ()))


_SEGMENTS = every(rank("num_segments", 0), prefix("segment_ids", "data"), at_least("num_segments", 0))

RULES: Mapping[str, Rule] = {
    "Bitcast": _bitcast,
    "Concat": every(rank_at_most("concat_dim", 1), _concat),
    "ConcatV2": every(rank_at_most("axis", 1), _concat),
    "Fill": every(vector("dims"), scalar("value")),
    "MirrorPad": rank("paddings", 2),
    "MirrorPadGrad": rank("paddings", 2),
    "Pack": _pack,
    "Pad": rank("paddings", 2),
    "PadV2": rank("paddings", 2),
    "Reshape": every(vector("shape"), _reshape),
    "Slice": every(vector("begin", "size"), within),
    "Split": every(scalar("split_dim"), _split),
    "SplitV": every(vector("size_splits"), _split_sizes),
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": every(vector("shape"), _strided_slice),
    "Tile": every(vector("multiples"), _tile),
    "Transpose": every(vector("perm"), _transpose),
    "Unpack": every(axis_of("axis", "value"), _unpack),
    **dict.fromkeys(
        ("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum"), _SEGMENTS
    ),
    **dict.fromkeys(("Cumprod", "Cumsum", "CumulativeLogsumexp"), every(scalar("axis"), constant_axis_of("axis", "x"))),
    "TopKV2": every(rank_at_least("input", 1), scalar("k")),
}
"""Op -> the rule that its operands, results and attributes keep."""
