"""Small models as the official converter writes them, one for each feature of its files."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.saved_function import save_function

Model = Callable[[ModuleType], bytes]


def _samples(*shape: int) -> Callable[[], Iterator[list[np.ndarray]]]:
    def representative() -> Iterator[list[np.ndarray]]:
        generator = np.random.default_rng(7)
        for _ in range(8):
            yield [generator.normal(size=shape).astype(np.float32)]

    return representative


def _convert(tf: ModuleType, functions: list[Any], owner: Any, **options: Any) -> bytes:
    return _converted(tf.lite.TFLiteConverter.from_concrete_functions(functions, owner), **options)


def _converted(converter: Any, **options: Any) -> bytes:
    for name, value in options.items():
        setattr(converter, name, value)
    return bytes(converter.convert())


def _function(tf: ModuleType, body: Callable[..., Any], *shapes: tuple[int | None, ...], **options: Any) -> bytes:
    owner = tf.Module()
    owner.call = tf.function(body)
    signature = [tf.TensorSpec(shape, tf.float32, name=f"x{index}") for index, shape in enumerate(shapes)]
    return _convert(tf, [owner.call.get_concrete_function(*signature)], owner, **options)


def _network(tf: ModuleType) -> tuple[Callable[..., Any], tuple[int, ...]]:
    generator = np.random.default_rng(3)
    filters = tf.constant(generator.normal(size=(3, 3, 2, 4)), tf.float32)
    weights = tf.constant(generator.normal(size=(64, 40)), tf.float32)

    def body(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME") + tf.constant([1.0, 2, 3, 4]))
        return tf.nn.softmax(tf.matmul(tf.reshape(y, (1, 64)), weights))

    return body, (1, 4, 4, 2)


def float32(tf: ModuleType) -> bytes:
    body, shape = _network(tf)
    return _function(tf, body, shape)


def float16(tf: ModuleType) -> bytes:
    body, shape = _network(tf)
    return _function(
        tf, body, shape, optimizations=[tf.lite.Optimize.DEFAULT], target_spec=_target(tf, types=[tf.float16])
    )


def dynamic_range(tf: ModuleType) -> bytes:
    body, shape = _network(tf)
    return _function(tf, body, shape, optimizations=[tf.lite.Optimize.DEFAULT])


def int8(tf: ModuleType) -> bytes:
    body, shape = _network(tf)
    options = {"optimizations": [tf.lite.Optimize.DEFAULT], "representative_dataset": _samples(*shape)}
    return _function(tf, body, shape, **options)


def int16(tf: ModuleType) -> bytes:
    body, shape = _network(tf)
    ops = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
    options = {"optimizations": [tf.lite.Optimize.DEFAULT], "representative_dataset": _samples(*shape)}
    return _function(tf, body, shape, target_spec=_target(tf, ops=ops), **options)


def with_ranges(tf: ModuleType, body: Callable[..., Any], shape: tuple[int, ...], mode: str) -> bytes:
    """Returns the file of a quantizer that states the ranges of tensors beside their scales."""
    options: dict[str, Any] = {"optimizations": [tf.lite.Optimize.DEFAULT], "representative_dataset": _samples(*shape)}
    if mode == "int16":
        ops = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
        return _function(tf, body, shape, **options, target_spec=_target(tf, ops=ops))
    return _function(tf, body, shape, **options, experimental_new_quantizer=False)


def _target(tf: ModuleType, ops: Any = None, types: Any = None) -> Any:
    target = tf.lite.TargetSpec()
    if ops is not None:
        target.supported_ops = ops
    if types is not None:
        target.supported_types = types
    return target


def loop(tf: ModuleType) -> bytes:
    def body(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < tf.reduce_sum(x), lambda i, y: (i + 1.0, y * 2.0), (0.0, x))

    return _function(tf, body, (3,))


def branch(tf: ModuleType) -> bytes:
    def body(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: tf.concat([x, x], 0)[: tf.shape(x)[0]])

    return _function(tf, body, (None,))


def _recurrent(tf: ModuleType, **options: Any) -> bytes:
    keras = importlib.import_module("tf_keras")
    model = keras.Sequential([keras.layers.Input((5, 3), 1), keras.layers.LSTM(4, return_sequences=True)])
    call = tf.function(model, autograph=False).get_concrete_function(tf.TensorSpec((1, 5, 3), tf.float32, name="x"))
    folder = tf.io.gfile.join(tf.compat.v1.test.get_temp_dir(), "recurrent")
    save_function(tf, folder, call)
    return _converted(tf.lite.TFLiteConverter.from_saved_model(folder), **options)


def lstm(tf: ModuleType) -> bytes:
    return _recurrent(tf)


def lstm_int8(tf: ModuleType) -> bytes:
    return _recurrent(tf, optimizations=[tf.lite.Optimize.DEFAULT], representative_dataset=_samples(1, 5, 3))


def variable(tf: ModuleType) -> bytes:
    owner = tf.Module()
    owner.state = tf.Variable([1.0, 2.0])
    owner.call = tf.function(owner.state.assign_add)
    concrete = owner.call.get_concrete_function(tf.TensorSpec((2,), tf.float32, name="x"))
    return _convert(tf, [concrete], owner, experimental_enable_resource_variables=True)


def table(tf: ModuleType) -> bytes:
    owner = tf.Module()
    words = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "\x00\xff", ""]), tf.constant([3, 5, 7], tf.int64))
    owner.table = tf.lookup.StaticHashTable(words, -1)
    owner.call = tf.function(owner.table.lookup)
    concrete = owner.call.get_concrete_function(tf.TensorSpec((None,), tf.string, name="x"))
    return _convert(tf, [concrete], owner)


def custom(tf: ModuleType) -> bytes:
    marks = 'name: "Rotate" attr { key: "tfl_fusable_op" value { b: true } } attr { key: "angle" value { i: 90 } }'
    rotate = tf.function(lambda x: tf.reverse(tf.transpose(x), [0]), experimental_implements=marks, autograph=False)
    return _function(tf, lambda x: rotate(x) + 1.0, (2, 3), allow_custom_ops=True)


def select_tf_ops(tf: ModuleType) -> bytes:
    ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    return _function(tf, tf.linalg.inv, (2, 2), target_spec=_target(tf, ops=ops))


def two_signatures(tf: ModuleType) -> bytes:
    owner = tf.Module()
    spec = tf.TensorSpec((2,), tf.float32)
    owner.add = tf.function(lambda a, b: {"sum": a + b, "a": a})
    owner.scale = tf.function(lambda a: {"twice": a * 2.0})
    folder = tf.io.gfile.join(tf.compat.v1.test.get_temp_dir(), "two_signatures")
    signatures = {
        "add": owner.add.get_concrete_function(spec, tf.TensorSpec((2,), tf.float32, name="b")),
        "scale": owner.scale.get_concrete_function(spec),
    }
    tf.saved_model.save(owner, folder, signatures=signatures)
    return bytes(tf.lite.TFLiteConverter.from_saved_model(folder, list(signatures)).convert())


MODELS: dict[str, Model] = {
    model.__name__: model
    for model in (
        float32,
        float16,
        dynamic_range,
        int8,
        int16,
        loop,
        branch,
        lstm,
        lstm_int8,
        variable,
        table,
        custom,
        select_tf_ops,
        two_signatures,
    )
}

# Models that LiteRT alone can't run.
NEEDS_OTHER_KERNELS = frozenset({"custom", "select_tf_ops"})
