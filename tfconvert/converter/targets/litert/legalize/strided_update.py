"""Slices that are written to: a block of a tensor, elements in steps, or a range between computed bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder, Operand
from tfconvert.converter.targets.litert.legalize.strided_slice import bounds_fit, constant_bounds, entries_of, mask_of
from tfconvert.ops.slicing import selectors
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_PACKS = frozenset({"tf.Pack", "tfl.pack"})


class _Axis(NamedTuple):
    """The range of one axis that is written, where some bounds are computed; steps are all 1."""

    size: int  # The axis' size.
    position: int  # Where in the op's vectors its bounds are.
    begin: int | None  # The first index, `None` if it is computed.
    end: int | None  # The index after the last, `None` if it is computed.
    is_index: bool  # Whether it is a single index, for which the value has no axis.
    extent: int  # The value's size along it.

    @property
    def length(self) -> int | None:
        """The number of indices that are written, or `None`: a value of one element may be repeated."""
        if self.is_index:
            return 1
        if self.begin is not None and self.end is not None:
            return len(range(*slice(self.begin, self.end).indices(self.size)))
        return self.extent if self.extent > 1 else None

    @property
    def is_whole(self) -> bool:
        """Whether all indices are written."""
        return self.length == self.size


def _constraint(op: Operation) -> Failure | None:
    shape, written = (op.operands[index].shape for index in (0, 4))
    if not types.is_static(shape):
        return Failure("the tensor's shape is not known")
    has_new_axes = bool(mask_of(op, "new_axis_mask"))
    if constant_bounds(op) is None:
        return _why_not_computed(op, has_new_axes)
    if failure := bounds_fit(op):
        return failure
    if has_new_axes and (not types.is_static(written) or math.prod(written or ()) != _picked(op).size):
        return Failure("it has new axes, along which the value may be repeated")
    return None


def _why_not_computed(op: Operation, has_new_axes: bool) -> Failure | None:
    strides = tensor_data.constant_of(op.operands[3])
    if strides is None or (tensor_data.to_array(strides) != 1).any():
        return Failure("begin or end is computed, and it is written to in steps")
    if has_new_axes or any(bound.shape != strides.shape for bound in op.operands[1:3]):
        return Failure("begin or end is computed, and their axes are not known")
    if not types.is_static(op.operands[4].shape):
        return Failure("begin or end is computed, and the value's shape is not known")
    axes = _axes(op)
    if all(axis.length is not None for axis in axes):
        return None
    is_repeated = all(axis.is_index or axis.is_whole or axis.extent == 1 for axis in axes)
    return None if is_repeated else Failure("begin or end is computed, and the distance between them is not known")


def _axes(op: Operation) -> list[_Axis]:
    shape = op.operands[0].shape or ()
    count = (op.operands[1].shape or (0,))[0]
    found = [each for each in selectors(partial(mask_of, op), count, len(shape)) if each.axis >= 0]
    written = list(op.operands[4].shape or ())
    axes = []
    for size, each in reversed(list(zip(shape, found, strict=False))):
        begin = _known(op.operands[1], each.position) if each.has_begin else 0
        end = _known(op.operands[2], each.position) if each.has_end else size
        extent = written.pop() if written and not each.shrinks else 1
        axes.append(_Axis(size, each.position, begin, end, each.shrinks, extent))
    return axes[::-1]


def _known(vector: Value, position: int) -> int | None:
    """Returns an element of a vector if it is constant."""
    constant = tensor_data.constant_of(vector)
    if constant is not None:
        return int(tensor_data.to_array(constant)[position])
    packed = _packed(vector, position)
    constant = None if packed is None else tensor_data.constant_of(packed)
    return None if constant is None else int(tensor_data.to_array(constant).item())


def _packed(vector: Value, position: int) -> Value | None:
    owner = vector.owner
    return owner.operands[position] if isinstance(owner, Operation) and owner.name in _PACKS else None


def _selection(op: Operation) -> tuple[int | slice, ...]:
    """Returns the slices as Python writes them in brackets: constants, without ellipsis and new axes."""
    shape = op.operands[0].shape or ()
    return tuple(
        (span.begin or 0) % max(size, 1) if span.shrinks else slice(span.begin, span.end, span.stride)
        for span, size in zip(entries_of(op, len(shape)), shape, strict=True)
    )


def _picked(op: Operation) -> np.ndarray:
    """Returns an array of the shape that a constant selection picks; it takes no memory."""
    shape = op.operands[0].shape or ()
    return np.zeros(0) if 0 in shape else np.broadcast_to(np.float32(0), shape)[_selection(op)]


def _update(op: Operation, emit: LiteRTBuilder) -> Value:
    if constant_bounds(op) is None:
        return _computed(op, emit)
    picked = _picked(op)
    if not picked.size:
        return op.operands[0]
    shape = op.operands[0].shape or ()
    spans = [
        range(one, one + 1) if isinstance(one, int) else range(*one.indices(size))
        for one, size in zip(_selection(op), shape, strict=True)
    ]
    value = op.operands[4] if mask_of(op, "new_axis_mask") else _repeated(emit, op, picked.shape)
    if all(span.step == 1 for span in spans):
        return _block(emit, op, emit.reshape(value, [len(span) for span in spans]), [span.start for span in spans])
    return _elements(emit, op, emit.reshape(value, (picked.size,)))


def _repeated(emit: LiteRTBuilder, op: Operation, shape: Sequence[int]) -> Value:
    """Returns the value in the shape of the elements that it overwrites."""
    value, shape = op.operands[4], tuple(shape)
    if not types.is_static(value.shape) or value.shape == shape:
        return value
    return emit.tf("BroadcastTo", (value, emit.ints(shape)), types.tensor(value.element, shape))


def _block(emit: LiteRTBuilder, op: Operation, block: Value, starts: Sequence[Operand]) -> Value:
    """Writes a block of the tensor's rank that begins at some indices."""
    known = [start for start in starts if isinstance(start, int)]
    if len(known) == len(starts):
        place = emit.ints(known)
    else:
        scalars = [start if isinstance(start, Value) else emit.scalar(start, types.I32) for start in starts]
        attributes = {"axis": 0, "N": len(scalars), "T": types.I32}
        place = emit.tf("Pack", scalars, types.tensor(types.I32, (len(scalars),)), attributes)
    return emit.tfl("dynamic_update_slice", (op.operands[0], block, place), op.results[0].type)


def _elements(emit: LiteRTBuilder, op: Operation, value: Value) -> Value:
    """Takes each element from the tensor or from the value after it, as a constant of indices selects."""
    shape, element = op.operands[0].shape or (), op.results[0].element
    size, written = math.prod(shape), math.prod(value.shape or ())
    sources = np.arange(size, dtype=np.int32).reshape(shape)
    chosen = sources[_selection(op)]
    sources[_selection(op)] = np.arange(size, size + written, dtype=np.int32).reshape(chosen.shape)
    axis = emit.scalar(0, types.I32)
    both = (emit.reshape(op.operands[0], (size,)), value, axis)
    joined = emit.tf("ConcatV2", both, types.tensor(element, (size + written,)))
    return emit.tf("GatherV2", (joined, emit.constant(sources), axis), op.results[0].type)


def _computed(op: Operation, emit: LiteRTBuilder) -> Value:
    axes = _axes(op)
    counts = [axis.length for axis in axes]
    sizes = [count for count in counts if count is not None]
    if len(sizes) == len(counts):
        value = _repeated(emit, op, [count for count, axis in zip(sizes, axes, strict=True) if not axis.is_index])
        starts = [_bound(emit, op, 1, axis) for axis in axes]
        return _block(emit, op, emit.reshape(value, sizes), starts)
    # The size of the range is not known, but the value is the same all along it.
    tests = [test for number, axis in enumerate(axes) for test in _is_within(emit, op, axis, len(axes) - number - 1)]
    inside = tests[0]
    for test in tests[1:]:
        inside = emit.binary("LogicalAnd", inside, test)
    return emit.select(inside, emit.reshape(op.operands[4], [axis.extent for axis in axes]), op.operands[0])


def _is_within(emit: LiteRTBuilder, op: Operation, axis: _Axis, behind: int) -> list[Value]:
    """Returns the conditions for an axis' indices to be written, for a tensor with further axes after it."""
    if axis.is_whole:
        return []
    indices = emit.constant(np.arange(axis.size, dtype=np.int32).reshape(axis.size, *[1] * behind))
    if axis.is_index:
        return [emit.compare("Equal", indices, _bound(emit, op, 1, axis))]
    begin, end = (_bound(emit, op, operand, axis) for operand in (1, 2))
    return [emit.compare("GreaterEqual", indices, begin), emit.compare("Less", indices, end)]


def _bound(emit: LiteRTBuilder, op: Operation, operand: int, axis: _Axis) -> Operand:
    """Returns where an axis' part begins (operand 1) or ends (operand 2), counted from the front."""
    known = axis.begin if operand == 1 else axis.end
    if known is not None:
        return known % max(axis.size, 1) if axis.is_index else slice(known, None).indices(axis.size)[0]
    vector = op.operands[operand]
    bound = _packed(vector, axis.position)
    if bound is None:
        part = types.tensor(vector.element, (1,))
        cut = emit.tf("Slice", (vector, emit.ints((axis.position,)), emit.ints((1,))), part)
        bound = emit.reshape(cut, ())
    bound = emit.limited_i32(bound)
    if axis.is_index:
        return emit.binary("FloorMod", bound, axis.size)
    from_end = emit.binary("Maximum", emit.binary("AddV2", bound, axis.size), 0)
    return emit.select(emit.compare("Less", bound, 0), from_end, emit.binary("Minimum", bound, axis.size))


ENTRIES: tuple[Entry, ...] = (
    Lowering(
        "TensorStridedSliceUpdate", "dynamic_update_slice", _update, "f32 f16 i8 ui8 i16 i32 ui32 i64 i1", _constraint
    ),
)
