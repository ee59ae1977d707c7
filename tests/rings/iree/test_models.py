"""Whole models with open batches and lengths in IREE, at five sizes each, against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.stablehlo.test_models import _encoder

pytest.importorskip("iree.compiler")

from tests.rings.iree.engine import OPTIMIZED, Program

Build = Callable[[ModuleType], Any]


def _mobile_net(tf: ModuleType) -> Any:
    return tf.keras.applications.MobileNetV2(
        input_shape=(96, 96, 3), weights=None, classes=10, classifier_activation=None, alpha=0.35
    )


def _residual_net(tf: ModuleType) -> Any:
    return tf.keras.applications.ResNet50(input_shape=(64, 64, 3), weights=None, classes=10, classifier_activation=None)


def _recurrent(name: str) -> Build:
    def build(tf: ModuleType) -> Any:
        layers = tf.keras.layers
        return tf.keras.Sequential([
            layers.Input((None, 6)), getattr(layers, name)(8, return_sequences=True), layers.Dense(3),
        ])  # fmt: skip

    return build


class Model:
    """A model, with the shapes that it is tried with, and the flags that IREE needs for it."""

    def __init__(
        self, build: Build, shape: Sequence[int | None], tried: Sequence[Sequence[int]], flags: Sequence[str] = ()
    ) -> None:
        self.build, self.shape, self.tried, self.flags = build, shape, tried, flags


_BATCHES = (1, 2, 3, 5, 8)
_LENGTHS = ((1, 1, 6), (2, 7, 6), (3, 4, 6), (1, 20, 6), (5, 3, 6))

MODELS: Mapping[str, Model] = {
    "mobile net, open batch": Model(_mobile_net, (None, 96, 96, 3), [(size, 96, 96, 3) for size in _BATCHES]),
    "residual net": Model(_residual_net, (None, 64, 64, 3), [(size, 64, 64, 3) for size in _BATCHES]),
    "lstm": Model(_recurrent("LSTM"), (None, None, 6), _LENGTHS, OPTIMIZED),
    "gru": Model(_recurrent("GRU"), (None, None, 6), _LENGTHS),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(tf: ModuleType, name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    tf.keras.utils.set_random_seed(3)
    network = model.build(tf)
    spec = tf.TensorSpec(model.shape, tf.float32, name="x")
    function = tf.function(lambda x: network(x, training=False), autograph=False).get_concrete_function(spec)
    converted = tfconvert.convert(function, target="stablehlo", mlir_weights="inline")
    program = Program(bytes(converted).decode(), tmp_path, model.flags)
    for shape in model.tried:
        image = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
        (found,) = program.run([image])
        expected = function(tf.constant(image)).numpy()
        scale = float(np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5 * scale)


def test_an_encoder(tf: ModuleType, tmp_path: Path) -> None:
    model = _encoder(tf)
    function = model.run.get_concrete_function()
    text = bytes(tfconvert.convert(function, target="stablehlo", mlir_weights="inline")).decode()
    program = Program(text, tmp_path, OPTIMIZED)
    for shape in ((1, 1), (2, 7), (3, 16), (1, 40), (5, 3)):
        ids = np.random.default_rng(1).integers(0, 50, shape).astype(np.int32)
        (found,) = program.run([ids])
        np.testing.assert_allclose(found, function(tf.constant(ids)).numpy(), rtol=1e-5, atol=2e-5)
