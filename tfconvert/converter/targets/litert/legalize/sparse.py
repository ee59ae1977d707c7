"""Ragged tensors, represented by all values and where each row starts; sparse ones, by the indices of elements."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.indexing import numbers, size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.scatter import segment_sizes
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.tf_traits import SAME_ELEMENTS, full_names
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


_FILLED = "f32 i32 i64 ui8 i8 i16 i1"


def _scalar(emit: LiteRTBuilder, vector: Value, at: int) -> Value:
    """Returns an element of a vector."""
    constant = tensor_data.constant_of(vector)
    if constant is not None:
        return emit.scalar(int(tensor_data.to_array(constant)[at]), types.element_of(vector.type))
    place = types.tensor(types.element_of(vector.type), ())
    return emit.tf("GatherV2", (vector, emit.scalar(at, types.I32), emit.scalar(0, types.I32)), place)


def _column(emit: LiteRTBuilder, indices: Value, at: int) -> Value:
    """Returns the indices along one dimension."""
    count = (types.shape_of(indices.type) or (-1,))[0]
    column = types.tensor(types.element_of(indices.type), (count,))
    return emit.tf("GatherV2", (indices, emit.scalar(at, types.I32), emit.scalar(1, types.I32)), column)


def _fill_empty_rows(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Puts elements for the empty rows after all others, and sorts by rows; those of one row keep their order."""
    indices, values, shape, default = op.operands
    rank = (types.shape_of(indices.type) or ())[1]
    rows, height = emit.i32(_column(emit, indices, 0)), emit.i32(_scalar(emit, shape, 0))
    is_empty = emit.compare("Equal", segment_sizes(emit, rows, height, types.I32), 0)
    empty = emit.tf("Where", (is_empty,), types.tensor(types.I64, (-1, 1)))
    order = _stable_order(emit, _joined(emit, rows, emit.i32(emit.reshape(empty, (-1,)))))
    defaults = types.tensor(types.element_of(values.type), (-1,))
    filled = emit.tf("Fill", (size_of(emit, empty, 0), default), defaults)
    axis = emit.scalar(0, types.I32)
    inverse = emit.tf("InvertPermutation", (order,), order.type)
    back = types.tensor(types.I32, types.shape_of(values.type))
    back_map = emit.tf("Slice", (inverse, emit.ints((0,)), size_of(emit, values, 0)), back)
    return [
        emit.tf(
            "GatherV2",
            (_joined(emit, indices, emit.pad(empty, ((0, 0), (0, rank - 1)))), order, axis),
            op.results[0].type,
        ),
        emit.tf("GatherV2", (_joined(emit, values, filled), order, axis), op.results[1].type),
        is_empty,
        emit.cast(back_map, types.I64),
    ]


def _joined(emit: LiteRTBuilder, first: Value, second: Value) -> Value:
    shape = types.shape_of(first.type) or ()
    result = types.tensor(types.element_of(first.type), (-1, *shape[1:]))
    return emit.tf("ConcatV2", (first, second, emit.scalar(0, types.I32)), result)


def _stable_order(emit: LiteRTBuilder, rows: Value) -> Value:
    """Returns the permutation that sorts numbers in ascending order; equals keep their order."""
    count = emit.reshape(size_of(emit, rows, 0), ())
    places = types.tensor(types.I32, types.shape_of(rows.type))
    found = emit.tf_op("TopKV2", (emit.unary("Neg", rows), count), (rows.type, places), {"sorted": True})
    return found.results[1]


def _rank_is_known(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[0].type)
    return (
        None
        if shape is not None and len(shape) == 2 and shape[1] > 0
        else Failure("the sparse tensor's rank is not known")
    )


def _shape_is_known(op: Operation) -> Failure | None:
    shape = types.shape_of(op.operands[2].type)
    return None if shape is not None and min(shape, default=0) > 0 else Failure("the sparse tensor's rank is not known")


def _reshape(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Computes the elements' linear indices, and the new indices from these."""
    indices, old, new = op.operands
    shape = _without_guess(emit, old, new)
    # The indices of an empty dimension don't matter, but nothing may be divided by its size.
    sizes = emit.binary("Maximum", shape, 1)
    after = [_scalar(emit, sizes, at) for at in _axes(new)]
    places = _split(emit, _counted(emit, indices, old, _axes(old)), after)
    return [emit.tf("Pack", places, op.results[0].type, {"axis": 1, "N": len(places)}), shape]


def _split(emit: LiteRTBuilder, number: Value, sizes: Sequence[Value]) -> list[Value]:
    """Returns the indices along dimensions; the last one varies fastest."""
    places: list[Value] = []
    for size in reversed(sizes[1:]):
        places.append(emit.binary("FloorMod", number, size))
        number = emit.binary("FloorDiv", number, size)
    return [number, *reversed(places)]


def _without_guess(emit: LiteRTBuilder, old: Value, new: Value) -> Value:
    """Resolves the -1 of a shape, if it has one: the divisor is minus the product of all dimensions."""
    constant = tensor_data.constant_of(new)
    if constant is not None and (tensor_data.to_array(constant) >= 0).all():
        return new
    total, others = (emit.reduce("Prod", shape, (0,)) for shape in (old, new))
    guess = emit.binary("FloorDiv", total, emit.binary("Maximum", emit.unary("Neg", others), 1))
    return emit.select(emit.compare("Equal", new, -1), guess, new)


def _ranks_are_known(op: Operation) -> Failure | None:
    shapes = [types.shape_of(operand.type) for operand in op.operands]
    is_known = all(
        shape is not None and len(shape) == rank and shape[-1] > 0
        for shape, rank in zip(shapes, (2, 1, 1), strict=True)
    )
    return None if is_known else Failure("the sparse tensor's rank is not known")


def _times_dense(op: Operation, emit: LiteRTBuilder) -> Value:
    """Gathers for each element the row of the other matrix that it is multiplied by, and sums by its own row."""
    indices, values, shape, matrix = op.operands
    own = 1 if tf.get(op, "adjoint_a", False) else 0
    if tf.get(op, "adjoint_b", False):
        matrix = emit.transpose(matrix, (1, 0))
    count = (types.shape_of(values.type) or (-1,))[0]
    element, width = types.element_of(matrix.type), (types.shape_of(matrix.type) or (-1, -1))[1]
    rows = emit.tf(
        "GatherV2",
        (matrix, _column(emit, indices, 1 - own), emit.scalar(0, types.I32)),
        types.tensor(element, (count, width)),
    )
    products = emit.binary("Mul", rows, emit.reshape(values, (count, 1)))
    height = emit.i32(_scalar(emit, shape, own))
    return emit.tf("UnsortedSegmentSum", (products, emit.i32(_column(emit, indices, own)), height), op.results[0].type)


def _reorder(op: Operation, emit: LiteRTBuilder) -> list[Value]:
    """Sorts by the elements' linear indices."""
    indices, values, shape = op.operands
    order = _stable_order(emit, _counted(emit, indices, shape, _axes(shape)))
    axis = emit.scalar(0, types.I32)
    return [emit.tf("GatherV2", (each, order, axis), each.type) for each in (indices, values)]


def _counted(emit: LiteRTBuilder, indices: Value, shape: Value, axes: Sequence[int]) -> Value:
    """Returns each element's linear index; the last dimension varies fastest."""
    number = _column(emit, indices, axes[0])
    for axis in axes[1:]:
        number = emit.binary("Mul", number, _scalar(emit, shape, axis))
        number = emit.binary("AddV2", number, _column(emit, indices, axis))
    return number


def _axes(shape: Value) -> range:
    return range((types.shape_of(shape.type) or (0,))[0])


def _flags_to_dense(op: Operation, emit: LiteRTBuilder) -> Value:
    """Scatters numbers that represent booleans."""
    indices, shape, values, default = op.operands
    numbers = (emit.cast(value, types.I8) for value in (values, default))
    result = types.tensor(types.I8, types.shape_of(op.results[0].type))
    return emit.cast(emit.tf("SparseToDense", (indices, shape, *numbers), result, op.properties), types.I1)


# Which of the old dimensions, one after the other, become each new one.
_Runs = list[range]

_LOOKED_THROUGH = full_names(SAME_ELEMENTS | {"Cast", "Prod"})


def _merged(op: Operation) -> _Runs | Failure:
    """Recognises new dimensions that are products of old ones, as where all but the last become one."""
    rank = (types.shape_of(op.operands[1].type) or (-1,))[0]
    pack = op.operands[2].owner
    if op.operands[1] is op.operands[2]:
        return _Runs()
    if not isinstance(pack, Operation) or pack.name != "tf.Pack" or rank <= 0:
        return Failure("the new dimensions are not computed from the old ones")
    runs = _Runs()
    for value in pack.operands:
        after = runs[-1].stop if runs else 0
        run = _factors(value, op.operands[1], rank) or _known(value, op.operands[1], after)
        if run is None or run.start != after or run.step != 1:
            break
        runs.append(run)
    if len(runs) < len(pack.operands) or runs[-1].stop != rank:
        return Failure("the new dimensions are not products of the old ones, one after the other")
    return runs


def _known(value: Value, shape: Value, at: int) -> range | None:
    """Returns the next element of a shape, if it is known and equal to a value."""
    constant, owner = tensor_data.constant_of(value), shape.owner
    if constant is None or not isinstance(owner, Operation) or owner.name != "tf.Shape":
        return None
    sizes = (types.shape_of(owner.operands[0].type) or ())[at : at + 1]
    return range(at, at + 1) if sizes and (tensor_data.to_array(constant) == sizes[0]).all() else None


def _factors(value: Value, shape: Value, rank: int) -> range | None:
    """Returns the elements of a shape that a value equals, or is the product of."""
    while value is not shape:
        owner = value.owner
        if not isinstance(owner, Operation):
            return None
        if owner.name not in _LOOKED_THROUGH:
            return _picked(owner, rank) if owner.operands and owner.operands[0] is shape else None
        value = owner.operands[0]
    return range(rank)


def _picked(op: Operation, rank: int) -> range | None:
    """Returns which elements of a vector an op picks."""
    constants = [tensor_data.constant_of(operand) for operand in op.operands[1:]]
    numbers = [
        int(tensor_data.to_array(each).reshape(-1)[0])
        for each in constants
        if each is not None and types.shape_of(each.type) in ((), (1,))
    ]
    if len(numbers) < len(constants):
        return None
    if op.name in ("tf.Gather", "tf.GatherV2"):
        return range(rank)[numbers[0] : numbers[0] + 1]
    if op.name == "tf.Slice":
        begin, size = numbers
        return range(rank)[begin : rank if size == -1 else begin + size]
    if op.name != "tf.StridedSlice" or tf.get(op, "ellipsis_mask", 0) or tf.get(op, "new_axis_mask", 0):
        return None
    begin, end, step = numbers
    if tf.get(op, "shrink_axis_mask", 0):
        return range(rank)[begin % rank :][:1]
    span = slice(None if tf.get(op, "begin_mask", 0) else begin, None if tf.get(op, "end_mask", 0) else end, step)
    return range(rank)[span]


def _merge(op: Operation, runs: _Runs, rewriter: Rewriter) -> None:
    indices, old, new = op.operands
    if old is new or len(runs) == len(_axes(old)):
        rewriter.replace([indices, old])
        return
    emit = LiteRTBuilder(rewriter)
    places = [_counted(emit, indices, old, run) for run in runs]
    rewriter.replace([emit.tf("Pack", places, op.results[0].type, {"axis": 1, "N": len(places)}), new])


PATTERNS = (Pattern("merge-sparse-dimensions", "tf.SparseReshape", _merged, _merge, depth=3),)


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
    Lowering(
        "SparseFillEmptyRows",
        "UnsortedSegmentSum Where TopKV2 GatherV2",
        _fill_empty_rows,
        _FILLED,
        _rank_is_known,
        typed=1,
    ),
    Lowering("SparseTensorDenseMatMul", "GatherV2 Mul UnsortedSegmentSum", _times_dense, "f32 i32", typed=1),
    BuiltinRow(
        "SparseToDense",
        "sparse_to_dense",
        "f32 i32 i64 i8 ui8",
        typed=2,
        options={"validate_indices": Attr("validate_indices", True)},
    ),
    Lowering("SparseToDense", "Cast SparseToDense", _flags_to_dense, "i1", typed=2),
    Lowering("SparseReorder", "TopKV2 GatherV2", _reorder, constraint=_shape_is_known),
    Lowering("SparseReshape", "FloorMod FloorDiv Pack", _reshape, constraint=_ranks_are_known),
)
