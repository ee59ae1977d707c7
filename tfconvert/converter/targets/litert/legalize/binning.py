"""Counting and sorting into bins, as layers that encode categories and cut numbers into ranges do."""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import Attr, BuiltinRow, Entry, Lowering, all_of, element_name
from tfconvert.converter.targets.litert.legalize.indexing import numbers, size_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Element types in which LiteRT both writes ones and adds them up.
_COUNTED = ("f32", "i32", "i64")

# Largest number of ones and zeros of a row before it is cheaper to add up segments; 0.5 MB of floats.
_ONE_HOT_LIMIT = 1 << 17

# The number of values of a row that this limit assumes where it is not known.
_GUESS = 64


def _has_weights(op: Operation) -> bool:
    """Returns whether values count for other than one; the empty tensor represents all ones."""
    return op.operands[2].shape not in ((0,), (0, 0)) and not tf.get(op, "binary_output", False)


def _weights_are_known(op: Operation) -> Failure | None:
    weights = op.operands[2].shape
    if weights not in ((0,), (0, 0)) and weights != op.operands[0].shape:
        return Failure("whether there is a weight for each value is not known")
    element = element_name(op.results[0].element)
    if element in _COUNTED or not _has_weights(op):
        return None
    return Failure(f"it counts by weights of {' '.join(_COUNTED)}, not {element}")


def _width(op: Operation) -> int:
    """Returns the number of bins, or -1 if it is known at run time only."""
    known = tensor_data.constant_of(op.operands[1])
    if known is None:
        # `tf.math.bincount` requires as many bins as the values need, within a minimum and a maximum.
        found = _limited(op.operands[1], "tf.Minimum")
        known = found[0] if found is not None and _is_reached(*found) else None
    if known is not None:
        return int(tensor_data.to_array(known).reshape(-1)[0])
    return (op.results[0].shape or (-1,))[-1]


def _limited(value: Value, name: str) -> tuple[tensor_data.Constant, Value] | None:
    """Returns the limit that an op of a certain name, with or without `tf.`, sets for a value, and that value."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in (name, name.lower().replace("tf.", "tfl.")):
        for limit, other in (owner.operands[:], owner.operands[::-1]):
            constant = tensor_data.constant_of(limit)
            if constant is not None and limit.shape == ():
                return constant, other
    return None


def _is_reached(upper: tensor_data.Constant, value: Value) -> bool:
    lower = _limited(value, "tf.Maximum")
    return lower is not None and bool(tensor_data.to_array(lower[0]) >= tensor_data.to_array(upper))


def _is_vector(op: Operation) -> Failure | None:
    shape, size = (operand.shape for operand in op.operands[:2])
    if shape is None or len(shape) not in (1, 2):
        return Failure("the rank of the counted values is not known")
    return (
        None if size in (None, ()) and _width(op) >= -1 else Failure("the number of bins is negative or not a scalar")
    )


def _fit_ones(op: Operation) -> bool:
    length = (op.operands[0].shape or (-1,))[-1]
    return max(_width(op), 0) * (length if length >= 0 else _GUESS) <= _ONE_HOT_LIMIT


def _count(op: Operation, emit: LiteRTBuilder) -> Value:
    """Counts the occurrences of each number in a row, except numbers that are too large."""
    values = op.operands[0]
    shape = values.shape or ()
    width = _width(op)
    result = op.results[0].element
    kind = result if element_name(result) in _COUNTED else types.I32
    size = emit.scalar(width, types.I32) if width >= 0 else emit.reshape(emit.i32(op.operands[1]), ())
    if _fit_ones(op):
        counts = _count_ones(emit, op, size, (*shape, width), kind)
    else:
        counts = _count_segments(emit, op, size, width)
    return emit.cast(counts, result)


def _count_ones(emit: LiteRTBuilder, op: Operation, size: Value, shape: types.Shape, kind: Attribute) -> Value:
    """Writes every value as ones and zeros, and adds these up."""
    limits = emit.scalar(1, kind), emit.scalar(0, kind)
    ones = emit.tf("OneHot", (op.operands[0], size, *limits), types.tensor(kind, shape), {"axis": -1})
    if _has_weights(op):
        column = types.tensor(kind, (*shape[:-1], 1))
        ones = emit.binary("Mul", ones, emit.tf("ExpandDims", (op.operands[2], emit.scalar(-1, types.I32)), column))
    axis = len(shape) - 2
    is_binary, can_be_empty = tf.get(op, "binary_output", False), shape[axis] < 1
    if is_binary and not can_be_empty:
        return emit.reduce("Max", ones, (axis,))
    # The maximum of no elements would not be zero.
    counts = emit.reduce("Sum", ones, (axis,))
    return _at_most_one(emit, counts) if is_binary else counts


def _count_segments(emit: LiteRTBuilder, op: Operation, size: Value, width: int) -> Value:
    """Adds up a one for each value in the segment that the value names; values of -1 are left out."""
    values = emit.limited_i32(op.operands[0])
    shape = values.shape or ()
    rows, places, count = shape[:-1], values, size
    if rows:
        start = emit.binary(
            "Mul",
            emit.tf(
                "ExpandDims", (numbers(emit, values, 0), emit.scalar(1, types.I32)), types.tensor(types.I32, (*rows, 1))
            ),
            size,
        )
        places = emit.binary("AddV2", values, start)
        count = emit.binary("Mul", emit.reshape(size_of(emit, values, 0), ()), size)
    places = emit.select(emit.compare("Less", values, size), places, -1)
    kind = op.results[0].element
    kind = kind if _has_weights(op) and kind == types.F32 else types.I32
    if _has_weights(op):
        ones = emit.cast(op.operands[2], kind)
    else:
        ones = emit.tf("Fill", (emit.shape(values), emit.scalar(1, kind)), types.tensor(kind, shape))
    total = rows[0] * width if rows and min(rows[0], width) >= 0 else -1 if rows else width
    sums = emit.tf("UnsortedSegmentSum", (ones, places, count), types.tensor(kind, (total,)))
    if tf.get(op, "binary_output", False):
        sums = _at_most_one(emit, sums)
    return emit.reshape(sums, (*rows, width)) if rows else sums


def _at_most_one(emit: LiteRTBuilder, counts: Value) -> Value:
    return emit.binary("Minimum", counts, 1)


def _segments_are_known(op: Operation) -> Failure | None:
    is_wide = _has_weights(op) and op.results[0].element == types.I64
    return Failure("there are too many bins for weights of i64") if is_wide and not _fit_ones(op) else None


def _no_boundaries(op: Operation) -> Failure | None:
    return Failure("there are boundaries") if tf.get(op, "boundaries") else None


def _one_bucket(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.tf("ZerosLike", (emit.cast(op.operands[0], types.I32),), op.results[0].type)


_COUNTABLE = all_of(_is_vector, _weights_are_known, _segments_are_known)

ENTRIES: tuple[Entry, ...] = (
    Lowering("DenseBincount", "OneHot Sum", _count, "i32 i64", _COUNTABLE),
    Lowering("Bincount", "OneHot Sum", _count, "i32", _COUNTABLE),
    Lowering("Bucketize", "Cast ZerosLike", _one_bucket, "f32 f64 i32 i64", _no_boundaries, benefit=3),
    BuiltinRow("Bucketize", "bucketize", "f32 f64 i32 i64", options={"boundaries": Attr("boundaries")}),
)
