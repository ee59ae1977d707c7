"""The rows of sequences that unrolled loops read and write one by one.

update(update(zeros, expand(a), [0]), expand(b), [1])  ->  pack(a, b)
x[0], x[1], x[2]                                       ->  unpack(x)
transpose(x, [1, 0, 2])[0], ...                        ->  unpack{axis 1}(x)
pack(a, b)[1], expand(b)[0]                            ->  b
transpose(pack(a, b), [1, 0, 2])                       ->  pack{axis 1}(a, b)
reverse(pack(a, b), [0])                               ->  pack(b, a)
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.ir.edit import erase_dead, replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.recurrence.lengths import Extents
from tfconvert.converter.recurrence.scan import widened
from tfconvert.converter.recurrence.step_reads import Place, read_of
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_UPDATE = "tf.XlaDynamicUpdateSlice"

# Element types of which kernels pack and unpack rows.
_ELEMENTS = (types.F32, types.I32, types.I64, types.I1)


def join_rows(module: ModuleOp, blocks: Sequence[Block]) -> None:
    """Replaces reads and writes of single rows by reads and writes of all.

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
    """Returns the rows of a tensor of which each one is written, if that op writes the last of them."""
    if op.name != _UPDATE or all(use.operation.name == _UPDATE and not use.index for use in op.results[0].uses):
        return None
    value: Value = op.results[0]
    length = (types.shape_of(value.type) or (-1,))[0]
    if length < 1 or types.element_of(value.type) not in _ELEMENTS:
        return None
    rows: dict[int, Value] = {}
    for _ in range(2 * length):  # Mostly each row is written once; to look further takes too long.
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
    dims, sizes = types.shape_of(row.type), types.shape_of(of.type)
    if not dims or sizes is None or len(dims) != len(sizes) or dims[0] != 1:
        return False
    pairs = [(extents.dim(row, axis), extents.dim(of, axis)) for axis in range(1, len(dims))]
    return all(one is not None and one == other for one, other in pairs)


def _row(insert: TFBuilder, row: Value) -> Value:
    """Returns a row without its leading dimension."""
    found = widened(row)
    if found is not None:
        return found
    kind = types.tensor(types.element_of(row.type), (types.shape_of(row.type) or ())[1:])
    return insert.tf("Squeeze", (row,), kind, {"squeeze_dims": (0,)})


def _pack(insert: TFBuilder, rows: Sequence[Value], axis: int, like: Value) -> Value:
    return insert.tf("Pack", rows, like.type, {"axis": axis})


def _move_pack(op: Operation) -> None:
    """Packs rows along the other axis, or in the other order, instead of moving the elements of the result."""
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
    rank = len(types.shape_of(op.results[0].type) or ())
    return axes[0] % rank if axes is not None and len(axes) == 1 and rank else None


def _replace_reads(block: Block) -> None:
    """Replaces reads of packed rows by these, and reads of most rows of a sequence by one op that takes it apart."""
    reads: dict[tuple[Value, int], list[tuple[Operation, int]]] = {}
    for op in tuple(block.ops):
        place = _source(op) if op.name in ("tf.GatherV2", "tf.StridedSlice") else None
        if place is None:
            continue
        packed = _packed_row(place)
        if packed is not None:
            replace_op(op, packed)
        elif types.element_of(place.sequence.type) in _ELEMENTS:
            reads.setdefault((place.sequence, place.axis), []).append((op, place.step))
    for found in reads.values():
        first = found[0][0]
        place = _source(first)  # The sequence may have been a row of another, which is replaced by now.
        assert place is not None, "it was found before"
        length = (types.shape_of(place.sequence.type) or ())[place.axis]
        steps = {step for _, step in found}
        if len(steps) > max(1, length // 2):
            kinds = [first.results[0].type] * length
            apart = TFBuilder(first).tf_op("Unpack", (place.sequence,), kinds, {"axis": place.axis})
            for op, step in found:
                replace_op(op, apart.results[step])


def _source(read: Operation) -> Place | None:
    """Returns where the row of a read is before batch and time were swapped, and before the order was reversed."""
    place = read_of(read.results[0])
    while place is not None:
        length = (types.shape_of(place.sequence.type) or (-1,) * 2)[place.axis]
        if not 0 <= place.step < length:
            return None
        op = place.sequence.owner
        if not isinstance(op, Operation) or op.name not in ("tf.Transpose", "tf.ReverseV2"):
            return place
        if _swaps(op):
            place = place._replace(sequence=op.operands[0], axis=1 - place.axis)
        elif _reversed_axis(op) == place.axis:
            place = place._replace(sequence=op.operands[0], step=length - 1 - place.step)
        else:
            return place
    return None


def _packed_row(place: Place) -> Value | None:
    """Returns the row at a place, if it was packed there."""
    op = place.sequence.owner
    if not isinstance(op, Operation) or op.name != "tf.Pack":
        return widened(place.sequence) if place.axis == 0 else None
    return op.operands[place.step] if tf.get(op, "axis", 0) == place.axis else None
