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
_POWERS, _STARTS = np.meshgrid(
    [1, 1.0001, 1.5, 2, 2.5, 3, 5, 10, 20, 100, 1e6, 0.5, -1, 0],
    [0, -1, -2, -0.5, -2.5, np.inf, np.nan, 1e-30, *np.geomspace(1e-3, 1e3, 60), *np.linspace(0.5, 9, 60)],
)
_ORDERS = np.array([0, 1, 2, 3, 5, -1, 1.5])

CASES: dict[str, tuple[Callable[..., Any], Sequence[Array]]] = {
    "lgamma": (lambda tf, x: tf.math.lgamma(x), [_REAL]),
    "digamma": (lambda tf, x: tf.math.digamma(x), [_REAL]),
    "ndtri": (lambda tf, x: tf.math.ndtri(x), [_PARTS]),
    "bessel_i0": (lambda tf, x: tf.math.bessel_i0(x), [_SMALL]),
    "bessel_i0e": (lambda tf, x: tf.math.bessel_i0e(x), [_DAMPED]),
    "bessel_i1": (lambda tf, x: tf.math.bessel_i1(x), [_SMALL]),
    "bessel_i1e": (lambda tf, x: tf.math.bessel_i1e(x), [_DAMPED]),
    "zeta": (lambda tf, x, q: tf.math.zeta(x, q), [_POWERS, _STARTS]),
    "polygamma": (
        lambda tf, n, x: tf.math.polygamma(n, x),
        np.broadcast_arrays(_ORDERS[:, None], np.linspace(0.25, 20, 80)),
    ),
    "digamma as polygamma": (lambda tf, x: tf.math.polygamma(tf.zeros([], x.dtype), x), [_STARTS]),
    "trigamma": (lambda tf, x: tf.math.polygamma(tf.ones([], x.dtype), x), [_STARTS]),
}

OPS = {"BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "Digamma", "Lgamma", "Ndtri", "NextAfter", "Polygamma", "Zeta"}


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
