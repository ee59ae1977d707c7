"""Slices that together cover a tensor, and others."""

from __future__ import annotations

import pytest

from tests.converter.targets.litert.optimize.graph import Graph, check
from tests.support.litert import RunTFLite
from tfconvert.converter.ir.constants import constant_ints
from tfconvert.schema.ir.values import Value


def _slices(graph: Graph, *parts: tuple[int, int]) -> list[Value]:
    """Adds slices of the second dimension of the input, every other one as a `strided_slice`."""
    (x,) = graph.inputs
    created = []
    for index, (begin, end) in enumerate(parts):
        shape = (2, end - begin)
        if index % 2:
            created.append(graph.op("slice", x, [0, begin], [-1, end - begin], shape=shape))
        else:
            created.append(
                graph.op("strided_slice", x, [0, begin], [0, end], [1, 1], shape=shape, begin_mask=1, end_mask=1)
            )
    return created


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(0, 2), (2, 4), (4, 6)], ["split"]),
        ([(4, 6), (0, 2), (2, 4)], ["split"]),
        ([(0, 3), (3, 6), (0, 3)], ["split"]),
        ([(0, 1), (1, 6)], ["split_v"]),
        ([(0, 2), (2, 4)], ["strided_slice", "slice"]),
        ([(0, 4), (2, 6)], ["strided_slice", "slice"]),
        ([(1, 3), (3, 6)], ["strided_slice", "slice"]),
    ],
)
def test_slices_of_one_axis(parts: list[tuple[int, int]], expected: list[str], run_tflite: RunTFLite) -> None:
    graph = Graph((2, 6))
    graph.returns(*(graph.op("neg", part) for part in _slices(graph, *parts)))
    check(graph, [*expected, *["neg"] * len(parts)], run_tflite)


def test_a_slice_to_the_end_gets_its_size(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 6))
    graph.returns(graph.op("slice", graph.inputs[0], [1, 2], [-1, -1], shape=(1, 4)))
    check(graph, ["slice"], run_tflite)
    assert constant_ints(graph.ops[0].operands[2]) == (1, 4)


def test_a_slice_of_an_unknown_batch_keeps_it(run_tflite: RunTFLite) -> None:
    graph = Graph((-1, 6))
    graph.returns(graph.op("slice", graph.inputs[0], [0, 2], [-1, -1], shape=(-1, 4)))
    check(graph, ["slice"], run_tflite)
    assert constant_ints(graph.ops[0].operands[2]) == (-1, 4)


def test_slices_of_two_axes_stay(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 6))
    (x,) = graph.inputs
    parts = [graph.op("slice", x, [row, 3 * row], [1, 3], shape=(1, 3)) for row in range(2)]
    graph.returns(*(graph.op("neg", part) for part in parts))
    check(graph, ["slice", "slice", "neg", "neg"], run_tflite)


def test_steps_are_no_parts(run_tflite: RunTFLite) -> None:
    graph = Graph((6,))
    (x,) = graph.inputs
    parts = [graph.op("strided_slice", x, [begin], [6], [2], shape=(3,)) for begin in range(2)]
    graph.returns(*(graph.op("neg", part) for part in parts))
    check(graph, ["strided_slice", "strided_slice", "neg", "neg"], run_tflite)


def test_bounds_from_the_end_or_beyond_it_are_those_of_the_axis(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 6))
    (x,) = graph.inputs
    bounds = [([0, -6], [0, -4]), ([0, 2], [0, 9])]
    shapes = [(2, 2), (2, 4)]
    rows = [
        graph.op("strided_slice", x, begin, end, [1, 1], shape=shape, begin_mask=1, end_mask=1)
        for (begin, end), shape in zip(bounds, shapes, strict=True)
    ]
    graph.returns(*(graph.op("neg", each) for each in rows))
    check(graph, ["split_v", "neg", "neg"], run_tflite)


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ([0, 1], [0, 2], ["strided_slice", "neg"]),
        ([0, -1], [0, 0], ["strided_slice", "neg"]),
        ([0, -3], [0, 9], ["strided_slice", "neg"]),
    ],
)
def test_a_dropped_dimension_that_is_added_again_is_kept(
    begin: list[int], end: list[int], expected: list[str], run_tflite: RunTFLite
) -> None:
    graph = Graph((2, 6))
    (x,) = graph.inputs
    row = graph.op("strided_slice", x, begin, end, [1, 1], shape=(2,), begin_mask=1, end_mask=1, shrink_axis_mask=2)
    graph.returns(graph.op("neg", graph.op("reshape", row, [2, 1], shape=(2, 1))))
    check(graph, expected, run_tflite)


def test_a_dimension_that_is_added_elsewhere_or_a_slice_with_other_users_stays(run_tflite: RunTFLite) -> None:
    graph = Graph((2, 6))
    (x,) = graph.inputs
    rows = [
        graph.op("strided_slice", x, [0, at], [0, 0], [1, 1], shape=(2,), begin_mask=1, end_mask=1, shrink_axis_mask=2)
        for at in range(2)
    ]
    results = [graph.op("reshape", rows[0], [1, 2], shape=(1, 2)), graph.op("reshape", rows[1], [2, 1], shape=(2, 1))]
    graph.returns(*(graph.op("neg", each) for each in (*results, rows[1])))
    check(graph, ["strided_slice", "strided_slice", "reshape", "reshape", "neg", "neg", "neg"], run_tflite)
