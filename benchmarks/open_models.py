"""Models with dynamic batches, lengths and image sizes, each with inputs of five sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tfconvert.schema.dialects.boxes import Array

Tensor = Any
Build = Callable[[ModuleType], Any]


class OpenModel(NamedTuple):
    """A model."""

    build: Build  # Returns a module whose function `serve` is the model.
    shapes: Sequence[Sequence[int]]  # The shapes of its input that the benchmark runs.
    dtype: str = "float32"  # The input's element type: floats, or integers below 50.

    def inputs(self) -> list[Array]:
        """Returns an input of each shape."""
        draw = np.random.default_rng(7)
        if self.dtype == "int32":
            return [draw.integers(0, 50, shape).astype(np.int32) for shape in self.shapes]
        return [draw.normal(size=shape).astype(np.float32) for shape in self.shapes]


def _serving(
    tf: ModuleType, run: Callable[[Tensor], Tensor], shape: Sequence[int | None], held: Any = None, kind: Any = None
) -> Any:
    """Returns a module that serves a function of one input."""
    module = tf.Module()
    module.held = held
    spec = tf.TensorSpec(shape, kind or tf.float32, name="x")
    module.serve = tf.function(run, input_signature=[spec], autograph=False)
    return module


def _network(build: Build, shape: Sequence[int | None]) -> Build:
    def make(tf: ModuleType) -> Any:
        tf.keras.utils.set_random_seed(3)
        network = build(tf)
        return _serving(tf, lambda x: network(x, training=False), shape, network)

    return make


def _mobile_net(tf: ModuleType) -> Any:
    return tf.keras.applications.MobileNetV2(
        input_shape=(96, 96, 3), weights=None, classes=10, classifier_activation=None, alpha=0.35
    )


def _residual_net(tf: ModuleType) -> Any:
    return tf.keras.applications.ResNet50(input_shape=(64, 64, 3), weights=None, classes=10, classifier_activation=None)


def _recurrent(name: str) -> Build:
    def build(tf: ModuleType) -> Any:
        layers = tf.keras.layers
        return tf.keras.Sequential(
            [layers.Input((None, 6)), getattr(layers, name)(8, return_sequences=True), layers.Dense(3)]
        )

    return build


def _encoder(tf: ModuleType) -> Any:
    """Two blocks of BERT's kind: attention over all places, layer norms behind sums, a GELU between two products."""
    draw = np.random.default_rng(0)

    def weight(*shape: int) -> Tensor:
        return tf.Variable((draw.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    words, places = weight(50, 32), weight(64, 32)
    blocks = [
        ([weight(32, 4, 8) for _ in range(3)], weight(4, 8, 32), weight(32, 128), weight(128, 32)) for _ in range(2)
    ]

    def normalized(x: Tensor) -> Tensor:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)

    def run(ids: Tensor) -> Tensor:
        x = normalized(tf.gather(words, ids) + places[: tf.shape(ids)[1]])
        padding = tf.cast(tf.equal(ids, 0), tf.float32)[:, None, None] * -1e4
        for projections, out, wide, narrow in blocks:
            query, key, value = (tf.einsum("btd,dhk->bthk", x, each) for each in projections)
            weights = tf.nn.softmax(tf.einsum("bqhk,bthk->bhqt", query, key) / 8.0**0.5 + padding)
            mixed = tf.einsum("bhqt,bthk->bqhk", weights, value)
            x = normalized(x + tf.einsum("bqhk,hkd->bqd", mixed, out))
            x = normalized(x + tf.matmul(tf.nn.gelu(tf.matmul(x, wide)), narrow))
        return x

    return _serving(tf, run, (None, None), [words, places, blocks], tf.int32)


def _segmenting(tf: ModuleType) -> Any:
    """Down and up again, each time resized to what it is joined with, as in U-Net."""
    draw = np.random.default_rng(0)
    kernels: list[Tensor] = []

    def kernel(*shape: int) -> Tensor:
        kernels.append(tf.Variable((draw.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)))
        return kernels[-1]

    first, down = kernel(3, 3, 3, 6), [kernel(3, 3, 6, 8), kernel(3, 3, 8, 10)]
    up, last = [kernel(3, 3, 18, 6), kernel(3, 3, 12, 6)], kernel(1, 1, 6, 4)

    def run(x: Tensor) -> Tensor:
        levels = [tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME"))]
        levels += [x := tf.nn.relu(tf.nn.conv2d(levels[-1], down[0], 2, "SAME"))]
        x = tf.nn.relu(tf.nn.conv2d(x, down[1], 2, "SAME"))
        for weights, other in zip(up, reversed(levels), strict=True):
            x = tf.concat([tf.image.resize(x, tf.shape(other)[1:3]), other], 3)
            x = tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME"))
        return tf.nn.softmax(tf.nn.conv2d(x, last, 1, "SAME"))

    return _serving(tf, run, (None, None, None, 3), kernels)


def _selecting(tf: ModuleType) -> Any:
    """Rows above a threshold, summed by the class that each is of; how many of either there are only running tells."""

    def run(x: Tensor) -> Tensor:
        rows = tf.gather(x, tf.where(x[:, 0] > 0)[:, 0])
        classes, numbers = tf.unique(tf.cast(tf.math.floor(rows[:, 1]), tf.int32))
        totals = tf.math.unsorted_segment_sum(rows, numbers, tf.size(classes))
        return tf.concat([tf.cast(classes, tf.float32)[:, None], totals], 1)

    return _serving(tf, run, (None, 4))


def _suppressing(tf: ModuleType) -> Any:
    """Boxes with scores: the best of those that overlap, as detectors end."""

    def run(x: Tensor) -> Tensor:
        corner, size, scores = x[:, :2], tf.abs(x[:, 2:4]), tf.sigmoid(x[:, 4])
        kept = tf.image.non_max_suppression(tf.concat([corner, corner + size], 1), scores, 10, 0.3, 0.2)
        return tf.gather(x, kept)

    return _serving(tf, run, (None, 5))


def _remembering(tf: ModuleType) -> Any:
    """Attention over all that came in before: each run adds its rows to a cache, which is state."""
    cache, filled = tf.Variable(tf.zeros((64, 8))), tf.Variable(0)

    def run(x: Tensor) -> Tensor:
        rows = tf.shape(x)[0]
        cache.assign(tf.tensor_scatter_nd_update(cache, (filled + tf.range(rows))[:, None], x))
        filled.assign_add(rows)
        known = tf.cast(tf.range(64) < filled, tf.float32)
        weights = tf.nn.softmax(tf.matmul(x, cache, transpose_b=True) + (known - 1.0) * 1e4)
        return tf.matmul(weights, cache)

    return _serving(tf, run, (None, 8), [cache, filled])


_LENGTHS = ((1, 1, 6), (2, 7, 6), (3, 4, 6), (1, 20, 6), (5, 3, 6))
_BATCHES = (1, 2, 3, 5, 8)

# The models, by what they are.
MODELS: Mapping[str, OpenModel] = {
    "MobileNetV2, dynamic batch": OpenModel(
        _network(_mobile_net, (None, 96, 96, 3)), [(size, 96, 96, 3) for size in _BATCHES]
    ),
    "ResNet50, dynamic batch": OpenModel(
        _network(_residual_net, (None, 64, 64, 3)), [(size, 64, 64, 3) for size in _BATCHES]
    ),
    "LSTM, dynamic batch and length": OpenModel(_network(_recurrent("LSTM"), (None, None, 6)), _LENGTHS),
    "GRU, dynamic batch and length": OpenModel(_network(_recurrent("GRU"), (None, None, 6)), _LENGTHS),
    "BERT-like encoder, dynamic batch and length": OpenModel(
        _encoder, ((1, 1), (2, 7), (3, 16), (1, 40), (5, 3)), "int32"
    ),
    "segmentation with resizing, dynamic batch, height and width": OpenModel(
        _segmenting, ((1, 16, 16, 3), (2, 17, 23, 3), (3, 9, 31, 3), (1, 20, 13, 3), (2, 8, 8, 3))
    ),
    "`tf.where` and `tf.unique`, dynamic length": OpenModel(_selecting, ((9, 4), (1, 4), (40, 4), (3, 4), (16, 4))),
    "`tf.image.non_max_suppression`, dynamic number of boxes": OpenModel(
        _suppressing, ((9, 5), (1, 5), (60, 5), (2, 5), (25, 5))
    ),
    "attention over a cache, dynamic length": OpenModel(_remembering, ((3, 8), (1, 8), (8, 8), (2, 8), (20, 8))),
}
