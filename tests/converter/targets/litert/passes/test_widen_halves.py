"""The pass `widen-halves`: what is computed as `f32`, and what keeps its halves."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, operators, program
from tests.support.litert import run

_RANDOM = np.random.default_rng(0)
_X = _RANDOM.normal(size=(3, 4)).astype(np.float32)
_W = _RANDOM.normal(size=(4, 5)).astype(np.float16)


def _half_constant(array: np.ndarray) -> str:
    kind = f"tensor<{array.shape[0]}x{array.shape[1]}xf16>"
    return f'stablehlo.constant dense<"0x{array.tobytes().hex().upper()}"> : {kind}'


def test_between_ops_nothing_is_rounded() -> None:
    body = f"""
        %w = {_half_constant(_W)}
        %h = stablehlo.convert %a : (tensor<3x4xf32>) -> tensor<3x4xf16>
        %p = stablehlo.dot %h, %w : (tensor<3x4xf16>, tensor<4x5xf16>) -> tensor<3x5xf16>
        %r = stablehlo.reshape %p : (tensor<3x5xf16>) -> tensor<5x3xf16>
        %t = stablehlo.tanh %r : tensor<5x3xf16>
        %f = stablehlo.convert %t : (tensor<5x3xf16>) -> tensor<5x3xf32>
        return %f : tensor<5x3xf32>"""
    content = convert(program(body, ["tensor<3x4xf32>"], ["tensor<5x3xf32>"]))
    assert operators(content) == {"FULLY_CONNECTED": 1, "RESHAPE": 1, "TANH": 1}
    expected = np.tanh((_X @ _W.astype(np.float32)).reshape(5, 3))
    np.testing.assert_allclose(run(content, [_X])[0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_inputs_and_outputs_keep_their_types(kind: str) -> None:
    dtype = np.dtype(np.float16 if kind == "f16" else ml_dtypes.bfloat16)
    body = f"""
        %p = stablehlo.multiply %a, %a : tensor<3x4x{kind}>
        %t = stablehlo.tanh %p : tensor<3x4x{kind}>
        return %a, %t : tensor<3x4x{kind}>, tensor<3x4x{kind}>"""
    content = convert(program(body, [f"tensor<3x4x{kind}>"], [f"tensor<3x4x{kind}>"] * 2))
    assert operators(content).get("CAST") == 2
    x = _X.astype(dtype)
    same, found = run(content, [x])
    assert same.dtype == found.dtype == dtype
    np.testing.assert_array_equal(same, x)
    wanted = np.tanh(x.astype(np.float32) ** 2)
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=1e-2 if kind == "bf16" else 1e-3)


def test_halves_that_are_only_copied_stay() -> None:
    body = """
        %c = stablehlo.concatenate %a, %a, dim = 1 : (tensor<3x4xf16>, tensor<3x4xf16>) -> tensor<3x8xf16>
        %t = stablehlo.transpose %c, dims = [1, 0] : (tensor<3x8xf16>) -> tensor<8x3xf16>
        return %t : tensor<8x3xf16>"""
    content = convert(program(body, ["tensor<3x4xf16>"], ["tensor<8x3xf16>"]))
    assert "CAST" not in operators(content)
    x = _X.astype(np.float16)
    np.testing.assert_array_equal(run(content, [x])[0], np.concatenate([x, x], 1).T)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_that_are_only_reversed_stay(kind: str) -> None:
    body = f"""
        %r = stablehlo.reverse %a, dims = [1] : tensor<3x4x{kind}>
        return %r : tensor<3x4x{kind}>"""
    content = convert(program(body, [f"tensor<3x4x{kind}>"], [f"tensor<3x4x{kind}>"]))
    assert operators(content) == {"REVERSE_V2": 1}
    x = _X.astype(np.float16 if kind == "f16" else ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run(content, [x])[0], x[:, ::-1])


def test_a_model_rounds_by_itself() -> None:
    body = """
        %h = stablehlo.convert %a : (tensor<3x4xf32>) -> tensor<3x4xf16>
        %f = stablehlo.convert %h : (tensor<3x4xf16>) -> tensor<3x4xf32>
        return %f : tensor<3x4xf32>"""
    content = convert(program(body, ["tensor<3x4xf32>"], ["tensor<3x4xf32>"]))
    np.testing.assert_array_equal(run(content, [_X])[0], _X.astype(np.float16))


def test_bits_are_those_of_halves() -> None:
    body = """
        %p = stablehlo.add %a, %a : tensor<3x4xf16>
        %b = stablehlo.bitcast_convert %p : (tensor<3x4xf16>) -> tensor<3x4xi16>
        return %b, %p : tensor<3x4xi16>, tensor<3x4xf16>"""
    x = _X.astype(np.float16)
    content = convert(program(body, ["tensor<3x4xf16>"], ["tensor<3x4xi16>", "tensor<3x4xf16>"]))
    bits, doubled = run(content, [x])
    np.testing.assert_array_equal(doubled, x + x)
    np.testing.assert_array_equal(bits, (x + x).view(np.int16))


def test_rows_of_tables_are_looked_up_as_halves() -> None:
    table = _RANDOM.normal(size=(9, 4)).astype(np.float16)
    body = f"""
        %w = {_half_constant(table)}
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %s = stablehlo.dynamic_slice %w, %a, %zero, sizes = [1, 4]
            : (tensor<9x4xf16>, tensor<i32>, tensor<i32>) -> tensor<1x4xf16>
        %t = stablehlo.tanh %s : tensor<1x4xf16>
        return %t : tensor<1x4xf16>"""
    content = convert(program(body, ["tensor<i32>"], ["tensor<1x4xf16>"]))
    found = run(content, [np.array(7, np.int32)])[0]
    np.testing.assert_allclose(found, np.tanh(table[7:8].astype(np.float32)), rtol=1e-3)


def test_loops_compute_in_floats() -> None:
    body = """
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %n = stablehlo.constant dense<5> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %0:2 = "stablehlo.while"(%zero, %a) ({
        ^bb0(%i: tensor<i32>, %y: tensor<3x4xf16>):
          %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }, {
        ^bb0(%i: tensor<i32>, %y: tensor<3x4xf16>):
          %next = stablehlo.add %i, %one : tensor<i32>
          %s = stablehlo.sine %y : tensor<3x4xf16>
          stablehlo.return %next, %s : tensor<i32>, tensor<3x4xf16>
        }) : (tensor<i32>, tensor<3x4xf16>) -> (tensor<i32>, tensor<3x4xf16>)
        return %0#1 : tensor<3x4xf16>"""
    content = convert(program(body, ["tensor<3x4xf16>"], ["tensor<3x4xf16>"]))
    assert operators(content) == {"CAST": 2, "WHILE": 1}
    x = _X.astype(np.float16)
    expected = x.astype(np.float32)
    for _ in range(5):
        expected = np.sin(expected)
    np.testing.assert_allclose(run(content, [x])[0], expected, rtol=1e-3)
