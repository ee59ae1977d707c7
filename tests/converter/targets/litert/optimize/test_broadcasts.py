"""Broadcasts that the next op does by itself, or that go behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, check, f32, i32, random
from tests.support.litert import RunTFLite
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.ir.values import OpResult

ARITHMETIC = ("add", "sub", "mul", "div", "maximum", "minimum", "squared_difference", "pow", "floor_div", "floor_mod")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
SHAPE = (2, 3, 4)


def _kind(name: str) -> dict[str, Any]:
    return {"element": types.I1, "shape": SHAPE} if name in COMPARISONS else {"shape": SHAPE}


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_a_broadcast_is_done_by_the_next_op(name: str, left: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 1, 4), SHAPE)
    small, large = graph.inputs
    wide = graph.op("broadcast_to", small, list(SHAPE), shape=SHAPE)
    graph.returns(graph.op(name, *((wide, large) if left else (large, wide)), **_kind(name)))
    inputs = np.round(np.abs(random(2, 1, 4))) + 1, np.round(np.abs(random(*SHAPE))) + 1
    check(graph, [name], run_tflite, *inputs)


@pytest.mark.parametrize(("name", "rank"), [("add", 6), ("sub", 6), ("mul", 6), ("div", 5)])
def test_arithmetic_broadcasts_more_dimensions(name: str, rank: int, run_tflite: RunTFLite) -> None:
    shape = (2, 3, 2, 2, 3, 2)[:rank]
    graph = Graph(shape, (1, *shape[1:-1], 1))
    graph.returns(graph.op(name, graph.inputs[0], graph.op("broadcast_to", graph.inputs[1], list(shape), shape=shape)))
    check(graph, [name], run_tflite, random(*shape), np.abs(random(1, *shape[1:-1], 1)) + 1)


def test_five_dimensions_stay_elsewhere(run_tflite: RunTFLite) -> None:
    shape = (2, 3, 2, 2, 3)
    graph = Graph(shape, (1, *shape[1:]))
    wide = graph.op("broadcast_to", graph.inputs[1], list(shape), shape=shape)
    graph.returns(graph.op("floor_div", graph.inputs[0], wide))
    check(graph, ["broadcast_to", "floor_div"], run_tflite, random(*shape), np.abs(random(1, *shape[1:])) + 1)


@pytest.mark.parametrize("select", ["select", "select_v2"])
def test_choices_broadcast_their_values(select: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, (2, 1, 4))
    x, small = graph.inputs
    condition = graph.op("greater", x, 0.0, element=types.I1, shape=SHAPE)
    wide = graph.op("broadcast_to", small, list(SHAPE), shape=SHAPE)
    graph.returns(graph.op(select, condition, x, wide, element=types.F32, shape=SHAPE))
    check(graph, ["greater", "select_v2"], run_tflite)


def test_a_condition_of_rows_stays(run_tflite: RunTFLite) -> None:
    """The older op takes a vector for a choice between rows."""
    graph = Graph((3,), (3, 3), (3, 1))
    x, large, small = graph.inputs
    condition = graph.op("greater", x, 0.0, element=types.I1, shape=(3,))
    wide = graph.op("broadcast_to", small, [3, 3], shape=(3, 3))
    graph.returns(graph.op("select", condition, large, wide, element=types.F32, shape=(3, 3)))
    check(graph, ["greater", "broadcast_to", "select"], run_tflite)


def test_what_is_filled_is_one_element(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, ())
    x, number = graph.inputs
    graph.returns(graph.op("mul", x, graph.op("fill", i32(SHAPE), number, element=types.F32, shape=SHAPE)))
    check(graph, ["mul"], run_tflite)


def _operand_shape(graph: Graph, index: int) -> types.Shape | None:
    return graph.ops[-1].operands[index].shape


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_constants_of_equal_elements(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op(name, graph.inputs[0], np.full(SHAPE, 2.5, np.float32), **_kind(name)))
    before = graph.run(run_tflite, [np.abs(random(*SHAPE))])
    graph.optimize()
    assert _operand_shape(graph, 1) == ()
    np.testing.assert_allclose(graph.run(run_tflite, [np.abs(random(*SHAPE))])[0], before[0], rtol=1e-6)


@pytest.mark.parametrize("values", [f32([[1, 2], [1, 1]]), f32([[0.0, -0.0], [0.0, 0.0]])])
def test_constants_of_different_elements_stay(values: np.ndarray) -> None:
    graph = Graph((2, 2))
    graph.returns(graph.op("maximum", graph.inputs[0], values))
    graph.optimize()
    assert _operand_shape(graph, 1) == (2, 2)


def test_a_constant_that_broadcasts_the_result_stays() -> None:
    graph = Graph((2,))
    graph.returns(graph.op("maximum", graph.inputs[0], f32([[1, 1], [1, 1]]), shape=(2, 2)))
    graph.optimize()
    assert _operand_shape(graph, 1) == (2, 2)


def _in_shape_of(graph: Graph, name: str) -> OpResult:
    """Adds an op that repeats one element in the shape of the graph's input."""
    (x,) = graph.inputs
    if name == "zeros_like":
        value = graph.op(name, x)
    else:
        size = graph.op("shape", x, element=types.I32, shape=(2,), out_type="INT32")
        operands = (size, 3.0) if name == "fill" else (graph.constant(3.0), size)
        value = graph.op(name, *operands, element=types.F32, shape=(-1, 4))
    assert isinstance(value, OpResult)
    return value


@pytest.mark.parametrize("name", ["fill", "broadcast_to", "zeros_like"])
def test_an_operand_as_large_as_the_other(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 4))
    wide = _in_shape_of(graph, name)
    graph.returns(graph.op("less", wide, graph.inputs[0], element=types.I1, shape=(-1, 4)))
    check(graph, ["less"], run_tflite)


def test_an_operand_as_large_as_something_else_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 4))
    wide = _in_shape_of(graph, "fill")
    graph.returns(graph.op("add", wide, graph.constant(f32([1, 2, 3, 4])), shape=(-1, 4)))
    check(graph, ["shape", "fill", "add"], run_tflite)


def test_broadcasts_go_behind(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 1, 4), (4,))
    small, row = graph.inputs
    value = graph.op("tanh", graph.op("broadcast_to", small, list(SHAPE), shape=SHAPE))
    graph.returns(graph.op("mul", value, row, shape=SHAPE))
    check(graph, ["tanh", "mul", "broadcast_to"], run_tflite)
    assert graph.ops[1].results[0].shape == (2, 1, 4)


def test_a_broadcast_with_another_user_does_not(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 1, 4))
    wide = graph.op("broadcast_to", graph.inputs[0], list(SHAPE), shape=SHAPE)
    graph.returns(graph.op("tanh", wide), wide)
    check(graph, ["broadcast_to", "tanh"], run_tflite)


def test_zeros_have_the_type_of_what_they_replace() -> None:
    graph = Graph((-1, 4), element=types.I32)
    graph.returns(graph.op("maximum", graph.inputs[0], _in_shape_of(graph, "zeros_like")))
    graph.optimize()
    (op,) = graph.ops
    constant = tensor_data.constant_of(op.operands[1])
    assert op.name == f"{tfl.PREFIX}maximum"
    assert constant is not None
    assert tensor_data.to_array(constant).dtype == np.int32
