"""Values of shape arithmetic: integer scalars and vectors whose elements are known one by one.

`Shape` of a value with an unknown batch is `[symbol, 7, 7, 160]`; slicing, packing and small arithmetic propagate that,
so that a reshape downstream knows three of its four dimensions, and which batch the fourth one is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce

from tfconvert.ops.operands import MAX_PARTIAL, Operands, Partials, ValueFunction
from tfconvert.ops.shapes.strided_slice import Entry, entries
from tfconvert.schema.dialects.dims import (
    UNKNOWN,
    MismatchError,
    Partial,
    add_elements,
    axis_of,
    broadcast_dim,
    element_of_dim,
    multiply_elements,
)
from tfconvert.schema.dialects.tf_traits import SAME_ELEMENTS


def _shape(operands: Operands) -> Partials:
    return [None if shape is None else tuple(map(element_of_dim, shape)) for shape in operands.shapes()]


def _rank(operands: Operands) -> Partials:
    shape = operands.shape(0)
    return [None if shape is None else (len(shape),)]


def _size(operands: Operands) -> Partials:
    shape = operands.shape(0)
    return [None if shape is None else (_product(tuple(map(element_of_dim, shape))),)]


def _same(operands: Operands) -> Partials:
    return [operands.partial(0)]


def _same_each(operands: Operands) -> Partials:
    return [operands.partial(index) for index in range(operands.count)]


def _pack(operands: Operands) -> Partials:
    if any(shape != () for shape in operands.shapes()):
        return [None]
    return [tuple(element for index in range(operands.count) for element in operands.partial(index) or (UNKNOWN,))]


def _unpack(operands: Operands) -> Partials:
    found, count = operands.partial(0), len(operands.op.results)
    if found is None or operands.shape(0) == () or len(found) != count:
        return [None] * count
    return [(element,) for element in found]


def _concat(operands: Operands) -> Partials:
    first = 0 if operands.op.name == "tf.ConcatV2" else 1
    joined: list[int] = []
    for index in range(first, first + operands.count - 1):
        found = operands.elements(index)
        if found is None:
            return [None]
        joined += found
    return [tuple(joined)]


def _slice(operands: Operands) -> Partials:
    found, begin, size = operands.partial(0), operands.scalar(1), operands.scalar(2)
    if found is None or begin is None or size is None or begin < 0 or operands.shape(0) == ():
        return [None]
    return [found[begin:] if size == -1 else found[begin : begin + size]]


def _strided_slice(operands: Operands) -> Partials:
    found, shape = operands.partial(0), operands.shape(0)
    if found is None or shape is None or len(shape) != 1:
        return [None]
    plan = entries(operands, 1)
    if plan is None or len(plan) != 1:
        return [None]
    return [_taken(found, plan[0])]


def _taken(found: Partial, entry: Entry) -> Partial | None:
    bounds = (entry.begin, entry.end, entry.stride)
    if any(bound is not None and bound <= UNKNOWN for bound in bounds):
        return None
    if entry.shrinks:
        index = entry.begin or 0
        return (found[index],) if -len(found) <= index < len(found) else None
    return found[entry.begin : entry.end : entry.stride] if entry.stride else None


def _gather(operands: Operands) -> Partials:
    found, places = operands.partial(0), operands.ints(1)
    if found is None or places is None or operands.shape(0) == () or operands.attribute("batch_dims", 0):
        return [None]
    if any(not 0 <= place < len(found) for place in places):
        return [None]
    return [tuple(found[place] for place in places)]


def _split(operands: Operands) -> Partials:
    found, count = operands.partial(1), len(operands.op.results)
    if found is None or not count or len(found) % count:
        return [None] * count
    length = len(found) // count
    return [found[index : index + length] for index in range(0, len(found), length)] if length else [None] * count


def _fill(operands: Operands) -> Partials:
    count, value = operands.ints(0), operands.partial(1)
    if value is None or count is None or len(count) > 1 or any(not 0 <= dim <= MAX_PARTIAL for dim in count):
        return [None]
    return [value * (count[0] if count else 1)]


def _range(operands: Operands) -> Partials:
    bounds = [operands.scalar(index) for index in range(3)]
    if any(bound is None for bound in bounds):
        return [None]
    start, limit, delta = (bound or 0 for bound in bounds)
    if delta == 0 or len(range(start, limit, delta)) > MAX_PARTIAL:
        return [None]
    return [tuple(range(start, limit, delta))]


def _reversed(operands: Operands) -> Partials:
    found, axes = operands.partial(0), operands.ints(1)
    if found is None or axes is None or operands.shape(0) == ():
        return [None]
    return [found[::-1] if axes else found]


def _tile(operands: Operands) -> Partials:
    found, times = operands.partial(0), operands.scalar(1)
    if found is None or times is None or not 0 <= times * len(found) <= MAX_PARTIAL:
        return [None]
    return [found * times]


def _product(elements: Partial) -> int:
    return reduce(multiply_elements, elements, 1)


def _reduced(operation: Callable[[Partial], int], operands: Operands) -> Partials:
    found, axes = operands.partial(0), operands.ints(1)
    if found is None or axes is None:
        return [None]
    if operands.shape(0) == () or not axes:
        return [found]
    axis_of(axes[0], 1)
    return [(operation(found),)]


def _sum(elements: Partial) -> int:
    return reduce(add_elements, elements, 0)


def _extreme(function: Callable[[Partial], int], elements: Partial) -> int:
    return function(elements) if elements and all(element > UNKNOWN for element in elements) else UNKNOWN


def _broadcast_args(operands: Operands) -> Partials:
    first, second = operands.elements(0), operands.elements(1)
    if first is None or second is None:
        return [None]
    length = max(len(first), len(second))
    first, second = ((1,) * (length - len(dims)) + dims for dims in (first, second))
    dims = [(_as_dim(one), _as_dim(other)) for one, other in zip(first, second, strict=True)]
    try:
        return [tuple(element_of_dim(broadcast_dim(one, other)) for one, other in dims)]
    except MismatchError:
        # Shapes that don't fit fail when they are computed.
        return [None]


def _as_dim(element: int) -> int:
    return -1 if element == UNKNOWN else element


VALUES: Mapping[str, ValueFunction] = {
    **dict.fromkeys(("Concat", "ConcatV2"), _concat),
    **dict.fromkeys(SAME_ELEMENTS, _same),
    **dict.fromkeys(("Gather", "GatherV2"), _gather),
    **dict.fromkeys(("Shape", "ShapeN"), _shape),
    "BroadcastArgs": _broadcast_args,
    "Fill": _fill,
    "IdentityN": _same_each,
    "Max": partial(_reduced, partial(_extreme, max)),
    "Min": partial(_reduced, partial(_extreme, min)),
    "Pack": _pack,
    "Prod": partial(_reduced, _product),
    "Range": _range,
    "Rank": _rank,
    "ReverseV2": _reversed,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "StridedSlice": _strided_slice,
    "Sum": partial(_reduced, _sum),
    "Tile": _tile,
    "Unpack": _unpack,
}
"""Op name -> value function; used for results that are integer scalars or vectors."""
