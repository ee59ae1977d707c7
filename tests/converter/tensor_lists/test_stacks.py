"""Gradients of TensorFlow 1's loops: LiteRT and the reference executor compute what TensorFlow does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.control_flow import control_flow_v1
from tests.support.litert import RunTFLite
from tfconvert.converter.executor import executor
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError

Function = Callable[[Any, Any], Any]


def _loop(tf: Any, count: Any, start: Any, step: Function) -> Any:
    """Returns what so many steps, which are given their number, make of a value."""
    return tf.compat.v1.while_loop(lambda i, y: i < count, lambda i, y: (i + 1, step(i, y)), (0, start))[1]


def _scalars(tf: Any, x: Any) -> Any:
    return tf.compat.v1.while_loop(lambda y: y < 4.0, lambda y: (y * y * 0.5 + y + 1.0,), (tf.abs(tf.reduce_sum(x)),))


def _matrix(tf: Any, x: Any) -> Any:
    weights = tf.constant(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32))
    return _loop(tf, 3, x, lambda i, y: tf.tanh(tf.matmul(y, weights) + x))


def _broadcast(tf: Any, x: Any) -> Any:
    return _loop(tf, 3, x, lambda i, y: tf.sigmoid(y * tf.reduce_max(x, 0)) + tf.reduce_mean(y, 1, keepdims=True))


def _cell(tf: Any, x: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        gate, candidate = tf.split(tf.concat([y, x], 1), 2, 1)
        return tf.sigmoid(gate) * tf.tanh(candidate) + tf.reduce_mean(tf.nn.softmax(y), 0)

    return _loop(tf, 3, x, step)


def _branch(tf: Any, x: Any) -> Any:
    return _loop(
        tf, 4, x, lambda i, y: tf.compat.v1.cond(tf.equal(i % 2, 0), lambda: tf.sin(y) * y, lambda: y * y * 0.3)
    )


def _nested(tf: Any, x: Any) -> Any:
    return _loop(tf, 3, x, lambda i, y: _loop(tf, i + 1, y * 0.5, lambda j, z: tf.sin(z) * y))


def _count_that_the_input_tells(tf: Any, x: Any) -> Any:
    return _loop(tf, tf.shape(x)[0], x, lambda i, y: tf.tanh(y * 1.5) * y + x)


FUNCTIONS: dict[str, Function] = {
    "scalars": _scalars,
    "matrix": _matrix,
    "broadcast": _broadcast,
    "cell": _cell,
    "branch": _branch,
    "nested": _nested,
    "count that the input tells": _count_that_the_input_tells,
}


@pytest.fixture
def save(tf: ModuleType, tmp_path: Path) -> Callable[[Function], Any]:
    """Returns a function that saves the graph of a function of `x` with its gradient, and returns the graph."""
    v1 = tf.compat.v1

    def run(function: Function) -> Any:
        graph = tf.Graph()
        with graph.as_default(), control_flow_v1(tf):
            x = v1.placeholder(tf.float32, [None, 4], "x")
            result = function(tf, x)
            (gradient,) = v1.gradients(result, [x])
            tf.identity(result, "y")
            tf.identity(gradient, "gradient")
        (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
        return graph

    return run


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, save: Callable[[Function], Any], name: str
) -> None:
    graph = save(FUNCTIONS[name])
    assert any(node.op == "StackPushV2" for node in graph.as_graph_def().node)
    source = Source(tmp_path / "graph.pb", inputs=["x"], outputs=["y", "gradient"])
    content = bytes(tfconvert.convert(tmp_path / "graph.pb", inputs=["x"], outputs=["y", "gradient"]))
    module = source.open()
    with tf.compat.v1.Session(graph=graph) as session:
        for batch in (1, 3):
            x = np.random.default_rng(batch).standard_normal((batch, 4)).astype(np.float32) * 0.5
            expected = session.run(["y:0", "gradient:0"], {"x:0": x})
            for results in (run_tflite(content, [x]), executor.run(module, "main", [x])):
                for got, wanted in zip(results, expected, strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_gradients_of_tensor_arrays_are_refused(
    tf: ModuleType, tmp_path: Path, save: Callable[[Function], Any]
) -> None:
    def gathered(tf: Any, x: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=3)
        loop = tf.compat.v1.while_loop(
            lambda i, array: i < 3, lambda i, array: (i + 1, array.write(i, tf.sin(x))), (0, array)
        )
        return loop[1].stack()

    save(gathered)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(tmp_path / "graph.pb", inputs=["x"], outputs=["gradient"])
    assert {one.code for one in caught.value.diagnostics} == {"tensor-array"}
