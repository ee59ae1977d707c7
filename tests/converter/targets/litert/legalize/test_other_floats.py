"""Halves and doubles where kernels take floats of 32 bits alone, against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check
from tests.support.litert import RunTFLite

_IMAGE = {"strides": [1, 2, 2, 1], "padding": "SAME"}
_NORM = {"epsilon": 0.001, "is_training": False}

CASES = [
    Case("Conv2DBackpropInput", [[2, 6, 6, 4], "=f16[3,3,4,3]", "f16[2,3,3,3]"], _IMAGE),
    Case("Conv2DBackpropInput", [[2, 6, 6, 4], "=bf16[3,3,4,3]", "bf16[2,3,3,3]"], _IMAGE),
    Case("FusedBatchNormV3", ["f16[2,3,3,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]@0.5:2"], _NORM, results=1),
    Case("Einsum", ["bf16[2,3,4]", "=bf16[4,5]"], {"equation": "abc,cd->abd", "N": 2}),
    Case("Split", [1, "f16[2,6]"], {"num_split": 3}),
    Case("Conv2D", ["f64[2,6,6,3]", "=f64[3,3,3,4]"], _IMAGE),
    Case("MatMul", ["f64[?2,3]", "=f64[3,4]"]),
    Case("GatherV2", ["f64[5,3]", "i32[4]@0:5", 0]),
    Case("Mean", ["f64[2,?3,4]", [1]], {"keep_dims": True}),
    Case("Softmax", ["f64[?2,5]"]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


_WEIGHTS = np.random.default_rng(0).normal(size=(4, 6))


def _chain(tf: ModuleType, folder: Path) -> Path:
    module = tf.Module()
    module.weights = tf.Variable(_WEIGHTS, dtype=tf.float64)
    module.run = tf.function(
        lambda x: {"y": tf.concat(tf.split(tf.tanh(tf.matmul(x, module.weights)), 2, 1), 0)[:, 1:] * 2.0},
        input_signature=[tf.TensorSpec([None, 4], tf.float64, name="x")],
    )
    tf.saved_model.save(module, str(folder), signatures=module.run)
    return folder


def test_between_ops_of_doubles_no_double_is_made(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    model = tfconvert.convert(_chain(tf, tmp_path))
    x = np.random.default_rng(1).normal(size=(3, 4))
    (got,) = run_tflite(bytes(model), {"x": x}, signature="serving_default")
    expected = np.concatenate(np.split(np.tanh(x @ _WEIGHTS), 2, 1))[:, 1:] * 2
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    (note,) = [note for note in model.report.notes if "float64" in note.message]
    assert "ConcatV2, MatMul, Mul, Split, Tanh" in note.message
    assert note.severity == "warning"


def test_doubles_are_left_to_the_kernels_of_tensorflow_if_allowed(tf: ModuleType, tmp_path: Path) -> None:
    operators = tfconvert.convert(_chain(tf, tmp_path), target=tfconvert.LiteRT(allow_flex=True)).report.operators
    assert {"FlexMatMul", "FlexTanh"} <= set(operators)


def test_slices_of_doubles_become_no_split(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    module = tf.Module()
    module.run = tf.function(
        lambda x: {"a": x[:, :2], "b": x[:, 2:]}, input_signature=[tf.TensorSpec([2, 4], tf.float64, name="x")]
    )
    tf.saved_model.save(module, str(tmp_path), signatures=module.run)
    x = np.arange(8.0).reshape(2, 4)
    first, second = run_tflite(bytes(tfconvert.convert(tmp_path)), {"x": x}, signature="serving_default")
    np.testing.assert_array_equal(first, x[:, :2])
    np.testing.assert_array_equal(second, x[:, 2:])
