"""Biases of 32 bits beside 16-bit activations, which CMSIS-NN wants; by the function, the command and the class."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.litert.quantize.runs import run_model, signal_to_noise
from tests.support.sample_models import traced
from tfconvert.cli.main import main
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Quantize

RANDOM = np.random.default_rng(3)
IMAGES = RANDOM.normal(0, 1, (8, 1, 8, 8, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shapes = ((3, 3, 4, 8), (3, 3, 8, 1), (2, 2, 4, 8), (1024, 5))
    first, deep, up, dense = (tf.constant(RANDOM.normal(0, 0.2, shape).astype(np.float32)) for shape in shapes)
    offset = tf.constant(RANDOM.normal(0, 1, 8).astype(np.float32))

    @traced(tf, tf.TensorSpec(IMAGES.shape[1:], tf.float32, name="image"))
    def call(image: Any) -> Any:
        x = tf.nn.relu(tf.nn.conv2d(image, first, 1, "SAME") + offset)
        x = tf.nn.depthwise_conv2d(x, deep, [1, 1, 1, 1], "SAME") + offset
        x = tf.nn.conv2d_transpose(x, up, (1, 16, 16, 4), 2)
        return {"y": tf.matmul(tf.reshape(x, [1, 1024]), dense)}

    folder = tmp_path_factory.mktemp("biases")
    tf.saved_model.save(tf.Module(), str(folder / "model"), signatures=call)
    np.savez(folder / "images.npz", image=IMAGES)
    return folder


def _biases(content: bytes) -> list[tuple[str, str]]:
    """Returns the operators with biases, each with its bias's type."""
    interpreter = Interpreter(model_content=content)
    types = {detail["index"]: np.dtype(detail["dtype"]).name for detail in interpreter.get_tensor_details()}
    wide = [
        (op["op_name"], types[index]) for op in interpreter._get_ops_details() for index in op["inputs"] if index >= 0
    ]
    return [
        (name, kind) for name, kind in wide if kind in ("int32", "int64") and name.endswith(("CONV_2D", "CONNECTED"))
    ]


def _check(folder: Path, content: bytes, wide: str) -> None:
    assert _biases(content) == [("CONV_2D", wide), ("DEPTHWISE_CONV_2D", "int64")]
    expected = run_model(bytes(tfconvert.convert(folder / "model")), [IMAGES[0]])
    assert signal_to_noise(expected, run_model(content, [IMAGES[0]])) > 42


def test_by_the_command(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    arguments = [str(folder / "model"), "-o", str(file), "--quantize", "int16", "--bias", "int32", "--strict"]
    done = CliRunner().invoke(main, [*arguments, "--samples", str(folder / "images.npz"), "-v"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "its kernel takes 64-bit biases only" in done.output
    _check(folder, file.read_bytes(), "int32")


@pytest.mark.parametrize("kind", [None, np.int32, np.int64])
def test_by_the_class(folder: Path, kind: Any) -> None:
    converter = tfconvert.TFLiteConverter.from_saved_model(str(folder / "model"))
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image] for image in IMAGES)
    converter.target_spec.supported_types = [np.int16]
    converter.target_spec.supported_ops = [
        tfconvert.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8,
        tfconvert.OpsSet.TFLITE_BUILTINS,
    ]
    converter._experimental_full_integer_quantization_bias_type = kind
    _check(folder, converter.convert(), "int32" if kind is np.int32 else "int64")


def test_sums_have_room(tf: ModuleType, tmp_path: Path) -> None:
    # The worst case: all products are as large as possible, and the result is more than their sum.
    weight = tf.constant(np.ones((4096, 2), np.float32))

    @traced(tf, tf.TensorSpec([1, 4096], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return {"y": tf.matmul(x, weight) + tf.constant([1.0, -1.0])}

    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=call)
    x = np.ones((1, 4096), np.float32)
    content = bytes(tfconvert.convert(tmp_path, quantize=Quantize("int16", samples=[[x]], bias="int32")))
    np.testing.assert_allclose(run_model(content, [x]), [[4097, 4095]], rtol=0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "int8", "bias": "int64"}, "not int64 in the mode"),
        ({"mode": "int16", "bias": "float32"}, "can't be"),
        ({"mode": "int8", "accumulation": "float16"}, "accumulation doesn't go"),
        ({"mode": "float16", "accumulation": "int8"}, "accumulation can't be"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        Quantize(**settings).check()


def test_accumulation_in_16_bits_is_in_the_metadata(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.tflite"
    arguments = [str(folder / "model"), "-o", str(file), "--quantize", "float16"]
    for more, value in (((), b"fp16accfp32"), (("--accumulation", "float16"), b"fp16accfp16")):
        done = CliRunner().invoke(main, [*arguments, *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert value in file.read_bytes()
    converter = tfconvert.TFLiteConverter.from_saved_model(str(folder / "model"))
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter.target_spec.supported_types = [np.float16]
    converter.target_spec._experimental_supported_accumulation_type = np.float16
    assert b"fp16accfp16" in converter.convert()


@pytest.mark.parametrize(("mode", "is_left_out"), [("int8", True), ("int16", False)])
def test_zeros_are_left_out_where_kernels_take_none(mode: Any, is_left_out: bool) -> None:
    keras = pytest.importorskip("keras")
    image = keras.layers.Input(IMAGES.shape[2:])
    x = keras.layers.Conv2D(4, 3, padding="same")(image)
    x = keras.layers.DepthwiseConv2D(3, padding="same")(x)
    x = keras.layers.Conv2DTranspose(4, 2, strides=1, padding="same")(x)
    model = keras.Model(image, keras.layers.Dense(5)(keras.layers.Flatten()(x)))
    target = tfconvert.LiteRT(quantize=Quantize(mode, samples=[[each] for each in IMAGES]))
    content = bytes(tfconvert.convert(model, batch=1, target=target))
    biased = {
        op["op_name"]: len([index for index in op["inputs"] if index >= 0]) > 2 + (op["op_name"] == "TRANSPOSE_CONV")
        for op in Interpreter(model_content=content)._get_ops_details()
        if op["op_name"].endswith(("CONV", "CONV_2D", "CONNECTED"))
    }
    held = not is_left_out
    assert biased == {"CONV_2D": True, "DEPTHWISE_CONV_2D": True, "TRANSPOSE_CONV": held, "FULLY_CONNECTED": held}
    expected = run_model(bytes(tfconvert.convert(model, batch=1)), [IMAGES[0]])
    assert signal_to_noise(expected, run_model(content, [IMAGES[0]])) > 25
