"""Constants that meet in chains, and ops that do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, check, f32, i32, random
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.api import convert
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.values import Value

SHAPE = (2, 3, 4)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_chains_become_one_op(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    value = graph.op(name, graph.op(name, graph.inputs[0], random(4)), 0.5)
    graph.returns(graph.op(name, graph.constant(random(1, 4)), value, shape=SHAPE))
    check(graph, [name], run_tflite)


def test_a_second_user_stops_a_chain(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    value = graph.op("add", graph.inputs[0], random(4))
    graph.returns(graph.op("add", value, 0.5), value)
    check(graph, ["add", "add"], run_tflite)


def test_constants_that_would_grow_stay_apart(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("mul", graph.op("mul", graph.inputs[0], random(4)), random(3, 1)))
    check(graph, ["mul", "mul"], run_tflite)


@pytest.mark.parametrize(("name", "constant"), [("add", 0.0), ("sub", 0.0), ("mul", 1.0), ("div", 1.0)])
def test_neutral_constants_vanish(name: str, constant: float, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("relu", graph.op(name, graph.op("neg", graph.inputs[0]), constant)))
    check(graph, ["neg", "relu"], run_tflite)


def test_a_neutral_constant_that_broadcasts_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4))
    graph.returns(graph.op("add", graph.inputs[0], np.zeros((3, 4), np.float32), shape=(3, 4)))
    check(graph, ["add"], run_tflite)


def test_a_constant_minus_a_value_stays(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("sub", graph.constant(random(4)), graph.inputs[0], shape=SHAPE))
    check(graph, ["sub"], run_tflite)


@pytest.mark.parametrize(("shape", "name"), [((128, 130), "sub"), ((1, 20_000), "add"), ((8, 130), "add")])
def test_a_large_constant_is_not_negated(shape: tuple[int, int], name: str, run_tflite: RunTFLite) -> None:
    # Another function may have it, and the file would hold it twice.
    graph = Graph(shape)
    graph.returns(graph.op("sub", graph.inputs[0], random(*shape)))
    check(graph, [name], run_tflite)


def test_one_constant_in_two_signatures_is_stored_once(tf: ModuleType, tmp_path: Path) -> None:
    spec, weight = tf.TensorSpec([128, 256], tf.float32, name="x"), tf.constant(random(128, 256))
    functions = {
        name: traced(tf, spec)(function)
        for name, function in (("plus", lambda x: x + weight), ("minus", lambda x: x - weight))
    }
    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=functions)
    assert len(bytes(convert(tmp_path))) < 1.1 * 4 * 128 * 256


@pytest.mark.parametrize("divisor", [0.0, 1e-39, 3e38])
def test_a_divisor_without_a_good_reciprocal_stays(divisor: float, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("div", graph.inputs[0], divisor))
    graph.optimize()
    assert graph.names == ["div"]


@pytest.mark.parametrize("after", ["floor", "ceil", "round", "neg floor", "less", "cast", "arg_max"])
@pytest.mark.parametrize(("name", "constants"), [("div", (3.0,)), ("mul", (0.1, 7.0)), ("add", (0.1, 7.0))])
def test_what_decides_integers_is_rounded_as_written(
    after: str, name: str, constants: Sequence[float], run_tflite: RunTFLite
) -> None:
    graph = Graph((2, 50))
    (value,) = graph.inputs
    for constant in constants:
        value = graph.op(name, value, constant)
    kept = [name] * len(constants)
    *others, last = after.split()
    for other in others:
        value = graph.op(other, value)
    more = {"less": (2.0,), "arg_max": (np.array(1, np.int32),)}.get(last, ())
    kinds = {"less": types.I1, "cast": types.I32, "arg_max": types.I32}
    options = {"output_type": "INT32"} if last == "arg_max" else {}
    shape = (2,) if last == "arg_max" else (2, 50)
    graph.returns(graph.op(last, value, *more, shape=shape, element=kinds.get(last, types.F32), **options))
    check(graph, [*kept, *others, last], run_tflite)


@pytest.mark.parametrize("after", ["exp", "relu", "mul"])
def test_what_decides_no_integer_is_multiplied(after: str, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 50))
    quotient = graph.op("div", graph.inputs[0], 3.0)
    graph.returns(graph.op(after, quotient, *[graph.inputs[0]] * (after == "mul")))
    graph.optimize()
    assert "div" not in graph.names


def test_a_scale_of_whole_numbers_is_divided(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 50), (1,))
    scale = graph.op("div", graph.inputs[1], 255.0)
    graph.returns(graph.op("mul", graph.op("round", graph.inputs[0]), scale))
    check(graph, ["div", "round", "mul"], run_tflite)


@pytest.mark.parametrize("divisor", [4.0, -0.125, [1.0, 2.0, 0.5, 256.0]])
def test_a_power_of_two_is_exact(divisor: Any, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4))
    graph.returns(graph.op("floor", graph.op("div", graph.inputs[0], np.array(divisor, np.float32))))
    check(graph, ["mul", "floor"], run_tflite)


def test_constant_arithmetic_is_folded(run_tflite: RunTFLite) -> None:
    graph = Graph((4,))
    scale = graph.op("rsqrt", graph.op("add", graph.constant(np.abs(random(4))), 1e-3))
    graph.returns(graph.op("mul", graph.inputs[0], graph.op("mul", scale, 2.0)))
    check(graph, ["mul"], run_tflite)


def test_integer_arithmetic_is_not_folded() -> None:
    graph = Graph((4,), element=types.I32)
    graph.returns(graph.op("div", graph.inputs[0], i32([1, 2, 3, 4])))
    graph.optimize()
    assert graph.names == ["div"]


@pytest.mark.parametrize(
    ("exponent", "expected"), [(2.0, ["square"]), (0.5, ["sqrt"]), (-0.5, ["rsqrt"]), (1.0, []), (3.0, ["pow"])]
)
def test_powers(exponent: float, expected: list[str], run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    graph.returns(graph.op("exp", graph.op("pow", graph.inputs[0], exponent)))
    check(graph, [*expected, "exp"], run_tflite, np.abs(random(*SHAPE)) + 0.5)


def test_what_may_broadcast_is_no_square() -> None:
    graph = Graph(None)
    graph.returns(graph.op("exp", graph.op("pow", graph.inputs[0], np.full(3, 2, np.float32))))
    graph.optimize()
    assert graph.names == ["pow", "exp"]


def test_what_broadcasts_anyway_is_not_broadcast_before(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4), SHAPE)
    wide = graph.op("broadcast_to", graph.inputs[0], [2, 3, 4], shape=SHAPE)
    tiled = graph.op("tile", graph.inputs[0], [3, 1], shape=(3, 4))
    graph.returns(graph.op("mul", graph.op("add", wide, graph.inputs[1]), tiled))
    check(graph, ["add", "mul"], run_tflite)


def test_broadcasting_of_both_operands_goes_behind(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4), (1, 4))
    wide = graph.op("broadcast_to", graph.inputs[0], [3, 4], shape=(3, 4))
    graph.returns(graph.op("add", wide, graph.inputs[1]))
    check(graph, ["add", "broadcast_to"], run_tflite)


def test_a_tile_that_repeats_more_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4), (4, 4))
    tiled = graph.op("tile", graph.inputs[0], [2, 1], shape=(4, 4))
    graph.returns(graph.op("add", tiled, graph.inputs[1]))
    check(graph, ["tile", "add"], run_tflite)


def _normalized(axis: int, limit: float, *, divide: bool, square: bool) -> Graph:
    graph = Graph(SHAPE)
    x = graph.inputs[0]
    squares = graph.op("square", x) if square else graph.op("mul", x, x)
    kept = tuple(1 if index == axis % 3 else dim for index, dim in enumerate(SHAPE))
    total = graph.op("maximum", graph.op("sum", squares, [axis], shape=kept, keep_dims=True), limit)
    if divide:
        return graph.returns(graph.op("div", x, graph.op("sqrt", total)))
    return graph.returns(graph.op("mul", x, graph.op("rsqrt", total)))


@pytest.mark.parametrize(("divide", "square", "axis"), [(True, True, -1), (False, True, 2), (False, False, -1)])
def test_l2_normalization(divide: bool, square: bool, axis: int, run_tflite: RunTFLite) -> None:
    check(_normalized(axis, 1e-12, divide=divide, square=square), ["l2_normalization"], run_tflite)


@pytest.mark.parametrize(("axis", "limit"), [(1, 1e-12), (-1, 1e-3)])
def test_other_normalizations_stay(axis: int, limit: float, run_tflite: RunTFLite) -> None:
    graph = _normalized(axis, limit, divide=False, square=True)
    check(graph, ["square", "sum", "maximum", "rsqrt", "mul"], run_tflite)


@pytest.mark.parametrize("flag", [False, True])
def test_transposes_go_into_products(flag: bool, run_tflite: RunTFLite) -> None:
    right = (2, 5, 4) if flag else (2, 4, 5)
    graph = Graph((2, 4, 3), right)
    left = graph.op("transpose", graph.inputs[0], [0, 2, 1], shape=(2, 3, 4))
    other = graph.op("transpose", graph.inputs[1], [0, 2, 1], shape=(right[0], right[2], right[1]))
    graph.returns(graph.op("batch_matmul", left, other, shape=(2, 3, 5), adj_x=False, adj_y=not flag))
    check(graph, ["batch_matmul"], run_tflite)
    assert (tfl.attribute(graph.ops[0], "adj_x"), tfl.attribute(graph.ops[0], "adj_y")) == (True, flag)


def test_other_transposes_stay_before_products(run_tflite: RunTFLite) -> None:
    graph = Graph((3, 2, 4), (2, 4, 5))
    left = graph.op("transpose", graph.inputs[0], [1, 0, 2], shape=(2, 3, 4))
    graph.returns(graph.op("batch_matmul", left, graph.inputs[1], shape=(2, 3, 5)))
    check(graph, ["transpose", "batch_matmul"], run_tflite)


def test_gates_of_a_state_of_zeros_vanish(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    x, other = graph.inputs
    gate = graph.op("slice", graph.op("logistic", x), [0, 0, 0], [1, 3, 4], shape=(1, 3, 4))
    state = graph.op("mul", gate, np.zeros((1, 3, 4), np.float32))
    graph.returns(graph.op("add", state, graph.op("tanh", other)))
    check(graph, ["tanh", "add"], run_tflite)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 3, 4)])
def test_zeros_of_what_may_be_infinite_or_of_another_shape_stay(shape: tuple[int, ...]) -> None:
    graph = Graph(SHAPE)
    factor = graph.op("exp" if shape == SHAPE else "tanh", graph.inputs[0])
    graph.returns(graph.op("mul", factor, np.zeros(shape, np.float32)))
    graph.optimize()
    assert graph.names[-1] == "mul"


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_the_greater_of_one_value_is_the_value(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    value = graph.op("neg", graph.inputs[0])
    graph.returns(graph.op("exp", graph.op(name, value, value)))
    check(graph, ["neg", "exp"], run_tflite)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_negated_integers_stay(name: str) -> None:
    graph = Graph((4,), (4,), element=types.I32)
    graph.returns(graph.op(name, graph.inputs[0], graph.op("neg", graph.inputs[1])))
    graph.optimize()
    assert graph.names == ["neg", name]


@pytest.mark.parametrize(("name", "other"), [("add", "sub"), ("sub", "add")])
def test_negation_leaves_the_activation(name: str, other: str, run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    x, y = graph.inputs
    graph.returns(graph.op(name, x, graph.op("neg", y), fused_activation_function="RELU6"))
    check(graph, [f"{other}{{RELU6}}"], run_tflite)


def test_a_negated_minuend_stays(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, SHAPE)
    graph.returns(graph.op("sub", graph.op("neg", graph.inputs[0]), graph.inputs[1]))
    check(graph, ["neg", "sub"], run_tflite)


def _scores(graph: Graph, factor: np.ndarray, *, is_shared: bool = False) -> Graph:
    """Returns scaled scores of two heads."""
    options: dict[str, Any] = {"keep_num_dims": True, "fused_activation_function": "NONE"}
    query = graph.op("fully_connected", graph.inputs[0], random(8, 8), random(8), **options)
    heads = (1, 6, 2, 4)
    split = graph.op("reshape", query, list(heads), shape=heads, new_shape=heads)
    split = graph.op("transpose", split, [0, 2, 1, 3], shape=(1, 2, 6, 4))
    scores = graph.op("batch_matmul", split, graph.inputs[1], shape=(1, 2, 6, 6), adj_x=False, adj_y=True)
    scores = graph.op("mul", scores, factor, shape=(1, 2, 6, 6), fused_activation_function="NONE")
    return graph.returns(*([scores, query] if is_shared else [scores]))


def test_a_dense_layer_absorbs_the_scale_of_scores(run_tflite: RunTFLite) -> None:
    graph = _scores(Graph((1, 6, 8), (1, 2, 6, 4)), f32(0.25))
    check(graph, ["fully_connected", "reshape", "transpose", "batch_matmul"], run_tflite)


@pytest.mark.parametrize(("factor", "is_shared"), [(random(6), False), (f32(0.25), True)])
def test_other_scales_of_scores_stay(factor: np.ndarray, is_shared: bool, run_tflite: RunTFLite) -> None:
    graph = _scores(Graph((1, 6, 8), (1, 2, 6, 4)), factor, is_shared=is_shared)
    check(graph, ["fully_connected", "reshape", "transpose", "batch_matmul", "mul"], run_tflite)


def _of_logarithms(graph: Graph, shift: Value, axes: list[int]) -> Graph:
    """Returns a softmax over several dimensions as Keras writes it."""
    (x, *_), kept = graph.inputs, tuple(1 if axis in axes else dim for axis, dim in enumerate((2, 3, 4)))
    powers = graph.op("exp", graph.op("sub", x, shift))
    logarithm = graph.op("log", graph.op("sum", powers, axes, shape=kept, keep_dims=True))
    total = graph.op("add", logarithm, shift, shape=kept if shift.shape == kept else SHAPE)
    return graph.returns(graph.op("exp", graph.op("sub", x, total)))


def test_a_softmax_over_several_dimensions(run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE)
    largest = graph.op("reduce_max", graph.inputs[0], [1, 2], shape=(2, 1, 1), keep_dims=True)
    check(_of_logarithms(graph, largest, [1, 2]), ["reshape", "softmax", "reshape"], run_tflite)


@pytest.mark.parametrize(("shift", "axes"), [((2, 3, 4), [1, 2]), ((1, 1, 4), [0, 1])])
def test_other_sums_of_powers_stay(shift: tuple[int, ...], axes: list[int], run_tflite: RunTFLite) -> None:
    graph = Graph(SHAPE, shift)
    _of_logarithms(graph, graph.inputs[1], axes)
    check(graph, ["sub", "exp", "sum", "log", "add", "sub", "exp"], run_tflite, random(*SHAPE), random(*shift))
