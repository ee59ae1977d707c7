"""Constants, sizes, and ops that move elements: broadcasts, reshapes, transposes, slices, padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.from_stablehlo import resizing
from tfconvert.converter.from_stablehlo.bounds import Span, bound_of, spanned
from tfconvert.converter.from_stablehlo.edges import gathered
from tfconvert.converter.from_stablehlo.idioms import number, operands_of
from tfconvert.converter.from_stablehlo.places import Places
from tfconvert.converter.from_stablehlo.places import sliced as sliced_at
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.constants import index_range
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.ops.complex_numbers import complex_of
from tfconvert.ops.complex_numbers import parts as parts_of
from tfconvert.schema.dialects import dims, tensor_data
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


def _constant(raised: RaisedOp) -> EmittedTensor:
    value = raised.op.properties["value"]
    assert tensor_data.is_constant(value)
    return raised.constant_of(value)


def _operand(raised: RaisedOp) -> EmittedTensor:
    return raised.operands[0]


def _operands(raised: RaisedOp) -> Sequence[EmittedTensor]:
    return raised.operands


def _get_dimension_size(raised: RaisedOp) -> EmittedTensor:
    return raised.size(raised.operands[0], raised.integer("dimension"))


def _set_dimension_size(raised: RaisedOp) -> EmittedTensor:
    raise Declined("the bounded dimensions that it sets are a form of XLA's own")


def _broadcast_in_dim(raised: RaisedOp) -> EmittedTensor:
    shape = raised.declared()
    aligned = _aligned(raised, raised.operands[0], len(shape))
    return raised.broadcast(aligned, raised.constant(shape, "int32"), shape)


def _dynamic_broadcast_in_dim(raised: RaisedOp) -> EmittedTensor:
    operand, shape = raised.operands
    sizes = raised.target(shape)
    return raised.broadcast(_aligned(raised, operand, len(sizes)), shape.cast("int32"), sizes)


def _broadcast(raised: RaisedOp) -> EmittedTensor:
    shape = raised.declared()
    return raised.broadcast(raised.operands[0], raised.constant(shape, "int32"), shape)


def settled(raised: RaisedOp) -> EmittedTensor | None:
    """Returns what a repeated tensor that is needed as a whole is computed by best, `None` for the op that it is."""
    operand, shape = raised.operands
    own, sizes = raised.sizes(operand), raised.sizes(raised.tensor(raised.op.results[0]))
    if not own:
        return operand.op("Fill", shape, operand) if raised.known(shape) is None else None
    more = len(sizes) - len(own)
    padded = (1,) * more + own
    if padded == sizes:
        return raised.reshaped(operand, sizes)
    multiples = [1 if one == other else other for one, other in zip(padded, sizes, strict=True)]
    if (
        raised.known(shape) is not None
        or min(multiples) < 0
        or any(one not in (1, other) for one, other in zip(padded, sizes, strict=True))
    ):
        return None
    tiled: EmittedTensor = operand.op("Tile", raised.reshaped(operand, padded), multiples)
    raised.note(tiled.value, sizes)
    return tiled


def _aligned(raised: RaisedOp, operand: EmittedTensor, rank: int) -> EmittedTensor:
    """Returns an operand whose dimensions are the last ones of the result, by dimensions of size 1 between them."""
    axes = raised.ints("broadcast_dimensions")
    if axes == tuple(range(rank - len(axes), rank)):
        return operand
    sizes = raised.sizes(operand)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    if order != list(range(len(axes))):
        operand = operand.op("Transpose", operand, order)
    target = [1] * (rank - min(axes, default=rank))
    first = rank - len(target)
    for axis, into in enumerate(axes):
        target[into - first] = sizes[axis]
    return raised.reshaped(operand, target)


def _reshape(raised: RaisedOp) -> EmittedTensor:
    (operand,) = raised.operands
    shape = raised.declared()
    repeated = resizing.repeated(raised, operand, shape)
    return raised.reshaped(operand, shape) if repeated is None else repeated


def _dynamic_reshape(raised: RaisedOp) -> EmittedTensor:
    operand, shape = raised.operands
    sizes = raised.target(shape)
    repeated = resizing.repeated(raised, operand, sizes)
    return raised.reshaped(operand, sizes, shape.cast("int32")) if repeated is None else repeated


def _transpose(raised: RaisedOp) -> EmittedTensor:
    (operand,) = raised.operands
    order = raised.ints("permutation")
    resized = resizing.weighted(raised, operand, order)
    if resized is not None:
        return resized
    sizes = raised.sizes(operand)
    longer = [axis for axis in order if sizes[axis] != 1]
    if longer == sorted(longer):
        return raised.reshaped(operand, [sizes[axis] for axis in order])
    made = raised.unsqueezed(operand)
    if made is None:
        return operand.op("Transpose", operand, order)  # type: ignore[no-any-return]
    source, inserted = made
    kept = [axis for axis in range(len(order)) if axis not in inserted]
    inner = source.op("Transpose", source, [kept.index(axis) for axis in order if axis not in inserted])
    return raised.reshaped(inner, [sizes[axis] for axis in order])


def _reverse(raised: RaisedOp) -> EmittedTensor:
    (operand,) = raised.operands
    axes = [axis for axis in raised.ints("dimensions") if raised.sizes(operand)[axis] != 1]
    before = operands_of(operand, "ReverseV2")
    if before and raised.elements(before[1]) == tuple(axes):
        return before[0]
    return operand.op("ReverseV2", operand, axes) if axes else operand


def _concatenate(raised: RaisedOp) -> EmittedTensor:
    axis = raised.integer("dimension")
    parts = [each for each in raised.operands if raised.sizes(each)[axis] != 0] or raised.operands[:1]
    if len(parts) == 1:
        return parts[0]
    found = _stacked(raised, parts, axis) or gathered(raised, parts, axis)
    if found is not None:
        return found
    if parts[0].dtype.kind == "c":
        reals: tuple[EmittedTensor, ...]
        imaginaries: tuple[EmittedTensor, ...]
        reals, imaginaries = zip(*map(parts_of, parts), strict=True)
        return complex_of(reals[0].concat(reals[1:], axis), imaginaries[0].concat(imaginaries[1:], axis))
    scalars = [raised.scalars(part) for part in parts] if raised.dtype().kind in "iu" and parts[0].rank == 1 else [None]
    if all(scalars) and any(raised.known(part) is None for part in parts):
        return parts[0].op("Pack", *(scalar for group in scalars for scalar in group or ()))  # type: ignore[no-any-return]
    return parts[0].concat(parts[1:], axis)


def _stacked(raised: RaisedOp, parts: Sequence[EmittedTensor], axis: int) -> EmittedTensor | None:
    """Returns tensors that got a dimension to be joined along, joined without it."""
    if parts[0].rank < 2 or parts[0].dtype.kind == "c":
        return None
    found = []
    for part in parts:
        sizes = raised.sizes(part)
        made = raised.unsqueezed(part)
        if sizes[axis] != 1 or made is None or raised.sizes(made[0]) != sizes[:axis] + sizes[axis + 1 :]:
            return None
        found.append(made[0])
    return found[0].op("Pack", *found, axis=axis)  # type: ignore[no-any-return]


def _slice(raised: RaisedOp) -> EmittedTensor:
    starts, limits, strides = (raised.ints(name) for name in ("start_indices", "limit_indices", "strides"))
    return sliced(raised, raised.operands[0], starts, limits, strides)


def sliced(
    raised: RaisedOp,
    operand: EmittedTensor,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] = (),
    vectors: Sequence[EmittedTensor] = (),
) -> EmittedTensor:
    """Returns a slice; limits may be sizes as `RaisedOp.sizes` returns them, where they are those of the operand.

    Args:
        raised: The op.
        operand: What is sliced.
        starts: The first position in each dimension.
        limits: The positions to stop before.
        strides: The steps, 1 by default.
        vectors: Starts and limits, where not all of them are known.
    """
    sizes = raised.sizes(operand)
    strides = strides or [1] * len(sizes)
    whole = [
        start == 0 and limit == size and stride == 1
        for start, limit, size, stride in zip(starts, limits, sizes, strides, strict=True)
    ]
    if all(whole):
        return operand
    part = _part_of(raised, operand, starts, limits) if set(strides) == {1} else None
    if part is not None:
        return part
    if set(strides) == {1} and min(*starts, *limits) > dims.UNKNOWN:
        lengths = [
            -1 if is_whole and size < 0 else limit - start
            for start, limit, size, is_whole in zip(starts, limits, sizes, whole, strict=True)
        ]
        return operand.op("Slice", operand, list(starts), lengths)  # type: ignore[no-any-return]
    mask = sum(1 << axis for axis, is_whole in enumerate(whole) if is_whole)
    bounds = [
        list(known)
        if all(each > dims.UNKNOWN or is_whole for each, is_whole in zip(known, whole, strict=True))
        else vector
        for known, vector in zip((starts, limits), vectors or (None, None), strict=True)
    ]
    for bound in bounds:
        if isinstance(bound, list):
            bound[:] = [0 if is_whole else each for each, is_whole in zip(bound, whole, strict=True)]
    return operand.op("StridedSlice", operand, *bounds, list(strides), begin_mask=mask, end_mask=mask)  # type: ignore[no-any-return]


def _part_of(
    raised: RaisedOp, operand: EmittedTensor, starts: Sequence[int], limits: Sequence[int]
) -> EmittedTensor | None:
    """Returns the tensor that a slice of several tensors, one after the other, is."""
    owner = operand.value.owner
    if not isinstance(owner, Operation) or owner.name != "tf.ConcatV2":
        return None
    *parts, axis = map(raised.tensor, owner.operands)
    along = raised.known(axis)
    if along is None:
        return None
    at, begin = int(along) % operand.rank, 0
    for part in parts:
        wanted = list(raised.sizes(operand))
        size = raised.sizes(part)[at]
        wanted[at] = begin + size
        if size < 0 or begin > starts[at]:
            return None
        if starts[at] == begin and list(limits) == wanted and not any(starts[:at]) and not any(starts[at + 1 :]):
            return part
        begin += size
    return None


def _real_dynamic_slice(raised: RaisedOp) -> EmittedTensor:
    operand, *vectors = raised.operands
    starts, limits, strides = map(raised.elements, vectors)
    need(min(strides, default=1) > 0, "its strides are computed")
    window = _window(raised, *vectors[:2]) if set(strides) == {1} else None
    if window is not None:
        begins, lengths = window
        places = [
            Places(raised, operand, axis, length, begin)
            for axis, (length, begin) in enumerate(zip(lengths, begins, strict=True))
        ]
        return sliced_at(raised, operand, places, lengths)
    begin, end, _ = (vector.cast("int32") for vector in vectors)
    spans = _spans(raised, operand, vectors, strides)
    if spans:
        operand = spanned(operand, spans)
        own = raised.sizes(operand)
        starts, limits, strides = (
            tuple(
                [whole if axis in spans else each for axis, (each, whole) in enumerate(zip(known, wholes, strict=True))]
            )
            for known, wholes in ((starts, [0] * len(own)), (limits, own), (strides, [1] * len(own)))
        )
    found = sliced(raised, operand, starts, limits, strides, (begin, end))
    lengths = [
        limit if start == 0 and stride == 1 else -1
        for start, limit, stride in zip(starts, limits, strides, strict=True)
    ]
    return _noted(raised, found, lengths)


def _spans(
    raised: RaisedOp, operand: EmittedTensor, vectors: Sequence[EmittedTensor], strides: Sequence[int]
) -> Mapping[int, Span]:
    """Returns the parts of dimensions, only whose sizes are not known, that a slice leaves."""
    bounds = [found for vector in vectors[:2] if (found := raised.scalars(vector))]
    spans: dict[int, Span] = {}
    if len(bounds) < 2:
        return spans
    for axis, size in enumerate(raised.sizes(operand)):
        first, last = (bound_of(scalars[axis], size) for scalars in bounds) if size < 0 else (None, None)
        if first is not None and last is not None and (first[0], last[0], strides[axis]) != (0, None, 1):
            spans[axis] = Span(first[0], last[0], strides[axis])
    return spans


def _window(
    raised: RaisedOp, starts: EmittedTensor, limits: EmittedTensor
) -> tuple[Sequence[EmittedTensor], Sequence[int]] | None:
    """Returns the starts and lengths of a slice that is so many elements long, as JAX's `dynamic_slice`.

    The starts are those before they were moved to where the slice is inside, which all slices are.
    """
    if raised.known(starts) is not None:
        return None
    sums = operands_of(limits, "AddV2")
    lengths = [other for one, other in (sums, sums[::-1]) if one.value is starts.value] if sums else []
    if not lengths:
        return None
    (sizes,) = map(raised.elements, lengths[:1])
    upper = operands_of(starts, "Minimum")
    lower = operands_of(upper[0], "Maximum") if upper else ()
    begins = raised.scalars(lower[0]) if lower and number(lower[1]) == 0 else None
    return None if begins is None or dims.UNKNOWN in sizes else (begins, sizes)


def _noted(raised: RaisedOp, found: EmittedTensor, sizes: Sequence[int]) -> EmittedTensor:
    """Notes sizes of a result that its op doesn't tell; those of which nothing is known are -1."""
    merged = [
        size if size >= 0 or one in (-1, dims.UNKNOWN) else one
        for size, one in zip(raised.sizes(found), sizes, strict=True)
    ]
    raised.note(found.value, tuple(merged))
    return found


def _pad(raised: RaisedOp) -> EmittedTensor:
    operand, value = raised.operands
    low, high, interior = map(raised.ints, ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return padded(raised, operand, value, low, high, interior)


def padded(
    raised: RaisedOp,
    operand: EmittedTensor,
    value: EmittedTensor,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int] = (),
) -> EmittedTensor:
    """Returns an operand with more elements around and between its own; negative numbers take elements away.

    Args:
        raised: The op.
        operand: What is padded.
        value: The elements, a scalar.
        low: How many come before, in each dimension.
        high: How many come behind.
        interior: How many come between two.
    """
    if any(count and size != 1 for count, size in zip(interior, raised.sizes(operand), strict=False)):
        amounts = [np.array(each, np.int32) for each in (low, high, interior)]
        return operand.op("XlaPad", operand, value, *amounts)  # type: ignore[no-any-return]
    more = [(max(one, 0), max(other, 0)) for one, other in zip(low, high, strict=True)]
    if any(map(any, more)):
        zero = raised.known(value)
        if zero is not None and not zero.any() and not np.signbit(np.real(zero)).any():
            operand = operand.op("Pad", operand, np.array(more, np.int32))
        else:
            operand = operand.op("PadV2", operand, np.array(more, np.int32), value)
    less = [(max(-one, 0), max(-other, 0)) for one, other in zip(low, high, strict=True)]
    return _cropped(raised, operand, less) if any(map(any, less)) else operand


def _cropped(raised: RaisedOp, operand: EmittedTensor, less: Sequence[tuple[int, int]]) -> EmittedTensor:
    """Returns an operand without its first and last elements in each dimension."""
    begin, end = ([pair[side] for pair in less] for side in (0, 1))
    masks = [sum(1 << axis for axis, count in enumerate(side) if not count) for side in (begin, end)]
    sizes = raised.sizes(operand)
    if all(size >= 0 or not first + last for size, first, last in zip(sizes, begin, end, strict=True)):
        lengths = [-1 if size < 0 else size - sum(pair) for size, pair in zip(sizes, less, strict=True)]
        return operand.op("Slice", operand, begin, lengths)  # type: ignore[no-any-return]
    ends, strides = [-count for count in end], [1] * len(end)
    return operand.op("StridedSlice", operand, begin, ends, strides, begin_mask=masks[0], end_mask=masks[1])  # type: ignore[no-any-return]


def _dynamic_pad(raised: RaisedOp) -> EmittedTensor:
    operand, value, *vectors = raised.operands
    low, high, interior = map(raised.elements, vectors)
    if min(*low, *high, *interior, 0) > dims.UNKNOWN:
        return padded(raised, operand, value, low, high, interior)
    need(not any(interior), "how many elements come between others is computed")
    ends = [vector.cast("int32") for vector in vectors[:2]]
    more = [each if _is_positive(known) else each.maximum(0) for each, known in zip(ends, (low, high), strict=True)]
    found = operand.op("PadV2", operand, operand.op("Pack", *more, axis=1), value)
    if not _is_positive(low) or not _is_positive(high):
        first, last = ((-each).maximum(0) for each in ends)
        found = operand.op("Slice", found, first, operand.op("Shape", found) - first - last)
    return found  # type: ignore[no-any-return]


def _is_positive(elements: Sequence[int]) -> bool:
    """Returns whether no element of a vector is negative; sizes aren't."""
    return all(each >= 0 or each < dims.UNKNOWN for each in elements)


def _iota(raised: RaisedOp) -> EmittedTensor:
    shape = raised.declared()
    axis = raised.integer("iota_dimension")
    numbers = raised.constant(index_range(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1)))
    return raised.broadcast(numbers, raised.constant(shape, "int32"), shape)


def _dynamic_iota(raised: RaisedOp) -> EmittedTensor:
    (shape,) = raised.operands
    shape = shape.cast("int32")
    sizes: Shape = raised.target(shape)
    axis = raised.integer("iota_dimension")
    count = raised.element(shape, axis)
    numbers = shape.op("Range", 0, count, 1)
    raised.note(numbers.value, (sizes[axis],))
    numbers = raised.reshaped(numbers.cast(raised.dtype()), [sizes[axis]] + [1] * (len(sizes) - axis - 1))
    return raised.broadcast(numbers, shape, sizes)


ROWS: Rows = {
    "annotate_device_placement": _operand,
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "constant": _constant,
    "dynamic_broadcast_in_dim": _dynamic_broadcast_in_dim,
    "dynamic_iota": _dynamic_iota,
    "dynamic_pad": _dynamic_pad,
    "dynamic_reshape": _dynamic_reshape,
    "get_dimension_size": _get_dimension_size,
    "iota": _iota,
    "optimization_barrier": _operands,
    "pad": _pad,
    "real_dynamic_slice": _real_dynamic_slice,
    "reshape": _reshape,
    "reverse": _reverse,
    "set_dimension_size": _set_dimension_size,
    "slice": _slice,
    "transpose": _transpose,
}
