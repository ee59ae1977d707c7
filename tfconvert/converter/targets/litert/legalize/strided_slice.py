"""Strided slices: where all is constant, an ellipsis and new axes are resolved here, not left to the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.slicing import Entry, Selector, decoded, length, selectors
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import MismatchError, constant_target
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32> !tf_type.string"
_MAX_RANK = 8
_BOUND = (1 << 31) - 1
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def constant_bounds(op: Operation) -> list[list[int]] | None:
    """Returns begin, end and strides of a strided op, `None` if they are not constants of one length."""
    values = []
    for operand in op.operands[1:4]:
        constant = tensor_data.constant_of(operand)
        if constant is None:
            return None
        values.append([min(max(int(item), -_BOUND), _BOUND) for item in tensor_data.to_array(constant).reshape(-1)])
    return values if len({len(each) for each in values}) == 1 else None


def mask_of(op: Operation, name: str) -> int:
    """Returns a mask of a strided op by its attribute's name."""
    # No slice has more dimensions than fit into the option.
    return int(tf.get(op, name, 0)) & _BOUND


def entries_of(op: Operation, rank: int) -> list[Entry]:
    """Returns the part of each dimension that a slice with constant bounds takes.

    Raises:
        MismatchError: It has more bounds than its operand has dimensions.
    """
    bounds: Sequence[Sequence[int]] = constant_bounds(op) or ([], [], [])
    found = (entry for entry in decoded(partial(mask_of, op), bounds, rank) if entry.axis >= 0)
    return [entry._replace(stride=1) if entry.shrinks else entry for entry in found]


def bounds_fit(op: Operation) -> Failure | None:
    """The constraint that a slice with constant bounds has no more bounds than dimensions."""
    try:
        entries_of(op, len(op.operands[0].shape or ()))
    except MismatchError as problem:
        return Failure(str(problem))
    return None


def _constant_slice(op: Operation) -> Failure | None:
    if constant_bounds(op) is None:
        return Failure("begin, end or strides are not constants of the same length")
    shape = op.operands[0].shape
    if shape is None:
        return Failure("the input's rank is not known")
    if mask_of(op, "new_axis_mask") and constant_target(op.results[0].shape) is None:
        return Failure("more than one dimension of the result is not known")
    if len(shape) > _MAX_RANK:
        return Failure(f"the kernel takes at most {_MAX_RANK} dimensions")
    return bounds_fit(op)


def _strided_slice(op: Operation, emit: LiteRTBuilder) -> Value:
    value, shape, result_type = op.operands[0], op.operands[0].shape, op.results[0].type
    assert shape is not None
    spans = entries_of(op, len(shape))
    adds = bool(mask_of(op, "new_axis_mask"))
    if not _is_everything(spans):
        dims = [length(span, shape[span.axis]) for span in spans if not span.shrinks]
        cut_type = types.tensor(types.element_of(result_type), dims) if adds else result_type
        value = _slice(emit, value, spans, cut_type)
    return emit.reshape(value, types.shape_of(result_type) or ()) if adds else value


def _is_everything(spans: Sequence[Entry]) -> bool:
    """Returns whether nothing is cut off or reversed."""
    return all(span == Entry(span.axis) for span in spans)


def _empty(emit: LiteRTBuilder, value: Value, spans: Sequence[Entry], result_type: Attribute) -> Value | None:
    """Returns a part without elements by `slice`, if it is one: XNNPACK takes an end of zero for the border."""
    shape, sizes = value.shape or (), types.shape_of(result_type) or ()
    shrinks = any(span.shrinks for span in spans)
    if 0 not in sizes or 0 in shape or shrinks or types.is_static(sizes):
        return None
    cut = [dim if size == 0 else size for dim, size in zip(shape, sizes, strict=True)]
    spans = [Entry(span.axis) if sizes[span.axis] == 0 else span for span in spans]
    cut_type = types.tensor(types.element_of(result_type), cut)
    rest = value if _is_everything(spans) else _slice(emit, value, spans, cut_type)
    wanted = [0 if size == 0 else -1 for size in sizes]
    return emit.tf("Slice", (rest, emit.ints([0] * len(wanted)), emit.ints(wanted)), result_type)


def _slice(emit: LiteRTBuilder, value: Value, spans: Sequence[Entry], result_type: Attribute) -> Value:
    if (empty := _empty(emit, value, spans, result_type)) is not None:
        return empty
    bounds = [[span.begin or 0 for span in spans], [span.end or 0 for span in spans], [span.stride for span in spans]]
    options = dict.fromkeys(_MASKS, 0) | {
        "begin_mask": sum((span.begin is None) << span.axis for span in spans),
        "end_mask": sum((span.end is None) << span.axis for span in spans),
        "shrink_axis_mask": sum(span.shrinks << span.axis for span in spans),
    }
    return emit.tfl("strided_slice", (value, *map(emit.ints, bounds)), result_type, options)


def _options(found: Sequence[Selector]) -> dict[str, int]:
    """Returns the masks for dimensions that each have an entry; the kernel doesn't ignore one mask beside another."""
    flags = {
        "begin_mask": [each.is_whole or not (each.axis < 0 or each.has_begin) for each in found],
        "end_mask": [each.is_whole or not (each.axis < 0 or each.has_end) for each in found],
        "ellipsis_mask": [],
        "new_axis_mask": [each.axis < 0 for each in found],
        "shrink_axis_mask": [each.shrinks for each in found],
    }
    return {name: sum(bit << index for index, bit in enumerate(bits)) for name, bits in flags.items()}


def _spelled_out(emit: LiteRTBuilder, vector: Value, found: Sequence[Selector], count: int, fill: int) -> Value:
    """Returns begin, end or strides with an entry for each dimension."""
    positions = [-1 if each.is_whole else each.position for each in found]
    if positions == list(range(count)):
        return emit.limited_i32(vector)
    constant = tensor_data.constant_of(vector)
    if constant is not None:
        values = tensor_data.to_array(constant).reshape(-1).tolist()
        return emit.ints([fill if at < 0 else min(max(values[at], -_BOUND), _BOUND) for at in positions])
    vector = emit.limited_i32(vector)
    if -1 in positions:
        operands = (vector, emit.ints([fill]), emit.scalar(0, types.I32))
        vector = emit.tf("ConcatV2", operands, types.tensor(types.I32, (count + 1,)))
    indices = emit.ints([count if at < 0 else at for at in positions])
    return emit.tf("GatherV2", (vector, indices, emit.scalar(0, types.I32)), types.tensor(types.I32, (len(positions),)))


def _selectors(op: Operation, count: int, rank: int) -> list[Selector]:
    """Returns the dimensions that a slice names or that its ellipsis, which the kernel may miscount, stands for."""
    found = selectors(partial(mask_of, op), count, rank)
    return [each for each in found if each.position < count]


def _count(op: Operation) -> int | None:
    """Returns the number of bounds, `None` if the types don't have it or contradict each other."""
    shapes = (operand.shape for operand in op.operands[1:4])
    counts = {shape[0] for shape in shapes if shape is not None and len(shape) == 1 and shape[0] >= 0}
    return counts.pop() if len(counts) == 1 else None


def _computed_slice_constraint(op: Operation) -> Failure | None:
    shape = op.operands[0].shape
    if shape is None:
        return Failure("the input's rank is not known")
    if len(shape) > _MAX_RANK:
        return Failure(f"the kernel takes at most {_MAX_RANK} dimensions")
    if not mask_of(op, "new_axis_mask") and not mask_of(op, "ellipsis_mask"):
        return None
    count = _count(op)
    if count is None:
        return Failure("it has new axes or an ellipsis, and the number of its bounds is not known")
    added = sum(each.axis < 0 for each in _selectors(op, count, len(shape)))
    if len(shape) + added <= _MAX_RANK or op.results[0].shape is not None:
        return None
    return Failure("the result's rank is not known")


def _computed_slice(op: Operation, emit: LiteRTBuilder) -> Value:
    count, shape = _count(op), op.operands[0].shape or ()
    if count is None:
        operands = (op.operands[0], *(emit.limited_i32(operand) for operand in op.operands[1:4]))
        return emit.tfl("strided_slice", operands, op.results[0].type, {name: mask_of(op, name) for name in _MASKS})
    found, result_type = _selectors(op, count, len(shape)), op.results[0].type
    axes, kept = list[int](), list[int]()
    if len(shape) + sum(each.axis < 0 for each in found) > _MAX_RANK:
        axes = [axis for axis, each in enumerate(each for each in found if not each.shrinks) if each.axis < 0]
        found = [each for each in found if each.axis >= 0]
        kept = [dim for axis, dim in enumerate(types.shape_of(result_type) or ()) if axis not in axes]
        result_type = types.tensor(types.element_of(result_type), kept)
    vectors = (
        _spelled_out(emit, operand, found, count, fill)
        for operand, fill in zip(op.operands[1:4], (0, 0, 1), strict=True)
    )
    value = emit.tfl("strided_slice", (op.operands[0], *vectors), result_type, _options(found))
    for axis in axes:
        kept.insert(axis, 1)
        operands = (value, emit.scalar(axis, types.I32))
        value = emit.tf("ExpandDims", operands, types.tensor(types.element_of(result_type), kept))
    return value


_lowering = partial(Lowering, "StridedSlice", "strided_slice", types=_ELEMENTS)

ENTRIES: tuple[Lowering, ...] = (
    _lowering(rewrite=_strided_slice, constraint=_constant_slice, benefit=2, name="StridedSlice-constant"),
    _lowering(rewrite=_computed_slice, constraint=_computed_slice_constraint),
)
