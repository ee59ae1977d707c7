"""Whole models with dynamic sizes as StableHLO text, against TensorFlow, in XLA."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

import tfconvert
from tests.converter.targets.stablehlo.engine import Program


def _encoder(tf: ModuleType) -> Any:
    """Returns a transformer's encoder of one block, with dynamic batch and length."""
    draw = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return tf.Variable((draw.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    table, out, wide, narrow = weight(50, 32), weight(4, 8, 32), weight(32, 64), weight(64, 32)
    projections = [weight(32, 4, 8) for _ in range(3)]

    def normalized(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)

    def run(ids: Any) -> Any:
        length = tf.shape(ids)[1]
        places = tf.range(length)
        x = tf.gather(table, ids) + tf.cast(places, tf.float32)[:, None] * 0.01
        query, key, value = (tf.einsum("btd,dhk->bthk", x, each) for each in projections)
        scores = tf.einsum("bqhk,bthk->bhqt", query, key) / 8.0**0.5
        scores += (tf.cast(places[:, None] >= places[None], tf.float32) - 1) * 1e9
        mixed = tf.einsum("bhqt,bthk->bqhk", tf.nn.softmax(scores), value)
        x = normalized(x + tf.einsum("bqhk,hkd->bqd", mixed, out))
        x = normalized(x + tf.matmul(tf.nn.elu(tf.matmul(x, wide)), narrow))
        return tf.reshape(x, [tf.shape(ids)[0], length * 32])

    module = tf.Module()
    module.weights = [table, out, wide, narrow, *projections]
    module.run = tf.function(run, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    return module


def test_an_encoder_of_open_batch_and_length(tf: ModuleType) -> None:
    model = _encoder(tf)
    function = model.run.get_concrete_function()
    text = bytes(tfconvert.convert(function, target=tfconvert.StableHLO(weights="inline"))).decode()
    program = Program(text, [(tf.float32, (None, None))])
    for shape in ((1, 1), (2, 7), (3, 16)):
        ids = np.random.default_rng(1).integers(0, 50, shape).astype(np.int32)
        (found,) = program.run([ids])
        np.testing.assert_allclose(found, function(tf.constant(ids)).numpy(), rtol=1e-5, atol=2e-5)
