"""Reshapes and broadcasts to computed sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tfconvert.converter.targets.iree.rewrites.linalg_builder import Index, LinalgBuilder, segments, split
from tfconvert.converter.targets.iree.rewrites.numbers import NUMERIC, Context, after, is_host_scalar, shape_of
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo_properties import ints
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX
from tfconvert.schema.ir.values import Value


class _Group(NamedTuple):
    """Dimensions of an operand and of a result that hold the same elements."""

    own: list[int]
    new: list[int]


def dynamic_reshape(op: Operation, context: Context) -> Value:
    """Returns a reshape by joining and splitting dimensions, or one to any shape."""
    value, shape = op.operands
    result = op.results[0]
    sizes, dims = context.numbers.elements(shape), shape_of(result)
    found = reshape(value, sizes, dims, context)
    return _reshaped_to_any(value, sizes, result.type, context) if found is None else found


def _reshaped_to_any(value: Value, sizes: Sequence[Index], kind: Attribute, context: Context) -> Value:
    """Reshapes a value when it is unknown how the dimensions correspond.

    Its sizes are numbers: if a size goes through a tensor, as for `tensor.reshape`, IREE doesn't recognize it, and
    fails on loops that carry such values.
    """
    emit = context.emit
    own, new = (
        [emit.index(size) for size, dim in zip(numbers, shape, strict=True) if dim < 0]
        for numbers, shape in ((context.numbers.sizes(value), shape_of(value)), (sizes, types.shape_of(kind) or ()))
    )
    properties = {"operandSegmentSizes": segments(1, len(own), len(new))}
    return emit.one("flow.tensor.reshape", (value, *own, *new), kind, properties)


def number(op: Operation, context: Context) -> Value | None:
    """Returns a size, or a number computed from sizes, as a scalar that the host has.

    As a tensor it would be computed by a separate program on the device; IREE may lose that among loops and checks.
    """
    if op.name not in NUMERIC:
        return None
    result = op.results[0]
    if result.shape != () or result.element is not types.I32:
        return None
    if op.name != "stablehlo.get_dimension_size" and not all(map(is_host_scalar, op.operands)):
        return None
    found = context.numbers.element(result)
    # A number that is known earlier may be computed later: its tensor is created there.
    emit = context.emit if isinstance(found, int) else after(found)
    found = emit.index(found)
    narrow = emit.one("arith.index_cast", (found,), types.I32)
    return emit.one("tensor.from_elements", (narrow,), result.type)


def with_numbers(op: Operation, context: Context) -> Value | None:
    """Returns the op with its result's sizes as numbers, so that equal sizes are one value.

    IREE doesn't recognize a size that went through a tensor: loops that carry such values fail.
    """
    *operands, shape = op.operands
    if shape.element is INDEX:
        return None
    sizes = context.emit.vector(context.numbers.elements(shape))
    return context.emit.one(op.name, (*operands, sizes), op.results[0].type, op.properties)


def reshape(value: Value, sizes: Sequence[Index], shape: Shape, context: Context) -> Value | None:
    """Reshapes a value; returns `None` if it is unknown how the dimensions correspond."""
    own = shape_of(value)
    groups = _groups(context.numbers.sizes(value), sizes, context)
    if groups is None or any(_contradicts(own, shape, group) for group in groups):
        return None
    joined = [_count([own[axis] for axis in group.own]) for group in groups]
    element = value.element
    if len(joined) < len(own):
        parts = {"reassociation": _parts([len(group.own) for group in groups])}
        value = context.emit.one("tensor.collapse_shape", (value,), types.tensor(element, tuple(joined)), parts)
    if len(joined) < len(shape):
        value = _split(value, groups, sizes, shape, context)
    if shape_of(value) != shape:
        value = context.emit.one("tensor.cast", (value,), types.tensor(element, shape))
    return value


def _split(value: Value, groups: Sequence[_Group], sizes: Sequence[Index], shape: Shape, context: Context) -> Value:
    """Splits each dimension into those of its group."""
    dims: list[int] = []
    for dim, group in zip(shape_of(value), groups, strict=True):
        dims += [dim] if len(group.new) == 1 else [shape[axis] for axis in group.new]
    numbers = [context.emit.index(size) if dim < 0 else dim for dim, size in zip(dims, sizes, strict=True)]
    known, operands = split(numbers)
    parts = _parts([len(group.new) for group in groups])
    kind = types.tensor(value.element, tuple(dims))
    properties: dict[str, attrs.Value] = {"reassociation": parts, "static_output_shape": known}
    return context.emit.one("tensor.expand_shape", (value, *operands), kind, properties)


def _groups(own: Sequence[Index], new: Sequence[Index], context: Context) -> list[_Group] | None:
    """Returns the smallest groups of dimensions that correspond; `None` if they are unknown."""
    groups: list[_Group] = []
    at, to = 0, 0
    while at < len(own) and to < len(new):
        group = _grown(own, new, at, to, context)
        if group is None:
            return None
        groups.append(group)
        at, to = at + len(group.own), to + len(group.new)
    rest = [*own[at:], *new[to:]]
    if not groups or any(each != 1 for each in rest):
        return None
    groups[-1].own.extend(range(at, len(own)))
    groups[-1].new.extend(range(to, len(new)))
    return groups


def _grown(own: Sequence[Index], new: Sequence[Index], at: int, to: int, context: Context) -> _Group | None:
    """Returns the smallest group that begins at two dimensions."""
    group = _Group([at], [to])
    while True:
        count, some = _product([own[axis] for axis in group.own], context)
        other, more = _product([new[axis] for axis in group.new], context)
        if count == other and some == more:
            return group
        if group.own[-1] + 1 < len(own) and not some - more and count <= other:
            group.own.append(group.own[-1] + 1)
        elif group.new[-1] + 1 < len(new) and not more - some and other <= count:
            group.new.append(group.new[-1] + 1)
        else:
            return None


def _product(sizes: Sequence[Index], context: Context) -> tuple[int, Counter[Value]]:
    count, values = 1, Counter[Value]()
    for size in sizes:
        more, others = context.numbers.factors(size)
        count *= more
        values += others
    return count, values


def _count(dims: Sequence[int]) -> int:
    count = 1
    for dim in dims:
        count = -1 if dim < 0 or count < 0 else count * dim
    return count


def _contradicts(own: Shape, new: Shape, group: _Group) -> bool:
    """Returns whether only one side of a group has a static type; groups of single sizes may."""
    before, after = (_count([shape[axis] for axis in axes]) for shape, axes in ((own, group.own), (new, group.new)))
    return (len(group.own) > 1 or len(group.new) > 1) and (before < 0) != (after < 0)


def _parts(counts: Sequence[int]) -> Attribute:
    parts: list[list[int]] = []
    start = 0
    for count in counts:
        parts.append(list(range(start, start + count)))
        start += count
    return attrs.of(parts)


UNEQUAL = "a size is neither 1 nor that which it is broadcast to"


def dynamic_broadcast_in_dim(op: Operation, context: Context) -> Value | None:
    """Returns a broadcast that reads element 0 of dimensions that are 1 at run time."""
    value, shape = op.operands
    places = ints(op, "broadcast_dimensions")
    hinted = {*ints(op, "known_expanding_dimensions"), *ints(op, "known_nonexpanding_dimensions")}
    own, result = shape_of(value), shape_of(op.results[0])
    unknown = [axis for axis, dim in enumerate(own) if dim < 0 and axis not in hinted]
    if not unknown:
        return with_numbers(op, context)
    emit, numbers = context.emit, context.numbers
    sizes = numbers.elements(shape)
    single: dict[int, Value] = {}
    for axis in unknown:
        size, wanted = numbers.size(value, axis), sizes[places[axis]]
        if size is not wanted:
            single[axis] = emit.is_("EQ", emit.index(size), emit.index(1))
            is_equal = emit.is_("EQ", emit.index(size), emit.index(wanted))
            fits = emit.one("arith.select", (single[axis], single[axis], is_equal), types.I1)
            emit.op("cf.assert", (fits,), (), {"msg": UNEQUAL})

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        indices = []
        for axis, dim in enumerate(own):
            zero = inside.index(0)
            if dim == 1 or axis in ints(op, "known_expanding_dimensions"):
                indices.append(zero)
                continue
            index = inside.loop(places[axis])
            indices.append(inside.choose(single[axis], zero, index) if axis in single else index)
        return inside.element(value, *indices)

    everything = list(range(len(result)))
    into = emit.empty(value.element, sizes, result)
    return emit.loops([], (into, everything), "p" * len(result), body)
