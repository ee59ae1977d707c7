"""Reductions over windows: poolings, running sums and the like, others by slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tests.converter.from_stablehlo.against_executor import check, numbers
from tests.converter.from_stablehlo.programs import convert, operators, program
from tests.converter.from_stablehlo.test_reductions import TYPES, body, init
from tests.support.litert import run


class Window(NamedTuple):
    """A reduction: the operand's shape, windows, padding, strides, the result's shape, the distance of elements."""

    x: tuple[int, ...]
    sizes: tuple[int, ...]
    pads: str
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    rates: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()


IMAGE = (2, 8, 7, 3)
NONE = "[0, 0]"
WINDOWS = {
    "valid": Window(IMAGE, (1, 2, 2, 1), f"{NONE}, {NONE}, {NONE}, {NONE}", (1, 2, 2, 1), (2, 4, 3, 3)),
    "same": Window(IMAGE, (1, 3, 3, 1), f"{NONE}, [0, 1], [1, 1], {NONE}", (1, 2, 2, 1), (2, 4, 4, 3)),
    "padded": Window(IMAGE, (1, 3, 3, 1), f"{NONE}, [2, 0], [0, 2], {NONE}", (1, 1, 1, 1), (2, 8, 7, 3)),
    "dilated": Window(IMAGE, (1, 2, 2, 1), f"{NONE}, [1, 1], {NONE}, {NONE}", (1, 1, 1, 1), (2, 8, 5, 3), (1, 2, 2, 1)),
    "with gaps": Window(
        IMAGE, (1, 2, 2, 1), f"{NONE}, {NONE}, {NONE}, {NONE}", (1, 1, 1, 1), (2, 14, 6, 3), (), (1, 2, 1, 1)
    ),
    "channels first": Window((2, 3, 8, 6), (1, 1, 2, 2), f"{NONE}, {NONE}, {NONE}, {NONE}", (1, 1, 2, 2), (2, 3, 4, 3)),
    "lines": Window((2, 9, 4), (1, 3, 1), f"{NONE}, [1, 1], {NONE}", (1, 2, 1), (2, 5, 4)),
    "vectors": Window((2, 9), (1, 3), f"{NONE}, {NONE}", (1, 1), (2, 7)),
    "volumes": Window(
        (2, 4, 6, 5, 3), (1, 2, 2, 2, 1), f"{NONE}, {NONE}, {NONE}, [0, 1], {NONE}", (1, 2, 2, 2, 1), (2, 2, 3, 3, 3)
    ),
    "tiles": Window((2, 8, 6, 3), (1, 2, 3, 1), f"{NONE}, {NONE}, {NONE}, {NONE}", (1, 2, 3, 1), (2, 4, 2, 3)),
    "tiles of volumes": Window(
        (2, 4, 6, 4, 3), (1, 2, 3, 2, 1), f"{NONE}, {NONE}, {NONE}, {NONE}, {NONE}", (1, 2, 3, 2, 1), (2, 2, 2, 2, 3)
    ),
    "dilated in steps": Window(
        IMAGE, (1, 2, 2, 1), f"{NONE}, [1, 0], {NONE}, {NONE}", (1, 2, 2, 1), (2, 4, 3, 3), (1, 2, 2, 1)
    ),
    "batches and channels": Window((4, 6, 6), (2, 1, 2), f"{NONE}, {NONE}, {NONE}", (2, 1, 2), (2, 6, 3)),
    "long": Window((2, 30), (1, 11), f"{NONE}, [1, 0]", (1, 2), (2, 11)),
    "running": Window((2, 7, 3), (1, 7, 1), f"{NONE}, [6, 0], {NONE}", (1, 1, 1), (2, 7, 3)),
    "running back": Window((2, 7, 3), (1, 7, 1), f"{NONE}, [0, 6], {NONE}", (1, 1, 1), (2, 7, 3)),
    "running long": Window((2, 150), (1, 150), f"{NONE}, [149, 0]", (1, 1), (2, 150)),
}


def op_of(window: Window, name: str, dtype: str) -> str:
    rank = len(window.x)
    lists = {
        "base_dilations": window.gaps,
        "window_dilations": window.rates,
        "window_dimensions": window.sizes,
        "window_strides": window.strides,
    }
    properties = {key: f"array<i64: {', '.join(map(str, values))}>" for key, values in lists.items() if values}
    properties["padding"] = f"dense<[{window.pads}]> : tensor<{rank}x2xi64>"
    listed = ", ".join(f"{key} = {value}" for key, value in properties.items())
    return f'"stablehlo.reduce_window"(%a, %init) <{{{listed}}}> {body(name, TYPES[dtype])}'


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize("reducer", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str, reducer: str, dtype: str) -> None:
    window = WINDOWS[name]
    x = numbers(*window.x, dtype=dtype)
    if reducer == "multiply":
        x = np.sign(x).astype(dtype) + (x == 0).astype(dtype)
    check(op_of(window, reducer, dtype), [x], window.shape, dtype, init=init(reducer, dtype))


OPEN = {
    ("valid", "maximum"): {"MAX_POOL_2D": 1},
    ("same", "maximum"): {"MAX_POOL_2D": 1},
    ("valid", "add"): {"AVERAGE_POOL_2D": 1, "MUL": 1},
    ("running", "add"): {"CUMSUM": 1},
    ("running back", "add"): {"CUMSUM": 1},
}


@pytest.mark.parametrize(("name", "reducer"), OPEN)
def test_windows_of_an_open_batch(name: str, reducer: str) -> None:
    window = WINDOWS[name]
    wanted = OPEN[name, reducer]
    op = op_of(window, reducer, "float32")
    check(op, [numbers(*window.x)], window.shape, init=init(reducer, "float32"), wanted=wanted, is_open=True)


@pytest.mark.parametrize("name", ["same", "running"])
def test_other_initial_values(name: str) -> None:
    window = WINDOWS[name]
    op = op_of(window, "maximum", "float32")
    check(op, [numbers(*window.x)], window.shape, init=np.array(0.5, np.float32))


SELECTIONS = {name: WINDOWS[name] for name in ("valid", "same", "padded", "channels first", "lines", "vectors")} | {
    "tiles": Window(IMAGE, (1, 2, 7, 1), f"{NONE}, {NONE}, {NONE}, {NONE}", (1, 2, 7, 1), (2, 4, 1, 3))
}


def _selection(window: Window, direction: str) -> str:
    compared = f'"stablehlo.compare"(%l, %r) <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}>'
    scalar = "tensor<f32>"
    return f""""stablehlo.select_and_scatter"(%a, %b, %init) <{{
      window_dimensions = array<i64: {", ".join(map(str, window.sizes))}>,
      window_strides = array<i64: {", ".join(map(str, window.strides))}>,
      padding = dense<[{window.pads}]> : tensor<{len(window.sizes)}x2xi64>}}> ({{
      ^bb0(%l: {scalar}, %r: {scalar}):
        %chosen = {compared} : ({scalar}, {scalar}) -> tensor<i1>
        "stablehlo.return"(%chosen) : (tensor<i1>) -> ()
    }}, {{
      ^bb0(%l: {scalar}, %r: {scalar}):
        %sum = "stablehlo.add"(%l, %r) : ({scalar}, {scalar}) -> {scalar}
        "stablehlo.return"(%sum) : ({scalar}) -> ()
    }})"""


@pytest.mark.parametrize("direction", ["GE", "GT", "LE", "LT"])
@pytest.mark.parametrize("name", SELECTIONS)
def test_gradients_of_poolings(name: str, direction: str) -> None:
    window = SELECTIONS[name]
    x = np.round(numbers(*window.x))  # Windows with several largest elements.
    inputs = [x, numbers(*window.shape, seed=1)]
    check(_selection(window, direction), inputs, window.x, init=np.zeros((), np.float32))


def test_averages_of_an_open_image_are_one_pooling() -> None:
    kind, one = "tensor<1x?x?x2xf32>", "tensor<f32>"
    window = """
    %{name} = "stablehlo.reduce_window"({x}, %zero) <{{window_dimensions = array<i64: 1, 3, 3, 1>,
        padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>}}> ({{
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) : ({kind}, {one}) -> {kind}"""
    text = f"""    %zero = stablehlo.constant dense<0.0> : {one}
    %one = stablehlo.constant dense<1.0> : {one}
    %h = stablehlo.get_dimension_size %a, dim = 1 : ({kind}) -> tensor<i32>
    %w = stablehlo.get_dimension_size %a, dim = 2 : ({kind}) -> tensor<i32>
    %h1 = stablehlo.reshape %h : (tensor<i32>) -> tensor<1xi32>
    %w1 = stablehlo.reshape %w : (tensor<i32>) -> tensor<1xi32>
    %c1 = stablehlo.constant dense<1> : tensor<1xi32>
    %c2 = stablehlo.constant dense<2> : tensor<1xi32>
    %n = stablehlo.concatenate %c1, %h1, %w1, %c2, dim = 0
        : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %ones = stablehlo.dynamic_broadcast_in_dim %one, %n, dims = [] : ({one}, tensor<4xi32>) -> {kind}
    {window.format(name="total", x="%a", kind=kind, one=one)}
    {window.format(name="count", x="%ones", kind=kind, one=one)}
    %0 = stablehlo.divide %total, %count : {kind}
    return %0 : {kind}"""
    content = convert(program(text, [kind], [kind]))
    assert operators(content) == {"AVERAGE_POOL_2D": 1}
    for size in (4, 7):
        x = numbers(1, size, size, 2)
        (found,) = run(content, [x])
        corner = x[0, :2, :2].mean((0, 1))
        np.testing.assert_allclose(found[0, 0, 0], corner, rtol=1e-5)
        np.testing.assert_allclose(found[0, 1, 1], x[0, :3, :3].mean((0, 1)), rtol=1e-5)
