"""Models of sequences with dynamic batch and length: recurrent ones, a decoder whose state grows, sets of elements.

XLA is a judge where sizes depend on those of the inputs only; our executor of StableHLO is one everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.engine import Program
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser

SIZES = ((1, 1), (2, 7), (3, 4), (1, 12), (5, 2))
"""Batch and length."""


def _check(function: Any, inputs: Sequence[Sequence[np.ndarray]], *, in_xla: bool) -> str:
    """Compares a function's text with the function for several inputs, and returns it."""
    import tensorflow as tf

    converted = tfconvert.convert(function, target=tfconvert.StableHLO(weights="inline"))
    text = bytes(converted).decode()
    module = IRParser(text).parse_module()
    names = [each.name for each in converted.report.interfaces[0].outputs]
    outputs = [function.structured_outputs[name] for name in names]
    program = Program(text, [(each.dtype, each.shape) for each in outputs])
    for arrays in inputs:
        expected = function(*[tf.constant(array) for array in arrays])
        results = [executor.run(module, "main", arrays)]
        if in_xla:
            results.append(program.run(arrays))
        for found in results:
            for name, own in zip(names, found, strict=True):
                np.testing.assert_allclose(own, expected[name].numpy(), rtol=1e-5, atol=1e-5)
    return text


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_stay_loops(tf: ModuleType, kind: str) -> None:
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((None, 4)), getattr(layers, kind)(5, return_sequences=True), getattr(layers, kind)(3)]
    )
    spec = tf.TensorSpec([None, None, 4], tf.float32)
    function = tf.function(lambda x: {"y": model(x, training=False)}).get_concrete_function(spec)
    draw = np.random.default_rng(1)
    inputs = [[draw.normal(size=(*shape, 4)).astype(np.float32)] for shape in SIZES]
    text = _check(function, inputs, in_xla=True)
    assert text.count("stablehlo.while") == 2


def test_a_decoder_whose_state_grows(tf: ModuleType) -> None:
    draw = np.random.default_rng(2)
    table, weights = (tf.Variable(draw.normal(size=(rows, 8)).astype(np.float32) / 2) for rows in (11, 8))

    def run(ids: Any, steps: Any) -> dict[str, Any]:
        def step(count: Any, state: Any, words: Any) -> tuple[Any, Any, Any]:
            mixed = tf.nn.softmax(tf.einsum("bd,btd->bt", state, memory))
            state = tf.tanh(tf.matmul(state, weights) + tf.einsum("bt,btd->bd", mixed, memory))
            word = tf.argmax(tf.matmul(state, table, transpose_b=True), -1, tf.int32)
            return count + 1, state + tf.gather(table, word), tf.concat([words, word[:, None]], 1)

        memory = tf.gather(table, ids)
        shapes = tf.TensorShape([]), tf.TensorShape([None, 8]), tf.TensorShape([None, None])
        initial = 0, tf.reduce_mean(memory, 1), tf.zeros([tf.shape(ids)[0], 0], tf.int32)
        return {"words": tf.while_loop(lambda count, *_: count < steps, step, initial, shape_invariants=shapes)[2]}

    specs = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.int32)
    function = tf.function(run).get_concrete_function(*specs)
    inputs = [[draw.integers(0, 11, shape).astype(np.int32), np.array(sum(shape), np.int32)] for shape in SIZES]
    _check(function, inputs, in_xla=False)


def test_sets_of_elements(tf: ModuleType) -> None:
    draw = np.random.default_rng(4)
    table = tf.Variable(draw.normal(size=(11, 8)).astype(np.float32))

    def run(ids: Any) -> dict[str, Any]:
        words, places, counts = tf.unique_with_counts(tf.reshape(ids, [-1]))
        rows = tf.gather(table, words)
        scores = tf.reduce_sum(rows, 1) * tf.cast(counts, tf.float32)
        kept = tf.where(scores > 0)[:, 0]
        total = tf.math.unsorted_segment_sum(rows, tf.cast(scores > 0, tf.int32), 2)
        return {"kept": tf.gather(words, kept), "scores": tf.gather(scores, places), "total": total}

    function = tf.function(run).get_concrete_function(tf.TensorSpec([None, None], tf.int32))
    _check(function, [[draw.integers(0, 11, shape).astype(np.int32)] for shape in SIZES], in_xla=False)
