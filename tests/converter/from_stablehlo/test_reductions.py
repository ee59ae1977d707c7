"""Reductions of StableHLO: bodies, initial values, types, and positions of extremes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import check, numbers
from tests.converter.from_stablehlo.programs import convert, operators, program
from tests.support.litert import run
from tfconvert.schema.diagnostics import ConversionError

NEUTRAL = {"add": 0, "maximum": -np.inf, "minimum": np.inf, "multiply": 1, "and": -1, "or": 0, "xor": 0}
TYPES = {"float32": "f32", "int32": "i32", "int8": "i8", "uint8": "ui8", "bool": "i1"}


def body(name: str, kind: str) -> str:
    return f"""({{
    ^bb0(%x: tensor<{kind}>, %y: tensor<{kind}>):
      %1 = stablehlo.{name} %x, %y : tensor<{kind}>
      stablehlo.return %1 : tensor<{kind}>
    }})"""


def reduction(name: str, dtype: str, axes: str) -> str:
    return f'"stablehlo.reduce"(%a, %init) <{{dimensions = array<i64: {axes}>}}> {body(name, TYPES[dtype])}'


def init(name: str, dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array(name == "and")
    if dtype.startswith(("int", "uint")) and name in ("maximum", "minimum"):
        info = np.iinfo(dtype)
        return np.array(info.min if name == "maximum" else info.max, dtype)
    return np.array(NEUTRAL[name]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8"])
@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize(("axes", "shape"), [("2", (3, 4)), ("0, 2", (4,)), ("0, 1, 2", ())])
def test_numbers(name: str, dtype: str, axes: str, shape: tuple[int, ...]) -> None:
    x = abs(numbers(3, 4, 5, dtype="int32")).astype(dtype) if dtype == "uint8" else numbers(3, 4, 5, dtype=dtype)
    check(reduction(name, dtype, axes), [x], shape, dtype, init=init(name, dtype))


@pytest.mark.parametrize(("name", "dtype"), [("and", "bool"), ("or", "bool"), ("xor", "int32"), ("and", "int32")])
def test_bits(name: str, dtype: str) -> None:
    check(reduction(name, dtype, "1"), [numbers(3, 7, dtype=dtype)], (3,), dtype, init=init(name, dtype))


@pytest.mark.parametrize("name", ["add", "maximum"])
def test_other_initial_values(name: str) -> None:
    check(reduction(name, "float32", "1"), [numbers(3, 4)], (3,), init=np.array(0.5, np.float32), is_open=True)


EXTREME = """    %v = stablehlo.constant dense<{init}> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %i = stablehlo.iota dim = 1 : tensor<3x4xi32>
    %0:2 = "stablehlo.reduce"(%a, %i, %v, %c) <{{dimensions = array<i64: 1>}}> ({{
    ^bb0(%x: tensor<f32>, %p: tensor<i32>, %y: tensor<f32>, %q: tensor<i32>):
{body}
      stablehlo.return %best, %at : tensor<f32>, tensor<i32>
    }}) : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
    return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>"""
JAX = """      %1 = stablehlo.compare {order}, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.or %1, %2 : tensor<i1>
      %4 = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = stablehlo.and %4, %5 : tensor<i1>
      %7 = stablehlo.or %3, %6 : tensor<i1>
      %best = stablehlo.select %3, %x, %y : tensor<i1>, tensor<f32>
      %at = stablehlo.select %7, %p, %q : tensor<i1>, tensor<i32>"""
TORCH = """      %1 = stablehlo.compare {order}E, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %best = stablehlo.select %1, %x, %y : tensor<i1>, tensor<f32>
      %2 = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.minimum %p, %q : tensor<i32>
      %4 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<i32>
      %at = stablehlo.select %2, %3, %4 : tensor<i1>, tensor<i32>"""
TIES = np.array([[1, 3, 3, 2], [0, 0, 0, 0], [-5, -7, -5, -7]], np.float32)


def extreme(text: str, order: str) -> str:
    lowest = "0xFF800000" if order == "G" else "0x7F800000"
    filled = text.format(order=order if "E," in text else f"{order}T")
    results = ["tensor<3xf32>", "tensor<3xi32>"]
    return program(EXTREME.format(init=lowest, body=filled), ["tensor<3x4xf32>"], results)


@pytest.mark.parametrize("text", [JAX, TORCH], ids=["jax", "torch"])
@pytest.mark.parametrize("order", ["G", "L"])
def test_positions_of_extremes(text: str, order: str) -> None:
    filled = text.replace("{order}E", f"{order}E") if text is TORCH else text.replace("{order}", f"{order}T")
    content = convert(extreme(filled, order))
    best, at = run(content, [TIES])
    largest = order == "G"
    assert best.tolist() == (TIES.max(1) if largest else TIES.min(1)).tolist()
    assert at.tolist() == (TIES.argmax(1) if largest else TIES.argmin(1)).tolist()
    name = "MAX" if largest else "MIN"
    assert operators(content) == {f"ARG_{name}": 1, f"REDUCE_{name}": 1}


def test_the_last_extreme_is_refused() -> None:
    last = JAX.replace("LT, %p", "GT, %p").replace("{order}", "GT")
    with pytest.raises(ConversionError, match="its body isn't one op"):
        convert(extreme(last, "G"))


def test_another_body_is_refused() -> None:
    op = reduction("subtract", "float32", "1")
    with pytest.raises(ConversionError, match="its body isn't one op that TensorFlow reduces by"):
        check(op, [numbers(3, 4)], (3,), init=np.array(0, np.float32))


def test_open_means_cost_one_operator() -> None:
    text = """    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
    %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.divide %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>"""
    content = convert(program(text, ["tensor<?x4xf32>"], ["tensor<4xf32>"]))
    assert operators(content) == {"MEAN": 1}
    x = numbers(6, 4)
    np.testing.assert_allclose(run(content, [x])[0], x.mean(0), rtol=1e-5)
