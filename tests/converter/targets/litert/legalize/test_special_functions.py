"""Special functions whose formulas have a float's digits everywhere: at poles, in tails, beside zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite

Array = np.ndarray[Any, np.dtype[Any]]
_SIZES = np.concatenate([np.geomspace(1e-37, 1e38, 500), np.linspace(0.5, 4, 500)])
_SPECIAL = [0, -0.0, -1, -2, -1e10, np.inf, -np.inf, np.nan, 1, 2, 3, 0.99999994, 1.0000001, 1.9999999, 2.0000002]
_BELOW = np.concatenate([-np.geomspace(1e-37, 1e7, 300), np.linspace(-12, 0, 1001)])
_REAL = np.concatenate([_SPECIAL, _SIZES, _BELOW])
_PARTS = np.concatenate(
    [
        [0, 1, -0.1, 1.1, np.inf, 0.5],
        np.geomspace(1.2e-38, 1, 500),
        1 - np.geomspace(6e-8, 1, 300),
        np.linspace(0, 1, 500),
    ]
)
_SMALL = np.concatenate([np.linspace(-85, 85, 1001), np.geomspace(1e-30, 80, 300), [0, 6]])
_DAMPED = np.concatenate([_SMALL, np.geomspace(80, 1e37, 100)])
# Of larger ones, TensorFlow takes the integrals as 1/2.
_OSCILLATING = np.concatenate([_REAL[~(np.abs(_REAL) > 3e4)], np.linspace(-9, 90, 999)])
_FINITE = _REAL[np.isfinite(_REAL)]
_POWERS, _STARTS = np.meshgrid(
    [1, 1.0001, 1.5, 2, 2.5, 3, 5, 10, 20, 100, 1e6, 0.5, -1, 0],
    [0, -1, -2, -0.5, -2.5, np.inf, np.nan, 1e-30, *np.geomspace(1e-3, 1e3, 60), *np.linspace(0.5, 9, 60)],
)
_RANDOM = np.random.default_rng(5)
_SHAPES = np.exp(_RANDOM.uniform(np.log(1e-2), np.log(3e3), 3000))
# Half of them as far from the mean as deviations are large.
_BESIDE = np.where(
    np.arange(3000) % 2, 1 + _RANDOM.normal(size=3000) * 2 / np.sqrt(_SHAPES), _RANDOM.exponential(3, 3000)
)
_EDGES = np.array([[1, 0], [1, -1], [-1, 1], [0, 1], [np.inf, 1], [1, np.inf], [np.nan, 1], [1, np.nan], [5, 1e-20]]).T
_GAMMA = np.concatenate([[_SHAPES, np.abs(_SHAPES * _BESIDE)], _EDGES], 1)
_LIKELY = np.abs(_SHAPES * (1 + _RANDOM.normal(size=3000) / np.sqrt(_SHAPES)))
_FIRST, _SECOND = np.exp(_RANDOM.uniform(np.log(5e-2), np.log(5e2), (2, 3000)))
_MEAN = _FIRST / (_FIRST + _SECOND)
_BETA = [
    np.concatenate([_FIRST, [1, 1, 2, 2, 0, 1, np.nan]]),
    np.concatenate([_SECOND, [1, 1, 3, 3, 1, 0, 1]]),
    np.concatenate(
        [
            np.clip(_MEAN + np.sqrt(_MEAN * (1 - _MEAN) / (_FIRST + _SECOND + 1)) * _RANDOM.normal(size=3000), 0, 1),
            [0, 1, -0.1, 1.1, 0.5, 0.5, 0.5],
        ]
    ),
]
_ORDERS = np.array([0, 1, 2, 3, 5, -1, 1.5])

CASES: dict[str, tuple[Callable[..., Any], Sequence[Array]]] = {
    "lgamma": (lambda tf, x: tf.math.lgamma(x), [_REAL]),
    "digamma": (lambda tf, x: tf.math.digamma(x), [_REAL]),
    "ndtri": (lambda tf, x: tf.math.ndtri(x), [_PARTS]),
    "bessel_i0": (lambda tf, x: tf.math.bessel_i0(x), [_SMALL]),
    "bessel_i0e": (lambda tf, x: tf.math.bessel_i0e(x), [_DAMPED]),
    "bessel_i1": (lambda tf, x: tf.math.bessel_i1(x), [_SMALL]),
    "bessel_i1e": (lambda tf, x: tf.math.bessel_i1e(x), [_DAMPED]),
    "expint": (lambda tf, x: tf.math.special.expint(x), [_FINITE[_FINITE < 85]]),
    "spence": (lambda tf, x: tf.math.special.spence(x), [_FINITE[_FINITE < 1e37]]),
    "dawsn": (lambda tf, x: tf.math.special.dawsn(x), [np.concatenate([_REAL, np.linspace(0, 9, 500)])]),
    "fresnel_sin": (lambda tf, x: tf.math.special.fresnel_sin(x), [_OSCILLATING]),
    "fresnel_cos": (lambda tf, x: tf.math.special.fresnel_cos(x), [_OSCILLATING]),
    "igamma": (lambda tf, a, x: tf.math.igamma(a, x), [*_GAMMA]),
    "igammac": (lambda tf, a, x: tf.math.igammac(a, x), [*_GAMMA]),
    "igamma_grad_a": (lambda tf, a, x: tf.raw_ops.IgammaGradA(a=a, x=x), [*_GAMMA[:, :-3]]),
    "random_gamma_grad": (
        lambda tf, a, x: tf.raw_ops.RandomGammaGrad(alpha=a, sample=x),
        [_SHAPES[_SHAPES > 0.5], _LIKELY[_SHAPES > 0.5]],
    ),
    "betainc": (lambda tf, a, b, x: tf.math.betainc(a, b, x), _BETA),
    "zeta": (lambda tf, x, q: tf.math.zeta(x, q), [_POWERS, _STARTS]),
    "polygamma": (
        lambda tf, n, x: tf.math.polygamma(n, x),
        np.broadcast_arrays(_ORDERS[:, None], np.linspace(0.25, 20, 80)),
    ),
    "digamma as polygamma": (lambda tf, x: tf.math.polygamma(tf.zeros([], x.dtype), x), [_STARTS]),
    "trigamma": (lambda tf, x: tf.math.polygamma(tf.ones([], x.dtype), x), [_STARTS]),
}

OPS = {
    *("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "Betainc", "Dawsn", "Digamma", "Expint", "FresnelCos"),
    *("FresnelSin", "Igamma", "IgammaGradA", "Igammac", "Lgamma", "Ndtri", "NextAfter", "Polygamma"),
    *("RandomGammaGrad", "Spence", "Zeta"),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name: str, tf: ModuleType, run_tflite: RunTFLite) -> None:
    compute, arrays = CASES[name]
    inputs = [np.asarray(array, np.float32) for array in arrays]
    inputs = [np.ascontiguousarray(np.where(np.abs(array) < 1.2e-38, 0, array)) for array in inputs]
    specs = [tf.TensorSpec(array.shape, tf.float32, name=f"x{index}") for index, array in enumerate(inputs)]
    function = tf.function(lambda *x: {"y": compute(tf, *x)}, input_signature=specs)
    (result,) = run_tflite(bytes(tfconvert.convert(function)), inputs)
    # In doubles, TensorFlow's own digits don't matter, and what floats lack is the rounding of the operands' sums.
    exact = np.asarray(compute(tf, *(tf.constant(array, tf.float64) for array in inputs)), np.float64)
    own = np.asarray(function(*inputs)["y"])
    with np.errstate(over="ignore"):
        is_normal = np.isfinite(own) & (np.abs(exact) > 1e-36) & (np.abs(exact) < 1e36)
    assert is_normal.any()
    np.testing.assert_array_equal(result[~np.isfinite(own)], own[~np.isfinite(own)])
    np.testing.assert_allclose(result[is_normal], exact[is_normal], 1e-5, 2e-6)


def test_numbers_below_the_smallest_normal_one(tf: ModuleType, run_tflite: RunTFLite) -> None:
    """LiteRT's logarithm and TensorFlow take them as 0, or as the smallest one that there is."""
    x = np.array([1e-38, 2e-39, 1e-45, 1.2e-38], np.float32)
    spec = tf.TensorSpec(x.shape, tf.float32, name="x")
    functions = {name: CASES[name][0] for name in ("digamma", "lgamma")}
    function = tf.function(lambda x: {name: each(tf, x) for name, each in functions.items()}, input_signature=[spec])
    digamma, lgamma = run_tflite(bytes(tfconvert.convert(function)), [x])
    np.testing.assert_allclose(lgamma, function(x)["lgamma"], 1e-6)
    np.testing.assert_allclose(digamma, function(x)["digamma"], 1e-6)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "bessel_i1e"])
def test_half_floats_are_computed_in_wider_ones(name: str, tf: ModuleType, run_tflite: RunTFLite) -> None:
    compute, _ = CASES[name]
    x = np.linspace(0.01, 0.99, 60).astype(np.float32)

    def half(x: Any) -> Any:
        return {"y": tf.cast(compute(tf, tf.cast(x, tf.float16)), tf.float32)}

    function = tf.function(half, input_signature=[tf.TensorSpec(x.shape, tf.float32, name="x")])
    (result,) = run_tflite(bytes(tfconvert.convert(function)), [x])
    np.testing.assert_allclose(result, function(x)["y"].numpy(), 2e-3, 1e-3)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_logarithms_of_sums_of_nothing(exclusive: bool, reverse: bool, tf: ModuleType, run_tflite: RunTFLite) -> None:
    x = np.array([[-np.inf, -np.inf, 3, -np.inf], [-3e38, 1, np.inf, 2], [88, 89, -90, -np.inf]], np.float32)

    def compute(x: Any) -> Any:
        return {"y": tf.math.cumulative_logsumexp(x, 1, exclusive=exclusive, reverse=reverse)}

    function = tf.function(compute, input_signature=[tf.TensorSpec(x.shape, tf.float32, name="x")])
    (result,) = run_tflite(bytes(tfconvert.convert(function)), [x])
    np.testing.assert_allclose(result, function(x)["y"].numpy(), 1e-6)


def test_the_next_float(tf: ModuleType, run_tflite: RunTFLite) -> None:
    numbers = np.array([0, -0.0, 1, -1, 1.2e-38, -3.4028235e38, np.inf, -np.inf, np.nan, 1e-45, 7], np.float32)
    inputs = [np.ascontiguousarray(each) for each in np.broadcast_arrays(numbers[:, None], numbers)]
    specs = [tf.TensorSpec(each.shape, tf.float32, name=f"x{index}") for index, each in enumerate(inputs)]
    function = tf.function(lambda x, y: {"y": tf.math.nextafter(x, y)}, input_signature=specs)
    (result,) = run_tflite(bytes(tfconvert.convert(function)), inputs)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.nextafter(*inputs)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
