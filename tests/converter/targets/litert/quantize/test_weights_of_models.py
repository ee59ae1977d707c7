"""Whole models with weights as integers or 16-bit floats: size, accuracy, metadata, the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tensorflow.lite.python.conversion_metadata_schema_py_generated import ConversionMetadataT

import tfconvert
from tests.converter.targets.litert.quantize.runs import Array, run_model, signal_to_noise
from tests.support import sample_models
from tfconvert import Quantize
from tfconvert.schema.tflite.reader import read_model


def _embeddings(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Embedded words, a loop with a recurrent matrix, and a classifier."""
    module, random = tf.Module(), np.random.default_rng(5)

    def variable(*shape: int) -> Any:
        return tf.Variable((random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    module.table, module.kernel = variable(300, 40), variable(40, 48)
    module.recurrent, module.head = variable(48, 48), variable(48, 24)

    @sample_models.traced(tf, tf.TensorSpec([None, 6], tf.int32, name="words"))
    def call(words: Any) -> Any:
        rows = tf.matmul(tf.gather(module.table, words), tf.broadcast_to(module.kernel, [1, 40, 48]))
        state = tf.zeros([tf.shape(words)[0], 48])
        for step in tf.range(6):
            state = tf.tanh(rows[:, step] + tf.matmul(state, module.recurrent))
        return tf.matmul(state, module.head)

    module.call = call
    return module, {"serving_default": call}


@pytest.fixture(scope="module", params=["digits", "words"])
def model(request: pytest.FixtureRequest, tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a model."""
    if request.param == "words":
        return sample_models.save(tf, _embeddings, tmp_path_factory.mktemp("model") / "words")
    digits: Path = request.getfixturevalue("digits_model")
    return digits


def _inputs(content: bytes) -> Array:
    (tensor,) = (
        read_model(content)["subgraphs"][0]["tensors"][at] for at in read_model(content)["subgraphs"][0]["inputs"]
    )
    shape = (16, *tensor["shape"].tolist()[1:])
    random = np.random.default_rng(0)
    if tensor.name("type") == "INT32":
        return random.integers(0, 300, shape, np.int32)
    return random.random(shape, np.float32)


@pytest.mark.parametrize(
    ("settings", "ratio", "noise"),
    [
        (Quantize("dynamic"), 0.5, 33),
        (Quantize("dynamic", per_channel=False), 0.5, 30),
        (Quantize("dynamic", 4), 0.45, 12),
        (Quantize("dynamic", hybrid_only=True), 0.5, 33),
        (Quantize("weights"), 0.5, 35),
        (Quantize("float16"), 0.65, 65),
    ],
    ids=["dynamic", "one scale", "4 bits", "hybrid depthwise", "weights", "float16"],
)
def test_models_are_smaller_and_nearly_as_good(model: Path, settings: Quantize, ratio: float, noise: float) -> None:
    floats, small = bytes(tfconvert.convert(model)), bytes(tfconvert.convert(model, quantize=settings))
    assert len(small) < ratio * len(floats)
    inputs = [_inputs(floats)]
    for builtin in (True, False):
        expected = run_model(floats, inputs, builtin=builtin)
        assert signal_to_noise(expected, run_model(small, inputs, builtin=builtin)) > noise


@pytest.mark.parametrize("mode", ["dynamic", "weights", "float16"])
def test_same_model_same_bytes(model: Path, mode: Any) -> None:
    assert bytes(tfconvert.convert(model, quantize=mode)) == bytes(tfconvert.convert(model, quantize=mode))


@pytest.mark.parametrize(
    ("mode", "optimizations", "precision"),
    [("dynamic", [1002], None), ("float16", [1001], b"fp16accfp32"), ("weights", [], None), (None, [], None)],
)
def test_metadata_tells_how(digits_model: Path, mode: Any, optimizations: list[int], precision: bytes | None) -> None:
    file = read_model(bytes(tfconvert.convert(digits_model, quantize=mode)))
    entries = {item["name"]: bytes(file["buffers"][item["buffer"]]["data"]) for item in file["metadata"]}
    assert entries.get("reduced_precision_support") == precision
    conversion = ConversionMetadataT.InitFromPackedBuf(entries["CONVERSION_METADATA"])
    assert list(conversion.options.modelOptimizationModes) == optimizations


def test_versions_are_those_of_hybrid_kernels(digits_model: Path) -> None:
    file = read_model(bytes(tfconvert.convert(digits_model, quantize=Quantize("dynamic", hybrid_only=True))))
    versions = {code.name("builtin_code"): code["version"] for code in file["operator_codes"]}
    assert (versions["CONV_2D"], versions["FULLY_CONNECTED"]) == (5, 12)


def test_the_report_counts_forms(digits_model: Path) -> None:
    report = tfconvert.convert(digits_model, quantize=Quantize("dynamic", exclude=["CONV_2D", "no/such"])).report
    assert report.rewrites["quantize-weights"] == {"int8 per channel, dequantized": 1}
    assert "int8 per channel, dequantized: 1" in report.to_text()
    assert [note.code for note in report.notes] == ["nothing-excluded", "same-signature"]


@pytest.mark.parametrize(("mode", "least"), [("dynamic", 3.9), ("weights", 3.9), ("float16", 1.9)])
def test_the_report_has_the_bytes_of_weights(digits_model: Path, mode: Any, least: float) -> None:
    report = tfconvert.convert(digits_model, quantize=mode, verify=True).report
    assert report.quantization is not None
    before, after = report.quantization.bytes_before, report.quantization.bytes_after
    assert before > 4000
    assert least <= before / after <= 4
    assert report.to_dict()["quantization"]["bytes_before"] == before
    assert f"weights: {before / 1000:.1f} kB -> {after / 1000:.1f} kB" in report.to_text()
