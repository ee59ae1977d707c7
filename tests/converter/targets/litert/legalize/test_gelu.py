"""GELU as frameworks write it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite

_HALF_ROOT = math.sqrt(0.5)
_SCALE = math.sqrt(2 / math.pi)

Form = Callable[[ModuleType, Any], Any]

FORMS: dict[str, Form] = {
    "library-exact": lambda tf, x: tf.nn.gelu(x),
    "library-tanh": lambda tf, x: tf.nn.gelu(x, approximate=True),
    "divided": lambda tf, x: 0.5 * x * (1.0 + tf.math.erf(x / math.sqrt(2))),
    "half-last": lambda tf, x: x * (tf.math.erf(x * _HALF_ROOT) + 1.0) * 0.5,
    "half-inside": lambda tf, x: x * (0.5 * (1.0 + tf.math.erf(x * _HALF_ROOT))),
    "complement": lambda tf, x: 0.5 * x * tf.math.erfc(-x * _HALF_ROOT),
    "tanh-of-products": lambda tf, x: 0.5 * x * (1 + tf.tanh(_SCALE * (x + 0.044715 * x * x * x))),
    "tanh-of-square": lambda tf, x: 0.5 * x * (1 + tf.tanh(_SCALE * x * (1 + 0.044715 * tf.square(x)))),
    "of-a-product": lambda tf, x: tf.nn.gelu(x * x),
}

OTHERS: dict[str, Form] = {
    "another-scale": lambda tf, x: 0.5 * x * (1.0 + tf.math.erf(x * 0.7)),
    "another-half": lambda tf, x: 0.4 * x * (1.0 + tf.math.erf(x * _HALF_ROOT)),
    "another-factor": lambda tf, x: 0.5 * (x + 1) * (1.0 + tf.math.erf(x * _HALF_ROOT)),
    "another-cubic": lambda tf, x: 0.5 * x * (1 + tf.tanh(_SCALE * (x + 0.05 * x * x * x))),
}


def _operators(tf: ModuleType, run_tflite: RunTFLite, folder: Path, form: Form) -> set[str]:
    value = np.linspace(-5, 5, 60, dtype=np.float32).reshape(3, 20)
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 20], name="x")
        y = tf.identity(form(tf, x), name="y")
        expected = session.run(y, {x: value})
    path = folder / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    model = tfconvert.convert(path, inputs=["x"], outputs=["y"])
    (got,) = run_tflite(bytes(model), [value])
    np.testing.assert_allclose(got, expected, atol=2e-5, rtol=2e-6)
    return set(model.report.operators)


@pytest.mark.parametrize("name", FORMS)
def test_is_recognised(name: str, tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    operators = _operators(tf, run_tflite, tmp_path, FORMS[name])
    assert operators - {"MUL"} == {"GELU"}


@pytest.mark.parametrize("name", OTHERS)
def test_is_not_taken_for_it(name: str, tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    assert "GELU" not in _operators(tf, run_tflite, tmp_path, OTHERS[name])
