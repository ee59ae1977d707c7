"""Functions that JAX composes of several ops become the operator that the same function of TensorFlow becomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, operators, program, results, type_of

Array = np.ndarray[Any, Any]

KIND = "tensor<9xf32>"
FLAGS = "tensor<9xi1>"
X = np.array([-100, -3, -1, -0.5, 0, 0.5, 1, 3, 100], np.float32)
SCALARS = """    %zero = stablehlo.constant dense<0.0> : tensor<9xf32>
    %one = stablehlo.constant dense<1.0> : tensor<9xf32>
"""

ELU = f"""    %0 = stablehlo.compare GT, %a, %zero, FLOAT : ({KIND}, {KIND}) -> {FLAGS}
    %1 = stablehlo.select %0, %zero, %a : {FLAGS}, {KIND}
    %2 = stablehlo.exponential_minus_one %1 : {KIND}
    %3 = stablehlo.multiply %SCALE, %2 : {KIND}
    %4 = stablehlo.compare GT, %a, %zero, FLOAT : ({KIND}, {KIND}) -> {FLAGS}
    %5 = stablehlo.select %4, %a, %3 : {FLAGS}, {KIND}
"""
SELU = ELU.replace("SCALE", "alpha")
SELU = f"""    %alpha = stablehlo.constant dense<1.67326319> : {KIND}
    %scale = stablehlo.constant dense<1.05070102> : {KIND}
{SELU}    %6 = stablehlo.multiply %scale, %5 : {KIND}
    return %6 : {KIND}"""
CELU = f"""    %0 = stablehlo.maximum %a, %zero : {KIND}
    %1 = stablehlo.minimum %a, %zero : {KIND}
    %2 = stablehlo.divide %1, %one : {KIND}
    %3 = stablehlo.exponential_minus_one %2 : {KIND}
    %4 = stablehlo.multiply %one, %3 : {KIND}
    %5 = stablehlo.add %0, %4 : {KIND}
    return %5 : {KIND}"""
SOFTPLUS = f"""    %0 = stablehlo.maximum %a, %zero : {KIND}
    %1 = stablehlo.subtract %a, %zero : {KIND}
    %2 = stablehlo.compare NE, %1, %1, FLOAT : ({KIND}, {KIND}) -> {FLAGS}
    %3 = stablehlo.add %a, %zero : {KIND}
    %4 = stablehlo.abs %1 : {KIND}
    %5 = stablehlo.negate %4 : {KIND}
    %6 = stablehlo.exponential %5 : {KIND}
    %7 = stablehlo.log_plus_one %6 : {KIND}
    %8 = stablehlo.add %0, %7 : {KIND}
    %9 = stablehlo.select %2, %3, %8 : {FLAGS}, {KIND}
    return %9 : {KIND}"""
SIGMOID = f"""    %0 = stablehlo.negate %a : {KIND}
    %1 = stablehlo.exponential %0 : {KIND}
    %2 = stablehlo.add %one, %1 : {KIND}
    %3 = stablehlo.divide %one, %2 : {KIND}
    return %3 : {KIND}"""
LEAKY_RELU = f"""    %slope = stablehlo.constant dense<0.1> : {KIND}
    %0 = stablehlo.compare GE, %a, %zero, FLOAT : ({KIND}, {KIND}) -> {FLAGS}
    %1 = stablehlo.multiply %slope, %a : {KIND}
    %2 = stablehlo.select %0, %a, %1 : {FLAGS}, {KIND}
    return %2 : {KIND}"""
HARD_SWISH = f"""    %three = stablehlo.constant dense<3.0> : {KIND}
    %six = stablehlo.constant dense<6.0> : {KIND}
    %0 = stablehlo.add %a, %three : {KIND}
    %1 = stablehlo.maximum %0, %zero : {KIND}
    %2 = stablehlo.minimum %1, %six : {KIND}
    %3 = stablehlo.divide %2, %six : {KIND}
    %4 = stablehlo.multiply %a, %3 : {KIND}
    return %4 : {KIND}"""
GELU = f"""    %half = stablehlo.constant dense<0.5> : {KIND}
    %scale = stablehlo.constant dense<0.797884583> : {KIND}
    %cubic = stablehlo.constant dense<4.471500e-02> : {KIND}
    %0 = stablehlo.multiply %a, %a : {KIND}
    %1 = stablehlo.multiply %0, %a : {KIND}
    %2 = stablehlo.multiply %cubic, %1 : {KIND}
    %3 = stablehlo.add %a, %2 : {KIND}
    %4 = stablehlo.multiply %scale, %3 : {KIND}
    %5 = stablehlo.tanh %4 : {KIND}
    %6 = stablehlo.add %one, %5 : {KIND}
    %7 = stablehlo.multiply %half, %6 : {KIND}
    %8 = stablehlo.multiply %a, %7 : {KIND}
    return %8 : {KIND}"""


def _elu(x: Array) -> Array:
    return np.asarray(np.where(x > 0, x, np.expm1(np.minimum(x, 0))))


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


ACTIVATIONS: list[tuple[str, str, Callable[[Array], Array], dict[str, int]]] = [
    ("elu", ELU.replace("SCALE", "one") + f"    return %5 : {KIND}", _elu, {"ELU": 1}),
    (
        "selu",
        SELU,
        lambda x: 1.05070102 * np.where(x > 0, x, 1.67326319 * _elu(x)),
        {"GREATER": 1, "ELU": 1, "MUL": 2, "SELECT_V2": 1},
    ),
    ("celu", CELU, _elu, {"ELU": 1}),
    ("softplus", SOFTPLUS, lambda x: np.logaddexp(x, 0), {"RELU": 1, "ABS": 1, "MUL": 1, "EXP": 1, "ADD": 2, "LOG": 1}),
    ("sigmoid", SIGMOID, lambda x: 1 / (1 + np.exp(-x)), {"LOGISTIC": 1}),
    ("leaky_relu", LEAKY_RELU, lambda x: np.where(x > 0, x, np.float32(0.1) * x), {"LEAKY_RELU": 1}),
    ("hard_swish", HARD_SWISH, lambda x: x * np.clip(x + 3, 0, 6) / 6, {"HARD_SWISH": 1}),
    ("gelu", GELU, _gelu, {"GELU": 1}),
]


@pytest.mark.parametrize(
    ("body", "function", "expected"), [each[1:] for each in ACTIVATIONS], ids=[each[0] for each in ACTIVATIONS]
)
def test_activations(body: str, function: Callable[[Array], Array], expected: dict[str, int]) -> None:
    text = program(SCALARS + body, [KIND], [KIND])
    assert operators(convert(text)) == expected
    assert np.allclose(results(text, X)[0], function(X.astype(np.float64)), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("most", "expected"), [(6, {"RELU6": 1}), (7, {"RELU": 1, "MINIMUM": 1})])
def test_a_minimum_with_6_of_what_is_not_negative_is_a_relu6(most: int, expected: dict[str, int]) -> None:
    body = f"""{SCALARS}    %most = stablehlo.constant dense<{most}.0> : {KIND}
    %0 = stablehlo.maximum %a, %zero : {KIND}
    %1 = stablehlo.minimum %most, %0 : {KIND}
    return %1 : {KIND}"""
    text = program(body, [KIND], [KIND])
    assert operators(convert(text)) == expected
    assert np.array_equal(results(text, X)[0], np.clip(X, 0, most))


@pytest.mark.parametrize("order", [(-2, 1), (1, -2)])
def test_integers_within_limits(order: tuple[int, int]) -> None:
    low, high = order
    kind = "tensor<7xi32>"
    body = f"""    %low = stablehlo.constant dense<{low}> : {kind}
    %high = stablehlo.constant dense<{high}> : {kind}
    %0 = stablehlo.compare GE, %a, %low, SIGNED : ({kind}, {kind}) -> tensor<7xi1>
    %1 = stablehlo.compare LE, %a, %high, SIGNED : ({kind}, {kind}) -> tensor<7xi1>
    %2 = stablehlo.and %0, %1 : tensor<7xi1>
    return %2 : tensor<7xi1>"""
    x = np.arange(-3, 4, dtype=np.int32)
    text = program(body, [kind], ["tensor<7xi1>"])
    found = operators(convert(text))
    assert found.get("EQUAL", 0) == (low <= high)
    assert np.array_equal(results(text, x)[0], (x >= low) & (x <= high))


def test_a_scalar_that_is_repeated_in_two_steps_stays_a_scalar() -> None:
    kind = "tensor<1x?xf32>"
    body = f"""    %0 = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.constant dense<1> : tensor<1xi32>
    %2 = stablehlo.get_dimension_size %a, dim = 1 : ({kind}) -> tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.concatenate %1, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %0, %3, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %6 = stablehlo.dynamic_broadcast_in_dim %5, %4, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> {kind}
    %7 = stablehlo.add %a, %6 : {kind}
    return %7 : {kind}"""
    text = program(body, [kind], [kind])
    assert operators(convert(text)) == {"ADD": 1}
    assert np.array_equal(results(text, X[None])[0], X[None] + 2)


MOD = f"""    %rest = stablehlo.remainder %a, %b : TYPE
    %0 = stablehlo.compare NE, %rest, %none : (TYPE, TYPE) -> {FLAGS}
    %1 = stablehlo.compare LT, %rest, %none : (TYPE, TYPE) -> {FLAGS}
    %2 = stablehlo.compare LT, %b, %none : (TYPE, TYPE) -> {FLAGS}
    %3 = stablehlo.compare NE, %1, %2 : ({FLAGS}, {FLAGS}) -> {FLAGS}
    %4 = stablehlo.and %3, %0 : {FLAGS}
    %5 = stablehlo.add %rest, %b : TYPE
    %6 = stablehlo.select %4, %5, %rest : {FLAGS}, TYPE
    return %6 : TYPE"""
FLOOR_DIVIDE = f"""    %0 = stablehlo.divide %a, %b : TYPE
    %1 = stablehlo.sign %a : TYPE
    %2 = stablehlo.sign %b : TYPE
    %3 = stablehlo.compare NE, %1, %2 : (TYPE, TYPE) -> {FLAGS}
    %4 = stablehlo.remainder %a, %b : TYPE
    %5 = stablehlo.compare NE, %4, %none : (TYPE, TYPE) -> {FLAGS}
    %6 = stablehlo.and %3, %5 : {FLAGS}
    %7 = stablehlo.subtract %0, %one : TYPE
    %8 = stablehlo.select %6, %7, %0 : {FLAGS}, TYPE
    return %8 : TYPE"""


@pytest.mark.parametrize(
    ("body", "dtype", "operator", "function"),
    [
        (MOD, np.float32, "FLOOR_MOD", np.mod),
        (MOD, np.int32, "FLOOR_MOD", np.mod),
        (MOD, np.int8, "FLOOR_MOD", np.mod),
        (FLOOR_DIVIDE, np.int32, "FLOOR_DIV", np.floor_divide),
        (FLOOR_DIVIDE, np.int8, "FLOOR_DIV", np.floor_divide),
    ],
)
def test_floored_divisions(body: str, dtype: type, operator: str, function: Callable[[Array, Array], Array]) -> None:
    x: Array = np.array([-7, -6, -1, 0, 1, 6, 7, 7, -7], dtype)
    y: Array = np.array([3, 3, -3, 2, 5, -3, -3, 3, -3], dtype)
    kind = type_of(x)
    constants = "".join(
        f"    %{name} = stablehlo.constant dense<{value}{'.0' if dtype is np.float32 else ''}> : {kind}\n"
        for name, value in (("none", 0), ("one", 1))
    )
    text = program(constants + body.replace("TYPE", kind), [kind, kind], [kind])
    found = operators(convert(text))
    # What is left beside it keeps zeros from being divisors.
    assert found.pop(operator) == 1
    assert found.keys() <= {"CAST", "EQUAL", "SELECT_V2"}
    assert results(text, x, y)[0].tolist() == function(x, y).tolist()


NEAR = (7.85386146e-05, -0.000801019371, 0.00518832775, -0.0268538129, 0.112835854, -0.37612626, 1.12837911)
MIDDLE = (
    *(0.0232682, -0.138703942, 0.368742466, -0.582473278, 0.621000468, -0.494451523, 0.340488, -0.274112701),
    0.563825965,
)
FAR = (-10.477664, 12.9772, -7.49551868, 2.92101908, -1.01526523, 0.42184633, -0.282076746, 0.564189494)


def _polynomial(name: str, of: str, coefficients: tuple[float, ...]) -> str:
    """Returns Horner's rule as JAX writes it out."""
    lines = [f"    %{name}0 = stablehlo.constant dense<{coefficients[0]:e}> : {KIND}"]
    for index, coefficient in enumerate(coefficients[1:], 1):
        lines.append(f"    %{name}m{index} = stablehlo.multiply %{name}{index - 1}, %{of} : {KIND}")
        lines.append(f"    %{name}c{index} = stablehlo.constant dense<{coefficient:e}> : {KIND}")
        lines.append(f"    %{name}{index} = stablehlo.add %{name}m{index}, %{name}c{index} : {KIND}")
    return "\n".join(lines) + "\n"


def _erfc(x: str) -> str:
    """Returns the complementary error function `%erfc` as JAX writes it out."""
    flags = f"({KIND}, {KIND}) -> {FLAGS}"
    return f"""    %two = stablehlo.constant dense<2.0> : {KIND}
    %least = stablehlo.constant dense<-88.7228394> : {KIND}
    %square = stablehlo.multiply %{x}, %{x} : {KIND}
    %power = stablehlo.negate %square : {KIND}
    %size = stablehlo.abs %{x} : {KIND}
    %inverse = stablehlo.divide %one, %square : {KIND}
    %exp = stablehlo.exponential %power : {KIND}
    %first = stablehlo.divide %one, %size : {KIND}
    %factor = stablehlo.multiply %exp, %first : {KIND}
    %is_middle = stablehlo.compare LT, %size, %two : {flags}
{_polynomial("p", "inverse", MIDDLE)}{_polynomial("q", "inverse", FAR)}
    %chosen = stablehlo.select %is_middle, %p8, %q7 : {FLAGS}, {KIND}
    %tail = stablehlo.multiply %factor, %chosen : {KIND}
    %is_small = stablehlo.compare LT, %power, %least : {flags}
    %above = stablehlo.select %is_small, %zero, %tail : {FLAGS}, {KIND}
    %is_below = stablehlo.compare LT, %{x}, %zero : {flags}
    %below = stablehlo.subtract %two, %above : {KIND}
    %outer = stablehlo.select %is_below, %below, %above : {FLAGS}, {KIND}
{_polynomial("r", "square", NEAR)}
    %product = stablehlo.multiply %{x}, %r6 : {KIND}
    %inner = stablehlo.subtract %one, %product : {KIND}
    %is_near = stablehlo.compare LT, %size, %one : {flags}
    %erfc = stablehlo.select %is_near, %inner, %outer : {FLAGS}, {KIND}
"""


def test_gelu_with_the_written_out_error_function() -> None:
    body = f"""{SCALARS}    %root = stablehlo.constant dense<0.707106769> : {KIND}
    %half = stablehlo.constant dense<0.5> : {KIND}
    %negated = stablehlo.negate %a : {KIND}
    %x = stablehlo.multiply %negated, %root : {KIND}
{_erfc("x")}    %0 = stablehlo.multiply %half, %a : {KIND}
    %1 = stablehlo.multiply %0, %erfc : {KIND}
    return %1 : {KIND}"""
    text = program(body, [KIND], [KIND])
    assert operators(convert(text)) == {"GELU": 1}
    expected = [0.5 * x * math.erfc(-x * math.sqrt(0.5)) for x in X.tolist()]
    assert np.allclose(results(text, X)[0], expected, rtol=1e-5, atol=1e-6)


def test_another_function_of_the_same_form_stays() -> None:
    body = f"{SCALARS}{_erfc('a')}    return %erfc : {KIND}".replace("dense<1.128379e+00>", "dense<1.2e+00>")
    text = program(body, [KIND], [KIND])
    x = np.linspace(-0.9, 0.9, 9, dtype=np.float32)
    known = np.array([math.erfc(each) for each in x.tolist()])
    found = results(text, x)[0]
    assert np.allclose(found, known - (1.2 - NEAR[-1]) * x, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("f32", {"ONE_HOT": 1}), ("i8", {"ONE_HOT": 1}), ("i16", {"CAST": 1, "EQUAL": 1})]
)
def test_one_hot_vectors(dtype: str, wanted: dict[str, int]) -> None:
    wide, flags, result = "tensor<4x5xi32>", "tensor<4x5xi1>", f"tensor<4x5x{dtype}>"
    body = f"""    %0 = stablehlo.iota dim = 0 : tensor<5xi32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<5xi32>) -> {wide}
    %2 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xi32>) -> {wide}
    %3 = stablehlo.compare EQ, %2, %1 : ({wide}, {wide}) -> {flags}
    %4 = stablehlo.convert %3 : ({flags}) -> {result}
    return %4 : {result}"""
    text = program(body, ["tensor<4xi32>"], [result])
    places = np.array([0, 4, -1, 5], np.int32)
    found = operators(convert(text))
    assert {name: count for name, count in found.items() if name != "RESHAPE"} == wanted
    assert (results(text, places)[0] == (places[:, None] == np.arange(5))).all()
