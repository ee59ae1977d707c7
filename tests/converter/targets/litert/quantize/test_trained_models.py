"""Models trained with fake quantization: they convert in floats, and their integers are the official converter's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.optimize.graph import Graph, random
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.fake_quant import source_of
from tfconvert.converter.targets.litert.passes.fold_fake_quant import FoldFakeQuant
from tfconvert.converter.targets.litert.quantize.fake_quant import uniform_of, widened
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import I8, I16


class Quantizers:
    """Fake quantization as the model optimization toolkit inserts it; ranges are variables that training leaves."""

    def __init__(self, tf: ModuleType) -> None:
        self.tf = tf
        self.variables: list[Any] = []
        self.next = 0

    def constant(self, value: np.ndarray) -> Any:
        """Returns a variable, the same one again while the network is traced."""
        if self.next == len(self.variables):
            self.variables.append(self.tf.Variable(value))
        self.next += 1
        return self.variables[self.next - 1]

    def filter(self, *shape: int, per_channel: bool = True) -> Any:
        """Returns a fake-quantized filter: symmetric, with a range for each slice of the last dimension, or one."""
        value = random(*shape, scale=0.3)
        largest = np.abs(value).max(tuple(range(value.ndim - 1))) if per_channel else np.abs(value).max()
        ends = self.constant(-largest), self.constant(largest)
        quantization = self.tf.quantization
        function = (
            quantization.fake_quant_with_min_max_vars_per_channel
            if per_channel
            else quantization.fake_quant_with_min_max_vars
        )
        return function(self.constant(value), *ends, num_bits=8, narrow_range=True)

    def activation(self, x: Any, least: float, greatest: float) -> Any:
        """Returns a fake-quantized activation."""
        ends = (self.constant(np.array(end, np.float32)) for end in (least, greatest))
        return self.tf.quantization.fake_quant_with_min_max_vars(x, *ends, num_bits=8, narrow_range=False)

    def normalized(self, x: Any, channels: int) -> Any:
        """Returns a batch-normalized activation, in inference."""
        scale = random(channels, seed=1)
        mean, variance = random(channels, seed=2, scale=0.1), np.abs(random(channels, seed=3)) + np.float32(0.5)
        offset = random(channels, seed=4, scale=0.1)
        parts = [self.constant(part) for part in (scale, offset, mean, variance)]
        return self.tf.raw_ops.FusedBatchNormV3(
            x=x, scale=parts[0], offset=parts[1], mean=parts[2], variance=parts[3], epsilon=1e-3, is_training=False
        )[0]


def _network(q: Quantizers, x: Any) -> Any:
    """Convolution, depthwise and pointwise convolution, each normalized, and a dense layer."""
    tf = q.tf
    x = q.activation(x, -1, 1)
    x = tf.nn.conv2d(x, q.filter(3, 3, 2, 8), 1, "SAME")
    x = q.activation(tf.nn.relu6(q.normalized(x, 8)), 0, 6)
    x = tf.nn.depthwise_conv2d(x, q.filter(3, 3, 8, 1), [1, 1, 1, 1], "SAME")
    x = q.activation(tf.nn.relu(q.normalized(x, 8)), 0, 4)
    x = q.activation(q.normalized(tf.nn.conv2d(x, q.filter(1, 1, 8, 4), 2, "VALID"), 4), -3, 3)
    x = tf.reshape(x, (-1, 36))
    x = tf.nn.bias_add(tf.matmul(x, q.filter(36, 5, per_channel=False)), q.constant(random(5)))
    return q.activation(x, -8, 8)


def _sequence(q: Quantizers, x: Any) -> Any:
    """Dense layers over a sequence, in the ways in which they are written."""
    tf = q.tf
    x = q.activation(tf.reshape(x, (-1, 12, 6)), -1, 1)
    x = tf.einsum("btc,chd->bthd", x, q.filter(6, 2, 4))
    x = q.activation(x, -2, 2)
    x = q.activation(tf.einsum("bthd,hde->bte", x, q.filter(2, 4, 6)), -3, 3)
    x = q.activation(tf.matmul(x, q.filter(5, 6), transpose_b=True), -4, 4)
    return tf.nn.conv1d(x, q.filter(3, 5, 4), 1, "SAME")


class Trained:
    """A model in TensorFlow, and converted.

    Args:
        tf: TensorFlow.
        folder: The directory to save it to.
        network: The network.
    """

    def __init__(self, tf: ModuleType, folder: Path, network: Callable[[Quantizers, Any], Any]) -> None:
        quantizers = Quantizers(tf)
        module = tf.Module()
        self.folder = str(folder / "model")
        network(quantizers, tf.zeros((1, 6, 6, 2)))

        def call(x: Any) -> Any:
            quantizers.next = 0
            return network(quantizers, x)

        traced = tf.function(call, autograph=False)
        self.call = traced.get_concrete_function(tf.TensorSpec((1, 6, 6, 2), tf.float32))
        module.parts, module.call = quantizers.variables, self.call
        tf.saved_model.save(module, self.folder, signatures=self.call)

    def check(self, model: tfconvert.Model, run_tflite: RunTFLite, step: float) -> None:
        """Asserts that a file's results equal TensorFlow's, except sums halfway between two steps."""
        for seed in range(3):
            x = random(1, 6, 6, 2, seed=seed)
            expected = self.call(x).numpy()
            (got,) = run_tflite(bytes(model), [x])
            difference = np.abs(got - expected)
            assert (difference > 1e-4).mean() < 0.05
            assert difference.max() < 2 * step


def test_normalization_goes_into_filters_and_their_ranges(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    trained = Trained(tf, tmp_path, _network)
    model = tfconvert.convert(trained.folder, verify=True, check_passes=True)
    assert model.report.operators == {
        "FAKE_QUANT": 5,
        "CONV_2D": 2,
        "DEPTHWISE_CONV_2D": 1,
        "RESHAPE": 1,
        "FULLY_CONNECTED": 1,
    }
    assert [note.code for note in model.report.notes if note.code.startswith("fake")] == ["fake-quant-kept"]
    trained.check(model, run_tflite, 16 / 255)


def test_dense_layers_of_all_kinds(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    trained = Trained(tf, tmp_path, _sequence)
    model = tfconvert.convert(trained.folder, verify=True, check_passes=True)
    names = set(model.report.operators)
    assert "TRANSPOSE" not in names
    assert not names & {"QUANTIZE", "DEQUANTIZE", "BATCH_MATMUL"}
    assert model.report.operators["FULLY_CONNECTED"] == 3
    trained.check(model, run_tflite, 8 / 255)


def _branches(q: Quantizers, x: Any) -> Any:
    """Parts with ranges of their own, joined without a range for the whole, before a layer that computes."""
    tf = q.tf
    parts = [q.activation(part, -end, end) for part, end in zip(tf.split(x, 2, 3), (1, 4), strict=True)]
    x = tf.nn.conv2d(tf.concat(parts, 3), q.filter(3, 3, 2, 4, per_channel=False), 1, "SAME")
    return q.activation(x, -8, 8)


def test_joined_parts_get_the_widest_range(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    trained = Trained(tf, tmp_path, _branches)
    model = tfconvert.convert(trained.folder, quantize=tfconvert.Quantize("int8", strict=True, exclude=["SPLIT"]))
    assert "FAKE_QUANT" not in model.report.operators
    # One part is rounded to the steps of the other, which are four times as large.
    x = random(1, 6, 6, 2, scale=2.0)
    step = 8 / 255
    np.testing.assert_allclose(run_tflite(bytes(model), [x])[0], trained.call(x), atol=5 * step)


def _wide(q: Quantizers, x: Any) -> Any:
    """Activations of 16 bits, with ranges that are not symmetric."""
    trained = q.tf.quantization.fake_quant_with_min_max_args
    x = trained(x, -3.0, 4.0, num_bits=16)
    return trained(q.tf.nn.relu(q.tf.nn.conv2d(x, q.filter(3, 3, 2, 4), 1, "SAME")), 0.0, 20.0, num_bits=16)


def test_asymmetric_ranges_of_16_bits_become_symmetric(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    trained = Trained(tf, tmp_path, _wide)
    model = tfconvert.convert(trained.folder, quantize=tfconvert.Quantize("int16", strict=True))
    x = random(1, 6, 6, 2)
    np.testing.assert_allclose(run_tflite(bytes(model), [x])[0], trained.call(x), atol=20 / 2**14)


def test_rounding_between_floats_is_left_out(tf: ModuleType, tmp_path: Path) -> None:
    """Integers would round there; the note that advises to pass what was passed is not given."""
    trained = Trained(tf, tmp_path, lambda q, x: q.activation(q.tf.sin(q.activation(q.tf.cos(x), -1, 1)), -1, 1))
    model = tfconvert.convert(trained.folder, quantize="int8")
    assert "FAKE_QUANT" not in model.report.operators
    assert not [note for note in model.report.notes if note.code == "fake-quant-kept"]


def _mixed(q: Quantizers, x: Any) -> Any:
    """An activation of 16 bits, a constant that is added, and sequences that are joined to another constant."""
    tf = q.tf
    x = tf.quantization.fake_quant_with_min_max_args(x, -1.2, 2.3, num_bits=16)
    x = q.activation(tf.nn.conv2d(x, q.filter(3, 3, 2, 4), 1, "SAME"), -6, 6)
    x = q.activation(x + q.activation(q.constant(random(4)), -2, 2), -8, 8)
    return tf.concat([x, q.constant(random(1, 6, 6, 1))], 3)


def test_widths_and_constants_of_all_kinds_become_integers(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    trained = Trained(tf, tmp_path, _mixed)
    samples = [{"x": random(1, 6, 6, 2, seed=seed)} for seed in range(3)]
    model = tfconvert.convert(trained.folder, quantize=tfconvert.Quantize("int8", samples=samples))
    assert model.report.operators == {"QUANTIZE": 1, "CONV_2D": 1, "ADD": 1, "CONCATENATION": 1, "DEQUANTIZE": 1}
    for seed in range(3):
        x = random(1, 6, 6, 2, seed=seed)
        (got,) = run_tflite(bytes(model), [x])
        # What was trained with more bits, or not at all, is rounded here only.
        np.testing.assert_allclose(got, trained.call(x), atol=2 * 16 / 255)
        assert np.unique(got).size > 20


RANGES = [
    (-1.0, 1.0, 8, False),
    (-1.0, 1.0, 8, True),
    (-0.5, 6.0, 8, False),
    (-0.5, 6.0, 8, True),
    (0.5, 6.0, 8, False),
    (-3.0, -0.2, 8, False),
    (-1.234567, 2.345678, 8, False),
    (-1.234567, 2.345678, 8, True),
    (0.0, 6.0, 8, False),
    (-1.2, 2.3, 4, False),
    (-1.2, 2.3, 4, True),
    (-1.2, 2.3, 16, False),
]


def _quantizes(least: float, greatest: float, bits: int, narrow: bool) -> Uniform:
    graph = Graph((4,))
    options: dict[str, Any] = {"min": least, "max": greatest, "num_bits": bits, "narrow_range": narrow}
    graph.returns(graph.op("fake_quant", graph.inputs[0], **options))
    return uniform_of(graph.ops[0])


def _official(tf: ModuleType, converter: Any) -> list[tuple[list[float], list[int]]]:
    """Returns the scales and zero points of all integer tensors that the official converter makes."""
    from ai_edge_litert.interpreter import Interpreter

    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no samples, which such a model needs none of
        content = converter.convert()
    details = Interpreter(model_content=content).get_tensor_details()
    found = [detail["quantization_parameters"] for detail in details if detail["dtype"] in (np.int8, np.int16)]
    return [(each["scales"].tolist(), each["zero_points"].tolist()) for each in found]


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_integers_are_the_official_converters(tf: ModuleType, bits: int) -> None:
    ranges = [each for each in RANGES if each[2] == bits]

    def call(x: Any) -> Any:
        return [tf.nn.relu(tf.quantization.fake_quant_with_min_max_args(x, *each)) + 1.0 for each in ranges]

    traced = tf.function(call, autograph=False).get_concrete_function(tf.TensorSpec((1, 4), tf.float32))
    official = _official(tf, tf.lite.TFLiteConverter.from_concrete_functions([traced]))
    for each in ranges:
        uniform = _quantizes(*each)
        assert ([*uniform.scales], [*uniform.zero_points]) in official
        assert uniform.storage == (I8 if bits < 16 else I16)


def test_filters_have_the_official_converters_scales(
    tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Uniform] = []

    def collect(_: FoldFakeQuant, module: ModuleOp) -> Any:
        found.extend(uniform_of(op) for op in module.walk() if op.results and source_of(op.results[0]) is not None)
        return fold(FoldFakeQuant(), module)

    def network(q: Quantizers, x: Any) -> Any:
        x = q.activation(x, -1, 1)
        x = q.activation(tf.nn.conv2d(x, q.filter(3, 3, 2, 8), 1, "SAME"), -6, 6)
        return q.activation(tf.matmul(tf.reshape(x, (1, 288)), q.filter(288, 5, per_channel=False)), -8, 8)

    fold = FoldFakeQuant.apply
    monkeypatch.setattr(FoldFakeQuant, "apply", collect)
    trained = Trained(tf, tmp_path, network)
    tfconvert.convert(trained.folder)
    official = _official(tf, tf.lite.TFLiteConverter.from_saved_model(trained.folder))
    assert len(found) == 5
    assert [uniform.axis for uniform in found].count(0) == 1
    for uniform in found:
        assert ([*uniform.scales], [*uniform.zero_points]) in official


def test_the_middle_of_a_symmetric_range_is_zero() -> None:
    graph = Graph((2, 2))
    uniform = Uniform(I8, (0.5, 0.25), (-1, 3), 0)
    graph.returns(graph.fake_quantized(graph.inputs[0], uniform))
    assert uniform_of(graph.ops[-1]) == uniform._replace(zero_points=(0, 3))


def test_fewer_bits_become_eight_where_a_kernel_computes_them() -> None:
    few = _quantizes(-1.0, 2.5, 4, narrow=False)
    assert few.limits == (-8, 7)
    whole = widened(few)
    assert whole.limits is None
    ends = [(end - few.zero_points[0]) * few.scales[0] for end in few.range]
    again = [(end - whole.zero_points[0]) * whole.scales[0] for end in whole.range]
    np.testing.assert_allclose(ends, again, atol=whole.scales[0])
    narrow = _quantizes(-1.0, 1.0, 8, narrow=True)
    assert narrow.limits == (-127, 127)
    assert widened(narrow) == narrow._replace(limits=None)
