"""Models that say themselves, with fake quantization, what becomes integers: nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Quantize

RANDOM = np.random.default_rng(0)
FILTER = RANDOM.normal(0, 0.3, (3, 3, 3, 4)).astype(np.float32)
IMAGE = RANDOM.uniform(-3, 3, (1, 5, 5, 3)).astype(np.float32)
SCALE = 6 / 255


def _fake(tf: ModuleType, x: Any, end: float, low: float | None = None) -> Any:
    return tf.quantization.fake_quant_with_min_max_args(x, -end if low is None else low, end)


def _filter(tf: ModuleType) -> Any:
    return tf.quantization.fake_quant_with_min_max_vars(tf.constant(FILTER), -1.0, 1.0, narrow_range=True)


def _whole(tf: ModuleType, x: Any) -> Any:
    y = tf.nn.relu(tf.nn.conv2d(_fake(tf, x, 3), _filter(tf), 1, "SAME"))
    return _fake(tf, y, 6, 0)


def _half(tf: ModuleType, x: Any) -> Any:
    y = _fake(tf, tf.nn.conv2d(tf.nn.max_pool2d(_fake(tf, x, 3), 2, 1, "SAME"), _filter(tf), 1, "SAME"), 4)
    return tf.nn.softmax(y + 1.0)


def _weights(tf: ModuleType, x: Any) -> Any:
    return tf.nn.relu(tf.nn.conv2d(x, _filter(tf), 1, "SAME"))


def _plain(tf: ModuleType, x: Any) -> Any:
    return tf.nn.conv2d(x, tf.constant(FILTER), 1, "SAME")


def _moved(tf: ModuleType, x: Any) -> Any:
    return _fake(tf, tf.transpose(_fake(tf, x, 3), [0, 2, 1, 3]), 3)


STATIC: dict[str, Any] = {"_experimental_qdq_conversion_mode": "STATIC"}
DYNAMIC: dict[str, Any] = {"_experimental_qdq_conversion_mode": "DYNAMIC"}
STRICT: dict[str, Any] = {"_experimental_strict_qdq": True}
QUANTIZED = {"QUANTIZE": 1, "CONV_2D": 1, "DEQUANTIZE": 1}


@pytest.mark.parametrize(
    ("network", "attributes", "operators", "ends"),
    [
        (_whole, STATIC, {"CONV_2D": 1}, ("int8", "int8")),
        (_whole, DYNAMIC, QUANTIZED, ("float32", "float32")),
        (_whole, STRICT, QUANTIZED, ("float32", "float32")),
        (_whole, STATIC | STRICT, QUANTIZED, ("float32", "float32")),
        (_half, STATIC, {"MAX_POOL_2D": 1, "CONV_2D": 1, "DEQUANTIZE": 1, "ADD": 1, "SOFTMAX": 1}, ("int8", "float32")),
        (_weights, STATIC, {"CONV_2D": 1}, ("float32", "float32")),
        (_weights, DYNAMIC, {"CONV_2D": 1}, ("float32", "float32")),
        (_plain, STATIC, {"CONV_2D": 1}, ("float32", "float32")),
        (_plain, DYNAMIC, {"CONV_2D": 1}, ("float32", "float32")),
        (_plain, STRICT, {"CONV_2D": 1}, ("float32", "float32")),
        (_moved, STATIC, {"TRANSPOSE": 1}, ("int8", "int8")),
        (_moved, STRICT, {"QUANTIZE": 1, "TRANSPOSE": 1, "DEQUANTIZE": 1}, ("float32", "float32")),
        (
            _moved,
            {"_experimental_qdq_conversion_mode": "NONE"},
            {"FAKE_QUANT": 2, "TRANSPOSE": 1},
            ("float32", "float32"),
        ),
    ],
)
def test_what_is_fake_quantized_becomes_integers(
    tf: ModuleType,
    run_tflite: RunTFLite,
    network: Callable[[ModuleType, Any], Any],
    attributes: dict[str, Any],
    operators: dict[str, int],
    ends: tuple[str, str],
) -> None:
    @traced(tf, tf.TensorSpec(IMAGE.shape, tf.float32, name="image"))
    def call(image: Any) -> Any:
        return network(tf, image)

    converter = tfconvert.TFLiteConverter.from_concrete_functions([call])
    for name, value in attributes.items():
        setattr(converter, name, value)
    content = converter.convert()
    interpreter = tfconvert.Interpreter(model_content=content)
    given, taken = interpreter.get_output_details()[0], interpreter.get_input_details()[0]
    assert (np.dtype(taken["dtype"]).name, np.dtype(given["dtype"]).name) == ends
    assert converter.report is not None
    assert converter.report.operators == operators
    fed = np.round(IMAGE / SCALE).astype(np.int8) if ends[0] == "int8" else IMAGE
    (got,) = run_tflite(content, [fed])
    scale, zero = given["quantization"]
    result = (got.astype(np.float32) - zero) * scale if scale else got
    np.testing.assert_allclose(result, call(tf.constant(IMAGE)), atol=0.06)


def test_trained_weights_are_stored_with_their_scale(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec(IMAGE.shape, tf.float32, name="image"))
    def call(image: Any) -> Any:
        return _weights(tf, image)

    converter = tfconvert.TFLiteConverter.from_concrete_functions([call])
    converter._experimental_qdq_conversion_mode = "DYNAMIC"
    interpreter = tfconvert.Interpreter(model_content=converter.convert())
    (stored,) = [detail for detail in interpreter.get_tensor_details() if detail["dtype"] is np.int8]
    assert stored["quantization"] == (pytest.approx(1 / 127), 0)
    values = np.clip(np.round(FILTER * 127), -127, 127).transpose(3, 0, 1, 2)
    np.testing.assert_array_equal(interpreter.get_tensor(stored["index"]), values)


def test_samples_are_not_used(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec(IMAGE.shape, tf.float32, name="image"))
    def call(image: Any) -> Any:
        return _whole(tf, image)

    converter = tfconvert.TFLiteConverter.from_concrete_functions([call])
    converter._experimental_strict_qdq = True
    converter.representative_dataset = lambda: iter([[IMAGE]])
    converter.convert()
    assert converter.report is not None
    assert "samples-not-used" in [note.code for note in converter.report.notes]


def test_a_mode_that_is_not_known_is_refused(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([1], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return x + 1.0

    converter = tfconvert.TFLiteConverter.from_concrete_functions([call])
    converter._experimental_qdq_conversion_mode = "SOMETIMES"
    with pytest.raises(ConversionError, match="STATIC, DYNAMIC"):
        converter.convert()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "int8", "samples": []}, "from the model alone"),
        ({"mode": "float16"}, "doesn't go with the mode"),
        ({"mode": "int8", "calibration": "ranges.json"}, "from the model alone"),
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        Quantize(**settings, trained_only=True).check()
