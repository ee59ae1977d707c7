"""Reads and products of single time steps in unrolled recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tfconvert.converter.ir.constants import constant_array, constant_int, constant_ints
from tfconvert.converter.ir.edit import erase_dead, replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.recurrence.scan import Extents, indexed_axis, widened
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


@dataclass(frozen=True, slots=True)
class StepPlace:
    """The source of a step.

    Attributes:
        sequence: The sequence.
        axis: The axis of the steps, one of its first two.
        step: The step's index; counted from the end if negative.
    """

    sequence: Value
    axis: int
    step: int


def place_of(value: Value) -> StepPlace | None:
    """Returns the source of a step of a sequence of vectors, or `None`."""
    place = read_of(value)
    return place if place is not None and len(place.sequence.shape or ()) == 3 else None


def read_of(value: Value) -> StepPlace | None:
    """Returns the source of a step of a sequence of any rank, or `None` if its index is unknown."""
    if not isinstance(value, OpResult) or not value.op.operands:
        return None
    found = _FINDERS.get(value.op.name)
    place = None if found is None else found(value)
    shape = value.op.operands[0].shape
    if place is None or shape is None or place.axis > min(1, len(shape) - 1):
        return None
    length = shape[place.axis]
    return replace(place, step=place.step + length) if place.step < 0 <= length else place


def _sliced(value: OpResult) -> StepPlace | None:
    begin = constant_array(value.op.operands[1])
    axis = None if begin is None else indexed_axis(value.op, len(begin))
    return None if begin is None or axis is None else StepPlace(value.op.operands[0], axis, int(begin[axis]))


def _gathered(value: OpResult) -> StepPlace | None:
    whole, indices, axes = value.op.operands
    index, axis = constant_int(indices), constant_int(axes)
    if index is None or axis not in (0, 1) or indices.shape != () or tf.get(value.op, "batch_dims"):
        return None
    return StepPlace(whole, axis or 0, index)


def _unpacked(value: OpResult) -> StepPlace | None:
    whole = value.op.operands[0]
    return StepPlace(whole, int(tf.get(value.op, "axis", 0)) % len(whole.shape or (1,)), value.index)


_FINDERS = {"tf.GatherV2": _gathered, "tf.StridedSlice": _sliced, "tf.Unpack": _unpacked}


def takes(op: Operation, value: Value, indices: tuple[int, ...]) -> bool:
    """Returns whether an op reads exactly one of some steps from a sequence along axis 0.

    Args:
        op: The op.
        value: The sequence.
        indices: The possible indices of the step, counted from the end if negative.
    """
    place = place_of(op.results[0]) if len(op.results) == 1 else None
    if place is None or place.sequence is not value or place.axis != 0:
        return False
    length = (value.shape or (-1,))[0]
    return place.step in indices or (length >= 0 and place.step - length in indices)


def hoist_products(block: Block) -> int:
    """Joins equal ops on all steps of a sequence, after `cse`; returns the number of joined ops."""
    todo = [op for op in block.ops if op.name == "tf.Unpack"]
    hoisted = 0
    while todo:
        apart = todo.pop()
        rank = len(apart.operands[0].shape or ())
        if rank != 3 or tf.get(apart, "axis", 0) not in (0, 1):
            continue
        for alike in _alike(apart):
            hoisted += len(alike)
            todo += _at_once(apart, alike)
    if hoisted:
        erase_dead(block)
    return hoisted


def _alike(apart: Operation) -> list[list[Operation]]:
    """Returns groups of equal ops on each step, in the order of the steps."""
    steps = [[use.operation for use in result.uses if _takes(use.operation, result)] for result in apart.results]
    if len(steps) < 2:
        return []
    found = []
    for op in steps[0]:
        alike = [next((other for other in ops if _is_like(other, op)), None) for ops in steps]
        same = [other for other in alike if other is not None]
        if len(same) == len(steps):
            found.append(same)
    return found


def _is_like(op: Operation, other: Operation) -> bool:
    data = _DATA[op.name]
    return (
        op.name == other.name
        and op.properties == other.properties
        and all(
            one is another or index == data
            for index, (one, another) in enumerate(zip(op.operands, other.operands, strict=True))
        )
    )


def _is_vector(value: Value) -> bool:
    return tensor_data.constant_of(value) is not None and len(value.shape or (0, 0)) == 1


# The ops that can process a whole sequence -> the index of its operand.
_DATA: Mapping[str, int] = {"tf.MatMul": 0, "tf.BiasAdd": 0, "tf.AddV2": 0, "tf.Split": 1}

_FITS: Mapping[str, Callable[[Operation], bool]] = {
    "tf.MatMul": lambda op: tensor_data.constant_of(op.operands[1]) is not None and not tf.get(op, "transpose_a"),
    "tf.BiasAdd": lambda op: _is_vector(op.operands[1]) and tf.get(op, "data_format", "NHWC") == "NHWC",
    "tf.AddV2": lambda op: _is_vector(op.operands[1]),
    "tf.Split": lambda op: constant_int(op.operands[0]) in (1, -1),
}


def _takes(op: Operation, step: Value) -> bool:
    data = _DATA.get(op.name)
    return data is not None and op.operands[data] is step and _FITS[op.name](op)


def _at_once(apart: Operation, alike: Sequence[Operation]) -> list[Operation]:
    """Replaces ops by one on the whole sequence; returns the ops that unpack its results."""
    block, members, first = apart.parent, set(alike), alike[0]
    assert block is not None
    insert = TFBuilder(next(op for op in block.ops if op in members))
    sequence, axis = apart.operands[0], int(tf.get(apart, "axis", 0))
    length = len(alike)
    kinds = [_whole(result.type, axis, length) for result in first.results]
    if first.name == "tf.MatMul":
        options = {"adj_x": False, "adj_y": bool(tf.get(first, "transpose_b", False))}
        made = insert.tf_op("BatchMatMulV2", (sequence, first.operands[1]), kinds, options)
    elif first.name == "tf.Split":
        made = insert.tf_op("Split", (2, sequence), kinds)
    else:
        made = insert.tf_op(first.name.removeprefix(tf.PREFIX), (sequence, first.operands[1]), kinds, first.properties)
    parts = []
    for whole, result in zip(made.results, first.results, strict=True):
        parts.append(insert.tf_op("Unpack", (whole,), [result.type] * length, {"axis": axis}))
    for step, op in enumerate(alike):
        replace_op(op, [part.results[step] for part in parts])
    return parts


def _whole(row: Attribute, axis: int, length: int) -> Attribute:
    """Returns the type of a sequence of rows."""
    dims = types.shape_of(row) or ()
    return types.tensor(types.element_of(row), (*dims[:axis], length, *dims[axis:]))


_UPDATE = "tf.XlaDynamicUpdateSlice"

# Element types that kernels pack and unpack.
_ELEMENTS = (types.F32, types.I32, types.I64, types.I1)


def join_rows(module: ModuleOp, blocks: Sequence[Block]) -> None:
    """Replaces reads and writes of single rows by ops on all rows.

    Args:
        module: The module.
        blocks: The bodies of its functions.
    """
    extents = Extents(module)
    written = [(op, rows) for block in blocks for op in block.ops if (rows := _written(op, extents)) is not None]
    for op, rows in written:
        insert = TFBuilder(op)
        replace_op(op, _pack(insert, [_row(insert, row) for row in rows], 0, like=op.results[0]))
    for block in blocks:
        for op in tuple(block.ops):
            _move_pack(op)
        _replace_reads(block)
        erase_dead(block)


def _written(op: Operation, extents: Extents) -> list[Value] | None:
    """Returns the rows of a tensor if all are written and the op is the last write."""
    if op.name != _UPDATE or all(use.operation.name == _UPDATE and not use.index for use in op.results[0].uses):
        return None
    value: Value = op.results[0]
    length = (value.shape or (-1,))[0]
    if length < 1 or value.element not in _ELEMENTS:
        return None
    rows: dict[int, Value] = {}
    for _ in range(2 * length):  # Mostly each row is written once; looking further takes too long.
        if not isinstance(value, OpResult) or value.op.name != _UPDATE:
            return None
        into, row, places = value.op.operands
        place = constant_ints(places)
        if not place or any(place[1:]) or not 0 <= place[0] < length or not _is_row(row, into, extents):
            return None
        rows.setdefault(place[0], row)
        if len(rows) == length:
            return [rows[index] for index in range(length)]
        value = into
    return None


def _is_row(row: Value, of: Value, extents: Extents) -> bool:
    """Returns whether a value is a whole row, with a leading dimension, of a tensor."""
    dims, sizes = row.shape, of.shape
    if not dims or sizes is None or len(dims) != len(sizes) or dims[0] != 1:
        return False
    pairs = [(extents.dim(row, axis), extents.dim(of, axis)) for axis in range(1, len(dims))]
    return all(one is not None and one == other for one, other in pairs)


def _row(insert: TFBuilder, row: Value) -> Value:
    """Returns a row without its leading dimension."""
    found = widened(row)
    if found is not None:
        return found
    kind = types.tensor(row.element, (row.shape or ())[1:])
    return insert.tf("Squeeze", (row,), kind, {"squeeze_dims": (0,)})


def _pack(insert: TFBuilder, rows: Sequence[Value], axis: int, like: Value) -> Value:
    return insert.tf("Pack", rows, like.type, {"axis": axis})


def _move_pack(op: Operation) -> None:
    """Replaces a transpose or reversal of packed rows by packing along the other axis or in reverse order."""
    source = op.operands[0] if op.name in ("tf.Transpose", "tf.ReverseV2") else None
    if not isinstance(source, OpResult) or source.op.name != "tf.Pack":
        return
    rows, axis = list(source.op.operands), int(tf.get(source.op, "axis", 0))
    if _swaps(op) and axis in (0, 1):
        axis = 1 - axis
    elif _reversed_axis(op) == axis:
        rows.reverse()
    else:
        return
    replace_op(op, _pack(TFBuilder(op), rows, axis, like=op.results[0]))


def _swaps(op: Operation) -> bool:
    """Returns whether an op transposes the first two axes."""
    order = constant_ints(op.operands[1]) if op.name == "tf.Transpose" else None
    return order is not None and order == (1, 0, *range(2, len(order)))


def _reversed_axis(op: Operation) -> int | None:
    """Returns the only axis along which an op reverses a tensor."""
    axes = constant_ints(op.operands[1]) if op.name == "tf.ReverseV2" else None
    rank = len(op.results[0].shape or ())
    return axes[0] % rank if axes is not None and len(axes) == 1 and rank else None


def _replace_reads(block: Block) -> None:
    """Replaces reads of packed rows by the rows, and reads of most rows of a sequence by an `Unpack`."""
    reads: dict[tuple[Value, int], list[tuple[Operation, int]]] = {}
    for op in tuple(block.ops):
        place = _source(op) if op.name in ("tf.GatherV2", "tf.StridedSlice") else None
        if place is None:
            continue
        packed = _packed_row(place)
        if packed is not None:
            replace_op(op, packed)
        elif place.sequence.element in _ELEMENTS:
            reads.setdefault((place.sequence, place.axis), []).append((op, place.step))
    for found in reads.values():
        first = found[0][0]
        place = _source(first)  # The sequence may have been a row of another, which is replaced by now.
        assert place is not None, "it was found before"
        length = (place.sequence.shape or ())[place.axis]
        steps = {step for _, step in found}
        if len(steps) > max(1, length // 2):
            kinds = [first.results[0].type] * length
            apart = TFBuilder(first).tf_op("Unpack", (place.sequence,), kinds, {"axis": place.axis})
            for op, step in found:
                replace_op(op, apart.results[step])


def _source(read: Operation) -> StepPlace | None:
    """Returns the source of a row, before batch and time were swapped and the order was reversed."""
    place = read_of(read.results[0])
    while place is not None:
        length = (place.sequence.shape or (-1,) * 2)[place.axis]
        if not 0 <= place.step < length:
            return None
        op = place.sequence.owner
        if not isinstance(op, Operation) or op.name not in ("tf.Transpose", "tf.ReverseV2"):
            return place
        if _swaps(op):
            place = replace(place, sequence=op.operands[0], axis=1 - place.axis)
        elif _reversed_axis(op) == place.axis:
            place = replace(place, sequence=op.operands[0], step=length - 1 - place.step)
        else:
            return place
    return None


def _packed_row(place: StepPlace) -> Value | None:
    """Returns the row that was packed at a place, or `None`."""
    op = place.sequence.owner
    if not isinstance(op, Operation) or op.name != "tf.Pack":
        return widened(place.sequence) if place.axis == 0 else None
    return op.operands[place.step] if tf.get(op, "axis", 0) == place.axis else None
