"""The TensorFlow programs that mutants are made of: together they reach most importers, passes and lowerings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.sample_models import MODELS, UNSUPPORTED, Build, traced


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(0, 0.5, shape).astype(np.float32)


def _vision(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Convolutions of every kind, pooling, normalization, resizing."""
    module = tf.Module()
    module.kernel = tf.Variable(_weights(3, 3, 3, 4))
    module.back = tf.Variable(_weights(2, 2, 3, 4))

    @traced(tf, tf.TensorSpec([None, 8, 8, 3], tf.float32, name="image"))
    def call(image: Any) -> Any:
        x = tf.nn.conv2d(tf.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]]), module.kernel, 2, "VALID")
        ones = tf.ones([4])
        x = tf.compat.v1.nn.fused_batch_norm(x, ones, ones * 0.1, ones * 0.2, ones, is_training=False)[0]
        x = tf.nn.relu6(tf.nn.max_pool2d(x, 2, 1, "SAME"))
        x = tf.nn.conv2d_transpose(x, module.back, [tf.shape(x)[0], 8, 8, 3], 2)
        x = tf.image.resize(tf.nn.depth_to_space(tf.nn.space_to_depth(x, 2), 2), [4, 4])
        x = tf.nn.avg_pool2d(tf.nn.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), 2, 1, "SAME")
        return tf.reduce_mean(tf.nn.local_response_normalization(x), [1, 2])

    module.call = call
    return module, {"serving_default": call}


def _indexing(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Slices, gathers, scatters, sorts and sums along axes."""
    module = tf.Module()

    @traced(tf, tf.TensorSpec([None, 6], tf.float32, name="x"), tf.TensorSpec([3], tf.int32, name="i"))
    def call(x: Any, i: Any) -> Any:
        rows = tf.gather(x, tf.minimum(i, 0), axis=0)
        values, places = tf.math.top_k(x, 2)
        one, two = tf.split(x[:, ::-1], [2, 4], axis=1)
        return {
            "rows": tf.tensor_scatter_nd_update(rows, [[0], [1]], rows[1:] * 2.0),
            "hot": tf.one_hot(places, 6) @ tf.transpose(x[:1, :, tf.newaxis], [0, 1, 2]),
            "sum": tf.cumsum(one, 1) + tf.reduce_max(two, 1, keepdims=True),
            "some": tf.boolean_mask(values, values > 0.0),
            "tiled": tf.tile(tf.expand_dims(tf.einsum("ij,kj->ik", x, rows), 0), [2, 1, 1]),
            "range": tf.cast(tf.range(tf.shape(x)[0]), tf.float32) // 2.0,
        }

    module.call = call
    return module, {"serving_default": call}


def _recurrent(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """A Keras layer with a loop over lists of tensors."""
    layer = tf.keras.layers.LSTM(3, return_sequences=True)
    layer.build((None, None, 2))
    module = tf.Module()
    module.weights = layer.weights

    @traced(tf, tf.TensorSpec([1, None, 2], tf.float32, name="steps"))
    def call(steps: Any) -> Any:
        return layer(steps)

    module.call = call
    return module, {"serving_default": call}


def _lists(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Arrays of tensors in loops, a choice among several functions."""
    module = tf.Module()

    @traced(tf, tf.TensorSpec([None, 2], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="which"))
    def call(x: Any, which: Any) -> Any:
        mapped = tf.map_fn(lambda row: row * 2.0 + tf.reduce_sum(row), x)
        chosen = tf.switch_case(which, [lambda: mapped, lambda: mapped + 1.0, lambda: tf.sin(mapped)])
        array = tf.TensorArray(tf.float32, 3, element_shape=[2])
        for step in tf.range(3):
            array = array.write(step, chosen[0] * tf.cast(step, tf.float32))
        return array.stack()

    module.call = call
    return module, {"serving_default": call}


def _vocabulary(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """A table that is filled from an asset."""
    module = tf.Module()
    folder = Path(tempfile.mkdtemp())
    file = folder / "words.txt"
    file.write_text("the\nquick\nbrown\nfox\n", encoding="utf-8")
    entries = tf.lookup.TextFileInitializer(
        str(file), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    module.table = tf.lookup.StaticVocabularyTable(entries, 1, lookup_key_dtype=tf.string)
    module.embedding = tf.Variable(_weights(5, 3))

    @traced(tf, tf.TensorSpec([None], tf.string, name="words"))
    def call(words: Any) -> Any:
        return tf.gather(module.embedding, module.table.lookup(words))

    module.call = call
    return module, {"serving_default": call}


def _numbers(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Elementwise ops of many kinds, fake quantization, a Fourier transform, boxes."""
    module = tf.Module()

    @traced(tf, tf.TensorSpec([4, 8], tf.float32, name="x"), tf.TensorSpec([4, 4], tf.float32, name="boxes"))
    def call(x: Any, boxes: Any) -> Any:
        y = tf.quantization.fake_quant_with_min_max_args(tf.nn.leaky_relu(x), -2, 2)
        kept = tf.image.non_max_suppression(boxes, x[:, 0], 3)
        return {
            "gelu": tf.nn.gelu(y) / (tf.nn.softmax(tf.math.pow(tf.abs(y), 1.5)) + 1e-3),
            "spectrum": tf.abs(tf.signal.rfft(x)),
            "kept": kept,
            "whole": tf.cast(tf.math.floormod(tf.cast(x, tf.int32), 3), tf.int64),
            "chosen": tf.where(
                tf.math.logical_or(x > 0.5, x < y), tf.math.rsqrt(tf.abs(x) + 1.0), tf.clip_by_value(y, -1, 1)
            ),
            "bits": tf.bitwise.bitwise_xor(tf.cast(x, tf.int32), 5),
        }

    module.call = call
    return module, {"serving_default": call}


# Builders of the SavedModels, by name.
SAVED: dict[str, Build] = {
    **MODELS,
    **UNSUPPORTED,
    **{build.__name__.strip("_"): build for build in (_vision, _indexing, _recurrent, _lists, _vocabulary, _numbers)},
}
