"""The merging of equal ops."""

from __future__ import annotations

import numpy as np

from tests.converter.targets.litert.optimize.graph import Graph, f32, random
from tfconvert.schema.dialects import types


def test_equal_ops_merge_once_their_operands_have() -> None:
    graph = Graph((4,))
    x = graph.inputs[0]
    values = [graph.op("neg", graph.op("add", x, f32([1, 2, 3, 4]))) for _ in range(3)]
    graph.returns(graph.op("mul", graph.op("mul", values[0], values[1]), values[2]))
    applied = graph.merge()
    assert graph.names == ["add", "neg", "mul", "mul"]
    assert applied == {"cse": 6}


def test_large_constants_merge_by_their_source() -> None:
    graph = Graph((600,))
    x, array = graph.inputs[0], random(600)
    first = graph.op("add", x, graph.constant(array))
    second = graph.op("add", x, graph.constant(array.copy()))
    graph.returns(graph.op("mul", first, second))
    graph.merge()
    assert graph.names == ["add", "add", "mul"]


def test_options_tell_ops_apart() -> None:
    graph = Graph((4,))
    x = graph.inputs[0]
    first = graph.op("leaky_relu", x, alpha=0.1)
    graph.returns(graph.op("mul", first, graph.op("leaky_relu", x, alpha=0.2)))
    graph.merge()
    assert graph.names == ["leaky_relu", "leaky_relu", "mul"]


def test_random_numbers_do_not_merge() -> None:
    graph = Graph((2,), element=types.I32)
    values = [graph.op("random_uniform", graph.inputs[0], shape=(2,)) for _ in range(2)]
    graph.returns(*values)
    graph.merge()
    assert graph.names == ["random_uniform", "random_uniform"]


def test_states_do_not_merge() -> None:
    graph = Graph((1, 4))
    weights, time = random(2, 4), random(2, 3)
    values = [
        graph.op("svdf", graph.inputs[0], weights, time, None, np.zeros((1, 6), np.float32), shape=(1, 2), rank=1)
        for _ in range(2)
    ]
    graph.returns(*values)
    graph.merge()
    assert graph.names == ["svdf", "svdf"]
    assert graph.ops[0].operands[4] is not graph.ops[1].operands[4]
    assert graph.ops[0].operands[1] is graph.ops[1].operands[1]
