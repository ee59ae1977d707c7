"""Sparse tensors, represented by the indices of elements."""

from __future__ import annotations

from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.ops.sparse import linear_indices
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.tf_traits import SAME_ELEMENTS, full_names
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _flags_to_dense(op: Operation, emit: LiteRTBuilder) -> Value:
    """Scatters numbers that represent booleans."""
    indices, shape, values, default = op.operands
    numbers = (emit.cast(value, types.I8) for value in (values, default))
    result = types.tensor(types.I8, op.results[0].shape)
    return emit.cast(emit.tf("SparseToDense", (indices, shape, *numbers), result, op.properties), types.I1)


# Which of the old dimensions, one after the other, become each new one.
_Runs = list[range]

_LOOKED_THROUGH = full_names(SAME_ELEMENTS | {"Cast", "Prod"})


def _merged(op: Operation) -> _Runs | Failure:
    """Recognises new dimensions that are products of old ones, as where all but the last become one."""
    rank = (op.operands[1].shape or (-1,))[0]
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
    sizes = (owner.operands[0].shape or ())[at : at + 1]
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
        if each is not None and each.shape in ((), (1,))
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
    if old is new or len(runs) == (old.shape or ())[0]:
        rewriter.replace([indices, old])
        return
    emit = LiteRTBuilder(rewriter)
    table, sizes = (EmittedTensor(emit, each) for each in (indices, old))
    places = [linear_indices(table, sizes, run).value for run in runs]
    rewriter.replace([emit.tf("Pack", places, op.results[0].type, {"axis": 1, "N": len(places)}), new])


PATTERNS = (Pattern("merge-sparse-dimensions", "tf.SparseReshape", _merged, _merge, depth=3),)


ENTRIES: tuple[Entry, ...] = (
    BuiltinRow(
        "SparseToDense",
        "sparse_to_dense",
        "f32 i32 i64 i8 ui8",
        typed=2,
        options={"validate_indices": Attr("validate_indices", True)},
    ),
    Lowering("SparseToDense", "Cast SparseToDense", _flags_to_dense, "i1", typed=2),
)
