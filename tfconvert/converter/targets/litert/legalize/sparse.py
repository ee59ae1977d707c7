"""Sparse tensors, represented by the indices of their elements, these elements and a shape."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.entry import Attr, Entry, Lowering, Row
from tfconvert.converter.targets.litert.legalize.indexing import size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.legalize.segments import segment_sizes
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.tf_traits import SAME_ELEMENTS, full_names
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

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
    """Computes the elements' linear indices, and their new places from these."""
    indices, old, new = op.operands
    shape = _without_guess(emit, old, new)
    # An empty dimension has no elements whose places would matter, but nothing may be divided by it.
    sizes = emit.binary("Maximum", shape, 1)
    after = [_scalar(emit, sizes, at) for at in _axes(new)]
    places = _split(emit, _counted(emit, indices, old, _axes(old)), after)
    return [emit.tf("Pack", places, op.results[0].type, {"axis": 1, "N": len(places)}), shape]


def _split(emit: LiteRTBuilder, number: Value, sizes: Sequence[Value]) -> list[Value]:
    """Returns the places along dimensions, of which the last varies fastest."""
    places: list[Value] = []
    for size in reversed(sizes[1:]):
        places.append(emit.binary("FloorMod", number, size))
        number = emit.binary("FloorDiv", number, size)
    return [number, *reversed(places)]


def _without_guess(emit: LiteRTBuilder, old: Value, new: Value) -> Value:
    """Returns a shape whose -1, if it has one, is resolved: the divisor is minus the product of all dimensions."""
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
    """Returns each element's linear index, along dimensions of which the last varies fastest."""
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
        "SparseFillEmptyRows",
        "UnsortedSegmentSum Where TopKV2 GatherV2",
        _fill_empty_rows,
        _FILLED,
        _rank_is_known,
        typed=1,
    ),
    Lowering("SparseTensorDenseMatMul", "GatherV2 Mul UnsortedSegmentSum", _times_dense, "f32 i32", typed=1),
    Row(
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
