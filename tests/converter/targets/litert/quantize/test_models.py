"""Whole models of TensorFlow, quantized, against their float twins and against the official converter's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from tests.converter.targets.litert.quantize.runs import signal_to_noise
from tests.support.sample_models import traced
from tfconvert.api import Model, convert
from tfconvert.settings.quantization import Quantize

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]

RANDOM = np.random.default_rng(0)


def _weights(*shape: int) -> Array:
    """Returns weights as training leaves them: their spread fits the number of inputs, and differs by channel."""
    spread = np.exp(RANDOM.normal(0, 0.5, shape[-1])) / np.sqrt(np.prod(shape[:-1]))
    return np.asarray(RANDOM.normal(0, 1, shape) * spread, np.float32)


def _image_net(tf: ModuleType) -> Any:
    """A convolution, a depthwise one, a residual sum, branches that are joined, and a dense layer."""
    first, deep, point, left, right, dense = (
        _weights(3, 3, 3, 16),
        _weights(3, 3, 16, 1),
        _weights(1, 1, 16, 16),
        _weights(1, 1, 16, 8),
        _weights(3, 3, 16, 8),
        _weights(256, 10),
    )
    deep *= 4
    biases = [_weights(16), _weights(16), _weights(10)]

    @traced(tf, tf.TensorSpec([None, 16, 16, 3], tf.float32, name="image"))
    def call(image: Any) -> Any:
        x = tf.nn.relu6(tf.nn.conv2d(image, first, 2, "SAME") + biases[0])
        y = tf.nn.relu(tf.nn.depthwise_conv2d(x, deep, [1, 1, 1, 1], "SAME") + biases[1])
        x = x + tf.nn.conv2d(y, point, 1, "SAME")
        x = tf.concat([tf.nn.relu(tf.nn.conv2d(x, left, 1, "SAME")), tf.nn.conv2d(x, right, 1, "SAME")], 3)
        x = tf.nn.max_pool2d(tf.nn.leaky_relu(x), 2, 2, "VALID")
        return {"logits": tf.matmul(tf.reshape(x, [-1, 256]), dense) + biases[2]}

    return call


def _several(tf: ModuleType) -> dict[str, Any]:
    """Two signatures, one that takes integers and has a loop, one with a state."""
    table, square = tf.constant(_weights(50, 8) * 3), tf.constant(_weights(8, 8))
    state = tf.Variable(tf.zeros([1, 8]), name="state")

    @traced(tf, tf.TensorSpec([None], tf.int32, name="ids"), tf.TensorSpec([None, 8], tf.float32, name="x"))
    def embed(ids: Any, x: Any) -> Any:
        def step(number: Any, value: Any) -> Any:
            return number + 1, tf.tanh(tf.matmul(value, square) + 0.5)

        _, x = tf.while_loop(lambda number, _: number < 3, step, [0, tf.gather(table, ids) + x])
        return {"vectors": x}

    @traced(tf, tf.TensorSpec([1, 8], tf.float32, name="x"))
    def remember(x: Any) -> Any:
        state.assign(state * 0.5 + tf.nn.relu(tf.matmul(x, square)))
        return {"y": tf.matmul(state, square) + 0.1}

    return {"embed": embed, "remember": remember, "variable": state}


def _normal(*shape: int) -> Array:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


IMAGES: list[Arrays] = [{"image": _normal(count, 16, 16, 3)} for count in (1, 3, 4) * 8]
SAMPLES: Mapping[str, list[Arrays]] = {
    "embed": [{"ids": RANDOM.integers(0, 50, n).astype(np.int32), "x": _normal(n, 8)} for n in (2, 1, 7, 5) * 8],
    "remember": [{"x": _normal(1, 8)} for _ in range(40)],
}


@pytest.fixture(scope="module")
def image_net(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _saved(tf, tmp_path_factory.mktemp("image_net"), {"serving_default": _image_net(tf)})


@pytest.fixture(scope="module")
def several(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _saved(tf, tmp_path_factory.mktemp("several"), _several(tf))


def _saved(tf: ModuleType, folder: Path, parts: dict[str, Any]) -> Path:
    module = tf.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    tf.saved_model.save(module, str(folder), signatures={k: v for k, v in parts.items() if k != "variable"})
    return folder


def _run(content: bytes, key: str, samples: Sequence[Arrays]) -> Array:
    """Returns a signature's only result for samples, run one after the other."""
    runner: Any = Interpreter(model_content=content, num_threads=1).get_signature_runner(key)
    return np.concatenate([next(iter(runner(**sample).values())).reshape(-1) for sample in samples])


def _names(model: Model) -> set[str]:
    return set(model.report.operators)


@pytest.mark.parametrize(("mode", "least"), [("int8", 30), ("int16", 40)])
def test_integers_are_as_good_as_the_official_converters(
    tf: ModuleType, image_net: Path, mode: Any, least: float
) -> None:
    reference = _run(bytes(convert(image_net)), "serving_default", IMAGES)
    ours = convert(image_net, quantize=Quantize(mode, samples=IMAGES, strict=True))
    converter = tf.lite.TFLiteConverter.from_saved_model(str(image_net))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([sample["image"]] for sample in IMAGES)
    if mode == "int16":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ]
    official = converter.convert()
    found = signal_to_noise(reference, _run(bytes(ours), "serving_default", IMAGES))
    assert found >= least
    assert found >= signal_to_noise(reference, _run(official, "serving_default", IMAGES)) - 1
    assert len(ours) < len(official)
    # Only the ends are floats.
    assert ours.report.operators["QUANTIZE"] == ours.report.operators["DEQUANTIZE"] == 1
    if mode == "int8":
        _same_figures(bytes(ours), official)


def _same_figures(ours: bytes, official: bytes) -> None:
    """Compares integers of weights and scales, whatever order the tensors have."""
    found = []
    for content in (ours, official):
        interpreter: Any = Interpreter(
            model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        )
        interpreter.allocate_tensors()
        by_shape: dict[Any, Any] = {}
        for detail in interpreter.get_tensor_details():
            uniform = detail["quantization_parameters"]
            if detail["dtype"] == np.int8 and len(uniform["scales"]):
                is_weight = len(uniform["scales"]) > 1
                value = interpreter.get_tensor(detail["index"]) if is_weight else None
                kind = tuple(detail["shape"]), is_weight
                by_shape.setdefault(kind, []).append((uniform["scales"], uniform["zero_points"], value))
        found.append(by_shape)
    one, other = found
    weights = [kind for kind in one if kind[1]]
    assert len(weights) == 6
    for kind in weights:
        ((scales, _, value),), ((official_scales, _, official_value),) = one[kind], other[kind]
        np.testing.assert_array_equal(scales, official_scales)
        np.testing.assert_array_equal(value, official_value)
    for shape in ((1, 16, 16, 3), (1, 10)):
        ((scales, zeros, _),), ((official_scales, official_zeros, _),) = one[shape, False], other[shape, False]
        np.testing.assert_allclose(scales, official_scales, rtol=1e-5)
        np.testing.assert_array_equal(zeros, official_zeros)


def test_ranges_can_be_found_in_other_ways(image_net: Path) -> None:
    reference = _run(bytes(convert(image_net)), "serving_default", IMAGES)
    for ranges in ("mse", "percentile"):
        model = convert(image_net, quantize=Quantize("int8", samples=IMAGES[:6], ranges=ranges))
        assert signal_to_noise(reference, _run(bytes(model), "serving_default", IMAGES)) >= 27, ranges


@pytest.mark.parametrize("io", ["int8", "uint8", ("uint8", "float32"), ("float32", "int8")])
def test_inputs_and_outputs_may_be_integers(image_net: Path, io: Any) -> None:
    model = convert(image_net, quantize=Quantize("int8", samples=IMAGES, io=io))
    reference = _run(bytes(convert(image_net)), "serving_default", IMAGES)
    interpreter: Any = Interpreter(model_content=bytes(model))
    (taken,), (given,) = interpreter.get_input_details(), interpreter.get_output_details()
    ends = io if isinstance(io, tuple) else (io, io)
    assert (taken["dtype"], given["dtype"]) == tuple(map(np.dtype, ends))
    fed = IMAGES
    if ends[0] != "float32":
        (scale, zero), limits = taken["quantization"], np.iinfo(ends[0])
        fed = [
            {"image": np.clip(np.rint(each["image"] / scale) + zero, limits.min, limits.max).astype(ends[0])}
            for each in IMAGES
        ]
    result = _run(bytes(model), "serving_default", fed).astype(np.float64)
    if ends[1] != "float32":
        scale, zero = given["quantization"]
        result = (result - zero) * scale
    assert signal_to_noise(reference, result) >= 30
    assert ("DEQUANTIZE" in model.report.operators) is (ends[1] == "float32")


def test_files_are_the_same_each_time(image_net: Path, tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    first = bytes(convert(image_net, quantize=Quantize("int8", samples=IMAGES[:4])))
    assert bytes(convert(image_net, quantize=Quantize("int8", samples=iter(IMAGES[:4]), calibration=path))) == first
    assert bytes(convert(image_net, quantize=Quantize("int8", calibration=path))) == first
    # The ranges also serve other settings.
    other = convert(image_net, quantize=Quantize("int8", calibration=path, per_channel=False, exclude=["CONV_2D"]))
    assert "DEQUANTIZE" in _names(other)


@pytest.mark.parametrize(("mode", "least"), [("int8", 25), ("int16", 40)])
def test_signatures_loops_and_states_work(several: Path, mode: Any, least: float) -> None:
    quantize = Quantize(mode, samples=SAMPLES, slow_integers=True)
    model, floats = convert(several, quantize=quantize), convert(several)
    assert {"WHILE", "FULLY_CONNECTED", "QUANTIZE", "GATHER", "ASSIGN_VARIABLE"} <= _names(model)
    for key, samples in SAMPLES.items():
        reference = _run(bytes(floats), key, samples)
        assert signal_to_noise(reference, _run(bytes(model), key, samples)) >= least, key


def test_a_signature_without_samples_stays_float(several: Path) -> None:
    model = convert(several, quantize=Quantize("int8", samples={"embed": SAMPLES["embed"][:4]}))
    reference = _run(bytes(convert(several)), "remember", SAMPLES["remember"])
    np.testing.assert_allclose(_run(bytes(model), "remember", SAMPLES["remember"]), reference, atol=1e-5)
