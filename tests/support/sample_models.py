"""Small TensorFlow modules as users write them, for the rings of tests that need whole models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

# From TensorFlow to a module and its signatures.
Build = Callable[[ModuleType], tuple[Any, dict[str, Any]]]


def traced(tf: ModuleType, *signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Returns `tf.function` as a decorator that a type checker accepts."""
    decorator: Callable[[Callable[..., Any]], Any] = tf.function(input_signature=signature or None)
    return decorator


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, 0.5, shape).astype(np.float32)


def two_heads(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Two signatures that share most of their weights, one through a nested function."""
    module = tf.Module()
    module.trunk = tf.Variable(_weights(64, 256), name="trunk")
    module.head = tf.Variable(_weights(256, 5) * 0.02, name="head")
    spec = tf.TensorSpec([None, 64], tf.float32, name="features")

    @traced(tf, spec)
    def embed(features: Any) -> Any:
        return tf.nn.relu(tf.matmul(features, module.trunk))

    @traced(tf, spec)
    def classify(features: Any) -> Any:
        return tf.nn.softmax(tf.matmul(embed(features), module.head))

    module.embed, module.classify = embed, classify
    return module, {"embed": embed, "classify": classify}


def passes_through(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """An output that is an input, and outputs that no input reaches."""
    module = tf.Module()

    @traced(tf, tf.TensorSpec([2, 3], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return {"same": x, "seven": tf.constant([7.0, 8.0]), "also": tf.constant(3), "twice": x + x}

    module.call = call
    return module, {"serving_default": call}


def plain_types(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Booleans and integers in and out."""
    module = tf.Module()
    specs = [
        tf.TensorSpec([None, 3], tf.int32, name="numbers"),
        tf.TensorSpec([None, 3], tf.bool, name="wanted"),
        tf.TensorSpec([None, 3], tf.int64, name="more"),
    ]

    @traced(tf, *specs)
    def call(numbers: Any, wanted: Any, more: Any) -> Any:
        return {
            "chosen": tf.where(wanted, numbers, -numbers),
            "none": tf.logical_not(wanted),
            "total": tf.reduce_sum(more, axis=1),
        }

    module.call = call
    return module, {"serving_default": call}


def strings(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Strings in and out."""
    module = tf.Module()

    @traced(tf, tf.TensorSpec([4], tf.string, name="words"))
    def call(words: Any) -> Any:
        return {"backwards": tf.gather(words, [3, 2, 1, 0])}

    module.call = call
    return module, {"serving_default": call}


def nested(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Functions that call functions three deep, one of them twice."""
    module = tf.Module()
    module.scale = tf.Variable(_weights(4), name="scale")

    @traced(tf)
    def inner(x: Any) -> Any:
        return tf.tanh(x * module.scale)

    @traced(tf)
    def middle(x: Any) -> Any:
        return inner(x) + inner(x + 1.0)

    @traced(tf, tf.TensorSpec([None, 4], tf.float32, name="x"))
    def outer(x: Any) -> Any:
        return middle(x) * 2.0

    module.outer = outer
    return module, {"serving_default": outer}


def half_weights(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Weights kept in half precision, and computed with in single."""
    module = tf.Module()
    module.kernel = tf.Variable(_weights(8, 6).astype(np.float16), name="kernel")
    module.bias = tf.Variable(tf.cast(_weights(6), tf.bfloat16), name="bias")

    @traced(tf, tf.TensorSpec([None, 8], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return tf.matmul(x, tf.cast(module.kernel, tf.float32)) + tf.cast(module.bias, tf.float32)

    module.call = call
    return module, {"serving_default": call}


def small_network(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """A block as in ConvNeXt: depthwise 7x7, layer normalization, expansion with GELU, layer scale, residual."""
    module = tf.Module()
    module.depthwise = tf.Variable(_weights(7, 7, 8, 1) * 0.3, name="depthwise")
    module.gamma, module.beta = tf.Variable(1 + 0.2 * _weights(8)), tf.Variable(0.2 * _weights(1, 8)[0])
    module.widen, module.narrow = tf.Variable(_weights(8, 32)), tf.Variable(_weights(32, 8))
    module.layer_scale = tf.Variable(0.1 + np.abs(_weights(8)))

    @traced(tf, tf.TensorSpec([None, 12, 12, 8], tf.float32, name="x"))
    def call(x: Any) -> Any:
        y = tf.nn.depthwise_conv2d(x, module.depthwise, [1, 1, 1, 1], "SAME")
        mean, variance = tf.nn.moments(y, [-1], keepdims=True)
        y = tf.nn.batch_normalization(y, mean, variance, module.beta, module.gamma, 1e-6)
        y = tf.nn.gelu(tf.tensordot(y, module.widen, 1), approximate=False)
        return x + tf.tensordot(y, module.narrow, 1) * module.layer_scale

    module.call = call
    return module, {"serving_default": call}


def branches_and_loops(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """A conditional, a loop, and a variable that is written."""
    module = tf.Module()
    module.calls = tf.Variable(0, name="calls")

    @traced(tf, tf.TensorSpec([2], tf.float32, name="x"))
    def call(x: Any) -> Any:
        module.calls.assign_add(1)
        y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0)
        y = tf.cond(y[0] > 9.0, lambda: y + tf.cast(module.calls.assign_add(1), tf.float32), lambda: y)
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, z: (i + 1, z * z), (0, y))
        return y

    module.call = call
    return module, {"serving_default": call}


def with_table(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """A hash table that an initializer fills."""
    module = tf.Module()
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    module.table = tf.lookup.StaticHashTable(entries, -1)

    @traced(tf, tf.TensorSpec([None], tf.string, name="words"))
    def call(words: Any) -> Any:
        return module.table.lookup(words)

    module.call = call
    return module, {"serving_default": call}


def constants(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Constants of many types, with values that a text may get wrong."""
    module = tf.Module()
    numbers = [0.1, -0.0, 1e-40, 3.4e38, np.inf, -np.inf, np.nan]
    values = {dtype.name: tf.constant(numbers, dtype) for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16)}
    values |= {
        dtype.name: tf.constant([dtype.min, dtype.max, 1], dtype)
        for dtype in (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64)
    }
    values |= {
        "bool": tf.constant([[True, False], [True, True]]),
        "string": tf.constant([b"plain", b'quo"te\\', b"\x00\xff\n", b""]),
        "word": tf.constant("word"),
        "complex": tf.constant([1 + 2j, -0.5j], tf.complex64),
        "empty": tf.zeros([0, 3]),
        "no_words": tf.constant([], tf.string),
        "same": tf.fill([3, 3], 2.5),
    }

    @traced(tf, tf.TensorSpec([], tf.float32, name="x"))
    def call(x: Any) -> Any:
        # As arrays, so that they are nodes of this function and not captured.
        made = {name: tf.constant(value.numpy(), value.dtype) for name, value in values.items()}
        return {name: tf.identity(value) for name, value in made.items()} | {"y": x + x}

    module.call = call
    return module, {"serving_default": call}


MODELS: dict[str, Build] = {
    build.__name__: build
    for build in (two_heads, passes_through, plain_types, strings, nested, half_weights, small_network)
}


# Models that can be imported only.
UNSUPPORTED: dict[str, Build] = {build.__name__: build for build in (branches_and_loops, with_table, constants)}


def save(tf: ModuleType, build: Build, folder: Path, *, debug_info: bool = False) -> Path:
    """Saves a model and returns its folder."""
    module, signatures = build(tf)
    tf.saved_model.save(module, str(folder), signatures, tf.saved_model.SaveOptions(save_debug_info=debug_info))
    return folder
