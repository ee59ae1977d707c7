"""Elements in other places: rolled, reversed by row, moved by permutations; and indices that are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.targets.stablehlo.legalize.computed_axes import permuted
from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute, axis_of, ints
from tfconvert.converter.targets.stablehlo.legalize.gathering import gather, scatter
from tfconvert.converter.targets.stablehlo.legalize.index_checks import require_indices
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, pick, requested_size
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _transpose(op: Operation, emit: Emit) -> Value:
    value, permutation = op.operands
    known = constant_ints(permutation)
    return permuted(value, permutation, emit) if known is None else emit.transpose(value, known)


def _roll(op: Operation, emit: Emit) -> Value:
    value, amounts = op.operands[:2]
    dims = emit.dims(value)
    axes, known = constant_ints(op.operands[2]), constant_ints(amounts)
    if axes is None:
        for at, dim in enumerate(dims):
            value = _rolled_at_run_time(value, at, _amount_along(at, op, emit), emit) if dim != 1 else value
        return value
    for number, axis in enumerate(axes):
        at = axis_of(axis, len(dims))
        if known is not None and dims[at] >= 0:
            value = _rolled(value, at, known[number] % max(dims[at], 1), emit)
            continue
        amount: Value | int
        if known is not None:
            amount = known[number]
        else:
            amount = pick(amounts, number, emit) if emit.dims(amounts) else emit.convert(amounts, types.I32)
        value = _rolled_at_run_time(value, at, amount, emit)
    return value


def _amount_along(axis: int, op: Operation, emit: Emit) -> Value:
    """Emits the sum of the amounts for an axis, where the axes are known at run time only."""
    amounts, axes = (emit.convert(operand, types.I32) for operand in op.operands[1:3])
    rank = len(emit.dims(op.operands[0]))
    (count,) = emit.dims(axes) or (1,)
    amounts, axes = (emit.reshape(each, (count,)) for each in (amounts, axes))
    is_it = emit.binary("or", emit.compare("EQ", axes, axis), emit.compare("EQ", axes, axis - rank))
    return emit.reduce("add", emit.select(is_it, amounts, 0), (0,), 0)


def _rolled(value: Value, axis: int, amount: int, emit: Emit) -> Value:
    size = emit.dims(value)[axis]
    if not amount:
        return value
    pieces = part(value, axis, size - amount, size, emit), part(value, axis, 0, size - amount, emit)
    return concatenate(pieces, axis, emit)


def _rolled_at_run_time(value: Value, axis: int, amount: Value | int, emit: Emit) -> Value:
    size = emit.size(emit.dims(value)[axis])
    places = emit.binary("subtract", emit.iota((emit.dims(value)[axis],), 0, types.I32), amount)
    return gather(value, _modulo(places, size, emit), axis, 0, emit)


def _modulo(value: Value, divisor: Value | int, emit: Emit) -> Value:
    """Emits remainders that are not negative."""
    rest = emit.binary("remainder", value, divisor)
    return emit.select(emit.compare("LT", rest, 0), emit.binary("add", rest, divisor), rest)


def _reverse_sequence(op: Operation, emit: Emit) -> Value:
    value, lengths = op.operands
    dims = emit.dims(value)
    along = axis_of(int(attribute(op, "seq_dim")), len(dims))
    batch = axis_of(int(attribute(op, "batch_dim", 0)), len(dims))
    places = emit.iota((dims[batch], dims[along]), 1, types.I32)
    last = emit.broadcast(emit.convert(lengths, types.I32), (dims[batch], dims[along]), (0,))
    turned = emit.binary("subtract", emit.binary("subtract", last, 1), places)
    indices = emit.select(emit.compare("LT", places, last), turned, places)
    order = [batch, along, *(axis for axis in range(len(dims)) if axis not in (batch, along))]
    found = gather(emit.transpose(value, order), indices, 1, 1, emit)
    return emit.transpose(found, [order.index(axis) for axis in range(len(dims))])


def _invert_permutation(op: Operation, emit: Emit) -> Value:
    value = op.operands[0]
    (size,), element = emit.dims(value), types.element_of(value.type)
    require_indices(value, size, emit)
    counted = emit.iota((size,), 0, element)
    into = emit.broadcast(emit.scalar(0, element), (size,), ())
    return scatter("", emit.reshape(value, (size, 1)), counted, into, emit)


def _reverse(op: Operation, emit: Emit) -> Value:
    """Emits a reversal along the axes that a vector of truth values marks."""
    value, marks = op.operands
    known = tensor_data.constant_of(marks)
    if known is None:
        raise DeclinedError("the axes must be constant")
    axes = tuple(axis for axis, is_turned in enumerate(tensor_data.to_array(known).tolist()) if is_turned)
    if not axes:
        return value
    return emit.one("reverse", (value,), types.element_of(value.type), emit.dims(value), {"dimensions": axes})


def _concat(op: Operation, emit: Emit) -> Value:
    values = op.operands[1:]
    return concatenate(values, axis_of(ints(op, 0, "the axis")[0], len(emit.dims(values[0]))), emit)


def _concat_offset(op: Operation, emit: Emit) -> Sequence[Value]:
    (axis,), shapes = ints(op, 0, "the axis"), op.operands[1:]
    (rank,) = emit.dims(shapes[0])
    total = emit.broadcast(emit.scalar(0, types.I32), (rank,))
    mask = emit.ints([int(at == axis % rank) for at in range(rank)])
    offsets = []
    for shape in shapes:
        offsets.append(total)
        total = emit.binary("add", total, emit.binary("multiply", shape, mask))
    return offsets


def _broadcast_args(op: Operation, emit: Emit) -> Value:
    """Emits the shape that two shapes are broadcast to; a 1 gives way to what the other one has."""
    one, other = op.operands
    element = types.element_of(one.type)
    counts = emit.dims(one)[0], emit.dims(other)[0]
    if min(counts) < 0:
        raise DeclinedError("the rank of a shape is not known")
    longest = max(counts)
    wide = []
    for vector, count in zip((one, other), counts, strict=True):
        ones = emit.broadcast(emit.scalar(1, element), (longest - count,)) if count < longest else None
        wide.append(vector if ones is None else concatenate([ones, vector], 0, emit))
    return emit.select(emit.compare("EQ", wide[0], 1), wide[1], wide[0])


def _lin_space(op: Operation, emit: Emit) -> Value:
    """Emits numbers of equal distances; the last one is what was asked for, whatever rounding made of it."""
    start, stop, _ = op.operands
    known = constant_ints(op.operands[2])
    if known is None:
        return _open_lin_space(op, emit)
    (count,) = known
    counted = emit.iota((count,), 0, types.element_of(start.type))
    step = emit.binary("divide", emit.binary("subtract", stop, start), max(count - 1, 1))
    numbers = emit.binary("add", emit.binary("multiply", counted, step), start)
    return emit.select(emit.compare("EQ", counted, count - 1), stop, numbers) if count > 1 else numbers


def _open_lin_space(op: Operation, emit: Emit) -> Value:
    """Emits the same for a count that is known at run time only."""
    start, stop, size = op.operands
    element, count = types.element_of(start.type), requested_size(size, emit)
    last = emit.binary("maximum", emit.convert(emit.value(emit.size(count)), element), 1)
    last = emit.binary("maximum", emit.binary("subtract", last, 1), 1)
    counted = emit.iota((count,), 0, element)
    step = emit.binary("divide", emit.binary("subtract", stop, start), last)
    numbers = emit.binary("add", emit.binary("multiply", counted, step), start)
    return emit.select(emit.compare("EQ", counted, last), stop, numbers)


def _unravel_index(op: Operation, emit: Emit) -> Value:
    indices, shape = op.operands
    (rank,), places = emit.dims(shape), emit.dims(indices)
    if rank < 0:
        raise DeclinedError("the rank of a shape is not known")
    element, rows, left = types.element_of(indices.type), [], indices
    for axis in reversed(range(rank)):
        size = emit.reshape(part(shape, 0, axis, axis + 1, emit), ())
        rows.append(emit.reshape(emit.binary("remainder", left, size), (1, *places)))
        left = emit.binary("divide", left, size)
    assert types.element_of(shape.type) == element
    return concatenate(rows[::-1], 0, emit)


def _data_format(op: Operation) -> tuple[str, str]:
    return str(attribute(op, "src_format", "NHWC")), str(attribute(op, "dst_format", "NCHW"))


def _permute_by_format(op: Operation, emit: Emit) -> Value:
    source, target = _data_format(op)
    value = op.operands[0]
    if emit.dims(value)[0] == len(source) - 2:
        source, target = (format_.replace("N", "").replace("C", "") for format_ in (source, target))
    return gather(value, emit.ints([source.index(letter) for letter in target]), 0, 0, emit)


def _axis_by_format(op: Operation, emit: Emit) -> Value:
    source, target = _data_format(op)
    value = op.operands[0]
    places = _modulo(value, emit.scalar(len(source), types.element_of(value.type)), emit)
    table = emit.convert(emit.ints([target.index(letter) for letter in source]), types.element_of(value.type))
    return gather(table, places, 0, 0, emit)


def _dynamic_stitch(op: Operation, emit: Emit) -> Value:
    """Emits rows at their indices; of several for one index the last counts, as updates in order make it."""
    half = len(op.operands) // 2
    indices, rows = op.operands[:half], op.operands[half:]
    known = [constant_ints(each) for each in indices]
    declared = types.shape_of(op.results[0].type)
    rest = emit.dims(rows[0])[len(emit.dims(indices[0])) :]
    if None not in known:
        count = max((max(each, default=-1) for each in known if each is not None), default=-1) + 1
    elif declared is not None and declared[0] >= 0:
        count = declared[0]
    else:
        largest: Value = emit.scalar(-1, types.I32)
        for each in indices:
            here = emit.reduce("maximum", each, range(len(emit.dims(each))), -1)
            largest = emit.binary("maximum", largest, here)
        count = emit.sizes.fresh(emit.binary("add", largest, 1))
    into = emit.broadcast(emit.scalar(0, types.element_of(rows[0].type)), (count, *rest), ())
    for each, values in zip(indices, rows, strict=True):
        into = scatter("", emit.reshape(each, (*emit.dims(each), 1)), values, into, emit)
    return into


def _population_count(op: Operation, emit: Emit) -> Value:
    return emit.convert(emit.unary("popcnt", op.operands[0]), types.element_of(op.results[0].type))


def _binary(name: str) -> Lowering:
    return lambda op, emit: emit.binary(name, *op.operands)


LOWERINGS: Mapping[str, Lowering] = {
    "BroadcastArgs": _broadcast_args,
    "Concat": _concat,
    "ConcatOffset": _concat_offset,
    "DataFormatDimMap": _axis_by_format,
    "DataFormatVecPermute": _permute_by_format,
    "DynamicStitch": _dynamic_stitch,
    "InvertPermutation": _invert_permutation,
    "LinSpace": _lin_space,
    "NextAfter": _binary("chlo.next_after"),
    "ParallelDynamicStitch": _dynamic_stitch,
    "Polygamma": _binary("chlo.polygamma"),
    "PopulationCount": _population_count,
    "Reverse": _reverse,
    "ReverseSequence": _reverse_sequence,
    "Roll": _roll,
    "Transpose": _transpose,
    "UnravelIndex": _unravel_index,
    "Zeta": _binary("chlo.zeta"),
}
