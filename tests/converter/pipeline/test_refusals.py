"""Nodes that can't be converted are reported with a hint; nodes that only dead ones need are ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfconvert
from tests.importers import v1_graphs
from tests.importers.v1_graphs import FLOAT, INT, node
from tfconvert.converter.pipeline.refusals import check_graphs
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection


def queue() -> list[pb.NodeDef]:
    dequeue = node("batch", "QueueDequeueManyV2", "queue", "size")
    dequeue.attr["component_types"].list.type.extend([FLOAT, INT])
    queue = node("queue", "FIFOQueueV2")
    queue.attr["component_types"].list.type.extend([FLOAT, INT])
    return [queue, v1_graphs.scalar("size", 4, dtype=INT), dequeue, node("y", "Neg", "batch", T=FLOAT)]


def python() -> list[pb.NodeDef]:
    call = node("call", "PyFunc", "x", token="pyfunc_0")
    call.attr["Tin"].list.type.append(FLOAT)
    call.attr["Tout"].list.type.append(FLOAT)
    return [v1_graphs.placeholder("x"), call, node("y", "Neg", "call", T=FLOAT)]


def gradient() -> list[pb.NodeDef]:
    call = node("call", "SymbolicGradient", "x")
    call.attr["Tin"].list.type.append(FLOAT)
    call.attr["Tout"].list.type.append(FLOAT)
    call.attr["f"].func.name = "f"
    return [v1_graphs.placeholder("x"), call, node("y", "Neg", "call", T=FLOAT)]


def problems(tmp_path: Path, nodes: list[pb.NodeDef], **arguments: object) -> tuple[Diagnostic, ...]:
    path = tmp_path / "graph.pb"
    graph = v1_graphs.graph(*nodes)
    differentiated = graph.library.function.add(signature=pb.OpDef(name="f"), ret={"y": "x"})
    differentiated.signature.input_arg.add(name="x", type=FLOAT)
    differentiated.signature.output_arg.add(name="y", type=FLOAT)
    path.write_bytes(graph.SerializeToString())
    with pytest.raises(ConversionError) as caught:
        check_graphs(import_graph_def(path, Selection(outputs=["y"], **arguments)))  # type: ignore[arg-type]
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("nodes", "code", "node", "hint"),
    [
        (queue(), "input-pipeline", "batch", "--input batch:0 (f32), --input batch:1 (i32)"),
        (python(), "python-function", "call", "TensorFlow ops"),
        (gradient(), "symbolic-gradient", "call", "tf.gradients"),
    ],
)
def test_what_only_a_running_program_has(
    tmp_path: Path, nodes: list[pb.NodeDef], code: str, node: str, hint: str
) -> None:
    (problem,) = problems(tmp_path, nodes)
    assert (problem.code, problem.node) == (code, node)
    assert hint in problem.hint


def test_what_is_fed_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.graph(*queue()).SerializeToString())
    module = import_graph_def(path, Selection(inputs=["batch"], outputs=["y"]))
    check_graphs(module)
    assert "Queue" not in str(module)


def test_a_graph_can_be_looked_at_that_can_not_be_converted(tmp_path: Path) -> None:
    """The importer imports such nodes; only the check refuses them."""
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.graph(*queue()).SerializeToString())
    assert "QueueDequeueManyV2" in str(import_graph_def(path, Selection(outputs=["y"])))
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path, outputs=["y"])
    assert caught.value.code == "input-pipeline"


def test_all_inputs_that_are_needed_must_be_named(tmp_path: Path) -> None:
    nodes = [
        *map(v1_graphs.placeholder, "abcd"),
        node("ab", "AddV2", "a", "b", T=FLOAT),
        node("y", "AddV2", "ab", "c", T=FLOAT),
    ]
    found = problems(tmp_path, nodes, inputs=["b"])
    assert [problem.code for problem in found] == ["unfed-input"] * 2
    assert {problem.node for problem in found} == {"a", "c"}
