"""V1 graphs in short: a line a node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tfconvert.converter.passes.functionalize_conditionals import FunctionalizeConditionals
from tfconvert.converter.passes.functionalize_loops import FunctionalizeLoops
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection

_TYPES = {"float": pb.DT_FLOAT, "bool": pb.DT_BOOL, "int": pb.DT_INT32, "resource": pb.DT_RESOURCE}
_OF_DTYPE = ("Placeholder", "Const", "VarHandleOp", "AssignVariableOp", "ReadVariableOp", "RandomUniform")


def graph_def(text: str) -> pb.GraphDef:
    """Returns a graph of lines `name op inputs... key=value...`; types are float where no `T=` says otherwise."""
    graph = pb.GraphDef()
    graph.versions.producer = 1882
    for line in filter(None, map(str.strip, text.splitlines())):
        name, op, *rest = line.split()
        node = graph.node.add(name=name, op=op, input=[word for word in rest if "=" not in word])
        node.attr["dtype" if op in _OF_DTYPE else "T"].type = pb.DT_FLOAT
        if op == "RandomUniform":
            node.attr["T"].type = pb.DT_INT32
        if op == "VarHandleOp":
            node.attr["shape"].shape.SetInParent()
        if op == "Merge":
            node.attr["N"].i = sum(not word.startswith("^") for word in node.input)
        for key, value in (word.split("=") for word in rest if "=" in word):
            _set(node, key, value)
    return graph


def _set(node: pb.NodeDef, key: str, value: str) -> None:
    if value in _TYPES:
        node.attr[key].type = _TYPES[value]
    elif key == "frame":
        node.attr["frame_name"].s = value.encode()
    elif key == "constant":
        node.attr["is_constant"].b = value == "yes"
    elif key == "value":
        node.attr["value"].tensor.dtype = node.attr["dtype"].type
        node.attr["value"].tensor.tensor_shape.SetInParent()
        field = {pb.DT_FLOAT: "float_val", pb.DT_BOOL: "bool_val", pb.DT_INT32: "int_val"}[node.attr["dtype"].type]
        getattr(node.attr["value"].tensor, field).append(float(value) if field == "float_val" else int(value))
    elif value.isdigit():
        node.attr[key].i = int(value)
    else:
        node.attr[key].s = value.encode()


def imported(text: str, outputs: Sequence[str], folder: Path) -> ModuleOp:
    """Returns the module of a graph."""
    path = folder / "graph.pb"
    path.write_bytes(graph_def(text).SerializeToString())
    module = import_graph_def(path, Selection(outputs=outputs))
    verify(module, with_relations=False)
    return module


def functionalize(module: ModuleOp) -> None:
    """Applies both passes."""
    FunctionalizeLoops().apply(module)
    FunctionalizeConditionals().apply(module)
    verify(module)


def refused(text: str, outputs: Sequence[str], folder: Path) -> ConversionError:
    """Returns the error that importing a graph or making it functional ends with."""
    with pytest.raises(ConversionError) as caught:
        functionalize(imported(text, outputs, folder))
    return caught.value
