"""The passes as their docstrings show them, and the merging of equal ops."""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from converter.passes import cse, optimize
from schema.dialects import tfl, types
from tests.converter.optimize.graph import Graph, f32, random


def _parsed(body: str, arguments: str, result: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, tfl.dialect()):
        context.load_dialect(dialect)
    return Parser(context, f"func.func @main({arguments}) -> {result} {{\n{body}\n}}").parse_module()


@pytest.mark.parametrize(
    ("module", "run", "arguments", "result"),
    [
        (optimize, optimize.Optimize(), "%arg0: tensor<1x2x2x1xf32>", "tensor<1x2x2x1xf32>"),
        (cse, cse.CommonSubexpressions(), "%arg0: tensor<2xf32>", "tensor<2xf32>"),
    ],
)
def test_docstring(
    module: ModuleType, run: optimize.Optimize | cse.CommonSubexpressions, arguments: str, result: str
) -> None:
    found = re.search(r"Before:\n\n(.*?)\nAfter:\n\n(.*)", module.__doc__ or "", re.DOTALL)
    assert found is not None
    before, after = (_parsed(text, arguments, result) for text in found.groups())
    assert not before.is_structurally_equivalent(after)
    run.apply(before)
    before.verify()
    assert before.is_structurally_equivalent(after), str(before)


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
