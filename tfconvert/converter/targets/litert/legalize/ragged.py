"""Ragged tensors of rows of different lengths, represented by all their values and where each row starts."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering
from tfconvert.converter.targets.litert.legalize.indexing import numbers, size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.segments import segment_sizes
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SPLITS = ("ROW_SPLITS",)
_ROW_NUMBERS = ("FIRST_DIM_SIZE", "VALUE_ROWIDS")


def _kinds(op: Operation) -> tuple[str, ...]:
    names: Sequence[str | bytes] = tf.get(op, "row_partition_types") or ()
    return tuple(each.decode() if isinstance(each, bytes) else each for each in names)


def _padded_constraint(op: Operation) -> Failure | None:
    constant, shape = tensor_data.constant_of(op.operands[0]), types.shape_of(op.operands[1].type)
    if _kinds(op) not in (_SPLITS, _ROW_NUMBERS):
        return Failure("only tensors with one ragged dimension are padded")
    if constant is None or shape is None or not types.is_static(shape[1:]):
        return Failure("the padded tensor's rank, or the size of its rows' elements, is not known")
    wanted = tensor_data.to_array(constant).reshape(-1).tolist()
    if wanted[:1] != [-1] or any(dim not in (-1, size) for dim, size in zip(wanted[2:], shape[1:], strict=False)):
        return Failure("it is cut or padded along dimensions other than that of the rows' lengths")
    return None


def _padded(op: Operation, emit: LiteRTBuilder) -> Value:
    """Picks for each place its value, or the default, which comes before all values."""
    values, default = op.operands[1:3]
    element, rest = types.element_of(values.type), (types.shape_of(values.type) or ())[1:]
    starts, lengths = _rows(op, emit)
    wanted = tensor_data.constant_of(op.operands[0])
    sizes = [-1] if wanted is None else tensor_data.to_array(wanted).reshape(-1).tolist()[1:2]
    width = sizes[0] if sizes else -1
    limit = emit.scalar(width, types.I32) if width >= 0 else _longest(emit, lengths)
    columns = emit.tf(
        "Range", (emit.scalar(0, types.I32), limit, emit.scalar(1, types.I32)), types.tensor(types.I32, (width,))
    )
    count = (types.shape_of(starts.type) or (-1,))[0]
    is_there = emit.compare("Less", columns, emit.reshape(lengths, (count, 1)))
    places = emit.binary("AddV2", emit.reshape(emit.binary("AddV2", starts, 1), (count, 1)), columns)
    axis, row = emit.scalar(0, types.I32), types.tensor(element, (1, *rest))
    filler = emit.tf("BroadcastTo", (default, emit.ints((1, *rest))), row) if rest else emit.reshape(default, (1,))
    joined = emit.tf("ConcatV2", (filler, values, axis), types.tensor(element, (-1, *rest)))
    return emit.tf("GatherV2", (joined, emit.select(is_there, places, 0), axis), op.results[0].type)


def _rows(op: Operation, emit: LiteRTBuilder) -> tuple[Value, Value]:
    """Returns where each row starts, and how long it is."""
    if _kinds(op) == _SPLITS:
        return _between(emit, emit.i32(op.operands[3]))
    count, row_numbers = (emit.i32(operand) for operand in op.operands[3:5])
    lengths = segment_sizes(emit, row_numbers, count, types.I32)
    start = emit.tf("Cumsum", (lengths, emit.scalar(0, types.I32)), lengths.type, {"exclusive": True})
    return start, lengths


def _between(emit: LiteRTBuilder, splits: Value) -> tuple[Value, Value]:
    """Returns where rows start, and how long they are, from the bounds between them."""
    (size,) = types.shape_of(splits.type) or (-1,)
    bounds = types.tensor(types.I32, (max(size - 1, -1),))
    one = emit.ints((1,))
    starts = emit.tf("StridedSlice", (splits, emit.ints((0,)), emit.ints((-1,)), one), bounds, {"begin_mask": 1})
    ends = emit.tf("StridedSlice", (splits, one, emit.ints((0,)), one), bounds, {"end_mask": 1})
    return starts, emit.binary("Sub", ends, starts)


def _longest(emit: LiteRTBuilder, lengths: Value) -> Value:
    return emit.binary("Maximum", emit.reduce("Max", lengths, (0,)), 0)


def _sparse_constraint(op: Operation) -> Failure | None:
    is_flat = len(op.operands) == 2 and len(types.shape_of(op.operands[1].type) or (0, 0)) == 1
    return None if is_flat else Failure("only tensors with one ragged dimension, the last, become sparse")


def _to_sparse(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Computes each value's row: how many rows have started by then."""
    splits, values = emit.i32(op.operands[0]), op.operands[1]
    (count,) = types.shape_of(values.type) or (-1,)
    size = size_of(emit, values, 0)
    vector, places = types.tensor(types.I32, (count,)), types.tensor(types.I32, (count, 2))
    bounds = emit.reshape(emit.binary("AddV2", size, 1), ())
    started = segment_sizes(emit, splits, bounds, types.I32)
    total = emit.tf("Cumsum", (started, emit.scalar(0, types.I32)), started.type)
    rows = emit.binary("Sub", emit.tf("Slice", (total, emit.ints((0,)), size), vector), 1)
    starts, lengths = _between(emit, splits)
    first = emit.tf("GatherV2", (starts, rows, emit.scalar(0, types.I32)), vector)
    columns = emit.binary("Sub", numbers(emit, values, 0), first)
    indices = emit.tf("Pack", (rows, columns), places, {"axis": 1, "N": 2})
    height = emit.reshape(size_of(emit, starts, 0), ())
    shape = emit.tf("Pack", (height, _longest(emit, lengths)), types.tensor(types.I32, (2,)), {"axis": 0, "N": 2})
    return [emit.cast(indices, types.I64), values, emit.cast(shape, types.I64)]


ENTRIES: tuple[Entry, ...] = (
    Lowering(
        "RaggedTensorToTensor",
        "Range Less SelectV2 GatherV2",
        _padded,
        "f32 i32 i64 ui8 i8 i16 i1",
        _padded_constraint,
        typed=1,
    ),
    Lowering("RaggedTensorToSparse", "UnsortedSegmentSum Cumsum Pack", _to_sparse, constraint=_sparse_constraint),
)
