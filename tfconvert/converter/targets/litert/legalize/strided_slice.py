"""Strided slices: where all is constant, an ellipsis and new axes are resolved here, not left to the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ELEMENTS = "f32 f16 bf16 f64 i8 ui8 i16 ui16 i32 ui32 i64 ui64 i1 complex<f32> !tf_type.string"
_MAX_RANK = 8
_BOUND = (1 << 31) - 1
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class Dense:
    """A slice that names every dimension of the input once.

    Attributes:
        begin: First index of each dimension.
        end: Index after the last.
        strides: Steps.
        begin_mask: Bits of the dimensions that begin at their border.
        end_mask: Bits of the dimensions that end at their border.
        shrink_mask: Bits of the dimensions that are indexed and dropped.
    """

    __slots__ = ("begin", "begin_mask", "end", "end_mask", "shrink_mask", "strides")

    def __init__(self) -> None:
        self.begin: list[int] = []
        self.end: list[int] = []
        self.strides: list[int] = []
        self.begin_mask = self.end_mask = self.shrink_mask = 0

    def add(self, begin: int, end: int, stride: int, masks: tuple[bool, bool, bool]) -> None:
        """Adds a dimension with its begin, end and shrink bits."""
        bit = 1 << len(self.begin)
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)
        self.begin_mask |= bit * masks[0]
        self.end_mask |= bit * masks[1]
        self.shrink_mask |= bit * masks[2]

    def add_whole(self, count: int) -> None:
        """Adds dimensions that are taken as they are."""
        for _ in range(count):
            self.add(0, 0, 1, (True, True, False))

    @property
    def is_everything(self) -> bool:
        """Whether nothing is cut off or reversed."""
        every = (1 << len(self.begin)) - 1
        return self.begin_mask == self.end_mask == every and not self.shrink_mask and set(self.strides) <= {1}


def constant_bounds(op: Operation) -> list[list[int]] | None:
    """Returns begin, end and strides of a strided op, `None` if they are not constants of one length."""
    values = []
    for operand in op.operands[1:4]:
        constant = tensor_data.constant_of(operand)
        if constant is None:
            return None
        values.append([min(max(int(item), -_BOUND), _BOUND) for item in tensor_data.to_array(constant).reshape(-1)])
    return values if len({len(each) for each in values}) == 1 else None


def masks_of(op: Operation) -> dict[str, int]:
    """Returns a strided op's masks by name."""
    # No slice has more dimensions than fit into the option.
    return {name: int(tf.get(op, name, 0)) & _BOUND for name in _MASKS}


def densify(bounds: Sequence[Sequence[int]], masks: dict[str, int], rank: int) -> Dense:
    """Returns a slice without ellipsis and new axes that takes the same elements.

    Args:
        bounds: First indices, ends and steps, as the op has them.
        masks: The op's masks by name.
        rank: The input's rank.
    """
    begin, end, strides = bounds
    dense = Dense()
    added = (masks["new_axis_mask"] & ~masks["ellipsis_mask"] & ((1 << len(begin)) - 1)).bit_count()
    skipped = rank - (len(begin) - added - masks["ellipsis_mask"].bit_count())
    for index in range(len(begin)):
        bits = {name: bool(mask >> index & 1) for name, mask in masks.items()}
        if bits["ellipsis_mask"]:
            dense.add_whole(skipped)
        elif not bits["new_axis_mask"]:
            shrinks = bits["shrink_axis_mask"]
            flags = (bits["begin_mask"] and not shrinks, bits["end_mask"] and not shrinks, shrinks)
            dense.add(begin[index], end[index], 1 if shrinks else strides[index], flags)
    dense.add_whole(rank - len(dense.begin))
    return dense


def _constant_slice(op: Operation) -> Failure | None:
    if constant_bounds(op) is None:
        return Failure("begin, end or strides are not constants of the same length")
    shape = types.shape_of(op.operands[0].type)
    if shape is None:
        return Failure("the input's rank is not known")
    masks = masks_of(op)
    if masks["new_axis_mask"] and constant_target(types.shape_of(op.results[0].type)) is None:
        return Failure("more than one dimension of the result is not known")
    return None if len(shape) <= _MAX_RANK else Failure(f"the kernel takes at most {_MAX_RANK} dimensions")


def _dims(dense: Dense, shape: types.Shape) -> types.Shape:
    """Returns the shape of a slice's result."""
    dims = []
    for axis, size in enumerate(shape):
        if dense.shrink_mask >> axis & 1:
            continue
        whole = dense.begin_mask >> axis & 1 and dense.end_mask >> axis & 1
        if size < 0:
            dims.append(-1)
        elif whole:
            dims.append(-(-size // abs(dense.strides[axis])))
        else:
            begin = None if dense.begin_mask >> axis & 1 else dense.begin[axis]
            end = None if dense.end_mask >> axis & 1 else dense.end[axis]
            dims.append(len(range(*slice(begin, end, dense.strides[axis]).indices(size))))
    return tuple(dims)


def _strided_slice(op: Operation, emit: LiteRTBuilder) -> Value:
    constants, masks = constant_bounds(op), masks_of(op)
    shape, result_type = types.shape_of(op.operands[0].type), op.results[0].type
    assert constants is not None
    assert shape is not None
    dense = densify(constants, masks, len(shape))
    value: Value = op.operands[0]
    if not dense.is_everything:
        adds = bool(masks["new_axis_mask"])
        cut_type = types.tensor(types.element_of(result_type), _dims(dense, shape)) if adds else result_type
        value = _slice(emit, value, dense, cut_type)
    if not masks["new_axis_mask"]:
        return value
    return emit.reshape(value, types.shape_of(result_type) or ())


def _nothing(emit: LiteRTBuilder, value: Value, dense: Dense, result_type: Attribute) -> Value | None:
    """Returns a part without elements by `slice`, if it is one: XNNPACK takes an end of zero for the border."""
    shape, sizes = types.shape_of(value.type) or (), types.shape_of(result_type) or ()
    if 0 not in sizes or 0 in shape or dense.shrink_mask or types.is_static(sizes):
        return None
    cut = list(shape)
    for axis, size in enumerate(sizes):
        if size == 0:
            dense.begin_mask |= 1 << axis
            dense.end_mask |= 1 << axis
            dense.strides[axis] = 1
        else:
            cut[axis] = size
    element = types.element_of(result_type)
    rest = value if dense.is_everything else _slice(emit, value, dense, types.tensor(element, cut))
    wanted = [0 if size == 0 else -1 for size in sizes]
    return emit.tf("Slice", (rest, emit.ints([0] * len(wanted)), emit.ints(wanted)), result_type)


def _slice(emit: LiteRTBuilder, value: Value, dense: Dense, result_type: Attribute) -> Value:
    if (empty := _nothing(emit, value, dense, result_type)) is not None:
        return empty
    operands = (value, emit.ints(dense.begin), emit.ints(dense.end), emit.ints(dense.strides))
    options = {
        "begin_mask": dense.begin_mask,
        "end_mask": dense.end_mask,
        "ellipsis_mask": 0,
        "new_axis_mask": 0,
        "shrink_axis_mask": dense.shrink_mask,
    }
    return emit.tfl("strided_slice", operands, result_type, options)


class _Entries:
    """The entries of a slice with computed bounds, an ellipsis spelled out: the kernel miscounts some.

    Attributes:
        positions: Where in the op's vectors each entry comes from, -1 for a dimension that an ellipsis takes.
        masks: The masks for these entries; that of the ellipsis is zero.
    """

    __slots__ = ("_count", "masks", "positions")

    def __init__(self, masks: dict[str, int], count: int, rank: int) -> None:
        self._count = count
        added = _new_axes(masks, count)
        self.positions: list[int] = []
        self.masks = dict.fromkeys(_MASKS, 0)
        for position in range(count):
            if masks["ellipsis_mask"] >> position & 1:
                for _ in range(rank + added - (count - 1)):
                    self._add(-1, dict.fromkeys(("begin_mask", "end_mask"), 1))
            else:
                self._add(position, _bits(masks, position))

    def _add(self, position: int, bits: dict[str, int]) -> None:
        for name, bit in bits.items():
            self.masks[name] |= bit << len(self.positions)
        self.positions.append(position)

    def drop_new_axes(self) -> None:
        """Leaves out new axes, so that the result lacks them."""
        kept = [index for index in range(len(self.positions)) if not self.masks["new_axis_mask"] >> index & 1]
        self.masks = {
            name: sum((mask >> index & 1) << place for place, index in enumerate(kept))
            for name, mask in self.masks.items()
        }
        self.positions = [self.positions[index] for index in kept]

    def vector(self, emit: LiteRTBuilder, vector: Value, fill: int) -> Value:
        """Returns begin, end or strides for these entries."""
        count = self._count
        if self.positions == list(range(count)):
            return emit.limited_i32(vector)
        constant = tensor_data.constant_of(vector)
        if constant is not None:
            values = tensor_data.to_array(constant).reshape(-1).tolist()
            return emit.ints([fill if at < 0 else min(max(values[at], -_BOUND), _BOUND) for at in self.positions])
        vector = emit.limited_i32(vector)
        if -1 in self.positions:
            operands = (vector, emit.ints([fill]), emit.scalar(0, types.I32))
            vector = emit.tf("ConcatV2", operands, types.tensor(types.I32, (count + 1,)))
        indices = emit.ints([count if at < 0 else at for at in self.positions])
        result_type = types.tensor(types.I32, (len(self.positions),))
        return emit.tf("GatherV2", (vector, indices, emit.scalar(0, types.I32)), result_type)


def _bits(masks: dict[str, int], position: int) -> dict[str, int]:
    """Returns an entry's bits without those that TensorFlow ignores beside others: the kernel doesn't."""
    bits = {name: mask >> position & 1 for name, mask in masks.items()}
    for name in ("new_axis_mask", "shrink_axis_mask"):
        if bits[name]:
            return {name: 1}
    return bits


def _new_axes(masks: dict[str, int], count: int) -> int:
    """Returns how many axes a slice adds; in an ellipsis or beyond the bounds, a bit has no meaning."""
    return (masks["new_axis_mask"] & ~masks["ellipsis_mask"] & ((1 << count) - 1)).bit_count()


def _count(op: Operation) -> int | None:
    """Returns how many entries a slice has, `None` if the types don't tell or contradict each other."""
    shapes = (types.shape_of(operand.type) for operand in op.operands[1:4])
    counts = {shape[0] for shape in shapes if shape is not None and len(shape) == 1 and shape[0] >= 0}
    return counts.pop() if len(counts) == 1 else None


def _computed_slice_constraint(op: Operation) -> Failure | None:
    shape, masks = types.shape_of(op.operands[0].type), masks_of(op)
    if shape is None:
        return Failure("the input's rank is not known")
    if len(shape) > _MAX_RANK:
        return Failure(f"the kernel takes at most {_MAX_RANK} dimensions")
    if not masks["new_axis_mask"] and not masks["ellipsis_mask"]:
        return None
    count = _count(op)
    if count is None:
        return Failure("it has new axes or an ellipsis, and the number of its bounds is not known")
    if len(shape) + _new_axes(masks, count) <= _MAX_RANK or types.shape_of(op.results[0].type) is not None:
        return None
    return Failure("the result's rank is not known")


def _computed_slice(op: Operation, emit: LiteRTBuilder) -> Value:
    count, masks, shape = _count(op), masks_of(op), types.shape_of(op.operands[0].type) or ()
    if count is None:
        operands = (op.operands[0], *(emit.limited_i32(operand) for operand in op.operands[1:4]))
        return emit.tfl("strided_slice", operands, op.results[0].type, masks)
    entries = _Entries(masks, count, len(shape))
    too_many = len(shape) + _new_axes(masks, count) > _MAX_RANK
    axes = _added_axes(entries.masks, len(entries.positions)) if too_many else []
    result_type, kept = op.results[0].type, list[int]()
    if axes:
        entries.drop_new_axes()
        kept = [dim for axis, dim in enumerate(types.shape_of(result_type) or ()) if axis not in axes]
        result_type = types.tensor(types.element_of(result_type), kept)
    vectors = (entries.vector(emit, operand, fill) for operand, fill in zip(op.operands[1:4], (0, 0, 1), strict=True))
    value = emit.tfl("strided_slice", (op.operands[0], *vectors), result_type, entries.masks)
    for axis in axes:
        kept.insert(axis, 1)
        operands = (value, emit.scalar(axis, types.I32))
        value = emit.tf("ExpandDims", operands, types.tensor(types.element_of(result_type), kept))
    return value


def _added_axes(masks: dict[str, int], count: int) -> list[int]:
    """Returns the axes of the result that are new."""
    kept = [index for index in range(count) if (masks["new_axis_mask"] | ~masks["shrink_axis_mask"]) >> index & 1]
    return [axis for axis, index in enumerate(kept) if masks["new_axis_mask"] >> index & 1]


_lowering = partial(Lowering, "StridedSlice", "strided_slice", types=_ELEMENTS)

ENTRIES: tuple[Entry, ...] = (
    _lowering(rewrite=_strided_slice, constraint=_constant_slice, benefit=2, name="StridedSlice-constant"),
    _lowering(rewrite=_computed_slice, constraint=_computed_slice_constraint),
)
