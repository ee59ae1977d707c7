"""Keras models that can't be converted, and models of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def _exported(tf: Any, model: Any, folder: Path) -> Path:
    model.export(str(folder), verbose=False)
    return folder


def _augmentation(tf: Any, folder: Path) -> Path:
    layers = tf.keras.layers

    class Augmented(tf.keras.layers.Layer):  # type: ignore[misc]
        """Augments when it is called, as the model was exported from its training code."""

        def __init__(self) -> None:
            super().__init__()
            self.rotate, self.dense = layers.RandomRotation(0.1, seed=1), layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(self.rotate(x, training=True))

    inputs = tf.keras.Input([8, 8, 3], name="image")
    return _exported(tf, tf.keras.Model(inputs, Augmented()(inputs)), folder)


def _text(tf: Any, folder: Path) -> Path:
    layer = tf.keras.layers.TextVectorization(max_tokens=20, output_sequence_length=4)
    layer.adapt(["a few words", "and more words"])
    inputs = tf.keras.Input([], dtype="string", name="words")
    return _exported(tf, tf.keras.Model(inputs, layer(inputs)), folder)


def _hashing(tf: Any, folder: Path) -> Path:
    inputs = tf.keras.Input([1], dtype="string", name="words")
    return _exported(tf, tf.keras.Model(inputs, tf.keras.layers.Hashing(10)(inputs)), folder)


def _fresh(make: Callable[[Any, Path], Path]) -> Callable[[Any, Path], Path]:
    """Returns a maker whose layers have the same names, whatever was made before."""

    def made(tf: Any, folder: Path) -> Path:
        tf.keras.backend.clear_session(free_memory=False)
        return make(tf, folder)

    return made


def _queue(tf: Any, folder: Path) -> Path:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        queue = v1.FIFOQueue(2, [tf.float32], shapes=[[4]])
        tf.nn.relu(queue.dequeue(name="next"), name="scores")
    file = folder.with_suffix(".pb")
    file.write_bytes(graph.as_graph_def().SerializeToString())
    return file


def _variables(tf: Any, folder: Path) -> Path:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        weights = v1.get_variable("weights", [4, 3], use_resource=True)
        tf.nn.softmax(tf.matmul(x, weights), name="scores")
    file = folder.with_suffix(".pb")
    file.write_bytes(graph.as_graph_def().SerializeToString())
    return file


# By the name of the file that holds the text of the error: functions that make a model in or beside a folder.
MODELS: Mapping[str, Callable[[Any, Path], Path]] = {
    "keras-augmentation": _fresh(_augmentation),
    "keras-text": _fresh(_text),
    "keras-hashing": _fresh(_hashing),
    "queue": _queue,
    "not-frozen": _variables,
}
