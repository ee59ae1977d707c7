"""Activations that are fused, and those that are recognised."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, check, i32, random
from tests.support.litert import RunTFLite
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value

SHAPE = (1, 4, 4, 2)
POOL: dict[str, Any] = {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}


@pytest.mark.parametrize("activation", ["relu", "relu6", "relu_n1_to_1"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_binary_ops_take_activations(name: str, activation: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    graph.returns(graph.op(activation, graph.op(name, *graph.inputs)))
    check(graph, [f"{name}{{{activation.upper()}}}"], run_tflite)


@pytest.mark.parametrize("name", ["max_pool_2d", "average_pool_2d", "l2_pool_2d"])
def test_pools_take_activations(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("relu6", graph.op(name, graph.inputs[0], shape=(1, 2, 2, 2), **POOL)))
    check(graph, [f"{name}{{RELU6}}"], run_tflite)


@pytest.mark.parametrize("activation", ["relu", "relu6", "relu_n1_to_1"])
def test_convolutions_take_activations(activation: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    value = graph.op(activation, graph.conv(graph.inputs[0], random(2, 3, 3, 2)))
    options: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    value = graph.op("depthwise_conv_2d", value, random(1, 3, 3, 2), random(2), **options)
    graph.returns(graph.op(activation, value))
    label = f"{{{activation.upper()}}}"
    check(graph, [f"conv_2d{label}", f"depthwise_conv_2d{label}"], run_tflite)


def test_concatenation_takes_no_activation(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    graph.returns(graph.op("relu", graph.op("concatenation", *graph.inputs, shape=(1, 4, 4, 4), axis=3)))
    check(graph, ["concatenation", "relu"], run_tflite)


def test_a_second_user_keeps_the_activation_apart(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    value = graph.op("add", *graph.inputs)
    graph.returns(graph.op("relu", value), value)
    check(graph, ["add", "relu"], run_tflite)


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [("relu", "relu6", "{RELU6}"), ("relu6", "relu", "{RELU6}"), ("relu", "relu", "{RELU}")],
)
def test_activations_join(first: str, second: str, joined: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    graph.returns(graph.op(second, graph.op(first, graph.op("add", *graph.inputs))))
    check(graph, [f"add{joined}"], run_tflite)


def test_activations_that_do_not_join_stay(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    graph.returns(graph.op("relu", graph.op("relu_n1_to_1", graph.op("add", *graph.inputs))))
    check(graph, ["add{RELU_N1_TO_1}", "relu"], run_tflite)


def _product(graph: Graph, factors: list[Value | float], nested_left: bool) -> Value:
    first, second, third = factors
    values = [value if isinstance(value, Value) else graph.constant(value) for value in (first, second, third)]
    if nested_left:
        return graph.op("mul", graph.op("mul", values[0], values[1], shape=SHAPE), values[2])
    return graph.op("mul", values[0], graph.op("mul", values[1], values[2], shape=SHAPE), shape=SHAPE)


@pytest.mark.parametrize("nested_left", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_hard_swish_in_any_order(order: tuple[int, ...], nested_left: bool, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    gate = graph.op("relu6", graph.op("add", x, 3.0))
    factors = (x, gate, 1 / 6)
    graph.returns(_product(graph, [factors[index] for index in order], nested_left))
    check(graph, ["hard_swish"], run_tflite)


def test_hard_swish_with_a_division(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    graph.returns(graph.op("mul", x, graph.op("div", graph.op("relu6", graph.op("add", x, 3.0)), 6.0)))
    check(graph, ["hard_swish"], run_tflite)


@pytest.mark.parametrize(("shift", "factor"), [(2.0, 1 / 6), (3.0, 1 / 5)])
def test_what_is_nearly_hard_swish_stays(shift: float, factor: float, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    gate = graph.op("mul", graph.op("relu6", graph.op("add", x, shift)), factor)
    graph.returns(graph.op("mul", x, gate))
    check(graph, ["add{RELU6}", "mul", "mul"], run_tflite)


def test_hard_sigmoid_of_something_else_stays(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    gate = graph.op("mul", graph.op("relu6", graph.op("add", graph.inputs[1], 3.0)), 1 / 6)
    graph.returns(graph.op("mul", graph.inputs[0], gate))
    check(graph, ["add{RELU6}", "mul", "mul"], run_tflite)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((("maximum", 0.0),), "relu"),
        ((("maximum", 0.0), ("minimum", 6.0)), "relu6"),
        ((("minimum", 6.0), ("maximum", 0.0)), "relu6"),
        ((("minimum", 1.0), ("maximum", -1.0)), "relu_n1_to_1"),
        ((("maximum", -1.0), ("minimum", 1.0)), "relu_n1_to_1"),
    ],
)
def test_limits_are_activations(steps: tuple[tuple[str, float], ...], expected: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    value = graph.inputs[0]
    for name, limit in steps:
        value = graph.op(name, value, limit)
    graph.returns(value)
    check(graph, [expected], run_tflite)


def test_limits_after_an_op_are_fused(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    graph.returns(graph.op("minimum", graph.op("relu", graph.op("add", *graph.inputs)), 6.0))
    check(graph, ["add{RELU6}"], run_tflite)


@pytest.mark.parametrize("limit", [5.0, -6.0])
def test_other_limits_stay(limit: float, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("minimum", graph.op("relu", graph.inputs[0]), limit))
    check(graph, ["relu", "minimum"], run_tflite)


@pytest.mark.parametrize("steps", [("relu", "minimum"), ("maximum", "minimum"), ("minimum", "maximum")])
def test_limits_of_0_and_1_stay_where_delegates_take_them(steps: tuple[str, str], run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    value = graph.inputs[0]
    for name in steps:
        value = graph.op(name, value, *({"maximum": [0.0], "minimum": [1.0]}.get(name, [])))
    graph.returns(value)
    check(graph, ["relu" if name == "maximum" else name for name in steps], run_tflite)


@pytest.mark.parametrize("swapped", [False, True])
def test_leaky_relu(swapped: bool, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    values = [x, graph.op("mul", x, 0.25)]
    graph.returns(graph.op("maximum", *(values[::-1] if swapped else values)))
    check(graph, ["leaky_relu"], run_tflite)
    assert tfl.attribute(graph.ops[0], "alpha") == 0.25


@pytest.mark.parametrize("alpha", [1.5, -0.25])
def test_other_slopes_are_no_leaky_relu(alpha: float, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    graph.returns(graph.op("maximum", x, graph.op("mul", x, alpha)))
    check(graph, ["mul", "maximum"], run_tflite)


@pytest.mark.parametrize("shape", [(4, 4, 2), (1, 1, 2), (1, 4, 4, 2), (2,)])
def test_prelu(shape: tuple[int, ...], run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    negative = graph.op("mul", graph.op("relu", graph.op("neg", x)), random(*shape))
    graph.returns(graph.op("add", graph.op("relu", x), negative))
    check(graph, ["prelu"], run_tflite)


def _minus_relu(graph: Graph, x: Value) -> Value:
    return graph.op("neg", graph.op("relu", graph.op("neg", x)))


# Spellings of min(x, 0).
_CUT: dict[str, Callable[[Graph, Value], Value]] = {
    "minus relu": _minus_relu,
    "relu of product": lambda graph, x: graph.op("mul", graph.op("relu", graph.op("mul", x, -1.0)), -1.0),
    "minimum": lambda graph, x: graph.op("minimum", x, 0.0),
    "magnitude": lambda graph, x: graph.op("mul", graph.op("sub", x, graph.op("abs", x)), 0.5),
    "other magnitude": lambda graph, x: graph.op("div", graph.op("sub", graph.op("abs", x), x), -2.0),
}


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("form", ["add", "commuted", "sub", "slope inside", "half of a sum"])
@pytest.mark.parametrize("cut", _CUT)
def test_spellings_of_prelu(cut: str, form: str, scalar: bool, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    slope = 0.3 if scalar else random(2)
    positive, negative = graph.op("relu", x), _CUT[cut](graph, x)
    if form == "half of a sum":
        positive = graph.op("mul", graph.op("add", graph.op("abs", x), x), 0.5)
    if form == "slope inside":
        negative = graph.op("neg", graph.op("mul", graph.op("neg", negative), slope))
    else:
        negative = graph.op("mul", negative, slope)
    if form == "sub":
        result = graph.op("sub", positive, graph.op("neg", negative))
    else:
        result = graph.op("add", *((negative, positive) if form == "commuted" else (positive, negative)))
    graph.returns(result)
    check(graph, ["leaky_relu" if scalar else "prelu"], run_tflite)


@pytest.mark.parametrize("spelling", ["slope", "numbers", "leaky"])
def test_a_prelu_without_slope_is_a_relu(spelling: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    x = graph.conv(graph.inputs[0], random(2, 3, 3, 2))
    if spelling == "leaky":
        graph.returns(graph.op("leaky_relu", x, alpha=0.0))
    else:
        slope = 0.0 if spelling == "slope" else np.zeros((1, 1, 2), np.float32)
        negative = graph.op("mul", _minus_relu(graph, x), slope)
        graph.returns(graph.op("add", graph.op("relu", x), negative))
    check(graph, ["conv_2d{RELU}"], run_tflite)


def test_parts_of_other_values_are_no_prelu(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    x, y = graph.inputs
    negative = graph.op("mul", graph.op("sub", x, graph.op("abs", y)), random(2))
    graph.returns(graph.op("add", graph.op("relu", x), negative))
    check(graph, ["abs", "sub", "mul", "relu", "add"], run_tflite)


def test_prelu_with_a_slope_a_sample_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3))
    x = graph.inputs[0]
    negative = graph.op("mul", graph.op("relu", graph.op("neg", x)), random(2, 3))
    graph.returns(graph.op("add", graph.op("relu", x), negative))
    check(graph, ["neg", "relu", "mul", "relu", "add"], run_tflite)


def test_integers_are_left_alone() -> None:
    graph = Graph((2, 3), element=types.I32)
    graph.returns(graph.op("maximum", graph.op("sub", graph.inputs[0], i32([1, 2, 3])), i32(0)))
    graph.optimize()
    assert graph.names == ["sub", "maximum"]


@pytest.mark.parametrize(
    ("first", "second", "bounds"),
    [
        ("minimum", "maximum", (0.0, 6.0)),
        ("maximum", "minimum", (6.0, 0.0)),
        ("minimum", "maximum", (-1.0, 1.0)),
        ("maximum", "minimum", (1.0, -1.0)),
    ],
)
def test_bounds_the_wrong_way_round_are_no_activation(
    first: str, second: str, bounds: tuple[float, float], run_tflite: RunTFLite
) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op(second, graph.op(first, graph.inputs[0], bounds[0]), bounds[1]))
    check(graph, [first, second], run_tflite)


def test_a_lower_bound_of_six_is_no_relu6(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("maximum", graph.op("relu", graph.inputs[0]), 6.0))
    check(graph, ["relu", "maximum"], run_tflite)
