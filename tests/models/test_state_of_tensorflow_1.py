"""Models of TensorFlow 1 that write their variables, in LiteRT against a session: references, resources, init ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.control_flow import control_flow_v1
from tests.support.stateful import runners, same

Get = Callable[..., Any]
# A builder: TensorFlow, a variable constructor and the input, to outputs by name.
Program = Callable[[Any, Get, Any], Mapping[str, Any]]


def _after(tf: Any, op: Any, value: Callable[[], Any]) -> Any:
    """Returns a value that is computed after an op."""
    with tf.control_dependencies([op]):
        return value()


def _counter(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    step = get("step", np.int64(0))
    return {"y": x * tf.cast(tf.compat.v1.assign_add(step, np.int64(1)), tf.float32)}


def _before_and_after(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    v, scale = get("v", [1.0, 2.0, 3.0]), get("scale", [2.0, 2.0, 0.5])
    before = v + 0.0
    written = _after(tf, before, lambda: tf.compat.v1.assign(v, x * scale))
    return {"before": before, "after": _after(tf, written, lambda: tf.identity(v) * 3.0)}


def _parts(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    table, row = get("table", np.ones((4, 3), np.float32)), tf.cast(tf.abs(x[0]), tf.int32) % 4
    done = tf.compat.v1.scatter_add(table, [row, row], tf.stack([x, x * 2.0]))
    done = _after(tf, done, lambda: tf.compat.v1.scatter_mul(table, [3, row], tf.stack([x, x])))
    done = _after(tf, done, lambda: tf.compat.v1.scatter_nd_update(table, [[0, 1]], x[1:2]))
    done = _after(tf, done, lambda: table[2].assign(x))
    return {
        "y": _after(tf, done, lambda: tf.reduce_sum(table, 0)),
        "z": _after(tf, done, lambda: tf.gather(table, row)),
    }


def _branches(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    v, v1 = get("v", [1.0, 2.0, 3.0]), tf.compat.v1
    y = v1.cond(
        x[0] > 4.0,
        lambda: _after(tf, v1.assign_add(v, x), lambda: tf.identity(v) * 2.0),
        lambda: _after(tf, v1.assign(v, x), lambda: v + 1.0),
    )
    return {"y": y, "v": _after(tf, y, lambda: v * 1.0)}


def _loop(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    v, v1 = get("v", [1.0, 2.0, 3.0]), tf.compat.v1

    def body(step: Any, total: Any) -> Any:
        return _after(tf, v1.assign_add(v, x), lambda: (step + 1, total + v))

    _, total = v1.while_loop(lambda step, total: step < 3, body, [0, tf.zeros([3])], parallel_iterations=1)
    return {"total": total, "v": _after(tf, total, lambda: v * 1.0)}


def _training(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    v = get("v", [1.0, 2.0, 3.0])
    step = tf.compat.v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(v - x)))
    return {"v": _after(tf, step, lambda: tf.identity(v) * 1.0)}


def _not_saved(tf: Any, get: Get, x: Any) -> Mapping[str, Any]:
    """Only variables that are initialized when the model is loaded: there is no checkpoint."""
    local = {"collections": [tf.compat.v1.GraphKeys.LOCAL_VARIABLES]}
    small, large = get("small", [1.0, 2.0, 3.0], **local), get("large", lambda: tf.fill([2000], 0.5), **local)
    done = tf.group(tf.compat.v1.assign_add(small, x), tf.compat.v1.assign_add(large, large))
    return {"y": _after(tf, done, lambda: small + tf.reduce_sum(large))}


PROGRAMS = (_counter, _before_and_after, _parts, _branches, _loop, _training, _not_saved)


def save(tf: ModuleType, folder: Path, program: Program, use_resource: bool) -> None:
    """Saves a program as a SavedModel whose local variables are initialized when it is loaded."""
    v1 = tf.compat.v1

    def get(name: str, value: Any, **settings: Any) -> Any:
        start = value if callable(value) else tf.constant(value)
        return v1.get_variable(name, initializer=start, use_resource=use_resource, **settings)

    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [3], "x")
        outputs = program(tf, get, x)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.predict_signature_def({"x": x}, dict(outputs))
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=v1.local_variables_initializer()
        )
        builder.save()


@pytest.fixture
def as_in_1(tf: ModuleType) -> Any:
    """Disables control flow v2, so that graphs have the V1 form."""
    with control_flow_v1(tf):
        yield


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_ten_calls_give_what_a_session_gives(
    tf: ModuleType, tmp_path: Path, as_in_1: None, program: Program, use_resource: bool
) -> None:
    v1 = tf.compat.v1
    folder = tmp_path / "model"
    save(tf, folder, program, use_resource)
    run = runners(tfconvert.convert(folder))("serving_default")
    as_written = v1.ConfigProto()  # TensorFlow's optimizer moves reads of references over writes
    as_written.graph_options.rewrite_options.disable_meta_optimizer = True
    as_written.graph_options.optimizer_options.opt_level = -1
    with v1.Graph().as_default(), v1.Session(config=as_written) as session:
        signature = v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        outputs = {name: each.name for name, each in signature.outputs.items()}
        for call in range(10):
            x = np.array([call, 1.5, -1], np.float32)
            same(run(x=x), session.run(outputs, {signature.inputs["x"].name: x}), 1e-5)
