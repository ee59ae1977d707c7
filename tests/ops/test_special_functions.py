"""Special functions against TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.ops.cases import KernelCase, by_op
from tests.ops.comparison import COMPLEX, EDGES, FLOATS, Agree
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate

UNARY = [
    *[(op, FLOATS, "") for op in ("Exp", "Expm1", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Erfc", "LeakyRelu")],
    *[(op, FLOATS, "") for op in ("Elu", "Selu", "Softsign", "Atan", "Asinh", "Sinh", "Cosh")],
    *[(op, FLOATS, "@0.1:9") for op in ("Log", "Log1p", "Sqrt", "Rsqrt")],
    *[(op, ("f32", "f64", "f16"), "") for op in ("BesselI0", "BesselI0e", "BesselI1", "BesselI1e")],
    ("Ndtri", ("f32", "f64"), "@0.01:0.99"),
    ("Erfinv", ("f32", "f64"), "@-0.9:0.9"),
    *[(op, FLOATS, "@-0.95:0.95") for op in ("Acos", "Asin", "Atanh", "Tan")],
    ("Acosh", FLOATS, "@1.1:9"),
    ("Softplus", ("f32", "f64", "f16"), ""),
    *[(op, COMPLEX, "") for op in ("Exp", "Log", "Sqrt", "Sin", "Tanh", "Sigmoid", "Rsqrt")],
]


@pytest.mark.parametrize(("op", "dtype", "bounds"), [(op, d, bounds) for op, dtypes, bounds in UNARY for d in dtypes])
def test_unary(agree: Agree, op: str, dtype: str, bounds: str) -> None:
    agree(op, (f"{dtype}[5,40]{bounds}",))


@pytest.mark.parametrize("op", sorted({op for op, dtypes, _ in UNARY if "f32" in dtypes}))
def test_unary_at_the_edges(agree: Agree, op: str) -> None:
    agree(op, (EDGES,), tolerance=None if op not in ("Sin", "Cos", "Tan") else 1e-5)


ROWS: list[KernelCase] = [("LeakyRelu", ("f32[40]",), {"alpha": 0.3}), ("LeakyRelu", ("bf16[40]",), {"alpha": 0.3})]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


INTEGRALS = [("Dawsn", ""), ("Expint", "@0.1:9"), ("FresnelCos", ""), ("FresnelSin", ""), ("Spence", "@0:9")]


@pytest.mark.parametrize(("op", "bounds"), INTEGRALS)
def test_integrals_have_the_digits_of_their_formula(agree: Agree, op: str, bounds: str) -> None:
    agree(op, (f"f32[5,40]{bounds}",), tolerance=1e-5)


@pytest.mark.parametrize("op", ["Erf", "Erfc"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_error_function_everywhere(agree: Agree, op: str, dtype: str) -> None:
    x = np.concatenate([np.linspace(-11, 11, 20001), np.geomspace(1e-30, 1, 500)])
    agree(op, (x.astype(np.float32 if dtype == "f32" else np.float64),))


@pytest.mark.parametrize("op", ["BesselI0e", "BesselI1e"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bessel_functions_everywhere(agree: Agree, op: str, dtype: type[np.floating[Any]]) -> None:
    x = np.concatenate([np.linspace(-40, 40, 2001), np.geomspace(1e-30, 1e30, 500), [0, np.inf, -np.inf, np.nan]])
    agree(op, (x.astype(dtype),))


def test_the_inverse_of_the_error_function_near_its_ends() -> None:
    # Not compared: TensorFlow's kernel adds 1 and loses the last digits there.
    rest = np.geomspace(2**-52, 0.5, 500)
    x = np.concatenate([1 - rest, rest - 1, [-1, 1, 2, np.nan]])
    (found,) = evaluate(Call("Erfinv", (x,), {}))
    np.testing.assert_allclose([math.erfc(each) for each in found[:500]], 1 - x[:500], rtol=1e-12)
    np.testing.assert_array_equal(found[500:1000], -found[:500])
    np.testing.assert_array_equal(found[1000:], [-np.inf, np.inf, np.nan, np.nan])
