"""Constants that only bound, mask, compare or guard leave all integers to the numbers that matter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import tfconvert
from tests.converter.targets.litert.quantize.runs import signal_to_noise
from tests.support.sample_models import traced
from tfconvert.api import convert
from tfconvert.settings.quantization import Quantize

Array = np.ndarray[Any, np.dtype[Any]]

ROWS, WIDTH = 12, 16
RANDOM = np.random.default_rng(0)
CAUSAL = np.tril(np.ones((ROWS, ROWS), bool))
THIRDS = np.arange(WIDTH) % 3 < 2


def _weights(*shape: int) -> Array:
    return (RANDOM.normal(size=shape) / math.sqrt(math.prod(shape[:-1]))).astype(np.float32)


BEFORE, AFTER, KEYS = _weights(WIDTH, WIDTH), _weights(WIDTH, WIDTH), _weights(WIDTH, WIDTH)
X = RANDOM.normal(size=(40, 1, ROWS, WIDTH)).astype(np.float32)
KEPT = (np.arange(ROWS) < RANDOM.integers(4, ROWS + 1, (40, 1, 1))).astype(np.float32)


class Case(NamedTuple):
    """The computation between two products.

    Attributes:
        compute: From TensorFlow, activations or scores, and a mask of zeros and ones, to a result.
        least: The least signal-to-noise ratio with 8 bits, and with 16.
    """

    compute: Callable[[Any, Any, Any], Any]
    least: tuple[float, float] = (27, 39)


DENSE: Mapping[str, Case] = {
    "clip": Case(lambda tf, x, m: tf.clip_by_value(x, -100.0, 100.0)),
    "clip to less": Case(lambda tf, x, m: tf.clip_by_value(x, -0.5, 0.5)),
    "minimum": Case(lambda tf, x, m: tf.minimum(x, 1e6)),
    "maximum with infinity": Case(lambda tf, x, m: tf.maximum(x, -np.inf)),
    "bounds of channels": Case(lambda tf, x, m: tf.minimum(x, np.where(THIRDS, 1e9, 0.5).astype(np.float32))),
    "comparison with what is far": Case(lambda tf, x, m: tf.where(x >= 1e4, 0.0 * x, tf.where(x < -1e9, 2 * x, x))),
    "largest of those chosen": Case(lambda tf, x, m: x + tf.reduce_max(tf.where(THIRDS, x, -1e9), -1, keepdims=True)),
    "largest of a sum": Case(lambda tf, x, m: x + tf.reduce_max(x - (1 - m)[..., None] * 1e4, 1, keepdims=True)),
    "least of a sum": Case(lambda tf, x, m: x + tf.reduce_min(x + (1 - m)[..., None] * 1e9, 1, keepdims=True)),
    "largest beside a constant": Case(
        lambda tf, x, m: x + tf.reduce_max(tf.concat([x, tf.fill((1, ROWS, 1), -1e9)], -1), -1, keepdims=True)
    ),
    "gate": Case(lambda tf, x, m: x * tf.sigmoid(tf.where(THIRDS, x, -1e9))),
    "silu": Case(lambda tf, x, m: tf.nn.silu(tf.where(THIRDS, x, -1e9))),
    "gelu": Case(lambda tf, x, m: tf.nn.gelu(tf.where(THIRDS, x, -1e9))),
    "gelu by tanh": Case(lambda tf, x, m: tf.nn.gelu(tf.where(THIRDS, x, -1e9), approximate=True)),
    "mish": Case(lambda tf, x, m: (lambda y: y * tf.tanh(tf.nn.softplus(y)))(tf.where(THIRDS, x, -1e9))),
    "celu": Case(lambda tf, x, m: (lambda y: tf.where(y > 0, y, tf.exp(y) - 1))(tf.where(THIRDS, x, -1e9))),
    "silu of a sum that overflows": Case(lambda tf, x, m: tf.nn.silu(x + tf.where(THIRDS, 0.0, -3.4e38))),
    "least whole numbers": Case(lambda tf, x, m: tf.maximum(tf.floor(4 * tf.where(THIRDS, x, -1e9)), -40)),
    "bound of a running sum": Case(lambda tf, x, m: tf.maximum(tf.cumsum(tf.where(THIRDS, x, -1e9), -1), -9), (27, 38)),
    "near others": Case(
        lambda tf, x, m: tf.exp(-tf.math.squared_difference(tf.where(THIRDS, x, -1e9), 0.5 * x)), (25, 38)
    ),
    "largest in order": Case(
        lambda tf, x, m: tf.concat([x[..., 9:], tf.math.top_k(tf.where(THIRDS, x, -1e9), 9)[0]], -1)
    ),
    "running sum of exponentials": Case(lambda tf, x, m: tf.math.cumulative_logsumexp(x, -1), (27, 39)),
    "logarithm of a probability": Case(
        lambda tf, x, m: tf.math.log(tf.nn.softmax(tf.where(THIRDS, x, -1e9)) + 1e-6), (19, 39)
    ),
    "log-probabilities below the kernel's range": Case(lambda tf, x, m: tf.nn.log_softmax(10 * x)),
    "logarithm of what may be 0": Case(lambda tf, x, m: tf.math.log(tf.sigmoid(4 * x) + 1e-7)),
    "running sum of exponentials that are masked": Case(
        lambda tf, x, m: tf.maximum(tf.math.cumulative_logsumexp(tf.where(THIRDS, x, -1e9), -1), -5)
    ),
    "quotient that has no limit nearby": Case(
        lambda tf, x, m: (lambda y: y / (1 + tf.abs(y)))(tf.where(THIRDS, x, -1e9))
    ),
    "numbers in order": Case(lambda tf, x, m: tf.nn.relu(tf.sort(tf.where(THIRDS, x, -1e9), -1))),
    "rounded up": Case(lambda tf, x, m: tf.maximum(tf.math.ceil(4 * tf.where(THIRDS, x, -1e9)), -8), (27, 31)),
    "rounded": Case(lambda tf, x, m: tf.maximum(tf.round(4 * tf.where(THIRDS, x, -1e9)), -8), (27, 31)),
    "divisor that may be 0": Case(
        lambda tf, x, m: x / (tf.reduce_sum(tf.nn.relu(x - 1.5), -1, keepdims=True) + 1e-3) * 1e-3, (12, 25)
    ),
    "maximum with a choice": Case(lambda tf, x, m: tf.maximum(x, tf.where(x > 0, -1e9, 0.0)), (35.2, 39)),
    "minimum with a choice": Case(lambda tf, x, m: tf.minimum(x, tf.where(x < 0, 1e9, 0.2)), (35.2, 39)),
    "pool of those above a bound": Case(
        lambda tf, x, m: tf.nn.max_pool2d(tf.where(x > -0.5, x, -1e9)[:, None], [1, 2], 1, "SAME")[:, 0], (12, 12)
    ),
    "pool of those below a bound": Case(
        lambda tf, x, m: tf.nn.max_pool2d(-tf.where(x < 2, x, 1e9)[:, None], [1, 3], 1, "SAME")[:, 0], (25, 35)
    ),
}

SCORES: Mapping[str, Case] = {
    "causal sum": Case(lambda tf, s, m: s + np.where(CAUSAL, 0, -1e9).astype(np.float32)),
    "causal choice": Case(lambda tf, s, m: tf.where(CAUSAL, s, -np.inf)),
    "scaled sum": Case(lambda tf, s, m: (s + np.where(CAUSAL, 0, -1e9).astype(np.float32)) * 0.5),
    "sum with an input": Case(lambda tf, s, m: s + (1 - m)[:, None] * -1e9),
    "choice by an input": Case(lambda tf, s, m: tf.where(m[:, None] > 0.5, s, -1e9)),
    "choice of a sum": Case(lambda tf, s, m: tf.where(CAUSAL, s, s - 1e9)),
    "choice of a sum by an input": Case(lambda tf, s, m: tf.where(m[:, None] > 0.5, s, s * 0.5 - 1e4)),
    "two masks": Case(lambda tf, s, m: s + np.where(CAUSAL, 0, -1e4).astype(np.float32) - (1 - m)[:, None] * 1e9),
    "pairs": Case(lambda tf, s, m: s - (1 - m[:, :, None] * m[:, None]) * 1e9),
    "pairs that differ": Case(lambda tf, s, m: s - (1 - m[:, :, None] * m[:, None]) * 1e4, (4, 39)),
    "whole rows": Case(lambda tf, s, m: s - (1 - m[:, :, None]) * 1e4, (4, 39)),
    "mask times a factor": Case(lambda tf, s, m: s + ((m - 1) * 1e9 * (tf.reverse(m, [1]) + 1))[:, None]),
    "minimum": Case(lambda tf, s, m: tf.minimum(s, (m[:, None] * 2 - 1) * 1e9)),
    "leaky relu": Case(lambda tf, s, m: tf.nn.leaky_relu(tf.where(m[:, None] > 0.5, s, -1e9))),
    "larger of a multiple": Case(lambda tf, s, m: (lambda y: tf.maximum(y, 0.01 * y))(tf.where(CAUSAL, s, -1e9))),
    "leaky relu that is nearly flat": Case(lambda tf, s, m: tf.nn.leaky_relu(s + (1 - m)[:, None] * -1e9, 0.01)),
    "sum of two leaky relus": Case(
        lambda tf, s, m: (lambda y: tf.nn.relu(y) - 0.3 * tf.nn.relu(-y))(s + (1 - m)[:, None] * -1e9)
    ),
    "mask of what is lowest": Case(lambda tf, s, m: -(s + (1 - m)[:, None] * 1e9)),
}


# Sums that decide between scores, and aren't masks: one row's largest sum may be another's lowest.
WIDE: Mapping[str, Case] = {
    "both signs": Case(lambda tf, s, m: s + 100 * m[:, None], (20, 39)),
    "further down": Case(lambda tf, s, m: s - 300 * tf.abs(m)[:, None], (14, 39)),
    "further up": Case(lambda tf, s, m: s + 300 * tf.abs(m)[:, None], (14, 39)),
    "distances": Case(lambda tf, s, m: s - 50 * np.abs(np.arange(ROWS)[:, None] - np.arange(ROWS)).astype(np.float32)),
}


def _dense(tf: ModuleType, case: Case) -> Any:
    @traced(tf, tf.TensorSpec((1, ROWS, WIDTH), name="x"), tf.TensorSpec((1, ROWS), name="mask"))
    def call(x: Any, mask: Any) -> Any:
        return {"y": tf.matmul(case.compute(tf, tf.matmul(x, BEFORE), mask), AFTER)}

    return call


def _attention(tf: ModuleType, case: Case) -> Any:
    @traced(tf, tf.TensorSpec((1, ROWS, WIDTH), name="x"), tf.TensorSpec((1, ROWS), name="mask"))
    def call(x: Any, mask: Any) -> Any:
        scores = tf.matmul(tf.matmul(x, BEFORE), tf.matmul(x, KEYS), transpose_b=True)
        return {"y": tf.matmul(tf.matmul(tf.nn.softmax(case.compute(tf, scores, mask)), x), AFTER)}

    return call


SAMPLES = [{"x": x, "mask": kept} for x, kept in zip(X, KEPT, strict=True)]


def _module(tf: ModuleType, function: Any) -> Any:
    module = tf.Module()
    module.call = function
    return module


def _fidelity(function: Any, content: bytes, samples: Sequence[Mapping[str, Array]] = SAMPLES) -> float:
    runner: Any = Interpreter(model_content=content, num_threads=1).get_signature_runner()
    taken = set(runner.get_input_details())
    got = [runner(**{name: value for name, value in each.items() if name in taken})["y"] for each in samples]
    return signal_to_noise(np.stack([function(**each)["y"].numpy() for each in samples]), np.stack(got))


@pytest.mark.parametrize(("mode", "number"), [("int8", 0), ("int16", 1)])
@pytest.mark.parametrize("name", [*DENSE, *(f"scores: {name}" for name in SCORES)])
def test_results_keep_their_precision(tf: ModuleType, name: str, mode: Any, number: int) -> None:
    """Without the pass `quantize` leaving out what does not matter, these have 0 to 20 dB."""
    case = DENSE[name] if name in DENSE else SCORES[name.removeprefix("scores: ")]
    function = _dense(tf, case) if name in DENSE else _attention(tf, case)
    quantize = Quantize(mode, samples=SAMPLES, slow_integers=True)
    model = convert(_module(tf, function), quantize=quantize)
    assert _fidelity(function, bytes(model)) > case.least[number]


@pytest.mark.parametrize(
    ("compute", "least"),
    [
        (lambda tf, x: 0.5 * tf.clip_by_value(x, -1.0, 1.0), 99),
        (lambda tf, x: x + tf.reverse(x, [1]), 86),
        (lambda tf, x: tf.matmul(tf.matmul(x, np.eye(WIDTH, dtype=np.float32)), np.eye(WIDTH, dtype=np.float32)), 80),
    ],
    ids=["clip", "sum", "product"],
)
def test_16_bits_reach_no_further_than_numbers_can_be(tf: ModuleType, compute: Any, least: float) -> None:
    """With room for numbers that no sample has, the first two have a bit less; beside weights that doesn't matter."""

    @traced(tf, tf.TensorSpec((1, ROWS, WIDTH), name="x"))
    def call(x: Any) -> Any:
        return {"y": compute(tf, x)}

    samples = [{"x": x} for x in X]
    model = convert(_module(tf, call), quantize=Quantize("int16", samples=samples))
    assert _fidelity(call, bytes(model), samples) > least


@pytest.mark.parametrize(("mode", "number"), [("int8", 0), ("int16", 1)])
@pytest.mark.parametrize("name", WIDE)
def test_a_wide_term_that_is_no_mask_is_represented(tf: ModuleType, name: str, mode: Any, number: int) -> None:
    """A row may be far below all others as a whole, and what it adds up to is above them nowhere."""
    function = _attention(tf, WIDE[name])
    terms = RANDOM.normal(size=KEPT.shape).astype(np.float32)
    samples = [{"x": x, "mask": term} for x, term in zip(X, terms, strict=True)]
    model = convert(_module(tf, function), quantize=Quantize(mode, samples=samples, slow_integers=True))
    assert _fidelity(function, bytes(model), samples) > WIDE[name].least[number]


def test_scripts_of_the_official_converter_keep_it_too(tf: ModuleType, tmp_path: Path) -> None:
    function = _dense(tf, DENSE["clip"])
    tf.saved_model.save(_module(tf, function), str(tmp_path), signatures=function)
    converter = tfconvert.TFLiteConverter.from_saved_model(str(tmp_path))
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter.representative_dataset = lambda: iter(SAMPLES)
    assert _fidelity(function, converter.convert()) > DENSE["clip"].least[0]


def _zero(function: Any, low: float) -> int:
    """Returns the integer of 0 at the only input of a model whose samples go from a number to 1."""
    samples = [{"x": np.array([[low, 1.0]], np.float32)}]
    model = convert(function, quantize=Quantize("int8", samples=samples, io="int8"))
    (given,) = Interpreter(model_content=bytes(model)).get_input_details()
    return int(given["quantization"][1])


@pytest.mark.parametrize(("low", "zero"), [(-9.0, -128), (-0.25, -77)])
def test_a_range_is_narrowed_only_if_that_gains_a_bit(tf: ModuleType, low: float, zero: int) -> None:
    """Everything below 0 is 0 after the maximum; a few more steps aren't worth other integers than the official's."""

    @traced(tf, tf.TensorSpec((1, 2), name="x"))
    def call(x: Any) -> Any:
        return {"y": tf.nn.relu(x) * 2}

    assert _zero(_module(tf, call), low) == zero


@pytest.mark.parametrize("highest", [0.0, 40.0])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp"])
def test_what_is_beyond_the_range_has_the_limit_of_the_function(tf: ModuleType, name: str, highest: float) -> None:
    """Most numbers may be beyond those that matter: a step for each of them would be most of the error."""

    @traced(tf, tf.TensorSpec((1, 1), name="x"))
    def call(x: Any) -> Any:
        return {"y": getattr(tf, name)(x)}

    samples = [{"x": np.array([[number]], np.float32)} for number in (-40, highest)]
    model = convert(_module(tf, call), quantize=Quantize("int8", samples=samples, io="int8"))
    lowest = np.array([[-128]], np.int8)
    assert Interpreter(model_content=bytes(model)).get_signature_runner()(x=lowest)["y"] == lowest


def test_a_constant_on_the_edge_of_what_it_is_compared_with_stays_beyond_it(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec((1, 4), name="x"))
    def call(x: Any) -> Any:
        return {"y": tf.where(x >= 1e9, 5.0, x) + 1}

    x = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)
    model = convert(_module(tf, call), quantize=Quantize("int8", samples=[{"x": x}], slow_integers=True))
    got = Interpreter(model_content=bytes(model)).get_signature_runner()(x=x)["y"]
    np.testing.assert_allclose(got, x + 1, atol=0.02)


def test_an_input_without_variation_is_a_warning(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec((1, 4), name="x"), tf.TensorSpec((1, 4), name="state"), tf.TensorSpec((1, 4), name="h"))
    def call(x: Any, state: Any, h: Any) -> Any:
        return {"y": x + h, "state_out": 0.5 * state + x}

    x = RANDOM.normal(size=(8, 1, 4)).astype(np.float32)
    zeros = np.zeros_like(x)
    quantize = Quantize("int8", samples={"x": x, "state": zeros, "h": zeros}, io="int8")
    model = convert(_module(tf, call), quantize=quantize)
    found = [note.message for note in model.report.notes if note.code == "constant-input"]
    assert len(found) == 2
    assert any("'state'" in message and "'state_out'" in message for message in found)
    scales = {each["name"].split("_")[-1].split(":")[0]: each["quantization"][0] for each in _inputs(bytes(model))}
    assert scales["state"] < 0.1 < scales["h"]


def _inputs(content: bytes) -> list[dict[str, Any]]:
    runner: Any = Interpreter(model_content=content).get_signature_runner()
    return [{**each, "name": name} for name, each in runner.get_input_details().items()]
