"""Idioms become the minimum of LiteRT operators, with TensorFlow's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite

W = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)
FILTER = np.random.default_rng(1).normal(size=(3, 3, 3, 2, 3)).astype(np.float32)


class Program(NamedTuple):
    """A function of tensors.

    Attributes:
        name: Its name.
        function: Takes TensorFlow and the inputs.
        inputs: The inputs as `f32[2,5]`, with `?` before dimensions that are left open.
        operators: The operators that it becomes, in alphabetical order; `*2` after those that occur twice.
    """

    name: str
    function: Callable[..., Any]
    inputs: Sequence[str]
    operators: str


def _softmax(tf: Any, x: Any, axis: int = -1, scale: float = 1.0) -> Any:
    e = tf.exp(scale * (x - tf.reduce_max(x, axis, keepdims=True)))
    return e / tf.reduce_sum(e, axis, keepdims=True)


def _log_softmax(tf: Any, x: Any) -> Any:
    z = x - tf.reduce_max(x, -1, keepdims=True)
    return z - tf.math.log(tf.reduce_sum(tf.exp(z), -1, keepdims=True))


def _exp_by_sum(tf: Any, x: Any) -> Any:
    e = tf.exp(x)
    return e / tf.reduce_sum(e, -1, keepdims=True)


def _lowered(tf: Any, x: Any, axis: int) -> Any:
    """Returns the softmax of rows that vectorized functions compute: the maximum has another rank than the rows."""
    e = tf.exp(x - tf.reshape(tf.reduce_max(x, axis), (2, 3, 1) if axis == -1 else (2, 1, 5)))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def _picked(tf: Any, ids: Any) -> Any:
    return tf.matmul(tf.one_hot(ids, 10), W)


PROGRAMS = [
    Program("softmax", _softmax, ["f32[?2,5]"], "SOFTMAX"),
    Program("softmax-without-maximum", _exp_by_sum, ["f32[2,3,5]"], "SOFTMAX"),
    Program("softmax-of-rows", lambda tf, x: _softmax(tf, x, 0), ["f32[4,5]"], "DIV EXP REDUCE_MAX SUB SUM"),
    Program("softmax-with-maximum-of-rows", lambda tf, x: _lowered(tf, x, -1), ["f32[2,3,5]"], "SOFTMAX"),
    Program(
        "softmax-with-maximum-of-columns", lambda tf, x: _lowered(tf, x, 1), ["f32[2,3,5]"], "REDUCE_MAX SOFTMAX SUB"
    ),
    Program("softmax-scaled", lambda tf, x: _softmax(tf, x, scale=0.5), ["f32[4,5]"], "MUL REDUCE_MAX SOFTMAX SUB"),
    Program("log-softmax", _log_softmax, ["f32[2,5]"], "LOG_SOFTMAX"),
    Program("sigmoid", lambda tf, x: 1 / (1 + tf.exp(-x)), ["f32[?2,5]"], "LOGISTIC"),
    Program("sigmoid-of-product", lambda tf, x: 1 / (tf.exp(x * -1.0) + 1), ["f32[2,5]"], "LOGISTIC"),
    Program("sigmoid-by-reciprocal", lambda tf, x: tf.math.reciprocal(1 + tf.exp(-x)), ["f32[2,5]"], "LOGISTIC"),
    Program("leaky-relu", lambda tf, x: tf.where(x >= 0, x, 0.1 * x), ["f32[?2,5]"], "LEAKY_RELU"),
    Program("leaky-relu-from-below", lambda tf, x: tf.where(x < 0, 0.1 * x, x), ["f32[2,5]"], "LEAKY_RELU"),
    Program("leaky-relu-mirrored", lambda tf, x: tf.where(x > 0.0, x, x * -2.0), ["f32[2,5]"], "LEAKY_RELU"),
    Program(
        "rectifier-with-threshold", lambda tf, x: tf.where(x > 0.5, x, 0.1 * x), ["f32[2,5]"], "GREATER MUL SELECT_V2"
    ),
    Program("largest-of-softmax", lambda tf, x: tf.argmax(tf.nn.softmax(x), -1), ["f32[2,5]"], "ARG_MAX"),
    Program("largest-of-log-softmax", lambda tf, x: tf.argmax(tf.nn.log_softmax(x), 1), ["f32[2,5]"], "ARG_MAX"),
    Program("largest-of-each-column", lambda tf, x: tf.argmax(tf.nn.softmax(x), 0), ["f32[4,5]"], "ARG_MAX SOFTMAX"),
    Program(
        "one-hot-of-booleans",
        lambda tf, i: tf.cast(tf.one_hot(i, 10, True, False, dtype=tf.bool), tf.float32),
        ["i32[3]"],
        "ONE_HOT",
    ),
    Program(
        "one-hot-of-integers",
        lambda tf, i: tf.cast(tf.one_hot(i, 10, dtype=tf.int32), tf.float32),
        ["i32[3]"],
        "ONE_HOT",
    ),
    Program("rows-of-remainders", lambda tf, i: _picked(tf, i % 10), ["i32[3]"], "FLOOR_MOD GATHER"),
    Program(
        "rows-of-limited", lambda tf, i: _picked(tf, tf.clip_by_value(i, 0, 9)), ["i32[?3]"], "GATHER MAXIMUM MINIMUM"
    ),
    Program("rows-of-largest", lambda tf, x: _picked(tf, tf.argmax(x, -1)), ["f32[3,10]"], "ARG_MAX GATHER"),
    Program("rows-and-bias", lambda tf, i: tf.nn.relu(_picked(tf, i % 4) + W[0]), ["i32[3]"], "ADD FLOOR_MOD GATHER"),
    Program("rows-of-anything", _picked, ["i32[3]"], "FULLY_CONNECTED ONE_HOT"),
    Program("rows-beyond", lambda tf, i: _picked(tf, i % 11), ["i32[9]"], "FLOOR_MOD FULLY_CONNECTED ONE_HOT"),
    Program("stack-of-unstack", lambda tf, x: tf.stack(tf.unstack(x, axis=1), 1) + x, ["f32[3,5,2]"], "ADD"),
    Program("concat-of-unstack", lambda tf, x: tf.concat(tf.unstack(x, axis=1), 1), ["f32[3,5,2]"], "RESHAPE"),
    Program("concat-of-split", lambda tf, x: tf.concat(tf.split(x, 3, 1), 1) * x, ["f32[2,3,4]"], "MUL"),
    Program(
        "concat-of-other-order", lambda tf, x: tf.concat(tf.unstack(x)[::-1], 0), ["f32[3,5]"], "CONCATENATION UNPACK"
    ),
    Program("stack-along-another-axis", lambda tf, x: tf.stack(tf.unstack(x), 1), ["f32[3,5]"], "PACK UNPACK"),
    Program(
        "padded-convolution",
        lambda tf, x: tf.nn.conv3d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [1, 1], [0, 0]]), FILTER, [1] * 5, "VALID"),
        ["f32[1,4,5,6,2]"],
        "CONV_3D",
    ),
    Program(
        "convolution-padded-otherwise",
        lambda tf, x: tf.nn.conv3d(tf.pad(x, [[0, 0], [2, 0], [1, 1], [1, 1], [0, 0]]), FILTER, [1] * 5, "VALID"),
        ["f32[1,4,5,6,2]"],
        "CONV_3D PAD",
    ),
    Program(
        "bias-of-two-dimensions",
        lambda tf, x: tf.nn.relu(tf.reshape(tf.matmul(x, W[:4]), (2, 2, 3)) + W[:2, :3]),
        ["f32[2,4]"],
        "FULLY_CONNECTED RESHAPE",
    ),
    Program(
        "bias-of-one-of-two",
        lambda tf, x: tf.reshape(tf.matmul(x, W[:4]), (2, 2, 3)) + W[0, :3],
        ["f32[2,4]"],
        "ADD FULLY_CONNECTED RESHAPE",
    ),
    Program(
        "where-not",
        lambda tf, x, y: tf.where(tf.logical_not(x > 0), x, y),
        ["f32[2,4]", "f32[2,4]"],
        "GREATER SELECT_V2",
    ),
    Program("not-not", lambda tf, x: tf.logical_not(tf.logical_not(x > 1)), ["f32[2,4]"], "GREATER"),
    Program("not-equal", lambda tf, x, y: tf.logical_not(tf.equal(x, y)), ["i32[2,4]", "i32[2,4]"], "NOT_EQUAL"),
    Program("not-less", lambda tf, x, y: tf.logical_not(x < y), ["i32[2,4]", "i32[2,4]"], "GREATER_EQUAL"),
    Program("and-true", lambda tf, x: tf.logical_and(x > 0, True), ["f32[2,4]"], "GREATER"),
    Program("or-false", lambda tf, x: tf.logical_or(False, x > 0), ["f32[2,4]"], "GREATER"),
    Program("and-false", lambda tf, x: tf.where(tf.logical_and(x > 0, False), x, -x), ["f32[2,4]"], "MUL"),
    Program("or-true", lambda tf, x: tf.where(tf.logical_or(x > 0, True), x, -x) * x, ["f32[2,4]"], "MUL"),
    Program("where-true", lambda tf, x, y: tf.where(tf.fill((2, 4), True), x, y) * y, ["f32[2,4]", "f32[2,4]"], "MUL"),
    Program("where-broadcast", lambda tf, x: tf.where(True, x, tf.zeros((3, 4))), ["f32[4]"], "SELECT_V2"),
    Program("power-of-zero", lambda tf, x: tf.pow(x, 0.0) + x, ["f32[2,4]"], "ADD"),
    Program("all-rows", lambda tf, x: tf.gather_nd(x, [[0], [1], [2]]) * x, ["f32[3,4]"], "MUL"),
    Program("some-rows", lambda tf, x: tf.gather_nd(x, [[2], [1], [2]]), ["f32[3,4]"], "GATHER"),
    Program("some-elements", lambda tf, x: tf.gather_nd(x, [[2, 0], [1, 3]]), ["f32[3,4]"], "GATHER_ND"),
    Program("rows-in-place", lambda tf, x: tf.scatter_nd([[0], [1], [2]], x, (3, 4)) * x, ["f32[3,4]"], "MUL"),
    Program(
        "rows-in-a-larger-place", lambda tf, x: tf.scatter_nd([[0], [1], [2]], x, (4, 4)), ["f32[3,4]"], "SCATTER_ND"
    ),
    Program("sums-of-one", lambda tf, x: tf.cumsum(x, 1) * x, ["f32[3,1,4]"], "MUL"),
    Program("sums-from-the-last", lambda tf, x: tf.cumsum(x, -1), ["f32[?3,2,4]"], "CUMSUM"),
    Program("exclusive-sums-of-one", lambda tf, x: tf.cumsum(x, 1, exclusive=True) + x, ["f32[3,1,4]"], "ADD CUMSUM"),
    Program("itself-of-integers", lambda tf, x: x - x + 3 * x, ["i32[3,4]"], "MUL"),
    Program("itself-of-floats", lambda tf, x: x - x, ["f32[3,4]"], "MUL"),
    Program(
        "rectified-difference",
        lambda tf, x, y: tf.nn.relu(tf.math.squared_difference(x, y)),
        ["f32[3,4]", "f32[3,4]"],
        "SQUARED_DIFFERENCE",
    ),
    Program(
        "squared-deviation",
        lambda tf, x: tf.reduce_mean(tf.square(x - tf.reduce_mean(x, -1, keepdims=True)), -1),
        ["f32[3,4]"],
        "MEAN*2 SQUARED_DIFFERENCE",
    ),
    Program("reciprocal-root", lambda tf, x: 1 / tf.sqrt(tf.square(x) + 1), ["f32[3,4]"], "ADD RSQRT SQUARE"),
    Program("double-negation", lambda tf, x: tf.negative(tf.negative(x)) * x, ["f32[3,4]"], "MUL"),
    Program("plus-negated", lambda tf, x, y: -x + y, ["f32[?3,4]", "f32[4]"], "SUB"),
    Program("plus-negated-narrow", lambda tf, x, y: x + -y, ["f32[2,1,3,2,4]", "f32[3,1,1]"], "SUB"),
    Program("minus-negated", lambda tf, x, y: tf.nn.relu(x - -y), ["f32[3,1]", "f32[?3,4]"], "ADD"),
    Program("both-negated", lambda tf, x, y: -x + -y, ["f32[3,4]", "f32[3,4]"], "MUL SUB"),
    Program("negated-and-used", lambda tf, x, y: (x + -y) * -y, ["f32[3,4]", "f32[3,4]"], "MUL*2 SUB"),
    Program("filled-like", lambda tf, x: tf.fill(tf.shape(x), 2.0) * x, ["f32[?3,4]"], "MUL"),
    Program("ones-like", lambda tf, x: x - tf.ones_like(x), ["f32[?3,4]"], "ADD"),
    Program("zeros-like", lambda tf, x: tf.maximum(tf.zeros_like(x), x), ["f32[?3,4]"], "RELU"),
    *(
        Program(
            f"broadcast-{name}",
            lambda tf, x, y, name=name: getattr(tf.math, name)(tf.broadcast_to(y, (2, 3, 4)), x),
            ["f32[2,3,4]@1:9", "f32[2,1,4]@1:3"],
            operator,
        )
        for name, operator in (
            ("equal", "EQUAL"),
            ("less", "LESS"),
            ("pow", "POW"),
            ("floordiv", "FLOOR_DIV"),
            ("floormod", "FLOOR_MOD"),
            ("not_equal", "NOT_EQUAL"),
        )
    ),
    Program(
        "broadcast-choice",
        lambda tf, x, y: tf.where(x > 0, x, tf.broadcast_to(y, (2, 3, 4))),
        ["f32[2,3,4]", "f32[2,1,4]"],
        "GREATER SELECT_V2",
    ),
]


def _input(tf: Any, text: str, seed: int) -> tuple[Any, Any]:
    """Returns the signature of an input and a value for it."""
    kind, _, rest = text.partition("[")
    dims, _, limits = rest.partition("]")
    low, high = map(float, limits[1:].split(":")) if limits else (-3, 3)
    dtype = np.dtype({"f32": np.float32, "i32": np.int32}[kind])
    shape = [int(dim.lstrip("?")) for dim in dims.split(",")]
    value = np.random.default_rng(seed).uniform(low, high + (dtype.kind == "i"), shape)
    spec = tf.TensorSpec([None if dim[0] == "?" else int(dim) for dim in dims.split(",")], dtype)
    return spec, np.floor(value).astype(dtype) if dtype.kind == "i" else value.astype(dtype)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_idiom(program: Program, tf: ModuleType, run_tflite: RunTFLite) -> None:
    pairs = [_input(tf, text, index) for index, text in enumerate(program.inputs)]
    values = [value for _, value in pairs]

    def call(*inputs: Any) -> Any:
        return program.function(tf, *inputs)

    function = tf.function(call, input_signature=[spec for spec, _ in pairs], autograph=False).get_concrete_function()
    model = tfconvert.convert(function)
    found = [name if count == 1 else f"{name}*{count}" for name, count in sorted(model.report.operators.items())]
    assert " ".join(found) == program.operators
    (got,) = run_tflite(bytes(model), values)
    expected = function(*map(tf.constant, values))
    expected = expected[0] if isinstance(expected, list) else expected
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-4, atol=1e-5)
