"""Element types that a kernel doesn't support: computed in a wider type and converted back.

Halves are computed as floats, which gives the same as halves do, rounded once. Small integers are computed as 32 bits;
taking the low bits of the result wraps around.
"""

from __future__ import annotations

from functools import partial

from tfconvert.converter.targets.litert.legalize.entry import Entry, Lowering, element_of
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_HALVES = "f16 bf16"
_SMALL = "i8 ui8 i16 ui16"
_WIDER = {"f16": types.F32, "bf16": types.F32, "ui32": types.I64}


def _widened(op: Operation, emit: LiteRTBuilder, typed: int = 0) -> list[Value]:
    """Widens all operands and results that have the element type in question."""
    narrow = op.operands[typed].element
    wide = _WIDER.get(element_of(op, typed), types.I32)

    def is_narrow(value: Value) -> bool:
        return value.element == narrow

    operands = [emit.cast(operand, wide) if is_narrow(operand) else operand for operand in op.operands]
    result_types = [types.tensor(wide, result.shape) if is_narrow(result) else result.type for result in op.results]
    created = emit.tf_op(op.name.removeprefix("tf."), operands, result_types, op.properties)
    return [
        emit.cast(value, narrow) if is_narrow(result) else value
        for value, result in zip(created.results, op.results, strict=True)
    ]


def _entry(op: str, element_types: str, typed: int = 0) -> Lowering:
    rewrite = partial(_widened, typed=typed)
    return Lowering(op, f"Cast {op}", rewrite, element_types, typed=typed, benefit=0, name=f"{op}-widened")


_FLOAT_ONLY = (
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atan2",
    "Atanh",
    "AvgPool",
    "BatchMatMul",
    "BatchMatMulV2",
    "BatchMatMulV3",
    "Ceil",
    "Conv2D",
    "Conv3D",
    "Cos",
    "Cosh",
    "DepthwiseConv2dNative",
    "Div",
    "DivNoNan",
    "Elu",
    "Erf",
    "Erfc",
    "Exp",
    "Expm1",
    "Floor",
    "IsFinite",
    "IsInf",
    "IsNan",
    "LeakyRelu",
    "Log",
    "Log1p",
    "LogSoftmax",
    "MatMul",
    "MaxPool",
    "Reciprocal",
    "RealDiv",
    "Rint",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "Xdivy",
    "Xlogy",
)

_ANY_NUMBER = (
    "Abs",
    "Add",
    "AddV2",
    "AddN",
    "Cumsum",
    "Equal",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Max",
    "Maximum",
    "Mean",
    "Min",
    "Minimum",
    "Mul",
    "Neg",
    "NotEqual",
    "Pow",
    "Prod",
    "Relu",
    "Relu6",
    "Sign",
    "Square",
    "SquaredDifference",
    "Sub",
    "Sum",
)

_SMALL_INTEGER = ("BitwiseAnd", "BitwiseOr", "TruncateDiv")

ENTRIES: tuple[Entry, ...] = (
    *(_entry(op, _HALVES) for op in _FLOAT_ONLY),
    *(_entry(op, f"{_HALVES} {_SMALL} ui32") for op in _ANY_NUMBER),
    *(_entry(op, _SMALL) for op in _SMALL_INTEGER),
)
