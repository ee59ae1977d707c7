"""Models to be cut, saved once for all tests that take them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.sample_models import traced

WEIGHTS = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)


def network(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Returns a module, and its functions by name: they share weights, and call a function of their own."""
    module = tf.Module()
    module.weights = tf.Variable(WEIGHTS)
    module.state = tf.Variable(tf.zeros((1, 5)))
    module.calls = tf.Variable(0)
    rows = tf.TensorSpec([None, 4], tf.float32, name="x")

    @traced(tf)
    def dense(x: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, module.weights, name="product"), name="active")

    @traced(tf, rows)
    def once(x: Any) -> Any:
        module.calls.assign_add(1)
        hidden = tf.tanh(x * 2.0, name="hidden")
        return {"scores": tf.nn.softmax(dense(hidden), name="scores"), "hidden_sum": tf.reduce_sum(hidden, 1)}

    @traced(tf, rows)
    def twice(x: Any) -> Any:
        return dense(x) + dense(tf.sin(x, name="sine"))

    @traced(tf, tf.TensorSpec([1, 4], tf.float32, name="x"))
    def stream(x: Any) -> Any:
        module.calls.assign_add(1)
        module.state.assign(module.state * 0.5 + tf.matmul(tf.tanh(x, name="bounded"), module.weights))
        return tf.identity(module.state.read_value(), name="now")

    @traced(tf, rows, tf.TensorSpec([], tf.int32, name="n"))
    def loop(x: Any, n: Any) -> Any:
        start = tf.exp(x, name="start")
        _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.tanh(y, name="inner")), [0, start])
        return tf.matmul(y, module.weights)

    functions = {"once": once, "twice": twice, "stream": stream, "loop": loop}
    return module, {name: each.get_concrete_function() for name, each in functions.items()}


def outside(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Returns a module, and functions that begin or end with what belongs outside of a model."""
    module = tf.Module()
    module.weights = tf.Variable(WEIGHTS)
    module.embedding = tf.Variable(np.linspace(0, 1, 96, dtype=np.float32).reshape(6, 16))
    words = tf.constant(["cat", "dog", "bird"])
    entries = tf.lookup.KeyValueTensorInitializer(words, tf.range(1, 4, dtype=tf.int64))
    module.table = tf.lookup.StaticHashTable(entries, 0)

    @traced(tf, tf.TensorSpec([], tf.string, name="file"))
    def image(file: Any) -> Any:
        pixels = tf.cast(tf.io.decode_png(file, channels=4), tf.float32) / 255.0
        return tf.matmul(tf.reduce_mean(pixels, [1]), module.weights)

    @traced(tf, tf.TensorSpec([None], tf.string, name="files"))
    def images(files: Any) -> Any:
        def one(file: Any) -> Any:
            return tf.ensure_shape(tf.cast(tf.io.decode_png(file, channels=4), tf.float32), [1, 1, 4])[0, 0]

        return tf.matmul(tf.map_fn(one, files, fn_output_signature=tf.float32), module.weights)

    @traced(tf, tf.TensorSpec([None], tf.string, name="text"))
    def text(text: Any) -> Any:
        split = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), "[!?]", ""))
        numbers = module.table.lookup(split.to_tensor(shape=[None, 3]))
        return tf.reduce_sum(tf.gather(module.embedding, numbers), [1])

    @traced(tf, tf.TensorSpec([2, 4], tf.float32, name="x"), tf.TensorSpec([], tf.float32, name="f"))
    def python(x: Any, f: Any) -> Any:
        doubled = tf.ensure_shape(tf.numpy_function(lambda value: value * 2, [x], tf.float32, name="doubled"), [2, 4])
        return tf.matmul(doubled * f, module.weights)

    @traced(tf, tf.TensorSpec([2, 4], tf.float32, name="x"))
    def labels(x: Any) -> Any:
        scores = tf.nn.softmax(tf.matmul(x, module.weights), name="scores")
        return {"label": tf.strings.as_string(tf.argmax(scores, 1, name="best")), "sum": tf.reduce_sum(x, 1)}

    functions = {"image": image, "images": images, "text": text, "python": python, "labels": labels}
    return module, {name: each.get_concrete_function() for name, each in functions.items()}


def save_v1(tf: ModuleType, folder: Path) -> Path:
    """Saves a SavedModel of TensorFlow 1 with a tensor that its signature doesn't lead to; returns its folder."""
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (None, 4), "x")
        scale = v1.placeholder(tf.float32, (5,), "scale")
        hidden = tf.nn.relu(tf.matmul(x, v1.get_variable("w", initializer=WEIGHTS), name="product"), name="hidden")
        scores = tf.nn.softmax(hidden, name="scores")
        tf.multiply(hidden, scale, name="scaled")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.predict_signature_def({"image": x}, {"probabilities": scores})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    return folder
