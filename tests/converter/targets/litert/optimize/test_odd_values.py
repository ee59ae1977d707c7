"""Rewritten ops have the same results for infinities and NaN; ops that might differ stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, f32
from tests.support.litert import RunTFLite
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

ODD = f32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 3e38, -3e38, 1.0, -1.0])
ALL = ODD.shape


def _equal(graph: Graph, expected: list[str], run_tflite: RunTFLite, *inputs: np.ndarray) -> None:
    before = graph.run(run_tflite, inputs)
    graph.optimize()
    assert graph.names == expected
    for old, new in zip(before, graph.run(run_tflite, inputs), strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.parametrize("select", ["select", "select_v2"])
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("comparison", ["greater", "greater_equal", "less", "less_equal"])
def test_leaky_rectifiers(comparison: str, positive: bool, select: str, run_tflite: RunTFLite) -> None:
    graph = Graph(ALL)
    (x,) = graph.inputs
    scaled = graph.op("mul", x, 0.25)
    is_above = comparison.startswith("greater")
    sides = (x, 0.0) if is_above == positive else (0.0, x)
    condition = graph.op(comparison, *sides, element=types.I1, shape=ALL)
    values = (x, scaled) if positive else (scaled, x)
    graph.returns(graph.op(select, condition, *values, shape=ALL, element=types.F32))
    _equal(graph, ["leaky_relu"], run_tflite, ODD)


def test_a_rectifier_with_the_sides_exchanged_stays(run_tflite: RunTFLite) -> None:
    graph = Graph(ALL)
    (x,) = graph.inputs
    condition = graph.op("less", x, 0.0, element=types.I1, shape=ALL)
    graph.returns(graph.op("select_v2", condition, x, graph.op("mul", x, 0.25), shape=ALL, element=types.F32))
    _equal(graph, ["less", "mul", "select_v2"], run_tflite, ODD)


@pytest.mark.parametrize("alpha", [np.inf, np.nan])
def test_an_infinite_slope_stays(alpha: float, run_tflite: RunTFLite) -> None:
    graph = Graph(ALL)
    (x,) = graph.inputs
    condition = graph.op("greater_equal", x, 0.0, element=types.I1, shape=ALL)
    graph.returns(graph.op("select_v2", condition, x, graph.op("mul", x, alpha), shape=ALL, element=types.F32))
    _equal(graph, ["greater_equal", "mul", "select_v2"], run_tflite, ODD)


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("equal", ["not_equal"]),
        ("not_equal", ["equal"]),
        ("less", ["less", "logical_not"]),
        ("greater_equal", ["greater_equal", "logical_not"]),
    ],
)
def test_negated_comparisons(comparison: str, expected: list[str], run_tflite: RunTFLite) -> None:
    graph = Graph(ALL, ALL)
    compared = graph.op(comparison, *graph.inputs, element=types.I1, shape=ALL)
    graph.returns(graph.op("logical_not", compared))
    _equal(graph, expected, run_tflite, ODD, ODD[::-1].copy())


def test_powers_of_zero(run_tflite: RunTFLite) -> None:
    graph = Graph(ALL)
    graph.returns(graph.op("add", graph.op("pow", graph.inputs[0], 0.0), graph.constant(f32([2.0]))))
    _equal(graph, [], run_tflite, ODD)


@pytest.mark.parametrize("name", ["square", "abs", "exp", "logistic"])
def test_rectified(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph((ODD.size - 1,))
    graph.returns(graph.op("relu", graph.op(name, graph.inputs[0])))
    _equal(graph, [name], run_tflite, ODD[1:].copy())


def test_squared_difference(run_tflite: RunTFLite) -> None:
    graph = Graph(ALL, ALL)
    graph.returns(graph.op("square", graph.op("sub", *graph.inputs)))
    _equal(graph, ["squared_difference"], run_tflite, ODD, ODD[::-1].copy())


def test_a_difference_with_another_user_stays(run_tflite: RunTFLite) -> None:
    graph = Graph(ALL, ALL)
    difference = graph.op("sub", *graph.inputs)
    graph.returns(graph.op("square", difference), difference)
    _equal(graph, ["sub", "square"], run_tflite, ODD, ODD[::-1].copy())


def test_an_ordered_softmax_of_negative_temperature_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3))
    softmax = graph.op("softmax", graph.inputs[0], beta=-1.0)
    largest: dict[str, Any] = {"element": types.I64, "shape": (2,), "output_type": "INT64"}
    graph.returns(graph.op("arg_max", softmax, graph.constant(np.array(1, np.int32)), **largest))
    _equal(graph, ["softmax", "arg_max"], run_tflite, f32([[1, 3, 2], [0, -1, 4]]))


def _exponentials(graph: Graph, x: Value, axis: int) -> tuple[Value, Value]:
    e = graph.op("exp", x)
    shape = tuple(1 if index == axis else dim for index, dim in enumerate(x.shape or ()))
    options: dict[str, Any] = {"keep_dims": True, "shape": shape}
    return e, graph.op("sum", e, [axis], **options)


@pytest.mark.parametrize(("axis", "expected"), [(1, ["softmax"]), (0, ["exp", "sum", "div"])])
def test_softmax_goes_over_the_last_dimension(axis: int, expected: list[str], run_tflite: RunTFLite) -> None:
    graph = Graph((3, 3))
    graph.returns(graph.op("div", *_exponentials(graph, graph.inputs[0], axis)))
    before_and_after = f32([[1, 3, 2], [0, -1, 4], [5, 5, 5]])
    before = graph.run(run_tflite, [before_and_after])
    graph.optimize()
    assert graph.names == expected
    np.testing.assert_allclose(graph.run(run_tflite, [before_and_after])[0], before[0], rtol=1e-6)


def test_a_sum_of_other_exponentials_is_no_softmax(run_tflite: RunTFLite) -> None:
    graph = Graph((3, 3), (3, 3))
    e, _ = _exponentials(graph, graph.inputs[0], 1)
    _, total = _exponentials(graph, graph.inputs[1], 1)
    graph.returns(graph.op("div", e, total))
    _equal(graph, ["exp", "exp", "sum", "div"], run_tflite, f32(np.eye(3)), f32(np.ones((3, 3))))
