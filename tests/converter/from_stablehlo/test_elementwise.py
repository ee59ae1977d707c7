"""Elementwise ops of StableHLO compute what their specification says, for each element type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, of_jax, operators, program, results, type_of
from tests.support.litert import run

Array = np.ndarray[Any, Any]

F = np.array([-100, -3.7, -2.5, -1.5, -0.5, -0.0, 0.0, 0.3, 0.49999997, 0.5, 1.5, 2.5, 7.25], np.float32)
UNIT = np.linspace(-0.95, 0.95, 13, dtype=np.float32)
POSITIVE = np.linspace(0.1, 9, 13, dtype=np.float32)
NAN = np.array([np.nan, np.inf, -np.inf, 0, 1], np.float32)
INTEGERS = np.array([-7, -3, 0, 2, 5, 7, 100, -100, 1, -1, 31, 2**31 - 1, -(2**31)], np.int32)
OTHERS = np.array([3, -2, 5, -2, -3, 2, 7, 9, 1, 4, 31, 5, 3], np.int32)
SHIFTS = np.array([0, 1, 2, 31, 30, 4, 5, 8, 16, 3, 32, 40, -1], np.int32)
B = np.array([True, False, True, False])
C = np.array([True, True, False, False])


def _truncated(x: Array, y: Array) -> Array:
    return np.trunc(x.astype(np.float64) / y).astype(x.dtype)


def _erf(x: Array) -> Array:
    return np.array([math.erf(each) for each in x.tolist()], x.dtype)


def _away(x: Array) -> Array:
    return np.where(np.abs(x) % 1 == 0.5, x + np.sign(x) * np.float32(0.5), np.rint(x))


UNARY: list[tuple[str, Callable[[Array], Array], Array]] = [
    ("abs", np.abs, F),
    ("cbrt", np.cbrt, F),
    ("ceil", np.ceil, F),
    ("cosine", np.cos, F),
    ("exponential", np.exp, UNIT),
    ("exponential_minus_one", np.expm1, UNIT),
    ("floor", np.floor, F),
    ("log", np.log, POSITIVE),
    ("log_plus_one", np.log1p, POSITIVE),
    ("logistic", lambda x: 1 / (1 + np.exp(-x)), F),
    ("negate", np.negative, F),
    ("negate", np.negative, INTEGERS),
    ("not", np.invert, INTEGERS),
    ("not", np.invert, INTEGERS.astype(np.uint8)),
    ("not", np.logical_not, B),
    ("popcnt", lambda x: np.bitwise_count(x.view(np.uint32)).astype(x.dtype), INTEGERS),
    ("popcnt", lambda x: np.bitwise_count(x).astype(x.dtype), INTEGERS.astype(np.uint8)),
    (
        "count_leading_zeros",
        lambda x: np.array([32 - int(each).bit_length() for each in x.view(np.uint32)], x.dtype),
        INTEGERS,
    ),
    ("round_nearest_afz", _away, F),
    ("round_nearest_even", np.rint, F),
    ("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE),
    ("sign", np.sign, F),
    ("sign", np.sign, INTEGERS),
    ("sign", np.sign, INTEGERS.astype(np.uint8)),
    ("sine", np.sin, F),
    ("sqrt", np.sqrt, POSITIVE),
    ("tan", np.tan, UNIT),
    ("tanh", np.tanh, F),
]

CHLO: list[tuple[str, Callable[[Array], Array], Array]] = [
    ("acos", np.arccos, UNIT),
    ("acosh", np.arccosh, POSITIVE + 1),
    ("asin", np.arcsin, UNIT),
    ("asinh", np.arcsinh, F),
    ("atan", np.arctan, F),
    ("atanh", np.arctanh, UNIT),
    ("cosh", np.cosh, UNIT),
    ("erf", _erf, F),
    ("erfc", lambda x: 1 - _erf(x.astype(np.float64)).astype(np.float32), UNIT),
    ("sinh", np.sinh, UNIT),
    ("square", np.square, F),
]

BINARY: list[tuple[str, Callable[[Array, Array], Array], Array, Array]] = [
    ("add", np.add, F, F[::-1]),
    ("add", np.logical_or, B, C),
    ("and", np.bitwise_and, INTEGERS, OTHERS),
    ("and", np.bitwise_and, INTEGERS.view(np.uint32), OTHERS.view(np.uint32)),
    ("and", np.bitwise_and, INTEGERS.astype(np.uint8), OTHERS.astype(np.uint8)),
    ("and", np.logical_and, B, C),
    ("atan2", np.arctan2, F, POSITIVE),
    ("divide", np.divide, F, POSITIVE),
    ("divide", _truncated, INTEGERS, OTHERS),
    ("divide", _truncated, INTEGERS.astype(np.int8), OTHERS.astype(np.int8)),
    ("divide", np.floor_divide, INTEGERS.view(np.uint32), np.abs(OTHERS).view(np.uint32)),
    ("maximum", np.maximum, F, F[::-1]),
    ("maximum", np.maximum, INTEGERS, OTHERS),
    ("maximum", np.logical_or, B, C),
    ("minimum", np.minimum, INTEGERS.astype(np.uint8), OTHERS.astype(np.uint8)),
    ("multiply", np.multiply, F, F[::-1]),
    ("multiply", np.logical_and, B, C),
    ("or", np.bitwise_or, INTEGERS, OTHERS),
    ("or", np.bitwise_or, INTEGERS.view(np.uint32), OTHERS.view(np.uint32)),
    ("or", np.logical_or, B, C),
    ("power", np.power, POSITIVE, F),
    ("remainder", np.fmod, F, F[::-1] + np.float32(0.25)),
    ("remainder", np.fmod, INTEGERS, OTHERS),
    ("remainder", np.fmod, INTEGERS.astype(np.int8), OTHERS.astype(np.int8)),
    ("remainder", np.fmod, INTEGERS.view(np.uint32), np.abs(OTHERS).view(np.uint32)),
    ("subtract", np.subtract, F, POSITIVE),
    ("xor", np.bitwise_xor, INTEGERS, OTHERS),
    ("xor", np.logical_xor, B, C),
]


def _close(found: Array, expected: Array) -> bool:
    if expected.dtype.kind in "biu":
        return found.dtype == expected.dtype and bool((found == expected).all())
    return found.dtype == expected.dtype and np.allclose(found, expected, rtol=2e-6, atol=2e-6, equal_nan=True)


def _name(value: object) -> str:
    return value if isinstance(value, str) else value.dtype.name if isinstance(value, np.ndarray) else ""


@pytest.mark.parametrize(("name", "function", "x"), UNARY, ids=_name)
def test_ops_of_one_operand(name: str, function: Callable[[Array], Array], x: Array) -> None:
    kind = type_of(x)
    text = program(f"    %0 = stablehlo.{name} %a : {kind}\n    return %0 : {kind}", [kind], [kind])
    with np.errstate(all="ignore"):
        assert _close(results(text, x)[0], function(x))


@pytest.mark.parametrize(("name", "function", "x"), CHLO, ids=_name)
@pytest.mark.parametrize("form", ["op", "composite", "call"])
def test_functions_of_chlo_in_each_form(form: str, name: str, function: Callable[[Array], Array], x: Array) -> None:
    kind = type_of(x)
    if form == "call":
        op = f'"stablehlo.custom_call"(%a) <{{call_target_name = "mhlo.{name}"}}> {{mhlo.attributes = {{}}}}'
        op = f"{op} : ({kind}) -> {kind}"
    elif form == "composite":
        op = f'stablehlo.composite "chlo.{name}" %a {{decomposition = @impl}} : ({kind}) -> {kind}'
    else:
        op = f'"chlo.{name}"(%a) : ({kind}) -> {kind}'
    text = program(f"    %0 = {op}\n    return %0 : {kind}", [kind], [kind])
    wrong = f"  func.func private @impl(%a: {kind}) -> {kind} {{\n    return %a : {kind}\n  }}\n}}\n"
    assert _close(results(text[:-2] + wrong, x)[0], function(x))


@pytest.mark.parametrize(("name", "function", "x", "y"), BINARY, ids=_name)
def test_ops_of_two_operands(name: str, function: Callable[[Array, Array], Array], x: Array, y: Array) -> None:
    kind = type_of(x)
    text = program(f"    %0 = stablehlo.{name} %a, %b : {kind}\n    return %0 : {kind}", [kind, kind], [kind])
    with np.errstate(all="ignore"):
        assert _close(results(text, x, y)[0], function(x, y))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8])
def test_integers_are_divided_by_zero_as_xla_does(dtype: type) -> None:
    x: Array = np.array([7, 6, 3, 0], dtype)
    kind = type_of(x)
    body = f"""    %0 = stablehlo.divide %a, %b : {kind}
    %1 = stablehlo.remainder %a, %b : {kind}
    return %0, %1 : {kind}, {kind}"""
    divisors: Array = np.array([2, 0, 3, 0], dtype)
    quotient, rest = results(program(body, [kind, kind], [kind, kind]), x, divisors)
    ones = int(np.array(-1).astype(dtype))
    assert quotient.tolist() == [3, ones, 1, ones]
    assert rest.tolist() == [1, 6, 0, 0]


def test_divisions_by_constants_are_one_operator() -> None:
    body = """    %c = stablehlo.constant dense<3> : tensor<4xi32>
    %0 = stablehlo.divide %a, %c : tensor<4xi32>
    return %0 : tensor<4xi32>"""
    assert operators(convert(program(body, ["tensor<4xi32>"], ["tensor<4xi32>"]))) == {"DIV": 1}


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.uint8])
@pytest.mark.parametrize("name", ["shift_left", "shift_right_arithmetic", "shift_right_logical"])
def test_shifts_by_all_bits_leave_none_or_the_sign(name: str, dtype: type) -> None:
    x: Array = INTEGERS.astype(dtype)
    places: Array = SHIFTS.astype(dtype)
    width = 8 * x.dtype.itemsize
    expected = []
    for each, place in zip(x.view(f"u{width // 8}").tolist(), places.view(f"u{width // 8}").tolist(), strict=True):
        signed = each - (each >> (width - 1) << width)
        bits = {
            "shift_left": each << place if place < width else 0,
            "shift_right_arithmetic": signed >> min(place, width - 1),
            "shift_right_logical": each >> place if place < width else 0,
        }[name]
        expected.append(bits & ((1 << width) - 1))
    kind = type_of(x)
    text = program(f"    %0 = stablehlo.{name} %a, %b : {kind}\n    return %0 : {kind}", [kind, kind], [kind])
    assert results(text, x, places)[0].view(f"u{width // 8}").tolist() == expected


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (F, F[::-1]),
        (INTEGERS, OTHERS),
        (INTEGERS.view(np.uint32), OTHERS.view(np.uint32)),
        (INTEGERS.astype(np.uint8), OTHERS.astype(np.uint8)),
        (B, C),
    ],
    ids=_name,
)
def test_comparisons(x: Array, y: Array) -> None:
    functions = {"EQ": np.equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}
    functions["NE"] = np.not_equal
    kind = type_of(x)
    result = f"tensor<{x.size}xi1>"
    for direction, function in functions.items():
        op = f"stablehlo.compare {direction}, %a, %b : ({kind}, {kind}) -> {result}"
        text = program(f"    %0 = {op}\n    return %0 : {result}", [kind, kind], [result])
        assert results(text, x, y)[0].tolist() == function(x, y).tolist(), direction


def test_total_order_tells_zeros_and_nan_apart() -> None:
    x = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    kind, result = "tensor<7xf32>", "tensor<7xi1>"
    op = f"stablehlo.compare LT, %a, %b, TOTALORDER : ({kind}, {kind}) -> {result}"
    text = program(f"    %0 = {op}\n    return %0 : {result}", [kind, kind], [result])
    assert results(text, x[:-1], x[1:])[0].tolist() == [True] * 7
    assert results(text, x[1:], x[:-1])[0].tolist() == [False] * 7


def test_clamp_select_and_finite() -> None:
    body = """    %low = stablehlo.constant dense<-1.0> : tensor<f32>
    %high = stablehlo.constant dense<2.0> : tensor<f32>
    %0 = stablehlo.clamp %low, %a, %high : (tensor<f32>, tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.select %b, %a, %0 : (tensor<i1>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
    %2 = stablehlo.is_finite %a : (tensor<5xf32>) -> tensor<5xi1>
    return %0, %1, %2 : tensor<5xf32>, tensor<5xf32>, tensor<5xi1>"""
    kinds = ["tensor<5xf32>", "tensor<5xf32>", "tensor<5xi1>"]
    found = results(program(body, ["tensor<5xf32>", "tensor<i1>"], kinds), NAN, np.array(True))
    assert found[0][1:].tolist() == [2, -1, 0, 1]
    assert np.array_equal(found[1], NAN, equal_nan=True)
    assert found[2].tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_])
def test_conversions_truncate(dtype: type) -> None:
    x = np.abs(F) if dtype is np.uint8 else F
    kind, other = type_of(x), type_of(x.astype(dtype))
    text = program(f"    %0 = stablehlo.convert %a : ({kind}) -> {other}\n    return %0 : {other}", [kind], [other])
    assert results(text, x)[0].tolist() == x.astype(dtype).tolist()


@pytest.mark.parametrize(("exponent", "mantissa"), [(8, 7), (5, 10), (8, 23), (4, 3)])
def test_reduced_precision_rounds_to_even(exponent: int, mantissa: int) -> None:
    x = np.array([1, 1.00390625, 1.01171875, -3.14159, 65504, 65520, 1e-5, 1e30, 0, np.inf, np.nan], np.float32)
    op = f"stablehlo.reduce_precision %a, format = e{exponent}m{mantissa} : tensor<11xf32>"
    text = program(f"    %0 = {op}\n    return %0 : tensor<11xf32>", ["tensor<11xf32>"], ["tensor<11xf32>"])
    with np.errstate(all="ignore"):
        expected = _reduced(x, exponent, mantissa)
    assert np.array_equal(results(text, x)[0], expected, equal_nan=True)


def _reduced(x: Array, exponent: int, mantissa: int) -> Array:
    step = 2.0 ** (np.floor(np.log2(np.where(np.isfinite(x) & (x != 0), np.abs(x), 1))) - mantissa)
    expected = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    bias = 2 ** (exponent - 1) - 1
    expected = np.where(np.abs(expected) >= 2.0 ** (bias + 1), np.sign(expected) * np.inf, expected)
    return np.where(np.abs(expected) < 2.0 ** (1 - bias), 0, expected).astype(np.float32)


def test_bits_are_reinterpreted() -> None:
    body = """    %0 = stablehlo.bitcast_convert %a : (tensor<5xf32>) -> tensor<5xi32>
    %1 = stablehlo.bitcast_convert %a : (tensor<5xf32>) -> tensor<5x4xui8>
    return %0, %1 : tensor<5xi32>, tensor<5x4xui8>"""
    found = results(program(body, ["tensor<5xf32>"], ["tensor<5xi32>", "tensor<5x4xui8>"]), NAN)
    assert found[0].tolist() == NAN.view(np.int32).tolist()
    assert found[1].tolist() == NAN.view(np.uint8).reshape(5, 4).tolist()


def test_complex_numbers_are_computed_by_parts() -> None:
    complex_type = "tensor<4xcomplex<f32>>"
    body = f"""    %0 = stablehlo.complex %a, %b : {complex_type}
    %1 = stablehlo.complex %b, %a : {complex_type}
    %2 = stablehlo.multiply %0, %1 : {complex_type}
    %3 = stablehlo.divide %2, %0 : {complex_type}
    %4 = stablehlo.add %3, %0 : {complex_type}
    %5 = stablehlo.exponential %4 : {complex_type}
    %6 = stablehlo.real %5 : ({complex_type}) -> tensor<4xf32>
    %7 = stablehlo.imag %5 : ({complex_type}) -> tensor<4xf32>
    %8 = stablehlo.abs %5 : ({complex_type}) -> tensor<4xf32>
    return %6, %7, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>"""
    x, y = UNIT[:4] + np.float32(0.1), UNIT[5:9]
    found = results(program(body, ["tensor<4xf32>"] * 2, ["tensor<4xf32>"] * 3), x, y)
    expected = np.exp((y + 1j * x) + (x + 1j * y))
    assert np.allclose(found, [expected.real, expected.imag, abs(expected)], rtol=1e-5)


def test_constants_of_equal_elements_are_scalars() -> None:
    body = """    %c = stablehlo.constant dense<0.0> : tensor<2x3xf32>
    %six = stablehlo.constant dense<6.0> : tensor<2x3xf32>
    %0 = stablehlo.maximum %a, %c : tensor<2x3xf32>
    %1 = stablehlo.minimum %0, %six : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>"""
    assert operators(convert(program(body, ["tensor<2x3xf32>"], ["tensor<2x3xf32>"]))) == {"RELU6": 1}


def test_disjoint_bits_are_combined_by_one_operator() -> None:
    body = """    %left = stablehlo.constant dense<13> : tensor<4xui32>
    %right = stablehlo.constant dense<19> : tensor<4xui32>
    %0 = stablehlo.shift_left %a, %left : tensor<4xui32>
    %1 = stablehlo.shift_right_logical %a, %right : tensor<4xui32>
    %2 = stablehlo.or %0, %1 : tensor<4xui32>
    return %2 : tensor<4xui32>"""
    text = program(body, ["tensor<4xui32>"], ["tensor<4xui32>"])
    x = np.array([1, 2**31, 2**32 - 1, 0x12345678], np.uint32)
    assert operators(convert(text)) == {"MUL": 1, "RIGHT_SHIFT": 1, "BITWISE_XOR": 1}
    assert results(text, x)[0].tolist() == ((x << np.uint32(13)) | (x >> np.uint32(19))).tolist()


def test_products_sums_and_joins_of_complex_numbers() -> None:
    kind, square, long = (f"tensor<{sizes}xcomplex<f32>>" for sizes in ("4x4", "4", "8x4"))
    body = f"""    %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
    %0 = stablehlo.complex %a, %b : {kind}
    %1 = stablehlo.complex %b, %a : {kind}
    %2 = stablehlo.dot %0, %1 : ({kind}, {kind}) -> {kind}
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] :
      ({kind}, tensor<complex<f32>>) -> {square}
    %4 = stablehlo.concatenate %2, %0, dim = 0 : ({kind}, {kind}) -> {long}
    %5 = stablehlo.imag %3 : ({square}) -> tensor<4xf32>
    %6 = stablehlo.real %4 : ({long}) -> tensor<8x4xf32>
    return %5, %6 : tensor<4xf32>, tensor<8x4xf32>"""
    a, b = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    text = program(body, ["tensor<4x4xf32>"] * 2, ["tensor<4xf32>", "tensor<8x4xf32>"])
    product = (a + 1j * b) @ (b + 1j * a)
    sums, joined = results(text, a, b)
    np.testing.assert_allclose(sums, product.sum(1).imag, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(joined, np.concatenate([product.real, a]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("direction", "limit"), [("GT", 0), ("GE", 1), ("EQ", 0), ("LT", 1)])
def test_sizes_are_positive_in_modules_of_jax_alone(direction: str, limit: int) -> None:
    body = f"""    %d = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %c = stablehlo.constant dense<{limit}> : tensor<i32>
    %0 = stablehlo.compare {direction}, %d, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %0 : tensor<i1>"""
    text = program(body, ["tensor<?x2xf32>"], ["tensor<i1>"])
    content = convert(text)
    found = [bool(run(content, [np.zeros((size, 2), np.float32)])[0]) for size in (0, 1, 3)]
    of_size = {"GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "LT": np.less}[direction]
    assert found == of_size([0, 1, 3], limit).tolist()
    assert not operators(convert(of_jax(text)))


def test_a_size_that_may_be_zero_is_divided_by_as_xla_does() -> None:
    body = """    %d = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %c = stablehlo.constant dense<7> : tensor<i32>
    %0 = stablehlo.divide %c, %d : tensor<i32>
    %1 = stablehlo.remainder %c, %d : tensor<i32>
    return %0, %1 : tensor<i32>, tensor<i32>"""
    content = convert(program(body, ["tensor<?x2xf32>"], ["tensor<i32>", "tensor<i32>"]))
    for size, expected in ((0, [-1, 7]), (3, [2, 1])):
        assert sorted(run(content, [np.zeros((size, 2), np.float32)])) == sorted(expected)
