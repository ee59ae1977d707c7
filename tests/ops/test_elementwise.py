"""Element-by-element arithmetic against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import COMPLEX, EDGES, FLOATS, SIGNED, UNSIGNED, Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

UNARY = [
    *[(op, FLOATS + SIGNED, "") for op in ("Abs", "Neg", "Sign", "Square")],
    *[(op, FLOATS, "") for op in ("Floor", "Ceil", "Reciprocal", "Inv")],
    ("Rint", ("f32", "f64"), ""),
    ("Round", FLOATS, ""),
    ("Relu", FLOATS + SIGNED + ("ui8", "ui16"), ""),
    ("Relu6", FLOATS + SIGNED + ("ui8", "ui16"), "@0:20"),
    ("Invert", SIGNED + UNSIGNED, ""),
    ("PopulationCount", SIGNED + UNSIGNED, ""),
    ("LogicalNot", ("i1",), ""),
    *[(op, FLOATS, "") for op in ("IsNan", "IsInf", "IsFinite")],
    *[(op, COMPLEX, "") for op in ("Neg", "Sign", "Square", "Conj")],
]

BINARY = [
    *[(op, FLOATS + SIGNED + UNSIGNED + COMPLEX) for op in ("AddV2", "Sub", "Mul")],
    ("Add", FLOATS + SIGNED),
    *[
        (op, FLOATS + SIGNED + UNSIGNED)
        for op in ("Maximum", "Minimum", "Greater", "GreaterEqual", "Less", "LessEqual")
    ],
    *[(op, FLOATS + SIGNED + COMPLEX + ("i1",)) for op in ("Equal", "NotEqual")],
    ("SquaredDifference", FLOATS + ("i32", "i64") + COMPLEX),
    ("RealDiv", FLOATS + COMPLEX),
    *[(op, ("f32", "f64", "f16", "bf16")) for op in ("DivNoNan", "MulNoNan", "Xdivy", "FloorDiv", "FloorMod")],
    ("Mod", ("f32", "f64")),
    ("Atan2", FLOATS),
    ("NextAfter", ("f32", "f64")),
    *[(op, SIGNED + UNSIGNED) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift")],
    *[(op, ("i1",)) for op in ("LogicalAnd", "LogicalOr")],
]


@pytest.mark.parametrize(("op", "dtype", "bounds"), [(op, d, bounds) for op, dtypes, bounds in UNARY for d in dtypes])
def test_unary(agree: Agree, op: str, dtype: str, bounds: str) -> None:
    agree(op, (f"{dtype}[5,40]{bounds}",))


@pytest.mark.parametrize("op", sorted({op for op, dtypes, _ in UNARY if "f32" in dtypes}))
def test_unary_at_the_edges(agree: Agree, op: str) -> None:
    agree(op, (EDGES,))


@pytest.mark.parametrize(("op", "dtype"), [(op, dtype) for op, dtypes in BINARY for dtype in dtypes])
def test_binary(agree: Agree, op: str, dtype: str) -> None:
    agree(op, (f"{dtype}[3,1,5]", f"{dtype}[4,1]"))


EDGY = (
    "AddV2",
    "DivNoNan",
    "FloorDiv",
    "FloorMod",
    "Mod",
    "MulNoNan",
    "Pow",
    "RealDiv",
    "Xdivy",
    "Xlog1py",
    "Xlogy",
    "Greater",
    "Equal",
    "NotEqual",
    "LessEqual",
)


@pytest.mark.parametrize("op", EDGY)
def test_binary_at_the_edges(agree: Agree, op: str) -> None:
    agree(op, (EDGES[:, None], EDGES[None, :]), tolerance=1e-5)


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integer_division(agree: Agree, op: str, dtype: str) -> None:
    agree(op, (f"{dtype}[200]@-30:30", np.array([-7, -3, -1, 1, 2, 5, 11, 30] * 25, "i" + str(int(dtype[1:]) // 8))))


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"])
def test_integer_division_by_zero_is_an_error(op: str) -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, (np.array([1, 2]), np.array([1, 0])), {}))
    assert caught.value.code == "integer-division-by-zero"


@pytest.mark.parametrize("op", ["AddV2", "Mul", "Sub", "LeftShift", "Pow"])
@given(x=st.integers(-(2**31), 2**31 - 1), y=st.integers(0, 40))
@settings(max_examples=30)
def test_integers_wrap(agree: Agree, op: str, x: int, y: int) -> None:
    agree(op, (np.array([x], np.int32), np.array([y], np.int32)))


@pytest.mark.parametrize(
    "target", ["float16", "float32", "float64", "bfloat16", "int8", "uint8", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64", "i1", "i8", "ui8", "i32", "i64", "c64"])
def test_cast(agree: Agree, source: str, target: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if target == "bfloat16" else target)
    bounds = "@0:100" if target[0] == "u" else "@-100:100"
    agree("Cast", (f"{source}[64]{bounds}",), {"DstT": dtype})


ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("ClipByValue", ("f32[40]", -1.0, 2.0), {}),
    ("ClipByValue", ("i32[40]", -1, 2), {}),
    ("ClipByValue", ("f32[40]", 2.0, -1.0), {}),
    ("ClipByValue", ("f32[40]", "f32[40]", "f32[40]"), {}),
    ("ClipByValue", ("i32[40]", 2, -1), {}),
    ("Select", ("i1[5]", "f32[5,3]", "f32[5,3]"), {}),
    ("Select", (True, "f32[5,3]", "f32[5,3]"), {}),
    ("Select", ("i1[5,3]", "i64[5,3]", "i64[5,3]"), {}),
    ("SelectV2", ("i1[5,1]", "f32[3]", "f32[5,3]"), {}),
    ("SelectV2", ("i1[2]", np.array([b"a", b"b"], object), np.array([b"c"], object)), {}),
    ("AddN", ("f32[5,3]", "f32[5,3]", "f32[5,3]"), {}),
    ("AddN", ("i32[5]",), {}),
    ("Complex", ("f32[5,3]", "f32[3]"), {"Tout": np.dtype(np.complex64)}),
    ("Complex", ("f64[5]", "f64[5]"), {"Tout": np.dtype(np.complex128)}),
    ("Real", ("c64[5]",), {}),
    ("Imag", ("c64[5]",), {}),
    ("Angle", ("c64[5]",), {}),
    ("ComplexAbs", ("c64[5]",), {}),
    *[(op, ("c64[]",), {}) for op in ("ComplexAbs", "Real", "Imag", "Angle")],
    ("Pow", ("f32[5]@0.1:4", "f32[5]"), {}),
    ("Pow", ("bf16[5]@0.1:4", "bf16[5]"), {}),
    ("Pow", ("f16[5]@0.1:4", "f16[5]"), {}),
    ("Pow", ("c64[5]", "c64[5]"), {}),
    ("Pow", ("i64[5]", "i64[5]@0:4"), {}),
    ("Equal", ("f32[3]", "f32[4]"), {"incompatible_shape_error": False}),
    ("NotEqual", ("f32[3]", "f32[4]"), {"incompatible_shape_error": False}),
    ("Equal", (np.array([b"a", b"b"], object), np.array([b"a", b"c"], object)), {}),
    ("ApproximateEqual", ([1.0, 2.0], [1.00001, 2.1]), {"tolerance": 1e-3}),
    ("CheckNumerics", ("f32[5]",), {"message": "no"}),
    ("CheckNumericsV2", ("f32[5]",), {"message": "no"}),
    ("RealDiv", ([1.0, -1.0, 0.0], [0.0, 0.0, 0.0]), {}),
    ("Div", ("f32[5]", "f32[5]"), {}),
    ("Maximum", ([1.0, float("nan")], [float("nan"), 1.0]), {}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_other(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    agree(op, inputs, attributes)


def test_rounding_leaves_integers_alone() -> None:
    # Not compared: TensorFlow's own kernel answers zeros.
    x = np.arange(-3, 3)
    np.testing.assert_array_equal(evaluate(Call("Round", (x,), {}))[0], x)


def test_accumulated_numbers_are_a_sum() -> None:
    # Not compared: TensorFlow replaces the op before it runs.
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(Call("AccumulateNV2", (x, x, x), {"shape": (2, 3)}))[0], 3 * x)


def test_bad_numbers_are_found() -> None:
    with pytest.raises(ConversionError):
        evaluate(Call("CheckNumerics", (np.array([1, np.nan], np.float32),), {"message": "no"}))


def test_shapes_that_do_not_broadcast_are_an_error() -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(Call("AddV2", (np.zeros(3), np.zeros(4)), {}))
    assert caught.value.code == "bad-operand"


@pytest.mark.parametrize(
    "value",
    [
        0.0,
        -0.5,
        3,
        [],
        [0],
        [[], []],
        np.float32(np.nan),
        np.int64(0),
        False,
        np.array(b"", object),
        np.array(b"no", object),
    ],
)
def test_what_counts_as_true(agree: Agree, value: Any) -> None:
    agree("ToBool", (value,))


SHAPES: list[ShapeCase] = [
    ("Relu", ["f32[?,3]"], {}),
    ("Relu", ["f32[*]"], {}),
    ("AddV2", ["f32[?,1,3]", "f32[4,1]"], {}),
    ("AddV2", ["f32[?,3]", "f32[?,?]"], {}),
    ("AddV2", ["f32[0,3]", "f32[1,3]"], {}),
    ("Mul", ["f32[*]", "f32[2]"], {}),
    ("Equal", ["f32[2,1]", "f32[1,3]"], {}),
    ("SelectV2", ["i1[4,1,1]", "f32[1,5,1]", "f32[6]"], {}),
    ("Select", ["i1[4]", "f32[4,5]", "f32[?,5]"], {}),
    ("AddN", [["f32[?,3]", "f32[2,?]"]], {}),
    ("ClipByValue", ["f32[?,3]", 0.0, 1.0], {}),
    ("Equal", ["f32[2,1]", "f32[1,3]"], {"incompatible_shape_error": False}),
    ("Equal", ["f32[2,3]", "f32[4,3]"], {"incompatible_shape_error": False}),
    ("Equal", ["f32[?,3]", "f32[4,3]"], {"incompatible_shape_error": False}),
    ("Equal", ["f32[?,3]", "f32[]"], {"incompatible_shape_error": False}),
    ("NotEqual", ["f32[?,3]", "f32[1,1]"], {"incompatible_shape_error": False}),
    ("Select", ["i1[]", "f32[4,5]", "f32[?,5]"], {}),
    ("ToBool", ["f32[?]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("AddV2", ["f32[2,3]", "f32[4,3]"], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
