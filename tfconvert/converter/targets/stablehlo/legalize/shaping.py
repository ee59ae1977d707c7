"""Shapes: reading them, reshaping, transposing, joining, padding, repeating, filling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.constraints import require_count, require_equal
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite, axis_of, ints, number
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Ops that make numbers of at least 0 of such numbers.
_OF_SIZES = frozenset(
    f"stablehlo.{name}"
    for name in ("add", "convert", "divide", "get_dimension_size", "maximum", "minimum", "multiply", "reshape")
)

# The maximum number of scalars whose producers are inspected.
_MAX_LOOKED_AT = 64

_COUNT = "the new shape must hold as many elements as the old one"


def _shape(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    shapes = [emit.shape(emit.dims(value)) for value in op.operands]
    return [emit.convert(one, old.element) for one, old in zip(shapes, op.results, strict=True)]


def _size(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.convert(emit.value(emit.product(emit.dims(op.operands[0]))), op.results[0].element)


def _rank(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.scalar(len(emit.dims(op.operands[0])), types.I32)


def _joined(emit: StableHLOBuilder, vector: Value, index: int) -> Value | None:
    """Returns the scalar that became an element of a vector."""
    owner = vector.owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.concatenate":
        return None
    element = owner.operands[index].owner if all(emit.dims(each) == (1,) for each in owner.operands) else None
    if not isinstance(element, Operation) or element.name != "stablehlo.reshape":
        return None
    return element.operands[0] if emit.dims(element.operands[0]) == () else None


def pick(emit: StableHLOBuilder, vector: Value, index: int) -> Value:
    """Returns an element of a vector as a scalar of `i32`; one that was put together of scalars is taken apart."""
    scalar = _joined(emit, vector, index)
    if scalar is not None:
        return emit.convert(scalar, types.I32)
    properties = {"start_indices": (index,), "limit_indices": (index + 1,), "strides": (1,)}
    part = emit.one("slice", (vector,), properties)
    return emit.convert(emit.one("reshape", (part,), dims=()), types.I32)


def requested(emit: StableHLOBuilder, op: Operation, index: int) -> tuple[int, ...]:
    """Returns the sizes in an operand; unknown ones get symbols.

    -1 stays what it is. A size that only an element of the operand tells is read from that.
    """
    vector = op.operands[index]
    count = emit.dims(vector)
    if len(count) != 1 or count[0] < 0:
        raise Declined("the rank of its result is not known")
    elements = emit.sizes.elements(vector) or (UNKNOWN,) * count[0]
    declared = op.results[0].shape
    found = []
    for at, element in enumerate(elements):
        known = -1 if declared is None else declared[at]
        if element == UNKNOWN and known >= 0 and op.name != "tf.Reshape":
            found.append(known)
        elif element == UNKNOWN or (element < UNKNOWN and not _is_available(emit, element)):
            found.append(emit.sizes.fresh(pick(emit, vector, at)))
        else:
            found.append(element)
    return tuple(found)


def sizes_in(emit: StableHLOBuilder, vector: Value) -> list[int]:
    """Returns the sizes in a vector; unknown ones get symbols.

    Raises:
        Declined: How many they are is not known.
    """
    (count,) = emit.dims(vector)
    if count < 0:
        raise Declined("the rank of an operand is not known")
    elements = emit.sizes.elements(vector) or (UNKNOWN,) * count
    return [
        emit.sizes.fresh(pick(emit, vector, at))
        if element == UNKNOWN or (element < UNKNOWN and not _is_available(emit, element))
        else element
        for at, element in enumerate(elements)
    ]


def times(emit: StableHLOBuilder, one: int, other: int) -> int:
    """Returns the product of two sizes."""
    return emit.size_of(emit.compute("multiply", emit.size(one), emit.size(other)))


def requested_size(emit: StableHLOBuilder, scalar: Value) -> int:
    """Returns the size in a scalar operand; an unknown one gets a symbol."""
    elements = emit.sizes.elements(scalar)
    if elements and (elements[0] >= 0 or (elements[0] < UNKNOWN and _is_available(emit, elements[0]))):
        return elements[0]
    return emit.sizes.fresh(emit.reshape(emit.convert(scalar, types.I32), ()))


def _is_available(emit: StableHLOBuilder, dim: int) -> bool:
    return emit.sizes.cached(emit.block, dim) is not None or emit.sizes.place(emit.block, dim) is not None


def _reshape(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    own = emit.dims(value)
    declared = op.results[0].shape
    if declared is not None and -1 not in declared:
        require_count(emit, own, declared, _COUNT)
        return emit.reshape(value, declared)
    dims = list(requested(emit, op, 1))
    elements = emit.sizes.elements(op.operands[1]) or (UNKNOWN,) * len(dims)
    if dims.count(-1) == 1:
        dims[dims.index(-1)] = _rest(emit, own, dims)
    elif any(each == UNKNOWN and not _is_size(emit, dim) for each, dim in zip(elements, dims, strict=True)):
        dims = _solved(emit, own, dims)
    require_count(emit, own, dims, _COUNT)
    return emit.reshape(value, dims)


def _is_size(emit: StableHLOBuilder, dim: int) -> bool:
    """Returns whether a number of a shape is computed of nothing but sizes, so that it is not -1."""
    pending: list[Value | int] = [emit.size(dim)]
    for scalar in pending:
        known = scalar if isinstance(scalar, int) else constant_number(scalar)
        if known is not None and known < 0:
            return False
        if known is not None or isinstance(scalar, int):
            continue
        owner = scalar.owner
        if not isinstance(owner, Operation) or owner.name not in _OF_SIZES or len(pending) > _MAX_LOOKED_AT:
            return False
        if owner.name != "stablehlo.get_dimension_size":
            pending += owner.operands
    return True


def _rest(emit: StableHLOBuilder, own: Sequence[int], dims: Sequence[int]) -> int:
    """Returns the size that makes a shape hold as many elements as another one."""
    above, below = list(map(emit.sizes.find, own)), [emit.sizes.find(dim) for dim in dims if dim != -1]
    for dim in tuple(below):
        if dim in above and dim != 0:
            above.remove(dim)
            below.remove(dim)
    symbols = [dim for dim in above if dim < 0]
    known = 1
    for dim in above:
        known *= max(dim, 1)
    if not below and len(symbols) == 1 and known == 1:
        return symbols[0]
    return emit.size_of(emit.compute("divide", emit.product(above), emit.product(below)))


def _solved(emit: StableHLOBuilder, own: Sequence[int], dims: Sequence[int]) -> list[int]:
    """Returns a shape, any element of which may be -1 at run time."""
    scalars = [emit.value(emit.size(dim)) for dim in dims]
    minus, one = emit.scalar(-1, types.I32), emit.scalar(1, types.I32)
    flags = [emit.compare("EQ", scalar, minus) for scalar in scalars]
    known: Value | int = 1
    for flag, scalar in zip(flags, scalars, strict=True):
        known = emit.compute("multiply", known, emit.select(flag, one, scalar))
    rest = emit.value(emit.compute("divide", emit.product(own), known))
    solved = []
    for dim, flag, scalar in zip(dims, flags, scalars, strict=True):
        solved.append(dim if dim >= 0 else emit.sizes.fresh(emit.select(flag, rest, scalar)))
    return solved


def _expand_dims(op: Operation, emit: StableHLOBuilder) -> Value:
    dims = list(emit.dims(op.operands[0]))
    if constant_number(op.operands[1]) is None:
        return emit.reshape(op.operands[0], _with_one_inserted(emit, dims, op.operands[1]))
    dims.insert(axis_of(ints(op, 1, "the axis")[0], len(dims) + 1), 1)
    return emit.reshape(op.operands[0], dims)


def _with_one_inserted(emit: StableHLOBuilder, dims: Sequence[int], axis: Value) -> list[int]:
    """Returns a shape with another size, 1, at an axis that is known at run time only."""
    at = emit.reshape(emit.convert(axis, types.I32), ())
    at = emit.select(emit.compare("LT", at, 0), emit.binary("add", at, len(dims) + 1), at)
    before = [emit.value(emit.size(dim)) for dim in (*dims, 1)]
    after = [before[-1], *before]
    found = []
    for place, pair in enumerate(zip(before, after, strict=False)):
        shifted = emit.select(emit.compare("EQ", at, place), 1, pair[1])
        found.append(emit.sizes.fresh(emit.select(emit.compare("GT", at, place), pair[0], shifted)))
    return found


def _squeeze(op: Operation, emit: StableHLOBuilder) -> Value:
    dims = emit.dims(op.operands[0])
    axes = {axis_of(axis, len(dims)) for axis in tf.get(op, "squeeze_dims", ()) or ()}
    if not axes and min(dims, default=0) < 0:
        raise Declined("it removes dimensions of size 1, and not every size is known")
    gone = axes or {axis for axis, dim in enumerate(dims) if dim == 1}
    return emit.reshape(op.operands[0], [dim for axis, dim in enumerate(dims) if axis not in gone])


def concatenate(emit: StableHLOBuilder, values: Sequence[Value], axis: int) -> Value:
    """Inserts a concatenation."""
    if len(values) == 1:
        return values[0]
    shapes = [emit.dims(value) for value in values]
    dims = [next((dim for dim in column if dim >= 0), column[0]) for column in zip(*shapes, strict=True)]
    for shape in shapes[1:]:
        for at, (one, other) in enumerate(zip(shapes[0], shape, strict=True)):
            if at != axis:
                require_equal(emit, one, other, "the sizes of what is joined must be equal but for the axis")
    total: Value | int = 0
    for shape in shapes:
        total = emit.compute("add", total, emit.size(shape[axis]))
    dims[axis] = emit.size_of(total)
    return emit.one("concatenate", values, {"dimension": axis}, dims=dims)


def _concat(op: Operation, emit: StableHLOBuilder) -> Value:
    *values, _ = op.operands
    axis = axis_of(ints(op, len(values), "the axis")[0], len(emit.dims(values[0])))
    return concatenate(emit, values, axis)


def _pack(op: Operation, emit: StableHLOBuilder) -> Value:
    parts = []
    for value in op.operands:
        dims = list(emit.dims(value))
        axis = axis_of(tf.get(op, "axis", 0), len(dims) + 1)
        dims.insert(axis, 1)
        parts.append(emit.reshape(value, dims))
    return concatenate(emit, parts, axis)


def part(emit: StableHLOBuilder, value: Value, axis: int, begin: int, end: int) -> Value:
    """Inserts a slice of one axis of known size; the others stay whole."""
    dims = list(emit.dims(value))
    result = [*dims[:axis], end - begin, *dims[axis + 1 :]]
    if min(dims) >= 0:
        starts = tuple(begin if at == axis else 0 for at in range(len(dims)))
        limits = tuple(end if at == axis else dim for at, dim in enumerate(dims))
        properties = {"start_indices": starts, "limit_indices": limits, "strides": (1,) * len(dims)}
        return emit.one("slice", (value,), properties)
    starts_at = emit.ints([begin if at == axis else 0 for at in range(len(dims))])
    limits_at = emit.vector([end if at == axis else emit.size(dim) for at, dim in enumerate(dims)])
    operands = (value, starts_at, limits_at, emit.ints([1] * len(dims)))
    return emit.one("real_dynamic_slice", operands, dims=result)


def padded(
    emit: StableHLOBuilder,
    value: Value,
    low: Sequence[Value | int],
    high: Sequence[Value | int],
    fill: Value,
    interior: Sequence[int] = (),
) -> Value:
    """Inserts padding, by an op whose amounts are operands if some are computed at run time.

    Args:
        emit: The emitter.
        value: The value.
        low: How much is padded before each axis; less than 0 is cut off.
        high: How much is padded behind each axis.
        fill: What it is padded with, a scalar.
        interior: How much is padded between the elements of each axis.
    """
    interior = tuple(interior) or (0,) * len(low)
    dims = []
    if not any(interior) and all(each == 0 for each in (*low, *high)):
        return value
    for dim, before, behind, gap in zip(emit.dims(value), low, high, interior, strict=True):
        if (before, behind, gap) == (0, 0, 0):
            dims.append(dim)
            continue
        spread = emit.compute("add", emit.compute("multiply", emit.size(dim), gap + 1), -gap)
        dims.append(emit.size_of(emit.compute("add", emit.compute("add", spread, before), behind)))
    lows, highs = ([each for each in side if isinstance(each, int)] for side in (low, high))
    if len(lows) == len(highs) == len(low):
        properties = {"edge_padding_low": tuple(lows), "edge_padding_high": tuple(highs), "interior_padding": interior}
        return emit.one("pad", (value, fill), properties, dims=dims)
    operands = (value, fill, emit.vector(low), emit.vector(high), emit.ints(interior))
    return emit.one("dynamic_pad", operands, dims=dims)


def _tile(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    counts, dims = sizes_in(emit, op.operands[1]), emit.dims(value)
    wide, result = [], []
    for count, dim in zip(counts, dims, strict=True):
        wide += [count, dim]
        result.append(dim if count == 1 else times(emit, dim, count))
    repeated = emit.broadcast(value, wide, range(1, 2 * len(dims), 2))
    return emit.reshape(repeated, result)


def _broadcast_to(op: Operation, emit: StableHLOBuilder) -> Value:
    dims = requested(emit, op, 1)
    return emit.broadcast(op.operands[0], emit.join(emit.dims(op.operands[0]), dims))


def _fill(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.broadcast(op.operands[1], requested(emit, op, 0))


def _empty(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits zeros, since any contents are allowed."""
    return emit.broadcast(emit.scalar(0, op.results[0].element), requested(emit, op, 0))


def _like(filled_with: int) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        scalar = emit.scalar(filled_with, op.results[0].element)
        return emit.broadcast(scalar, emit.dims(op.operands[0]))

    return lower


def _range(op: Operation, emit: StableHLOBuilder) -> Value:
    start, limit, step = op.operands
    element = start.element
    declared = op.results[0].shape
    if declared is not None and declared[0] >= 0:
        dims = declared
    elif constant_number(step) == 1 and types.numpy_dtype(element).kind in "iu":
        dims = (_length(emit, op, start, limit),)
    else:
        dims = (_steps(emit, start, limit, step),)
    counted = emit.iota(dims, 0, element)
    return emit.binary("add", emit.binary("multiply", counted, step), start)


def _length(emit: StableHLOBuilder, op: Operation, start: Value, limit: Value) -> int:
    """Returns the length of a range: the limit's symbol if it begins at 0, else the difference."""
    elements = emit.sizes.elements(limit)
    begin = tensor_data.constant_of(start)
    if elements is not None and elements[0] < UNKNOWN and begin is not None and number(op, 0, "the start") == 0:
        return elements[0]
    ends = emit.convert(limit, types.I32), emit.convert(start, types.I32)
    difference = emit.binary("subtract", *ends)
    return emit.sizes.fresh(emit.binary("maximum", difference, 0))


def _steps(emit: StableHLOBuilder, start: Value, limit: Value, step: Value) -> int:
    """Returns the length of a range by its steps: the distance in steps, rounded up."""
    known = constant_number(step)
    if known and types.numpy_dtype(start.element).kind in "iu":
        # XLA folds no more than sums, products and quotients of sizes.
        first, last = (emit.convert(each, types.I32) for each in ((start, limit) if known > 0 else (limit, start)))
        most = abs(int(known))
        reached = emit.compute("add", emit.compute("subtract", last, first), most - 1)
        return emit.sizes.fresh(emit.value(emit.compute("maximum", emit.compute("divide", reached, most), 0)))
    distance, width = emit.unary("abs", emit.binary("subtract", limit, start)), emit.unary("abs", step)
    if types.numpy_dtype(start.element).kind in "iu":
        rounded = emit.binary("divide", emit.binary("subtract", emit.binary("add", distance, width), 1), width)
    else:
        rounded = emit.unary("ceil", emit.binary("divide", distance, width))
    return emit.sizes.fresh(emit.convert(rounded, types.I32))


def _forward(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    return op.operands[: len(op.results)]


_FORWARDED = (
    "CheckNumerics",
    "CheckNumericsV2",
    "DebugIdentity",
    "DebugIdentityV2",
    "DebugIdentityV3",
    "DeepCopy",
    "EnsureShape",
    "GuaranteeConst",
    "Identity",
    "IdentityN",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Snapshot",
    "StopGradient",
)

SHAPING: Mapping[str, Rewrite] = {
    **dict.fromkeys(_FORWARDED, _forward),
    "BroadcastTo": _broadcast_to,
    "ConcatV2": _concat,
    "Empty": _empty,
    "ExpandDims": _expand_dims,
    "Fill": _fill,
    "OnesLike": _like(1),
    "Pack": _pack,
    "Range": _range,
    "Rank": _rank,
    "Reshape": _reshape,
    "Shape": _shape,
    "ShapeN": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "ZerosLike": _like(0),
}
