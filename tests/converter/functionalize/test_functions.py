"""Functions that branches name: those that are not there, and those that run themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfconvert
from tests.converter.functionalize.graphs import graph_def
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def _call(node: pb.NodeDef, op: str, callee: str) -> None:
    node.op = op
    node.input.extend(["p", "p", "x"] if op == "If" else ["p", "x"])
    node.attr["Tin"].list.type.extend([pb.DT_BOOL, pb.DT_FLOAT])
    node.attr["Tout"].list.type.append(pb.DT_FLOAT)
    if op == "If":
        node.attr["Tcond"].type = pb.DT_BOOL
    for name in ("then_branch", "else_branch") if op == "If" else ("f",):
        node.attr[name].func.name = callee


def _define(library: pb.FunctionDefLibrary, name: str, op: str, callee: str) -> None:
    function = library.function.add()
    function.signature.name = name
    function.signature.input_arg.add(name="p", type=pb.DT_BOOL)
    function.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    function.ret["y"] = "call:output:0"
    _call(function.node_def.add(name="call"), op, callee)


@pytest.mark.parametrize(
    ("functions", "code"),
    [
        ([], "missing-function"),
        ([("f", "If", "f")], "recursive-function"),
        ([("f", "If", "g"), ("g", "PartitionedCall", "f")], "recursive-function"),
        ([("f", "PartitionedCall", "f")], "recursive-function"),
    ],
)
def test_they_are_refused(functions: list[tuple[str, str, str]], code: str, tmp_path: Path) -> None:
    graph = graph_def("p Placeholder dtype=bool\nx Placeholder")
    for name, op, callee in functions:
        _define(graph.library, name, op, callee)
    _call(graph.node.add(name="y"), "If", "f")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(path, inputs=["p", "x"], outputs=["y"])
    assert caught.value.code == code
