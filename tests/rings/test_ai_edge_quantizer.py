"""Our float files can be handed to ai-edge-quantizer, and what it writes is read and written again by us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.quantize.runs import signal_to_noise
from tests.support.litert import RunTFLite
from tfconvert.schema.tflite.reader import read_model
from tfconvert.schema.tflite.tables import TFLITE

quantizer = pytest.importorskip("ai_edge_quantizer.quantizer")
recipe = pytest.importorskip("ai_edge_quantizer.recipe")

# Recipes with the signal-to-noise ratios that they leave at least, in dB.
RECIPES = {"dynamic_wi8_afp32": 30, "weight_only_wi8_afp32": 35, "dynamic_wi4_afp32": 10}


@pytest.fixture(scope="module")
def float_file(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("float") / "float.tflite"
    tfconvert.convert(digits_model, signatures=["serving_default"]).save(path)
    return path


def _pixels() -> np.ndarray:
    return np.random.default_rng(0).random((8, 8, 8, 1)).astype(np.float32)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RECIPES)
def test_hand_off(name: str, float_file: Path, tmp_path: Path, run_tflite: RunTFLite) -> None:
    work = quantizer.Quantizer(str(float_file), getattr(recipe, name)())
    content = bytes(work.quantize().quantized_model)
    inputs = {"pixels": _pixels()}
    (expected,) = run_tflite(float_file.read_bytes(), inputs, signature="serving_default")
    (theirs,) = run_tflite(content, inputs, signature="serving_default")
    path = tmp_path / "quantized.tflite"
    path.write_bytes(content)
    again = tfconvert.convert(path)
    (ours,) = run_tflite(bytes(again), inputs, signature="serving_default")
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert signal_to_noise(expected, ours) >= RECIPES[name]


@pytest.mark.filterwarnings("ignore")
def test_versions_are_stated_again(float_file: Path, tmp_path: Path) -> None:
    work = quantizer.Quantizer(str(float_file), recipe.dynamic_wi8_afp32())
    path = tmp_path / "quantized.tflite"
    path.write_bytes(bytes(work.quantize().quantized_model))
    before, after = (_versions(each) for each in (path.read_bytes(), bytes(tfconvert.convert(path))))
    assert after["CONV_2D"] >= 5 > before["CONV_2D"]
    assert all(after[name] >= version for name, version in before.items())


def _versions(content: bytes) -> dict[str, int]:
    codes = list(read_model(content)["operator_codes"])
    return {str(TFLITE.member("BuiltinOperator", code["builtin_code"])): code["version"] for code in codes}


@pytest.mark.filterwarnings("ignore")
def test_blocks_keep_their_scales(tf: Any, tmp_path: Path, run_tflite: RunTFLite) -> None:
    random = np.random.default_rng(1)
    weights = [random.normal(size=shape).astype(np.float32) for shape in ((64, 96), (96, 32))]

    net = tf.Module()
    net.run = tf.function(
        lambda x: {"y": tf.nn.relu(x @ weights[0]) @ weights[1]},
        input_signature=[tf.TensorSpec([4, 64], tf.float32, name="x")],
    )
    tf.saved_model.save(net, tmp_path / "net", signatures=net.run.get_concrete_function())
    floats = bytes(tfconvert.convert(tmp_path / "net"))
    content = bytes(quantizer.Quantizer(floats, recipe.dynamic_wi4b32_afp32()).quantize().quantized_model)
    path = tmp_path / "blocks.tflite"
    path.write_bytes(content)
    inputs = {"x": random.normal(size=(4, 64)).astype(np.float32)}
    expected, theirs, ours = (
        run_tflite(each, inputs, signature="serving_default")[0]
        for each in (floats, content, bytes(tfconvert.convert(path)))
    )
    np.testing.assert_array_equal(ours, theirs)
    assert signal_to_noise(expected, ours) >= 15
