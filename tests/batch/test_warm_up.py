"""The network that is converted before the first job has what image models have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tfconvert
from tfconvert.batch.preload import preload, warm_up_model


def test_it_converts_to_the_operators_of_image_models(tmp_path: Path, tf: Any, run_tflite: Callable[..., Any]) -> None:
    (tmp_path / "saved_model.pb").write_bytes(warm_up_model().SerializeToString())
    model = tfconvert.convert(tmp_path)
    assert {
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "ADD",
        "MUL",
        "MEAN",
        "PAD",
        "LOGISTIC",
        "FULLY_CONNECTED",
        "RESIZE_BILINEAR",
        "MAX_POOL_2D",
        "SOFTMAX",
    } == set(model.report.operators)
    assert model.report.operators["CONV_2D"] == 9
    value = np.random.default_rng(0).random((1, 16, 16, 8), np.float32)
    expected = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](x=tf.constant(value))["y"]
    np.testing.assert_allclose(run_tflite(bytes(model), [value])[0], expected, rtol=1e-4, atol=1e-5)


def test_preparing_a_worker_leaves_its_files_in_the_folder(tmp_path: Path) -> None:
    preload(str(tmp_path))
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"model/saved_model.pb", "model.tflite", "report.json", "report.html"}
