"""Elementwise ops with a builtin of their own: arithmetic, comparison, logic, casts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.targets.litert.legalize.entry import (
    BuiltinRow,
    Entry,
    Lowering,
    element_name,
    ints,
    tflite_name,
)
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import tensor_data, tf, tf_traits, tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

_FLOAT = "f32"
_TFL_CONSTANT = tfl.PREFIX + tfl.PSEUDO_CONST
_CASTABLE = frozenset(
    ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "ui16", "ui32", "i8", "ui8", "i1", "complex<f32>")
)


def _incompatible(op: Operation) -> Failure | None:
    if tf.get(op, "incompatible_shape_error", True):
        return None
    shapes = [operand.shape for operand in op.operands]
    if () in shapes or _surely_broadcast(*shapes):
        return None
    return Failure("shapes that can't be broadcast are to compare as unequal, and whether they can is not known")


def _surely_broadcast(x: types.Shape | None, y: types.Shape | None) -> bool:
    """Returns whether shapes can be broadcast for any values of their dynamic dimensions."""
    if x is None or y is None:
        return False
    return all(1 in pair or (pair[0] == pair[1] and -1 not in pair) for pair in zip(x[::-1], y[::-1], strict=False))


def _not_equal(op: Operation, emit: LiteRTBuilder) -> Value:
    """Negates `Equal`: the kernel of `not_equal` compares something other than the operands if they are `i16`."""
    equal = emit.tf("Equal", op.operands, op.results[0].type, op.properties)
    return emit.unary("LogicalNot", equal)


def _cast_constraint(op: Operation) -> Failure | None:
    for value in (op.operands[0], op.results[0]):
        element = element_name(value.element)
        if element not in _CASTABLE:
            return Failure(f"tfl.cast doesn't convert {element}")
    return Failure("it truncates floats instead of rounding them") if tf.get(op, "Truncate", False) else None


_NARROW = frozenset(("i8", "ui8", "i16", "ui16", "ui32"))
_FLOATS = frozenset(("f32", "f64", "f16", "bf16"))


def _full_names(names: Iterable[str], others: Iterable[str]) -> frozenset[str]:
    """Returns the names of operators, and of the ops of TensorFlow that compute the same, and those of others."""
    computing = operators.tensorflow_ops()
    ops = {computing[name] for name in names if name in computing}
    return tfl.full_names(names) | tf_traits.full_names(ops.union(others))


_LIMITED = _full_names(
    {"minimum", *(name for name, limits in operators.ranges().items() if all(map(math.isfinite, limits)))},
    {"ClipByValue"},
)
_MOVING = {name for name, operand in operators.having("moves").items() if operand == "0"}
# Ops after which numbers are as limited as before.
_KEEPING = _full_names(_MOVING | {"ceil", "floor", "maximum", "relu", "round"}, {"Rint"})


def _may_be_out_of_range(op: Operation) -> Failure | None:
    elements = [element_name(value.element) for value in (op.operands[0], op.results[0])]
    if elements[0] not in _FLOATS or elements[1] not in _NARROW:
        return Failure("the result's type has all numbers, or wraps them as TensorFlow does", is_special=True)
    owner = op.operands[0].owner
    while isinstance(owner, Operation) and owner.name in _KEEPING:
        owner = owner.operands[0].owner
    if isinstance(owner, Operation) and owner.name in _LIMITED:
        return Failure("the numbers are limited", is_special=True)
    return _cast_constraint(op)


def _cast(op: Operation, emit: LiteRTBuilder) -> Value:
    source, target = op.operands[0].element, op.results[0].element
    options = {"in_data_type": tflite_name(source), "out_data_type": tflite_name(target)}
    return emit.tfl("cast", op.operands[:1], op.results[0].type, options)


def _constant_constraint(op: Operation) -> Failure | None:
    if not tensor_data.is_constant(op.properties.get("value")):
        return Failure("its value is missing")
    return None if tflite_name(op.results[0].element) else Failure("LiteRT has no such element type")


def _constant(op: Operation, emit: LiteRTBuilder) -> None:
    value: Any = op.properties["value"]
    op.results[0].type = value.type
    emit.turn_into(tfl.PSEUDO_CONST, {"value": value})


def lower_constant(op: Operation) -> bool:
    """Lowers a constant if LiteRT has its type, as the pattern for it does; returns whether it has."""
    if _constant_constraint(op) is not None:
        return False
    value: Any = op.properties["value"]
    op.results[0].type = value.type
    op.turn_into(tfl.TFLOp, _TFL_CONSTANT, {"value": value})
    return True


def _squared_difference(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.unary("Square", emit.binary("Sub", *op.operands))


def _same_shape(op: Operation) -> Failure | None:
    shape, other = (operand.shape for operand in op.operands)
    return None if shape is not None and shape == other else Failure("the kernel doesn't broadcast")


def _known_shapes(op: Operation) -> Failure | None:
    return None if types.is_static(op.results[0].shape) else Failure("the result's shape is not known")


def _broadcast_both(op: Operation, emit: LiteRTBuilder) -> Value:
    shape = emit.shape(op.results[0])
    both = [emit.tf("BroadcastTo", (operand, shape), op.results[0].type) for operand in op.operands]
    return emit.tf(op.name.removeprefix("tf."), both, op.results[0].type)


def _square(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.tf("Mul", (op.operands[0], op.operands[0]), op.results[0].type)


# Largest exponent of a power that is written as products, ten at most.
_MAX_FACTORS = 64


def _is_small_exponent(op: Operation) -> Failure | None:
    constant = tensor_data.constant_of(op.operands[1])
    if constant is None or op.operands[1].shape != ():
        return Failure("the exponent is not a constant number")
    exponent = int(tensor_data.to_array(constant))
    return None if 1 <= exponent <= _MAX_FACTORS else Failure("the exponent is not one of a few factors")


def _product(op: Operation, emit: LiteRTBuilder) -> Value:
    """Multiplies, which wraps around as TensorFlow's powers of integers do; `pow` is one of doubles, cut off."""
    (exponent,) = ints(op.operands[1])
    square, result = op.operands[0], None
    while True:
        if exponent & 1:
            result = square if result is None else emit.binary("Mul", result, square)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = emit.binary("Mul", square, square)


# Each step of the long division below gets about 22 of a quotient's 63 bits right.
_QUOTIENT_STEPS = 3


def _floor_div_of_longs(op: Operation, emit: LiteRTBuilder) -> Value:
    """Divides the part without a remainder, `x - x mod y`, as floats, then the rest of it, and so on."""
    x, y = op.operands
    rest = emit.binary("Sub", x, emit.binary("FloorMod", x, y))
    divisor = emit.cast(y, types.F32)
    total: Value | None = None
    for _ in range(_QUOTIENT_STEPS):
        part = emit.cast(emit.unary("Round", emit.binary("RealDiv", emit.cast(rest, types.F32), divisor)), types.I64)
        total = part if total is None else emit.binary("AddV2", total, part)
        rest = emit.binary("Sub", rest, emit.binary("Mul", part, y))
    assert total is not None
    return total


def _clipped_to_one(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Maximum", emit.binary("Minimum", op.operands[0], 1), -1)


def _larger_of_both(op: Operation, emit: LiteRTBuilder) -> Value:
    return emit.binary("Maximum", op.operands[0], emit.unary("Neg", op.operands[0]))


def _several(op: Operation) -> Failure | None:
    return None if len(op.operands) > 1 else Failure("the kernel takes two operands at least")


def _add_n(op: Operation, emit: LiteRTBuilder) -> Value:
    total: Value = op.operands[0]
    for operand in op.operands[1:]:
        total = emit.binary("AddV2", total, operand)
    return total


CONSTANT = Lowering("Const", "pseudo_const", _constant, constraint=_constant_constraint)

ENTRIES: tuple[Entry, ...] = (
    CONSTANT,
    Lowering("Cast", "cast", _cast, constraint=_cast_constraint),
    Lowering(
        "Cast",
        "cast",
        _cast,
        constraint=_may_be_out_of_range,
        benefit=2,
        name="Cast-to-narrow",
        note="numbers out of the integer type's range become the nearest one within; TensorFlow leaves open what "
        "becomes of them, and mostly takes their low bits",
    ),
    # Arithmetic.
    BuiltinRow("Abs", "abs", "f32 i32 i16"),
    Lowering("Abs", "Neg Maximum", _larger_of_both, "i64"),
    BuiltinRow("Add", "add", "f32 i32 i64 i16", options=tfl.NOT_FUSED),
    BuiltinRow("AddV2", "add", "f32 i32 i64 i16", options=tfl.NOT_FUSED),
    BuiltinRow("Sub", "sub", "f32 i32 i64", options=tfl.NOT_FUSED),
    BuiltinRow("Mul", "mul", "f32 i32 i64 ui32 i16 complex<f32>", options=tfl.NOT_FUSED),
    BuiltinRow("Div", "div", "f32 i32", options=tfl.NOT_FUSED),
    BuiltinRow("RealDiv", "div", _FLOAT, options=tfl.NOT_FUSED),
    BuiltinRow("FloorDiv", "floor_div", "f32 i32 i8 i16"),
    Lowering("FloorDiv", "FloorMod RealDiv", _floor_div_of_longs, "i64"),
    BuiltinRow("FloorMod", "floor_mod", "f32 i32 i64 i8 i16"),
    BuiltinRow("Maximum", "maximum", "f32 i32 i64 ui8 i8 i16"),
    BuiltinRow("Minimum", "minimum", "f32 i32 i64 ui8 i8 i16"),
    BuiltinRow("Pow", "pow", "f32 i32"),
    Lowering("Pow", "Mul", _product, "i32 i64", _is_small_exponent, benefit=3, name="Pow-to-products"),
    BuiltinRow("SquaredDifference", "squared_difference", "f32 i32"),
    Lowering("SquaredDifference", "Sub Square", _squared_difference, "i64"),
    BuiltinRow("Atan2", "atan2", "f32 f64", constraint=_same_shape),
    Lowering("Atan2", "BroadcastTo", _broadcast_both, "f32 f64", _known_shapes),
    BuiltinRow("AddN", "add_n", "f32 i32", constraint=_several),
    Lowering("AddN", "AddV2", _add_n),
    Lowering("AccumulateNV2", "AddV2", _add_n),
    # One operand.
    BuiltinRow("Neg", "neg", "f32 i32 i64 i16 i8"),
    BuiltinRow("Ceil", "ceil", _FLOAT),
    BuiltinRow("Floor", "floor", _FLOAT),
    BuiltinRow("Round", "round", _FLOAT),
    BuiltinRow("Rint", "round", _FLOAT),
    BuiltinRow("Exp", "exp", _FLOAT),
    BuiltinRow("Log", "log", _FLOAT),
    BuiltinRow("Sqrt", "sqrt", _FLOAT),
    BuiltinRow("Rsqrt", "rsqrt", _FLOAT),
    BuiltinRow("Square", "square", _FLOAT),
    Lowering("Square", "Mul", _square, "i32 i64 i16 complex<f32>"),
    BuiltinRow("Sin", "sin", _FLOAT),
    BuiltinRow("Cos", "cos", _FLOAT),
    BuiltinRow("Sign", "sign", "f32 f64 i32"),
    Lowering("Sign", "Minimum Maximum", _clipped_to_one, "i64"),
    BuiltinRow("Real", "real", "complex<f32> complex<f64>"),
    BuiltinRow("Imag", "imag", "complex<f32> complex<f64>"),
    BuiltinRow("ComplexAbs", "complex_abs", "complex<f32> complex<f64>"),
    # Comparison.
    BuiltinRow("Equal", "equal", "f32 i32 i64 i16 i1 !tf_type.string", constraint=_incompatible),
    BuiltinRow("NotEqual", "not_equal", "f32 i32 i64 i1 !tf_type.string", constraint=_incompatible),
    Lowering("NotEqual", "Equal LogicalNot", _not_equal, "i16"),
    BuiltinRow("Less", "less", "f32 i32 i64 i16"),
    BuiltinRow("LessEqual", "less_equal", "f32 i32 i64 i16"),
    BuiltinRow("Greater", "greater", "f32 i32 i64 i16"),
    BuiltinRow("GreaterEqual", "greater_equal", "f32 i32 i64 i16"),
    # Logic.
    BuiltinRow("LogicalAnd", "logical_and", "i1"),
    BuiltinRow("LogicalOr", "logical_or", "i1"),
    BuiltinRow("LogicalNot", "logical_not", "i1"),
    BuiltinRow("Bitcast", "bitcast"),
)
