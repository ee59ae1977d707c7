"""Reshapes, transposes, reductions and ops that do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.optimize.graph import Graph, check, i32, random
from tests.support.litert import RunTFLite
from tfconvert.converter.ir.constants import constant_int
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.tflite import operators


def test_only_the_last_reshape_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4))
    value = graph.op("reshape", graph.op("reshape", graph.inputs[0], [6, 4], shape=(6, 4)), [24], shape=(24,))
    graph.returns(graph.op("reshape", value, [4, 6], shape=(4, 6)))
    check(graph, ["reshape"], run_tflite)


def test_reshapes_that_cancel_vanish(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 3, 4))
    value = graph.op("neg", graph.inputs[0])
    value = graph.op("reshape", graph.op("reshape", value, [-1, 12], shape=(-1, 12)), [-1, 3, 4], shape=(-1, 3, 4))
    graph.returns(graph.op("abs", value))
    check(graph, ["neg", "abs"], run_tflite)


def test_a_reshape_between_unknown_dimensions_stays() -> None:
    graph = Graph((-1, -1, 4))
    value = graph.op("reshape", graph.op("neg", graph.inputs[0]), [-1, 5, 4], shape=(-1, -1, 4))
    graph.returns(value)
    graph.optimize()
    assert graph.names == ["neg", "reshape"]


@pytest.mark.parametrize(
    ("name", "operand", "options", "shape"),
    [("squeeze", (), {"squeeze_dims": [1]}, (-1, 4)), ("expand_dims", ([0],), {}, (1, -1, 1, 4))],
)
def test_ranks_change_by_reshape(
    name: str, operand: tuple[Any, ...], options: dict[str, Any], shape: tuple[int, ...], run_tflite: RunTFLite
) -> None:
    graph = Graph((-1, 1, 4))
    graph.returns(graph.op(name, graph.inputs[0], *operand, shape=shape, **options))
    check(graph, ["reshape"], run_tflite)


@pytest.mark.parametrize(("axis", "shape"), [(-1, (-1, -1, 1)), (0, (1, -1, -1))])
def test_an_axis_that_went_comes_back(axis: int, shape: tuple[int, ...]) -> None:
    graph = Graph((-1, -1, 1))
    value = graph.op("squeeze", graph.op("neg", graph.inputs[0]), shape=(-1, -1), squeeze_dims=[2])
    graph.returns(graph.op("expand_dims", value, [axis], shape=shape))
    graph.optimize()
    assert graph.names == (["neg"] if axis == -1 else ["neg", "squeeze", "expand_dims"])


def test_reshaped_constants_are_constants(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 6))
    constant = graph.op("reshape", graph.constant(random(3, 4)), [2, 6], shape=(2, 6))
    graph.returns(graph.op("add", graph.inputs[0], constant))
    check(graph, ["add"], run_tflite)


@pytest.mark.parametrize("axes", [[1, 2], [-2, -3]])
def test_a_mean_keeps_its_dimensions(axes: list[int], run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 4, 5, 3))
    value = graph.op("mean", graph.inputs[0], axes, shape=(-1, 3))
    graph.returns(graph.op("reshape", value, [-1, 1, 1, 3], shape=(-1, 1, 1, 3)))
    check(graph, ["mean"], run_tflite)
    assert tfl.attribute(graph.ops[0], "keep_dims")


def test_a_mean_that_is_reshaped_otherwise_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 4, 5, 3))
    value = graph.op("mean", graph.inputs[0], [1, 2], shape=(-1, 3))
    graph.returns(graph.op("reshape", value, [-1, 3, 1, 1], shape=(-1, 3, 1, 1)))
    check(graph, ["mean", "reshape"], run_tflite)


def test_a_product_over_the_last_dimension_needs_no_reshape(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 5, 8))
    rows = graph.op("reshape", graph.inputs[0], [-1, 8], shape=(-1, 8))
    value = graph.op("fully_connected", rows, random(6, 8), None, shape=(-1, 6))
    value = graph.op("reshape", value, [-1, 5, 6], shape=(-1, 5, 6))
    graph.returns(graph.op("add", value, random(6)))
    check(graph, ["fully_connected"], run_tflite)
    assert tfl.attribute(graph.ops[0], "keep_num_dims")


@pytest.mark.parametrize("kept", [[0, 1], [1, 0]])
def test_a_product_over_the_last_dimension_of_open_sizes_needs_no_reshape(
    kept: list[int], run_tflite: RunTFLite
) -> None:
    graph = Graph((-1, -1, 8))
    x = graph.inputs[0]
    sizes = graph.op("shape", x, shape=(3,), element=types.I32, out_type="INT32")
    sizes = graph.op("gather", sizes, kept, axis=0, shape=(2,))
    target = graph.op("concatenation", sizes, [6], axis=0, shape=(3,))
    rows = graph.op("reshape", x, [-1, 8], shape=(-1, 8))
    value = graph.op("fully_connected", rows, random(6, 8), None, shape=(-1, 6))
    graph.returns(graph.op("reshape", value, target, shape=(-1, -1, 6)))
    restored = ["fully_connected"]
    swapped = ["shape", "gather", "concatenation", "reshape", "fully_connected", "reshape"]
    check(graph, restored if kept == [0, 1] else swapped, run_tflite)


def test_rows_stay_rows(run_tflite: RunTFLite) -> None:
    # The kernel flattens its operand by itself; converters of files and the GPU get that wrong.
    graph = Graph((3, 5, 8))
    rows = graph.op("reshape", graph.inputs[0], [15, 8], shape=(15, 8))
    graph.returns(graph.op("fully_connected", rows, random(6, 8), random(6), shape=(15, 6)))
    check(graph, ["reshape", "fully_connected"], run_tflite)


def test_flattened_channels_stay_flattened(run_tflite: RunTFLite) -> None:
    graph = Graph((3, 5, 8))
    rows = graph.op("reshape", graph.inputs[0], [3, 40], shape=(3, 40))
    graph.returns(graph.op("fully_connected", rows, random(6, 40), None, shape=(3, 6)))
    check(graph, ["reshape", "fully_connected"], run_tflite)


def test_a_product_that_is_regrouped_keeps_its_reshapes(run_tflite: RunTFLite) -> None:
    graph = Graph((4, 6, 8))
    rows = graph.op("reshape", graph.inputs[0], [24, 8], shape=(24, 8))
    value = graph.op("fully_connected", rows, random(6, 8), None, shape=(24, 6))
    graph.returns(graph.op("reshape", value, [6, 4, 6], shape=(6, 4, 6)))
    check(graph, ["reshape", "fully_connected", "reshape"], run_tflite)


def test_transposes_cancel_through_elementwise_ops(run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4, 5, 3), (1, 4, 5, 3))
    first, second = (graph.op("transpose", value, [0, 3, 1, 2], shape=(1, 3, 4, 5)) for value in graph.inputs)
    value = graph.op("relu", graph.op("mul", graph.op("add", first, second), random(3, 1, 1)))
    graph.returns(graph.op("transpose", value, [0, 2, 3, 1], shape=(1, 4, 5, 3)))
    check(graph, ["add", "mul{RELU}"], run_tflite)


# Those of booleans and bits have no results for floats.
_UNARY = sorted(operators.elementwise(1) - {"logical_not"})
_BINARY = sorted(operators.elementwise(2) - {"bitwise_xor", "logical_and", "logical_or", "right_shift"})


@pytest.mark.parametrize("name", _UNARY)
def test_transposes_cancel_through_every_operator_of_one_operand(name: str, run_tflite: RunTFLite) -> None:
    graph = Graph((1, 4, 5, 3))
    # Of negative numbers, some have no result.
    before = ["exp"] if name in ("log", "rsqrt", "sqrt") else []
    value = graph.op(before[0], graph.inputs[0]) if before else graph.inputs[0]
    options: dict[str, Any] = {"alpha": 0.25} if name == "leaky_relu" else {}
    value = graph.op(name, graph.op("transpose", value, [0, 3, 1, 2], shape=(1, 3, 4, 5)), **options)
    graph.returns(graph.op("transpose", value, [0, 2, 3, 1], shape=(1, 4, 5, 3)))
    check(graph, [*before, name], run_tflite)


@pytest.mark.parametrize("name", _BINARY)
def test_transposes_cancel_through_every_operator_of_two_operands(name: str) -> None:
    graph = Graph((1, 4, 5, 3), (1, 4, 5, 3))
    first, second = (graph.op("transpose", value, [0, 3, 1, 2], shape=(1, 3, 4, 5)) for value in graph.inputs)
    element = types.I1 if name.startswith(("equal", "greater", "less", "not_equal")) else types.F32
    value = graph.op(name, first, second, shape=(1, 3, 4, 5), element=element)
    graph.returns(graph.op("transpose", value, [0, 2, 3, 1], shape=(1, 4, 5, 3), element=element))
    graph.optimize()
    assert graph.names == [name]
    assert graph.ops[0].results[0].element is element


def test_transposes_cancel_through_a_choice() -> None:
    graph = Graph((4, 3), (4, 3), (4, 3))
    values = [graph.op("less", graph.inputs[0], 0.0, shape=(4, 3), element=types.I1), *graph.inputs[1:]]
    condition, first, second = (graph.op("transpose", value, [1, 0], shape=(3, 4)) for value in values)
    value = graph.op("select_v2", condition, first, second, shape=(3, 4), element=types.F32)
    graph.returns(graph.op("transpose", value, [1, 0], shape=(4, 3)))
    graph.optimize()
    assert graph.names == ["less", "select_v2"]


def test_transposes_that_differ_stay(run_tflite: RunTFLite) -> None:
    graph = Graph((3, 4, 5), (4, 3, 5))
    first = graph.op("transpose", graph.inputs[0], [2, 1, 0], shape=(5, 4, 3))
    second = graph.op("transpose", graph.inputs[1], [2, 0, 1], shape=(5, 4, 3))
    graph.returns(graph.op("add", first, second))
    check(graph, ["transpose", "transpose", "add"], run_tflite)


def test_a_transpose_does_not_move_behind_a_broadcast(run_tflite: RunTFLite) -> None:
    graph = Graph((3, 1))
    value = graph.op("transpose", graph.inputs[0], [1, 0], shape=(1, 3))
    graph.returns(graph.op("add", value, random(64, 3), shape=(64, 3)))
    check(graph, ["reshape", "add"], run_tflite)


def test_transposes_of_constants_are_constants(run_tflite: RunTFLite) -> None:
    graph = Graph((4, 3))
    constant = graph.op("transpose", graph.constant(random(3, 4)), [1, 0], shape=(4, 3))
    graph.returns(graph.op("add", graph.inputs[0], constant))
    check(graph, ["add"], run_tflite)


def test_a_transpose_that_moves_ones_is_a_reshape(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 1, 4, 1))
    graph.returns(graph.op("transpose", graph.inputs[0], [1, 0, 3, 2], shape=(1, -1, 1, 4)))
    check(graph, ["reshape"], run_tflite)


def test_a_transpose_that_moves_an_unknown_dimension_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 1, 4))
    graph.returns(graph.op("transpose", graph.inputs[0], [2, 1, 0], shape=(4, 1, -1)))
    check(graph, ["transpose"], run_tflite)


STRIDED: dict[str, Any] = {"begin_mask": 0, "end_mask": 0}
RESIZE: dict[str, Any] = {"half_pixel_centers": True}
POOL: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}


def test_means_of_integers_are_rounded_one_by_one(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 2), element=types.I32)
    value = graph.op("mean", graph.inputs[0], [2], shape=(2, 3), keep_dims=False)
    graph.returns(graph.op("mean", value, [1], shape=(2,), keep_dims=False))
    check(graph, ["mean", "mean"], run_tflite, np.arange(0, 36, 3, dtype=np.int32).reshape(2, 3, 2))


@pytest.mark.parametrize(
    ("name", "operands", "options"),
    [
        ("slice", ([0, 0, 0, 0], [1, 4, -1, 3]), {}),
        ("strided_slice", ([0, 0, 0, 0], [1, 4, 5, 3], [1, 1, 1, 1]), STRIDED),
        ("strided_slice", ([0, 1, 0, 0], [0, 4, 5, 3], [1, 1, 1, 1]), {"begin_mask": 2, "end_mask": 1}),
        ("tile", ([1, 1, 1, 1],), {}),
        ("broadcast_to", ([1, 4, 5, 3],), {}),
        ("concatenation", (), {"axis": 1}),
        ("max_pool_2d", (), POOL),
        ("resize_bilinear", ([4, 5],), RESIZE),
        ("transpose", ([0, 1, 2, 3],), {}),
        ("reshape", ([1, 4, 5, 3],), {}),
    ],
)
def test_what_does_nothing_vanishes(
    name: str, operands: tuple[Any, ...], options: dict[str, Any], run_tflite: RunTFLite
) -> None:
    graph = Graph((1, 4, 5, 3))
    graph.returns(graph.op("abs", graph.op(name, graph.op("neg", graph.inputs[0]), *operands, **options)))
    check(graph, ["neg", "abs"], run_tflite)


@pytest.mark.parametrize(
    ("name", "operands", "options", "shape"),
    [
        ("slice", ([0, 0, 0, 0], [1, 4, 4, 3]), {}, (1, 4, 4, 3)),
        ("slice", ([0, 0, 1, 0], [1, 4, -1, 3]), {}, (1, 4, 4, 3)),
        (
            "strided_slice",
            ([0, 0, 0, 0], [1, 4, 5, 3], [1, 1, 1, -1]),
            STRIDED | {"begin_mask": 15, "end_mask": 15},
            None,
        ),
        ("strided_slice", ([0, 0, 0, 0], [1, 4, -1, 3], [1, 1, 1, 1]), STRIDED, (1, 4, 4, 3)),
        ("tile", ([2, 1, 1, 1],), {}, (2, 4, 5, 3)),
        ("max_pool_2d", (), POOL | {"filter_width": 2}, None),
        ("resize_bilinear", ([5, 4],), RESIZE, (1, 5, 4, 3)),
    ],
)
def test_what_does_something_stays(
    name: str, operands: tuple[Any, ...], options: dict[str, Any], shape: tuple[int, ...] | None, run_tflite: RunTFLite
) -> None:
    graph = Graph((1, 4, 5, 3))
    graph.returns(graph.op(name, graph.op("neg", graph.inputs[0]), *operands, shape=shape, **options))
    check(graph, ["neg", name], run_tflite)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("name", ["mean", "sum", "reduce_max", "reduce_min", "reduce_prod"])
def test_reductions_join(name: str, keep: bool, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5, 3))
    inner = (2, 1, 5, 3) if keep else (2, 5, 3)
    outer = (2, 1, 5, 1) if keep else (2, 5)
    value = graph.op(name, graph.inputs[0], [1], shape=inner, keep_dims=keep)
    graph.returns(graph.op(name, value, [-1], shape=outer, keep_dims=keep))
    check(graph, [name], run_tflite)


def test_axes_of_the_second_reduction_count_what_the_first_left(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5, 3))
    value = graph.op("sum", graph.inputs[0], [0, 1], shape=(5, 3))
    graph.returns(graph.op("sum", value, [1], shape=(5,)))
    check(graph, ["sum"], run_tflite)


def test_reductions_that_differ_stay(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5))
    value = graph.op("mean", graph.inputs[0], [1], shape=(2, 1, 5), keep_dims=True)
    graph.returns(graph.op("mean", value, [1], shape=(2, 5), keep_dims=False))
    check(graph, ["mean", "mean"], run_tflite)


def test_a_sum_by_its_count_is_a_mean(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5))
    graph.returns(graph.op("mul", graph.op("sum", graph.inputs[0], [1, 2], shape=(2,)), 1 / 20))
    check(graph, ["mean"], run_tflite)


def test_a_sum_by_something_else_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5))
    graph.returns(graph.op("mul", graph.op("sum", graph.inputs[0], [1, 2], shape=(2,)), 1 / 10))
    check(graph, ["sum", "mul"], run_tflite)


@pytest.mark.parametrize(
    ("shape", "expected"), [((4,), ["conv_2d{RELU}", "reshape"]), ((3, 1), ["conv_2d", "reshape", "add{RELU}"])]
)
def test_ops_move_before_a_reshape_into_a_convolution(
    shape: tuple[int, ...], expected: list[str], run_tflite: RunTFLite
) -> None:
    """A one-dimensional convolution: its bias comes after the reshape."""
    graph = Graph((2, 3, 5))
    value = graph.op("reshape", graph.inputs[0], [2, 1, 3, 5], shape=(2, 1, 3, 5))
    value = graph.op("reshape", graph.conv(value, random(4, 1, 2, 5)), [2, 3, 4], shape=(2, 3, 4))
    graph.returns(graph.op("relu", graph.op("add", value, random(*shape))))
    check(graph, ["reshape", *expected], run_tflite)


def test_nothing_moves_before_a_reshape_that_is_used_twice(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4), (2, 3, 4))
    value = graph.op("reshape", graph.op("add", *graph.inputs), [6, 4], shape=(6, 4))
    graph.returns(graph.op("relu", value), value)
    check(graph, ["add", "reshape", "relu"], run_tflite)


TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def test_transposes_pass_paddings_and_concatenations(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 4, 5, 3), (-1, 4, 5, 3))
    values = [graph.op("transpose", each, TO_FIRST, shape=(-1, 3, 4, 5)) for each in graph.inputs]
    values = [graph.op("pad", each, i32([[0, 0], [1, 0], [0, 2], [0, 0]]), shape=(-1, 4, 6, 5)) for each in values]
    value = graph.op("relu", graph.op("concatenation", *values, shape=(-1, 8, 6, 5), axis=1))
    graph.returns(graph.op("transpose", value, TO_LAST, shape=(-1, 6, 5, 8)))
    check(graph, ["pad", "pad", "concatenation", "relu"], run_tflite)


@pytest.mark.parametrize("axes", [[2, 3], [-1, -2], [1, 2, 3], [2]])
def test_a_reduction_needs_no_transpose(axes: list[int], run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5, 3))
    value = graph.op("transpose", graph.inputs[0], TO_FIRST, shape=(2, 3, 4, 5))
    reduced = {axis % 4 for axis in axes}
    left = tuple(dim for index, dim in enumerate((2, 3, 4, 5)) if index not in reduced)
    graph.returns(graph.op("sum", value, axes, shape=left))
    stays = axes == [2]
    check(graph, ["transpose", "sum"] if stays else ["sum"], run_tflite)


def test_a_reduction_that_keeps_dimensions_comes_before_the_transpose(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 4, 5, 3))
    value = graph.op("transpose", graph.inputs[0], TO_FIRST, shape=(2, 3, 4, 5))
    graph.returns(graph.op("mean", value, [2, -1], shape=(2, 3, 1, 1), keep_dims=True))
    check(graph, ["mean", "reshape"], run_tflite)


def test_differently_transposed_parts_are_not_joined_first(run_tflite: RunTFLite) -> None:
    graph = Graph((3, 4, 5), (4, 3, 5))
    first = graph.op("transpose", graph.inputs[0], [2, 1, 0], shape=(5, 4, 3))
    second = graph.op("transpose", graph.inputs[1], [2, 0, 1], shape=(5, 4, 3))
    graph.returns(graph.op("concatenation", first, second, shape=(10, 4, 3), axis=0))
    check(graph, ["transpose", "transpose", "concatenation"], run_tflite)


@pytest.mark.parametrize(("axis", "counted"), [(-1, 2), (-3, 0), (1, 1)])
def test_sums_count_their_axis_from_the_first(axis: int, counted: int, run_tflite: RunTFLite) -> None:
    graph = Graph((2, 3, 4))
    graph.returns(graph.op("cumsum", graph.inputs[0], i32(axis), exclusive=False, reverse=False))
    check(graph, ["cumsum"], run_tflite)
    assert constant_int(graph.ops[0].operands[1]) == counted


def test_the_axis_of_an_unknown_rank_stays() -> None:
    graph = Graph(None)
    graph.returns(graph.op("cumsum", graph.inputs[0], i32(-1), exclusive=False, reverse=False))
    graph.optimize()
    assert constant_int(graph.ops[0].operands[1]) == -1
