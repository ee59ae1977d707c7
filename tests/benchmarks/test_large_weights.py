"""The model of large weights converts, and computes what it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from benchmarks.large_weights import shapes, write_model
from tests.converter.targets.litert.quantize.runs import signal_to_noise
from tests.support.litert import RunTFLite
from tfconvert.importers.checkpoint.bundle import Checkpoint


def test_answers(tmp_path: Path, run_tflite: RunTFLite) -> None:
    sizes = shapes(1)
    write_model(tmp_path / "model", sizes)
    content = bytes(tfconvert.convert(tmp_path / "model"))
    checkpoint = Checkpoint(tmp_path / "model" / "variables" / "variables")
    weights = {name: checkpoint.read(name).array(np.dtype(np.float32), shape) for name, shape in sizes.items()}
    inner, channels = sizes["matrix"][0], sizes["filter"][-1]
    vector = np.linspace(-1, 1, inner, dtype=np.float32)[None]
    image = np.zeros((1, 4, 4, channels), np.float32)
    image[0, 1, 1, 3] = 1  # shows the filter of channel 3, turned round
    inputs = {"vector": vector, "image": image, "index": np.array([5, 0, 7], np.int32)}
    results = {result.shape: result for result in run_tflite(content, inputs, signature="serving_default")}
    answer = np.maximum(vector @ weights["matrix"], 0) @ weights["scaled"] * np.linspace(0.5, 2, inner, dtype="f4")
    np.testing.assert_allclose(results[answer.shape], answer, rtol=1e-3, atol=1e-3)
    features = weights["filter"][::-1, ::-1, 3] * np.linspace(0.5, 2, channels, dtype="f4")
    np.testing.assert_allclose(results[image.shape][0, :3, :3], features, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(results[3, 64], weights["table"][[5, 0, 7]])


@pytest.mark.parametrize(
    ("quantize", "least"),
    [("dynamic", 33), ("weights", 35), ("float16", 65), (tfconvert.Quantize("dynamic", 4), 15)],
    ids=["dynamic", "weights", "float16", "4 bits"],
)
def test_quantized_answers(tmp_path: Path, run_tflite: RunTFLite, quantize: Any, least: float) -> None:
    """Weights that are read from a file, transposed, scaled, and then turned to integers."""
    sizes = shapes(1)
    write_model(tmp_path / "model", sizes)
    random = np.random.default_rng(1)
    inputs = {
        "vector": random.normal(size=(1, sizes["matrix"][0])).astype(np.float32),
        "image": random.normal(size=(1, 4, 4, sizes["filter"][-1])).astype(np.float32),
        "index": np.array([5, 0, 7], np.int32),
    }
    expected, got = (
        run_tflite(bytes(tfconvert.convert(tmp_path / "model", quantize=each)), inputs, signature="serving_default")
        for each in (None, quantize)
    )
    for one, other in zip(expected, got, strict=True):
        assert signal_to_noise(one, other) > least
