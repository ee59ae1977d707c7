"""Models that keep lists while they loop: LiteRT computes what TensorFlow does, at two batch sizes, by builtin ops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.control_flow import control_flow_v1
from tests.support.litert import RunTFLite
from tests.support.saved_function import save_function
from tfconvert.schema.diagnostics import ConversionError

BATCHES = (2, 3)


Function = Callable[[Any, Any], Any]


def _write_batches(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=5)
    for i in tf.range(5):
        array = array.write(i, tf.matmul(x, tf.ones([4, 3])) * tf.cast(i, tf.float32))
    return array.stack()


def _grow(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
    return tf.while_loop(
        lambda i, y, array: i < 6, lambda i, y, array: (i + 1, y * 2.0, array.write(i, y)), (0, x, array)
    )[2].stack()


def _branch(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=4, element_shape=[4])
    for i in tf.range(4):
        array = array.write(i, x[0]) if i % 2 == 0 else array.write(i, -x[0])
    return array.stack()


def _skip_and_stop(tf: Any, x: Any) -> Any:
    array, total = tf.TensorArray(tf.float32, size=6, element_shape=[4]), 0.0
    for i in tf.range(6):
        if total > 3.0:
            break
        if i == 2:
            continue
        array = array.write(i, x[0] + total)
        total += 1.0
    return array.stack()


def _shape_that_only_ops_inside_know(tf: Any, x: Any) -> Any:
    image, array = tf.reshape(x, [-1, 2, 2, 1]), tf.TensorArray(tf.float32, size=3)
    for i in tf.range(3):
        image = tf.nn.conv2d(image, tf.ones([2, 2, 1, 1]), 1, "SAME") * 0.3
        array = array.write(i, tf.reshape(tf.concat([image, image], 0), [-1, 2]))
    return array.stack()


def _nested(tf: Any, x: Any) -> Any:
    def row(r: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=2)
        for j in tf.range(2):
            array = array.write(j, tf.reduce_sum(x, 1) * tf.cast(j, tf.float32) + r[0])
        return array.stack()

    return tf.map_fn(row, x)


def _places(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=5).scatter([3, 1], tf.transpose(x)[:2])
    return array.stack(), tf.TensorArray(tf.float32, size=3).split(x[0, :3], [1, 1, 1]).concat()


def _append(tf: Any, x: Any) -> Any:
    raw = tf.raw_ops
    values = raw.EmptyTensorList(element_shape=[4], max_num_elements=-1, element_dtype=tf.float32)
    for i in tf.range(4):
        values = raw.TensorListPushBack(input_handle=values, tensor=x[0] + tf.cast(i, tf.float32))
    values, last = raw.TensorListPopBack(input_handle=values, element_shape=[4], element_dtype=tf.float32)
    rest = raw.TensorListStack(input_handle=values, element_shape=[4], element_dtype=tf.float32)
    return last, rest


TYPES = ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "uint32", "int64", "bool")


def _types(tf: Any, x: Any) -> Any:
    """Maps to elements of every type, and back to what can be compared."""
    rows = tf.abs(tf.round(x))
    maps = [
        tf.map_fn(lambda row, kind=kind: tf.cast(row, kind), rows, fn_output_signature=getattr(tf, kind))
        for kind in TYPES
    ]
    return [tf.cast(one, tf.float32) for one in maps]


def _state_of_another_batch(tf: Any, x: Any) -> Any:
    """Broadcasts a state, so that its first shape is not the one that it keeps."""
    state, array = x[:1] * 0.5, tf.TensorArray(tf.float32, size=3)
    _, _, array = tf.while_loop(
        lambda i, state, array: i < 3,
        lambda i, state, array: (i + 1, tf.tanh(state + x), array.write(i, tf.tanh(state + x))),
        (0, state, array),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4]), tf.TensorShape(None)),
    )
    return array.stack()


FUNCTIONS: dict[str, Function] = {
    "map": lambda tf, x: tf.map_fn(lambda row: row * 2 + 1, x),
    "map to scalars": lambda tf, x: tf.map_fn(tf.reduce_sum, x),
    "map to another type": lambda tf, x: tf.map_fn(lambda row: row > 0, x, fn_output_signature=tf.bool),
    "map to float64": lambda tf, x: tf.map_fn(lambda row: tf.cast(row, tf.float64), x, fn_output_signature=tf.float64),
    "map of a map": lambda tf, x: tf.map_fn(lambda row: tf.map_fn(lambda one: one * 2.0, row), x),
    "scan": lambda tf, x: tf.scan(lambda total, row: total + row, x),
    "scan backwards": lambda tf, x: tf.scan(lambda total, row: total + row, x, reverse=True),
    "foldl": lambda tf, x: tf.foldl(lambda total, row: total * 0.5 + row, x),
    "foldr": lambda tf, x: tf.foldr(lambda total, row: total * 0.5 + row, x),
    "vectorized map": lambda tf, x: tf.vectorized_map(lambda row: tf.reduce_sum(row) * row, x),
    "an element with the batch": _write_batches,
    "a list that grows": _grow,
    "branches": _branch,
    "continue and break": _skip_and_stop,
    "a shape that only ops inside know": _shape_that_only_ops_inside_know,
    "a loop in a loop": _nested,
    "places": _places,
    "a list that is empty at first": _append,
    "types": _types,
    "a state of another batch": _state_of_another_batch,
}


def _check(tf: ModuleType, run_tflite: RunTFLite, folder: Path, function: Any, inputs: Sequence[Any]) -> None:
    """Asserts that what a function computes is the same in LiteRT."""
    run = function.get_concrete_function()
    save_function(tf, folder, run, "run")
    content = bytes(tfconvert.convert(folder))
    for x in inputs:
        expected = [value.numpy() for _, value in sorted(run(tf.constant(x)).items())]
        for got, wanted in zip(run_tflite(content, {"x": x}, signature="run"), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def _inputs(*inner: int) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal((batch, *inner)).astype(np.float32) for batch in BATCHES]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, name: str) -> None:
    def run(x: Any) -> dict[str, Any]:
        return {f"y{index}": value for index, value in enumerate(tf.nest.flatten(FUNCTIONS[name](tf, x)))}

    function = tf.function(run, input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")])
    _check(tf, run_tflite, tmp_path / "model", function, _inputs(4))


LAYERS: dict[str, Callable[[Any], Any]] = {
    "LSTM": lambda layers: layers.LSTM(6),
    "LSTM, every step": lambda layers: layers.LSTM(6, return_sequences=True),
    "GRU": lambda layers: layers.GRU(6, reset_after=False),
    "GRU, every step": lambda layers: layers.GRU(6, return_sequences=True),
    "SimpleRNN": lambda layers: layers.SimpleRNN(6),
    "backwards": lambda layers: layers.LSTM(3, go_backwards=True, return_sequences=True),
    "cells": lambda layers: layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)], return_sequences=True),
}


@pytest.mark.parametrize(("package", "steps"), [("keras", None), ("tf_keras", 5)])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, name: str, package: str, steps: int | None
) -> None:
    keras = importlib.import_module(package)
    inputs = keras.Input((steps, 4))
    model = keras.Model(inputs, LAYERS[name](keras.layers)(inputs))
    function = tf.function(
        lambda x: {"y": model(x)}, input_signature=[tf.TensorSpec([None, steps, 4], tf.float32, "x")]
    )
    _check(tf, run_tflite, tmp_path / "model", function, _inputs(5, 4))


@pytest.mark.parametrize("time_major", [False, True])
def test_dynamic_rnn_of_tensorflow_1(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, time_major: bool) -> None:
    v1 = tf.compat.v1
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 4)).astype(np.float32)
    graph = tf.Graph()
    with graph.as_default(), control_flow_v1(tf):
        place = v1.placeholder(tf.float32, [None, None, 4], "x")
        weights = tf.constant(random.standard_normal((7, 3)).astype(np.float32))
        array = tf.TensorArray(tf.float32, size=v1.shape(place)[0]).unstack(place)
        result = tf.TensorArray(tf.float32, size=v1.shape(place)[0])

        def body(i: Any, state: Any, result: Any) -> Any:
            state = tf.tanh(tf.matmul(tf.concat([array.read(i), state], 1), weights))
            return i + 1, state, result.write(i, state)

        start = (0, tf.zeros([v1.shape(place)[1], 3]), result)
        final = v1.while_loop(lambda i, state, result: i < v1.shape(place)[0], body, start)[2].stack()
        tf.identity(final if time_major else tf.transpose(final, [1, 0, 2]), "y")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    content = bytes(tfconvert.convert(tmp_path / "graph.pb", inputs=["x"], outputs=["y"]))
    with v1.Session(graph=graph) as session:
        expected = session.run("y:0", {"x:0": x})
    (got,) = run_tflite(content, [x])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def _cut(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=3, infer_shape=False)
    for i in tf.range(3):
        array = array.write(i, x[: i + 1])
    return array.concat()


def _longer(tf: Any, x: Any) -> Any:
    return tf.while_loop(
        lambda i, y, array: i < 3,
        lambda i, y, array: (i + 1, tf.concat([y, x], 0), array.write(i, y)),
        (0, x, tf.TensorArray(tf.float32, size=3, infer_shape=False)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4]), tf.TensorShape(None)),
    )[2].concat()


def _chosen(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=2, infer_shape=False)
    for i in tf.range(2):
        array = array.write(i, tf.boolean_mask(x, tf.reduce_sum(x, 1) > tf.cast(i, tf.float32)))
    return array.concat()


@pytest.mark.parametrize("function", [_cut, _longer, _chosen])
def test_elements_of_different_shapes_are_refused(tf: ModuleType, tmp_path: Path, function: Function) -> None:
    module = tf.Module()
    spec = tf.TensorSpec([None, 4], tf.float32, "x")
    module.run = tf.function(lambda x: {"y": function(tf, x)}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path), signatures={"run": module.run})
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(tmp_path)
    assert caught.value.code == "list-element-shape"
    assert caught.value.diagnostics[0].node == "TensorArrayV2"
