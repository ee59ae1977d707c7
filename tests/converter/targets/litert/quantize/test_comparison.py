"""The comparison of a quantized file with the file of floats, layer by layer."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.sample_models import traced
from tfconvert.converter.targets.litert.quantize.comparison_process import Layer, layers_of, paired
from tfconvert.importers.tflite.buffers import BytesContent

RNG = np.random.default_rng(9)


@pytest.fixture(scope="module")
def folder(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose layers have weights and names."""
    kernel = tf.constant(RNG.normal(size=(3, 3, 3, 4)).astype(np.float32))
    wide = RNG.normal(size=(64, 6)).astype(np.float32)
    last = RNG.normal(size=(6, 5)).astype(np.float32)
    last /= 10

    @traced(tf, tf.TensorSpec([1, 6, 6, 3], tf.float32, name="x"))
    def call(x: Any) -> Any:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, [1] * 4, "VALID", name="conv") + 0.5, name="relu")
        x = tf.matmul(tf.reshape(x, [1, 64]), wide, name="wide")
        return {"y": tf.nn.softmax(tf.matmul(x, last, name="last"))}

    module = tf.Module()
    module.call = call
    path = tmp_path_factory.mktemp("layers")
    tf.saved_model.save(module, str(path), signatures=call)
    return path


@pytest.mark.parametrize("mode", ["int8", "int16"])
def test_layers_with_weights_are_compared(folder: Path, mode: Any) -> None:
    samples = [{"x": RNG.uniform(-1, 1, (1, 6, 6, 3)).astype(np.float32)} for _ in range(6)]
    report = tfconvert.convert(folder, quantize=tfconvert.Quantize(mode, samples=samples), verify=True).report
    assert report.quantization is not None
    fidelity = report.quantization.fidelity
    assert fidelity is not None
    assert [each.name for each in fidelity.outputs] == ["y"]
    nodes = [name.removesuffix("_1") for name, _ in fidelity.worst]
    assert {"relu", "wide", "last"} <= set(nodes)
    assert len(nodes) == len(set(nodes))
    assert all(10 < ratio < 120 for _, ratio in fidelity.worst)


def test_what_stores_numbers_otherwise_is_no_layer(folder: Path) -> None:
    samples = [{"x": RNG.uniform(-1, 1, (1, 6, 6, 3)).astype(np.float32)}]
    quantize = tfconvert.Quantize("int8", samples=samples)
    layers = layers_of(BytesContent(bytes(tfconvert.convert(folder, quantize=quantize))))
    assert [each.operator for each in layers if each.operator in ("CONV_2D", "FULLY_CONNECTED", "SOFTMAX")] == [
        "CONV_2D",
        "FULLY_CONNECTED",
        "FULLY_CONNECTED",
        "SOFTMAX",
    ]
    assert not {"QUANTIZE", "DEQUANTIZE"} & {each.operator for each in layers}
    assert layers[0].shapes == ((1, 4, 4, 4),)


def test_layers_are_paired_in_order_where_their_shapes_agree() -> None:
    floats = [Layer("ADD", ((1, 2),), (5,)), Layer("ADD", ((1, 3),), (6,)), Layer("MUL", ((1, 3),), (7,))]
    other = [Layer("ADD", ((1, 3),), (1,)), Layer("EXP", ((1, 3),), (2,)), Layer("MUL", ((1, 3),), (3,))]
    assert [(one.results, two.results) for one, two in paired(floats, other)] == [((6,), (1,)), ((7,), (3,))]
