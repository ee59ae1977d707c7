"""Ops of earlier days in functions, ranking, derivatives, and operands that only the running model knows."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Array, Case, Check, converted, operand
from tests.support.litert import RunTFLite
from tfconvert.schema.tensorflow import op_defs

CASES = [
    *(
        Case("ReverseV2", [kind, axes])
        for kind in ("f32[2,3,4]", "i16[?2,3,4]")
        for axes in ("i32[1]@1:2", "i64[1]@-1:0")
    ),
    *(
        Case("ReverseV2", ["f32[2,3,4,2]", np.array(axes, np.int32)])
        for axes in ((2, 1), (-1, 0, 1), (0, 2), (0, 1, 3))
    ),
    Case("RFFT", ["f32[2,8]", "i32[1]@8:9"], tolerance=1e-5),
    Case("RFFT", ["f32[?2,?8]", "i32[1]@4:5"], tolerance=1e-5),
    Case("RFFT2D", ["f32[2,4,8]", "i32[2]@4:5"], tolerance=1e-5),
    Case("BatchMatMulV3", ["i8[2,3,4]@-128:127", "i8[2,4,5]@-128:127"], {"Tout": np.int32}),
    Case(
        "BatchMatMulV3", ["i8[2,4,3]@-128:127", "i8[1,5,4]@-128:127"], {"Tout": np.int32, "adj_x": True, "adj_y": True}
    ),
    Case("BatchMatMulV3", ["i8[?2,3,4]@-128:127", "=i8[4,5]@-128:127"], {"Tout": np.int32}),
    Case("BatchMatMulV3", ["i8[3,700]@-128:-127", "i8[700,2]@-128:-127"], {"Tout": np.int32}),
    Case("BatchMatMulV3", ["ui8[2,3,4]@0:255", "ui8[2,4,5]@0:255"], {"Tout": np.int32}),
    Case("BatchMatMulV3", ["i8[2,3,4]@-128:127", "ui8[4,5]@0:255"], {"Tout": np.int32}),
    Case("BatchMatMulV3", ["bf16[2,3,4]", "i8[4,5]"], {"Tout": np.dtype("bfloat16")}),
    Case("ApproxTopK", ["f32[3,9]"], {"k": 4}),
    Case("ApproxTopK", ["f32[?3,9]"], {"k": 9, "recall_target": 0.5}),
    *(
        Case(op, ["f32[4,5]", "i32[4]@-1:6", *k], attributes)
        for op, k, attributes in (("InTopKV2", [2], {}), ("InTopKV2", ["i32[]@3:4"], {}), ("InTopK", [], {"k": 1}))
    ),
    Case("InTopKV2", ["f32[?4,?5]", "i64[?4]@0:5", np.array(3)]),
    *(
        Case("NthElement", ["f32[2,3,7]", n], {"reverse": reverse})
        for n in (0, "i32[]@4:5")
        for reverse in (False, True)
    ),
    *(
        Case("UnravelIndex", [indices, dims])
        for indices, dims in (
            ("i32[4]@0:24", [2, 3, 4]),
            ("i64[?3]@0:24", np.array([24])),
            ("i64[]@0:12", np.array([3, 1, 4])),
        )
    ),
    Case("ScatterNdNonAliasingAdd", ["f32[4,2]", [[1], [3], [1]], "f32[3,2]"]),
    *(Case(op, ["f32[3,4]", "f32[3,4]"]) for op in ("EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")),
    *(Case("LeakyReluGrad", ["f32[3,4]", "f32[3,4]"], attributes) for attributes in ({}, {"alpha": 0.5})),
]

OLD = [
    Case("BatchToSpace", ["f32[4,2,3,2]", [[0, 1], [1, 0]]], {"block_size": 2}),
    Case("SpaceToBatch", ["f32[1,3,3,2]", [[0, 1], [1, 0]]], {"block_size": 2}),
    Case("SparseMatMul", ["f32[2,3]", "f32[4,3]"], {"transpose_b": True}),
    Case("SparseMatMul", ["bf16[2,3]", "f32[3,4]"]),
    Case("Reverse", ["f32[2,3,4]", np.array([True, False, True])]),
]
"""Ops that are replaced in main graphs before they are imported."""

_SQUARE = np.arange(1, 19, dtype=np.float32).reshape(2, 3, 3)
_ROWS = np.array([[20, 21, 22], [23, 24, 25]], np.float32)

TEXTS = {
    "BatchMatrixBandPart": (
        """func.func @main(%x: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
          %l = "tf.Const"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
          %u = "tf.Const"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
          %0 = "tf.BatchMatrixBandPart"(%x, %l, %u)
            : (tensor<2x3x3xf32>, tensor<i64>, tensor<i64>) -> tensor<2x3x3xf32>
          func.return %0 : tensor<2x3x3xf32>
        }""",
        [_SQUARE],
        np.tril(_SQUARE) - np.tril(_SQUARE, -2),
    ),
    "BatchMatrixDiag": (
        """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3x3xf32> {
          %0 = "tf.BatchMatrixDiag"(%x) : (tensor<2x3xf32>) -> tensor<2x3x3xf32>
          func.return %0 : tensor<2x3x3xf32>
        }""",
        [_ROWS],
        _ROWS[:, :, None] * np.eye(3, dtype=np.float32),
    ),
    "BatchMatrixDiagPart": (
        """func.func @main(%x: tensor<2x3x3xf32>) -> tensor<2x3xf32> {
          %0 = "tf.BatchMatrixDiagPart"(%x) : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
          func.return %0 : tensor<2x3xf32>
        }""",
        [_SQUARE],
        np.diagonal(_SQUARE, axis1=1, axis2=2),
    ),
    "BatchMatrixSetDiag": (
        """func.func @main(%x: tensor<2x3x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3x3xf32> {
          %0 = "tf.BatchMatrixSetDiag"(%x, %y) : (tensor<2x3x3xf32>, tensor<2x3xf32>) -> tensor<2x3x3xf32>
          func.return %0 : tensor<2x3x3xf32>
        }""",
        [_SQUARE, _ROWS],
        np.where(np.eye(3, dtype=bool), _ROWS[:, :, None], _SQUARE),
    ),
    "ApproxTopK": (
        """func.func @main(%x: tensor<2x3xf32>) -> tensor<1x3xf32> {
          %0:2 = "tf.ApproxTopK"(%x) <{k = 1 : i64, reduction_dimension = 0 : i64, is_max_k = false}>
            : (tensor<2x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xi32>)
          func.return %0#0 : tensor<1x3xf32>
        }""",
        [_ROWS],
        _ROWS[:1],
    ),
    "TopK": (
        """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x2xi32> {
          %0:2 = "tf.TopK"(%x) <{k = 2 : i64}> : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
          func.return %0#1 : tensor<2x2xi32>
        }""",
        [_ROWS],
        np.array([[2, 1], [2, 1]]),
    ),
}
"""Ops for which TensorFlow has no kernels any more: text, inputs and the result."""

OPS = {case.op for case in OLD} | set(TEXTS) | {"BatchNormWithGlobalNormalization"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, check: Check) -> None:
    check(case)


def test_several_computed_axes(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    """The kernel by itself would refuse axes that aren't neighbours."""
    inputs = [np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([2, 0], np.int32)]
    result = _in_function(tf, Case("ReverseV2", ["f32[2,3,4]", "i32[2]"]), inputs, tmp_path)
    np.testing.assert_array_equal(run_tflite(result.content, inputs)[0], result.expected[0])


def test_an_unknown_number_of_axes_is_refused(tmp_path: Path) -> None:
    case = Case("ReverseV2", ["f32[2,3,4]", "i32[?2]@0:1"])
    with pytest.raises(tfconvert.ConversionError, match="how many axes is not known"):
        converted(case, tmp_path)


@pytest.mark.parametrize("op", TEXTS)
def test_what_tensorflow_cannot_run(op: str, run_tflite: RunTFLite, tmp_path: Path) -> None:
    text, inputs, expected = TEXTS[op]
    np.testing.assert_array_equal(_run_text(text, inputs, tmp_path, run_tflite), expected)


@pytest.mark.parametrize("scaled", [False, True])
def test_the_oldest_batch_normalization(scaled: bool, run_tflite: RunTFLite, tmp_path: Path) -> None:
    text = f"""
    func.func @main(%x: tensor<1x2x2x3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>, %b: tensor<3xf32>, %g: tensor<3xf32>)
        -> tensor<1x2x2x3xf32> {{
      %0 = "tf.BatchNormWithGlobalNormalization"(%x, %m, %v, %b, %g)
        <{{variance_epsilon = 0.25 : f32, scale_after_normalization = {str(scaled).lower()}}}>
        : (tensor<1x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x2x2x3xf32>
      func.return %0 : tensor<1x2x2x3xf32>
    }}"""
    random = np.random.default_rng(0)
    x = random.normal(size=(1, 2, 2, 3)).astype(np.float32)
    mean, variance, beta, gamma = random.uniform(0.5, 2, (4, 3)).astype(np.float32)
    got = _run_text(text, [x, mean, variance, beta, gamma], tmp_path, run_tflite)
    expected = (x - mean) / np.sqrt(variance + 0.25) * (gamma if scaled else 1) + beta
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def _run_text(text: str, inputs: list[Array], folder: Path, run_tflite: RunTFLite) -> Array:
    path = folder / "model.mlir"
    path.write_text(text)
    return run_tflite(bytes(tfconvert.convert(path)), inputs)[0]


def test_what_is_not_a_number_is_not_in_the_top(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    """Targets that aren't a class, or with an infinite prediction, don't count."""
    rows = np.array([[1, 2, np.inf], [1, np.nan, 2], [1, 2, 2], [3, 2, 1], [3, 2, 1]], np.float32)
    targets = np.array([0, 2, 1, -1, 3], np.int32)
    result = _in_function(tf, Case("InTopKV2", ["f32[5,3]", "i32[5]", 1]), [rows, targets], tmp_path)
    (got,) = run_tflite(result.content, [rows, targets])
    np.testing.assert_array_equal(got, result.expected[0])
    assert got.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("case", OLD, ids=str)
def test_old_op_in_a_function(case: Case, tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    operands = [operand(spec, index) for index, spec in enumerate(case.operands)]
    inputs = [each.value for each in operands if each.shape is not None]
    result = _in_function(tf, case, inputs, tmp_path)
    for got, expected in zip(run_tflite(result.content, inputs), result.expected, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


class _Result:
    """A converted function and TensorFlow's results."""

    def __init__(self, content: bytes, expected: list[Array]) -> None:
        self.content = content
        self.expected = expected


def _in_function(tf: ModuleType, case: Case, inputs: list[Array], folder: Path) -> _Result:
    """Saves a function that contains the op, and converts it."""
    definition = op_defs.lookup(case.op)
    assert definition is not None
    names = [arg.name for arg in definition.input_arg]
    raw = getattr(tf.raw_ops, case.op)

    def call(*values: Any) -> list[Any]:
        found, given = iter(values), {}
        for name, spec in zip(names, case.operands, strict=True):
            given[name] = next(found) if isinstance(spec, str) else tf.constant(spec)
        results = raw(**given, **case.attributes)
        return list(results) if isinstance(results, tuple) else [results]

    specs = [tf.TensorSpec(value.shape, value.dtype, name=f"x{i}") for i, value in enumerate(inputs)]
    module = tf.Module()
    module.call = tf.function(call, input_signature=specs)
    tf.saved_model.save(module, str(folder / "model"), signatures=_named(tf, module.call, specs))
    content = bytes(tfconvert.convert(folder / "model"))
    return _Result(content, [value.numpy() for value in call(*map(tf.constant, inputs))])


def _named(tf: ModuleType, call: Any, specs: list[Any]) -> Any:
    def named(*values: Any) -> dict[str, Any]:
        return {f"y{index}": value for index, value in enumerate(call(*values))}

    return tf.function(named, input_signature=specs)
