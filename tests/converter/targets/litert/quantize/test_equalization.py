"""Uneven channels cost integers nothing, since what reads them is multiplied instead; functions stay the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.quantize.runs import run_model, signal_to_noise
from tests.support.sample_models import traced
from tfconvert.api import convert
from tfconvert.converter.targets.litert.quantize.channels import channels_of
from tfconvert.converter.targets.litert.quantize.equalization import Equalizer
from tfconvert.converter.targets.litert.quantize.hybrid import Form
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Mode, Quantize
from tfconvert.settings.verify_options import Verify

Array = np.ndarray[Any, np.dtype[Any]]

C, SIZE = 16, 8
UNEVEN = np.exp(np.random.default_rng(7).uniform(-4, 4, C)).astype(np.float32)
EVEN = np.ones(C, np.float32)


@cache
def weights(*shape: int) -> Array:
    random = np.random.default_rng(sum(shape) * len(shape))
    return (random.normal(size=shape) / math.sqrt(math.prod(shape[:-1]))).astype(np.float32)


def _image(tf: ModuleType, x: Any, s: Array) -> Any:
    """Returns 16 channels of an image, divided by `s`."""
    return tf.nn.conv2d(x, weights(3, 3, 3, C) / s, 1, "SAME") + weights(C) / s


def _classes(tf: ModuleType, y: Any, s: Array) -> Any:
    """Returns 24 channels of channels that were divided by `s`."""
    return tf.nn.conv2d(y, weights(1, 1, C, 24) * s[:, None], 1, "SAME")


def _rows(tf: ModuleType, x: Any, s: Array, units: int = C) -> Any:
    """Returns rows of numbers of an image, divided by `s`."""
    return tf.reshape(x, (1, SIZE * SIZE, 3)) @ (weights(3, units) / s) + weights(units) / s


def _between(between: Callable[[ModuleType, Any, Array], Any]) -> Callable[[ModuleType, Any, Array], Any]:
    return lambda tf, x, s: _classes(tf, between(tf, _image(tf, x, s), s), s)


def _depthwise(tf: ModuleType, x: Any, s: Array) -> Any:
    y = tf.nn.relu(_image(tf, x, s))
    y = tf.nn.depthwise_conv2d(y, weights(3, 3, C, 1) * (s / s[::-1])[:, None], (1, 1, 1, 1), "SAME")
    return _classes(tf, tf.nn.relu(y), s[::-1])


def _transposed(tf: ModuleType, x: Any, s: Array) -> Any:
    y = tf.nn.relu(_image(tf, x, s))
    y = tf.nn.conv2d_transpose(y, weights(2, 2, C, C) / s[:, None] * s, (1, 2 * SIZE, 2 * SIZE, C), 2, "SAME")
    return _classes(tf, y, s)


def _residual(tf: ModuleType, x: Any, s: Array) -> Any:
    y = _image(tf, x, s)
    for _ in range(2):
        inner = tf.nn.relu(tf.nn.conv2d(y, weights(1, 1, C, 32) * s[:, None], 1, "SAME"))
        y = y + tf.nn.conv2d(inner, weights(1, 1, 32, C) / s, 1, "SAME")
    return _classes(tf, y, s)


def _joined(tf: ModuleType, x: Any, s: Array) -> Any:
    y = tf.concat([_image(tf, x, s), tf.nn.relu(_image(tf, x * 0.5, s[::-1]))], -1)
    both = np.concatenate([s, s[::-1]])
    return tf.nn.conv2d(y, weights(1, 1, 2 * C, 24) * both[:, None], 1, "SAME")


def _parts(tf: ModuleType, x: Any, s: Array) -> Any:
    one, other = tf.split(_image(tf, x, s), 2, -1)
    y = tf.concat([tf.nn.relu(other), one], -1)
    return _classes(tf, y, np.roll(s, C // 2))


def _attention(tf: ModuleType, x: Any, s: Array) -> Any:
    q, k, v = (
        tf.transpose(tf.reshape(_rows(tf, x * scale, each), (1, SIZE * SIZE, 2, C // 2)), (0, 2, 1, 3))
        for scale, each in ((1, s), (0.5, 1 / s), (0.3, s[::-1]))
    )
    y = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)
    y = tf.reshape(tf.transpose(y, (0, 2, 1, 3)), (1, SIZE * SIZE, C))
    return y @ (weights(C, 24) * s[::-1, None])


def _norm(tf: ModuleType, x: Any, s: Array) -> Any:
    y = _rows(tf, x, EVEN)
    mean = tf.reduce_mean(y, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(y, mean), -1, keepdims=True)
    y = (y - mean) * tf.math.rsqrt(variance + 1e-3) * ((1 + 0.2 * weights(C)) / s) + weights(C) / s
    return y @ (weights(C, 24) * s[:, None]) + tf.nn.relu(y @ (weights(24, C).T * s[:, None]))


CASES: Mapping[str, Callable[[ModuleType, Any, Array], Any]] = {
    "linear": _between(lambda tf, y, s: y),
    "relu": _between(lambda tf, y, s: tf.nn.relu(y)),
    "leaky relu": _between(lambda tf, y, s: tf.nn.leaky_relu(y, 0.3)),
    "absolute": _between(lambda tf, y, s: tf.abs(y)),
    "pools": _between(lambda tf, y, s: tf.nn.avg_pool2d(tf.nn.max_pool2d(y, 2, 2, "SAME"), 3, 1, "SAME")),
    "mean": _between(lambda tf, y, s: tf.reduce_mean(tf.nn.relu(y), (1, 2), keepdims=True)),
    "padded": _between(lambda tf, y, s: tf.pad(tf.nn.relu(y), ((0, 0), (1, 2), (2, 1), (0, 0)))),
    "resized": _between(lambda tf, y, s: tf.raw_ops.ResizeBilinear(images=y, size=(12, 12), half_pixel_centers=True)),
    "bound": _between(lambda tf, y, s: tf.minimum(y, 1.5 / s)),
    "factor": _between(lambda tf, y, s: tf.nn.relu(y * ((1 + 0.3 * weights(C)) / s)) * s),
    "difference": _between(lambda tf, y, s: y - tf.nn.relu(y) * 0.5),
    "moved": _between(lambda tf, y, s: tf.transpose(tf.reshape(y, (1, SIZE * SIZE, 1, C)), (0, 2, 1, 3))),
    "depthwise": _depthwise,
    "transposed": _transposed,
    "residual": _residual,
    "joined": _joined,
    "parts": _parts,
    "attention": _attention,
    "norm": _norm,
}

INPUTS = np.random.default_rng(3).normal(size=(60, 1, SIZE, SIZE, 3)).astype(np.float32)


@cache
def function_of(name: str, *, is_even: bool) -> Any:
    import tensorflow as tf

    @traced(tf, tf.TensorSpec((1, SIZE, SIZE, 3), tf.float32))
    def function(x: Any) -> Any:
        return CASES[name](tf, x, EVEN if is_even else UNEVEN)

    return function


def _quality(name: str, mode: Mode, *, is_even: bool, equalize: str = "auto") -> float:
    function = function_of(name, is_even=is_even)
    samples = {"samples": INPUTS[:40]} if mode in ("int8", "int16") else {}
    options: dict[str, Any] = {**samples, "equalize": equalize, "slow_integers": mode == "int8"}
    content = bytes(convert(function, quantize=Quantize(mode, **options)))
    expected = np.stack([function(x).numpy() for x in INPUTS[40:]])
    return signal_to_noise(expected, np.stack([run_model(content, [x], times=1) for x in INPUTS[40:]]))


@pytest.mark.parametrize("mode", ["int8", "int16"])
@pytest.mark.parametrize("name", CASES)
def test_uneven_channels_cost_nothing(name: str, mode: Mode) -> None:
    assert _quality(name, mode, is_even=False) > _quality(name, mode, is_even=True, equalize="off") - 1.5


@pytest.mark.parametrize("name", CASES)
def test_what_is_even_stays_as_good(name: str) -> None:
    assert _quality(name, "int8", is_even=True) > _quality(name, "int8", is_even=True, equalize="off") - 0.3


def _divided(module: ModuleOp) -> int:
    """Divides channels wherever it can be done, as if all weights became integers; returns how many."""
    count = 0
    for function in functions_of(module).values():
        channels = channels_of(function)
        found = Equalizer(channels, {}, 255.0, lambda product: Form(8, product.rows)).run(everything=True)
        if found is not None:
            channels.divide(found.divisors)
            count += found.summary.channels
    return count


@pytest.mark.parametrize("name", CASES)
def test_the_function_stays_the_same(name: str) -> None:
    content = bytes(convert(function_of(name, is_even=False)))
    module = import_tflite(content)
    assert _divided(module) >= 8
    scaled = export(module).to_bytes()
    for x in INPUTS[:3]:
        expected = run_model(content, [x], times=1)
        np.testing.assert_allclose(
            run_model(scaled, [x], times=1), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()
        )


FIXED: Mapping[str, Callable[[ModuleType, Any, Array], Any]] = {
    "sigmoid": lambda tf, y, s: tf.sigmoid(y),
    "softmax": lambda tf, y, s: tf.nn.softmax(y),
    "relu6": lambda tf, y, s: tf.nn.relu6(y),
    "sum of channels": lambda tf, y, s: tf.reduce_sum(y, -1, keepdims=True) + tf.zeros_like(y),
    "sorted": lambda tf, y, s: tf.nn.top_k(y, C)[0],
    "product with itself": lambda tf, y, s: y * y,
    "norm of all channels": lambda tf, y, s: tf.nn.l2_normalize(y, -1),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_needs_all_channels_as_they_are_keeps_them(name: str) -> None:
    import tensorflow as tf

    @traced(tf, tf.TensorSpec((1, SIZE, SIZE, 3), tf.float32))
    def function(x: Any) -> Any:
        return _between(FIXED[name])(tf, x, UNEVEN)

    content = bytes(convert(function))
    module = import_tflite(content)
    _divided(module)
    expected = run_model(content, [INPUTS[0]])
    np.testing.assert_allclose(run_model(export(module).to_bytes(), [INPUTS[0]]), expected, rtol=1e-5, atol=1e-5)


def test_outputs_and_shared_tables_keep_their_numbers() -> None:
    import tensorflow as tf

    table = weights(300, C)

    @traced(tf, tf.TensorSpec((1, SIZE), tf.int32))
    def function(ids: Any) -> Any:
        rows = tf.gather(table, ids)
        return {"rows": rows, "scores": tf.nn.relu(rows @ weights(C, C)) @ tf.transpose(table)}

    content = bytes(convert(function))
    module = import_tflite(content)
    _divided(module)
    ids = np.arange(SIZE, dtype=np.int32)[None]
    assert len(export(module).to_bytes()) <= len(content) + 1024
    np.testing.assert_allclose(run_model(export(module).to_bytes(), [ids]), run_model(content, [ids]), rtol=1e-4)


def test_a_file_of_ranges_gives_what_samples_give(tmp_path: Path) -> None:
    function, path = function_of("residual", is_even=False), tmp_path / "ranges.json"
    samples = [*INPUTS[:8]]
    of_samples = convert(function, quantize=Quantize("int8", samples=samples))
    saved = convert(function, quantize=Quantize("int8", samples=samples, calibration=path))
    of_file = convert(function, quantize=Quantize("int8", calibration=path))
    assert bytes(of_samples) == bytes(saved) == bytes(of_file)
    assert bytes(of_file) != bytes(convert(function, quantize=Quantize("int8", calibration=path, equalize="off")))


def test_channels_whose_ranges_are_not_known_keep_their_numbers(tmp_path: Path) -> None:
    function, path = function_of("relu", is_even=False), tmp_path / "ranges.json"
    convert(function, quantize=Quantize("int8", samples=[*INPUTS[:8]], calibration=path, equalize="off"))
    assert bytes(convert(function, quantize=Quantize("int8", calibration=path))) == bytes(
        convert(function, quantize=Quantize("int8", calibration=path, equalize="off"))
    )


def test_the_report_tells_what_was_divided() -> None:
    model = convert(function_of("relu", is_even=False), quantize=Quantize("int8", samples=[*INPUTS[:8]]))
    report = model.report.quantization
    assert report is not None
    found = report.equalization
    assert found is not None
    assert (found.channels, found.groups) == (C, 1)
    assert found.spread_before > 10 > 3 > found.spread_after
    assert found.gain > 10
    assert f"equalized: {C} channels in 1 group" in model.report.to_text()
    assert report.to_dict()["equalization"]["channels"] == C


def test_layers_are_compared_as_if_nothing_was_divided() -> None:
    quantize = Quantize("int8", samples=[*INPUTS[:40]], slow_integers=True)
    verify = Verify(data=[*INPUTS[40:]], compare_layers=True, search_seconds=0)
    report = convert(function_of("attention", is_even=False), quantize=quantize, verify=verify).report.quantization
    assert report is not None
    assert report.equalization is not None
    assert report.fidelity is not None
    assert report.fidelity.layers
    assert min(each.snr for each in report.fidelity.layers) > 20


def test_weights_that_signatures_share_are_in_the_file_once() -> None:
    import tensorflow as tf

    kernel = tf.Variable(weights(C, 512) * UNEVEN[:, None])

    class Both(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec((1, 3), tf.float32)])  # type: ignore[untyped-decorator]
        def one(self, x: Any) -> Any:
            return tf.nn.relu(x @ (weights(3, C) / UNEVEN)) @ kernel

        @tf.function(input_signature=[tf.TensorSpec((1, 3), tf.float32)])  # type: ignore[untyped-decorator]
        def other(self, x: Any) -> Any:
            return tf.nn.relu(x @ (weights(3, C) / UNEVEN) + 1.0) @ kernel

    random = np.random.default_rng(0)
    samples = {name: [random.normal(size=(1, 3)).astype(np.float32) for _ in range(4)] for name in ("one", "other")}
    sizes = [
        convert(Both(), signatures=["one", "other"], quantize=Quantize("int8", samples=samples, equalize=each)).size
        for each in ("off", "all")
    ]
    assert sizes[1] < sizes[0] + 512
