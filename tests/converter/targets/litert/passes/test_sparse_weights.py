"""Sparse matrices in the forms of LiteRT's kernels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.converter.pass_texts import FileCheck
from tests.support.sample_models import traced
from tfconvert.api import Model, convert_source
from tfconvert.converter.targets.litert.passes.sparse_weights import SparseWeights
from tfconvert.importers.source import Source
from tfconvert.schema.tflite.reader import read_model
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT

Array = np.ndarray[Any, np.dtype[Any]]

RANDOM = np.random.default_rng(0)


def _weights(form: str, columns: int = 64, rows: int = 24) -> Array:
    """Returns a matrix, columns first as TensorFlow has it, of which enough is zero for a form."""
    values = RANDOM.normal(size=(columns, rows)).astype(np.float32)
    size, kept = {"numbers": (1, 0.2), "blocks": (4, 0.4), "large blocks": (16, 0.4), "few": (1, 0.4)}[form]
    count = columns // size * rows
    chosen = (RANDOM.permutation(count) < count * kept).reshape(-1, rows)
    return np.asarray(values * np.repeat(chosen, size, 0), np.float32)


def _converted(tf: ModuleType, weights: Array, quantize: Quantize | None, *, is_sparse: bool = True) -> Model:
    def call(x: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, weights) + 0.5)

    function = traced(tf, tf.TensorSpec([None, len(weights)], tf.float32, name="x"))(call)
    return convert_source(Source(function), Options(target=LiteRT(quantize=quantize, sparse_weights=is_sparse)))


def _runs(content: bytes, x: Array) -> list[Array]:
    """Returns the results with XNNPACK, with LiteRT's own kernels, and with its reference kernels."""
    results = []
    for kind in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.BUILTIN_REF):
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kind)
        (details,) = interpreter.get_input_details()
        interpreter.resize_tensor_input(details["index"], x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(details["index"], x)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return results


@pytest.mark.parametrize(
    ("form", "mode", "expected"),
    [
        ("numbers", None, "by number"),
        ("blocks", None, "in blocks"),
        ("large blocks", "int8", "in blocks"),
        ("large blocks", "int8 per tensor", "in blocks"),
        ("numbers", "dynamic", ""),
        ("few", None, ""),
        ("large blocks", "dynamic", ""),
        ("large blocks", "float16", ""),
        ("blocks", "int8", ""),
    ],
)
def test_results_and_size(tf: ModuleType, form: str, mode: Any, expected: str) -> None:
    weights, x = _weights(form), RANDOM.uniform(-1, 1, (3, 64)).astype(np.float32)
    quantize = None
    if mode is not None:
        kind, is_static = mode.partition(" ")[0], mode.startswith("int8")
        quantize = Quantize(kind, samples=[[x]] if is_static else None, per_channel="tensor" not in mode)
    whole, sparse = (_converted(tf, weights, quantize, is_sparse=each) for each in (False, True))
    assert sparse.report.rewrites.get("sparse-weights", {}) == ({expected: 1} if expected else {})
    assert ("no-sparsity" in [note.code for note in sparse.report.notes]) is not bool(expected)
    assert len(sparse) < len(whole) if expected else len(sparse) == len(whole)
    step = 0.0 if quantize is None else 0.1
    for found, wanted in zip(_runs(bytes(sparse), x), _runs(bytes(whole), x), strict=True):
        np.testing.assert_allclose(found, wanted, atol=step + 1e-5)
    if quantize is None:
        np.testing.assert_allclose(_runs(bytes(sparse), x)[0], np.maximum(x @ weights + 0.5, 0), atol=1e-5)


@pytest.mark.parametrize(("form", "mode"), [("numbers", 3001), ("blocks", 3002), ("few", None)])
def test_metadata(tf: ModuleType, form: str, mode: int | None) -> None:
    from tensorflow.lite.python.util import get_conversion_metadata, get_sparsity_modes
    from tensorflow.lite.tools.flatbuffer_utils import convert_bytearray_to_object

    content = bytes(_converted(tf, _weights(form), None))
    expected = [] if mode is None else [mode]
    assert list(get_conversion_metadata(content).options.modelOptimizationModes) == expected
    assert get_sparsity_modes(convert_bytearray_to_object(bytearray(content))) == expected
    versions = [code["version"] for code in read_model(content)["operator_codes"]]
    assert (versions == [8]) is bool(expected)


def test_rows_that_blocks_do_not_divide(tf: ModuleType) -> None:
    model = _converted(tf, _weights("numbers", columns=7), None)
    assert model.report.rewrites["sparse-weights"] == {"by number": 1}


def test_indices_of_many_columns(tf: ModuleType) -> None:
    weights, x = np.zeros((3000, 2), np.float32), RANDOM.normal(size=(1, 3000)).astype(np.float32)
    weights[2900, 1] = 2
    content = bytes(_converted(tf, weights, None))
    np.testing.assert_allclose(_runs(content, x)[1], np.maximum(x @ weights + 0.5, 0), rtol=1e-6)
    (sparsity,) = [
        tensor["sparsity"].tree()
        for tensor in read_model(content)["subgraphs"][0]["tensors"]
        if tensor["sparsity"] is not None
    ]
    assert sparsity["dim_metadata"][1]["array_indices"][0] == "Uint16Vector"


@pytest.mark.parametrize(
    "other",
    [
        '"tfl.abs"(%0) : (tensor<2x4xf32>)',
        '"tfl.fully_connected"(%0, %0, %1) : (tensor<2x4xf32>, tensor<2x4xf32>, none)',
    ],
)
def test_matrices_with_other_users_stay_whole(filecheck: FileCheck, other: str) -> None:
    filecheck(
        SparseWeights(),
        """
    // CHECK: tfl.pseudo_const
    func.func @main(%x: tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<*xf32>) {
      %0 = "tfl.pseudo_const"() <{value = dense<0.0> : tensor<2x4xf32>}> : () -> tensor<2x4xf32>
      %1 = "tfl.no_value"() <{value}> : () -> none
      %2 = "tfl.fully_connected"(%x, %0, %1) : (tensor<3x4xf32>, tensor<2x4xf32>, none) -> tensor<3x2xf32>
      %3 = OTHER -> tensor<*xf32>
      func.return %2, %3 : tensor<3x2xf32>, tensor<*xf32>
    }
    """.replace("OTHER", other),
    )
