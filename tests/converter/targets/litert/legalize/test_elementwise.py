"""Elementwise ops, over all element types that their entries list."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check
from tests.converter.targets.litert.legalize.test_gradients import OPS as GRADIENTS_OF_LAYERS
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.legalize import activation, bitwise, elementwise, narrow_types
from tfconvert.converter.targets.litert.legalize.decomposed import lowerings
from tfconvert.converter.targets.litert.legalize.entry import Entry, element_name
from tfconvert.schema.dialects import types
from tfconvert.schema.tensorflow import op_defs

_COMPOSED = [each for family in ("elementwise", "special_functions", "gradients") for each in lowerings(family)]
_NAMES = {"complex<f32>": "c64"}
_POSITIVE = {"Log", "Sqrt", "Rsqrt", "Log1p", "Pow", "RightShift", "LeftShift", "Xlogy", "Xlog1py"}
_UNIT = {"Acos", "Asin", "Atanh", "Erfinv"}
_SKIPPED = {
    "Const",
    "Cast",
    "Bitcast",
    "AddN",
    "AccumulateNV2",
    "Real",
    "Imag",
    "ComplexAbs",
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "Ndtri",
    "BiasAddGrad",
    "EluGrad",
    "LeakyReluGrad",
    "SeluGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "L2Loss",
    "ScaleAndTranslateGrad",
    "ClipByValue",
}
_NOT_ELEMENTWISE = {
    "AvgPool",
    "BatchMatMul",
    "BatchMatMulV2",
    "BatchMatMulV3",
    "Conv2D",
    "Conv3D",
    "DepthwiseConv2dNative",
    "MatMul",
    "MaxPool",
    "Cumsum",
    "Pack",
    "Max",
    "Mean",
    "Min",
    "Prod",
    "Sum",
}
_NO_ORACLE = {("Mod", "f32"), ("Rint", "f16"), ("Rint", "bf16")}
"""TensorFlow has no kernel for these itself."""

_LIMITED = {("Pow", "i64")}
"""These are converted if an operand is a constant."""


def _rows() -> list[tuple[Entry, str]]:
    return [
        (entry, element)
        for entries in (elementwise.ENTRIES, bitwise.ENTRIES, activation.ENTRIES, _COMPOSED, narrow_types.ENTRIES)
        for entry in entries
        for element in (entry.types or "f32").split()
        if entry.op not in _SKIPPED | _NOT_ELEMENTWISE | GRADIENTS_OF_LAYERS and not element.startswith("!")
        if (entry.op, element) not in _NO_ORACLE | _LIMITED and _has_kernel(entry.op, element)
    ]


def _has_kernel(op: str, element: str) -> bool:
    """Returns whether TensorFlow allows an element type; several ops are widened alike, but not all have all types."""
    definition = op_defs.lookup(op)
    assert definition is not None
    row = next(row for row in types.ELEMENT_TYPES if element_name(row.mlir) == element)
    allowed = {attr.name: attr.allowed_values.list.type for attr in definition.attr}
    kinds = allowed.get(definition.input_arg[0].type_attr)
    return not kinds or row.number in kinds


def _case(op: str, element: str) -> Case:
    element = _NAMES.get(element, element)
    bounds = "@-0.9:0.9" if op in _UNIT else "@1:5" if op in _POSITIVE or op == "Acosh" else ""
    first = f"{element}[2,3,4]{bounds}"
    definition = op_defs.lookup(op)
    assert definition is not None
    if len(definition.input_arg) == 1:
        return Case(op, [first], tolerance=1e-5 if op in ("Tan", "Sinh", "Cosh") else 2e-6)
    divides = "Div" in op or "div" in op or "Mod" in op or op.endswith("Grad")
    return Case(
        op,
        [
            first,
            f"{element}[{'2,3,4' if op.endswith('Grad') or op == 'ApproximateEqual' else '4'}]"
            f"{'@1:4' if divides or op in _POSITIVE else ''}",
        ],
    )


CASES = [_case(entry.op, element) for entry, element in _rows()]

CASES += [
    Case("AddN", ["f32[2,3]", "f32[2,3]", "f32[2,3]"]),
    Case("AddN", ["i64[2,3]", "i64[2,3]"]),
    Case("AddN", ["f32[2,3]"]),
    *(Case(op, ["f32[4]@0:0", np.array([0, 1, -1, 0], np.float32)]) for op in ("SqrtGrad", "RsqrtGrad", "InvGrad")),
    *(Case(op, ["f32[4]@-1:1", np.zeros(4, np.float32)]) for op in ("SqrtGrad", "ReciprocalGrad")),
    Case("AccumulateNV2", ["f32[2,3]", "f32[2,3]"], {"shape": [2, 3]}),
    Case("Real", ["c64[2,3]"], {"Tout": np.float32}),
    Case("Imag", ["c64[2,3]"], {"Tout": np.float32}),
    Case("ComplexAbs", ["c64[2,3]"], {"Tout": np.float32}),
    Case("Cast", ["f32[2,3]"], {"DstT": np.int32}),
    Case("Cast", ["f32[2,3]"], {"DstT": np.bool_}),
    Case("Cast", ["i32[2,3]"], {"DstT": np.float32}),
    Case("Cast", ["i64[2,3]"], {"DstT": np.int32}),
    Case("Cast", ["i1[2,3]"], {"DstT": np.float32}),
    *(Case("Cast", [f"{kind}[?2,3]"], {"DstT": np.uint64}) for kind in ("i8", "i32", "ui32", "i64")),
    *(Case("Cast", ["ui64[2,3]"], {"DstT": kind}) for kind in (np.uint32, np.int64)),
    Case("LeftShift", ["ui64[2,3]", np.array([3, 63, 2**64 - 2], np.uint64)]),
    Case("BitwiseOr", ["ui64[?2,1,3]", np.array(1 << 63, np.uint64)]),
    Case("Bitcast", ["f32[2,3]"], {"type": np.int32}),
    Case("L2Loss", ["f32[2,3]"]),
    Case("ClipByValue", ["f32[2,3]", -1.0, "f32[]@0:2"]),
    Case("BiasAddGrad", ["f32[2,3,4]"]),
    Case("FloorDiv", [np.array([2**62 + 12345, -(2**61) - 7, 100, -100]), np.array([3, 7, -7, 9])]),
    Case("FloorMod", ["f32[?2,3]", "f32[3]@1:3"]),
    Case("Atan2", ["f32[2,3]", "f32[3]"]),
    Case("Maximum", ["f32[2,1,3,2,2,1]", "f32[2,1,3,2,2,1]"]),
    Case("BitwiseAnd", [np.array([-1, -8, 7, 2**31 - 1], np.int32), np.array([-2, 12, 5, -(2**31)], np.int32)]),
    Case("BitwiseOr", [np.array([-1, -8, 7, 2**31 - 1], np.int32), np.array([-2, 12, 5, -(2**31)], np.int32)]),
    Case("Equal", ["f32[2,3]@0:2", "f32[2,3]@0:2"], {"incompatible_shape_error": False}),
    Case("NotEqual", ["i16[?3,5]@-2:2", "i16[5]@-2:2"]),
    Case("NotEqual", [np.array([-(2**15), 2**15 - 1, 256, 0], np.int16), "i16[2,4]@0:2"]),
    Case("ApproximateEqual", ["f32[2,3]@0:1", "f32[2,3]@0:1"], {"tolerance": 0.3}),
    Case("IsNan", [np.array([np.nan, np.inf, 1], np.float32)]),
    Case("DivNoNan", ["f32[4]", np.array([0, 1, 2, 0], np.float32)]),
    Case("MulNoNan", [np.array([np.nan, np.inf, 2], np.float32), np.array([0, 0, 3], np.float32)]),
    Case("Xlogy", [np.array([0, 1, 2], np.float32), np.array([0, 1, 3], np.float32)]),
    Case("Xlog1py", ["f32[4]", "f32[4]@0:3"]),
    Case("Erf", [np.linspace(-6, 6, 200, dtype=np.float32)], tolerance=1e-6),
    Case("Erfc", [np.linspace(-6, 6, 200, dtype=np.float32)], tolerance=1e-6),
    # Near 1 TensorFlow's own kernel loses digits when it adds 1.
    *(Case("Erfinv", [f"f32[500]@{ends}"], tolerance=1e-4) for ends in ("-1:-0.999", "0.99:1", "-1:-1", "1:1", "2:3")),
    Case("Erfinv", ["f32[500]@-0.001:0.001"]),
    *(Case("BesselI0e", [f"f32[?500]@{ends}"], tolerance=1e-6) for ends in ("-9:9", "-0.001:0.001", "-800:800")),
    Case("BesselI0e", ["f16[2,3]@-9:9"]),
    Case("Expm1", [np.array([-100, -1, -1e-4, 0, 1e-6, 1, 10], np.float32)]),
    Case("Softplus", [np.array([-100, -1, 0, 1, 100], np.float32)]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


def test_bessel_function_everywhere(tf: ModuleType, run_tflite: RunTFLite) -> None:
    function = tf.function(tf.math.bessel_i0e, input_signature=[tf.TensorSpec([None], tf.float32)])
    sizes = np.concatenate([[0, np.inf], np.geomspace(1e-38, 3e38, 2000), np.linspace(0, 40, 2001)])
    x = np.concatenate([-sizes, sizes]).astype(np.float32)
    (found,) = run_tflite(bytes(tfconvert.convert(function)), [x])
    np.testing.assert_allclose(found, tf.math.bessel_i0e(x), rtol=1e-6)
    np.testing.assert_array_equal(found[[0, 1]], [1, 0])
