"""V1 control flow: the executor's own ops, loops' back edges, feeds and fetches inside of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfconvert
from tests.importers import v1_graphs
from tests.importers.v1_graphs import BOOL, FLOAT, INT, node
from tests.support.litert import RunTFLite
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import locations, tf_executor, types
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection


def imported(tmp_path: Path, graph: pb.GraphDef, **arguments: object) -> ModuleOp:
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    module = import_graph_def(path, Selection(**arguments))  # type: ignore[arg-type]
    verify(module)
    return module


def executor_ops(module: ModuleOp) -> dict[str, Operation]:
    """Returns the ops that are not islands, by node; of a NextIteration the sink."""
    graph = next(op for op in module.walk() if isinstance(op, tf_executor.GraphOp))
    others = (tf_executor.IslandOp, tf_executor.FetchOp)
    return {locations.node_of(op.location): op for op in graph.body.ops if not isinstance(op, others)}


def test_a_condition(tmp_path: Path) -> None:
    ops = executor_ops(imported(tmp_path, v1_graphs.cond()))
    assert {name: op.name for name, op in ops.items()} == {"switch": "tf_executor.Switch", "merge": "tf_executor.Merge"}
    assert [result.shape for result in ops["switch"].results[:2]] == [(2,), (2,)]
    assert str(ops["merge"].attributes["N"]) == "2 : i64"


def test_a_loop(tmp_path: Path) -> None:
    ops = executor_ops(imported(tmp_path, v1_graphs.loop()))
    sink = ops["next"]
    source = sink.operands[0].owner
    assert isinstance(source, tf_executor.NextIterationSourceOp)
    assert source.results[0] in ops["merge"].operands
    assert source.results[0].type == sink.operands[1].type
    assert str(ops["limit"].properties["frame_name"]) == '"frame"'
    assert str(ops["limit"].properties["parallel_iterations"]) == "3 : i64"
    assert str(ops["enter"].properties["is_constant"]) == "false"


def test_controls_go_into_and_out_of_a_loop(tmp_path: Path) -> None:
    graph = v1_graphs.loop()
    by_name = {each.name: each for each in graph.node}
    by_name["next"].input.append("^one")
    by_name["add"].input.append("^next")
    graph.node.append(node("done", "ControlTrigger", "^exit", "^merge"))
    graph.node.append(node("out", "Identity", "exit", "^done", T=INT))
    ops = executor_ops(imported(tmp_path, graph, outputs=["out"]))
    source = ops["next"].operands[0].owner
    assert isinstance(source, Operation)
    assert [value.type for value in ops["done"].operands] == [tf_executor.CONTROL] * 2
    assert isinstance(ops["next"].operands[2].owner, tf_executor.IslandOp)
    # Whoever runs after a NextIteration runs in the iteration that it starts.
    (user,) = source.results[2].uses
    assert isinstance(user.operation, tf_executor.IslandOp)


def test_a_loop_whose_value_no_one_fetches_is_not_imported(tmp_path: Path) -> None:
    graph = v1_graphs.loop()
    assert executor_ops(imported(tmp_path, graph, outputs=["zero"])) == {}


def test_dead_and_inner_values_can_be_fetched(tmp_path: Path) -> None:
    module = imported(tmp_path, v1_graphs.cond(), outputs=["switch:1", "merge:1"])
    graph = next(op for op in module.walk() if isinstance(op, tf_executor.GraphOp))
    assert [str(result.type) for result in graph.results] == ["tensor<2xf32>", "tensor<i32>"]


def test_a_fed_enter_still_enters(tmp_path: Path) -> None:
    module = imported(tmp_path, v1_graphs.loop(), inputs=["n", "enter"], outputs=["exit"])
    enter = executor_ops(module)["enter"]
    assert enter.operands[0] == next(iter(module.body.block.ops)).regions[0].block.args[1]


@pytest.mark.parametrize(("tensor", "gone"), [("merge", "enter"), ("switch:1", "zero"), ("less", "limit")])
def test_feeding_within_a_loop_cuts_it(tmp_path: Path, tensor: str, gone: str) -> None:
    module = imported(tmp_path, v1_graphs.loop(), inputs=[tensor, "n"], outputs=["add" if ":" in tensor else "goes_on"])
    assert gone not in executor_ops(module)


def test_a_loop_cut_at_its_entry_computes(tmp_path: Path, run_tflite: RunTFLite) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.loop().SerializeToString())
    model = tfconvert.convert(path, inputs=["enter", "n"], outputs=["exit", "enter"])
    got = run_tflite(bytes(model), [np.array(7, np.int32), np.array(9, np.int32)])
    assert [int(value) for value in got] == [9, 7]


def test_a_switch_of_many(tmp_path: Path) -> None:
    graph = v1_graphs.graph(
        v1_graphs.placeholder("x", FLOAT, (2,)),
        v1_graphs.placeholder("i", INT),
        node("switch", "_SwitchN", "x", "i", T=FLOAT, num_outs=3),
        node("merge", "Merge", "switch:2", "switch", "switch:1", T=FLOAT, N=3),
    )
    ops = executor_ops(imported(tmp_path, graph, outputs=["merge"]))
    assert len(ops["switch"].results) == 4
    assert str(ops["switch"].properties["num_outs"]) == "3 : i64"
    assert list(ops["merge"].operands) == [ops["switch"].results[i] for i in (2, 0, 1)]


def test_references_stay_references(tmp_path: Path) -> None:
    graph = v1_graphs.graph(
        node("v", "VariableV2", dtype=FLOAT, shape=(2,)),
        v1_graphs.placeholder("p", BOOL),
        node("switch", "RefSwitch", "v", "p", T=FLOAT),
        node("value", "Switch", "v", "p", T=FLOAT),
        node("out", "RefMerge", "switch", "switch:1", T=FLOAT, N=2),
    )
    ops = executor_ops(imported(tmp_path, graph, inputs=["p"], outputs=["out", "value"], is_raw=True))
    elements = {name: op.results[0].element for name, op in ops.items()}
    assert isinstance(elements["switch"], types.RefType)
    assert isinstance(elements["out"], types.RefType)
    assert elements["value"] == types.F32


def test_a_reference_may_decide(tmp_path: Path) -> None:
    graph = v1_graphs.graph(
        node("p", "VariableV2", dtype=BOOL, shape=()),
        v1_graphs.placeholder("x"),
        node("switch", "Switch", "x", "p", T=FLOAT),
    )
    module = imported(tmp_path, graph, inputs=["x"], outputs=["switch", "switch:1"], is_raw=True)
    predicate = executor_ops(module)["switch"].operands[1]
    assert predicate.element == types.RefType.get(types.I1)
    verify(module)


def test_functions_name_outputs_by_argument(tmp_path: Path) -> None:
    module = imported(tmp_path, v1_graphs.call())
    (neg,) = (op for op in module.walk() if op.name == "tf.Neg")
    assert neg.operands[0].owner.results.index(neg.operands[0]) == 1  # type: ignore[union-attr]


def test_a_cycle_without_next_iteration_is_reported_with_its_nodes(tmp_path: Path) -> None:
    graph = v1_graphs.loop()
    next(each for each in graph.node if each.name == "next").op = "Identity"
    with pytest.raises(ConversionError) as caught:
        imported(tmp_path, graph, outputs=["exit"])
    assert caught.value.code == "cyclic-graph"
    for name in ("merge", "next", "add"):
        assert name in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("merge", lambda each: each.input.pop(), "bad-input"),
        ("next", lambda each: each.input.pop(), "bad-input"),
        ("next", lambda each: each.input.append("zero"), "bad-input"),
        ("enter", lambda each: each.attr.pop("frame_name"), "bad-attribute"),
        ("merge", lambda each: setattr(each, "op", "RefMerge"), "bad-input"),
        ("limit", lambda each: setattr(each.attr["frame_name"], "s", b"\xff"), "bad-attribute"),
        ("goes_on", lambda each: each.input.__setitem__(0, "zero"), "bad-input"),
        ("exit", lambda each: each.attr.pop("T"), "bad-attribute"),
        ("exit", lambda each: each.input.__setitem__(0, "switch:2"), "missing-output"),
        ("next", lambda each: each.input.__setitem__(0, "nowhere"), "missing-node"),
    ],
)
def test_damaged_control_flow_is_reported(tmp_path: Path, name: str, change: object, code: str) -> None:
    graph = v1_graphs.loop()
    change(next(each for each in graph.node if each.name == name))  # type: ignore[operator]
    with pytest.raises(ConversionError) as caught:
        imported(tmp_path, graph, outputs=["exit"])
    assert caught.value.code == code


_NODES = st.integers(0, 11)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rewires=st.lists(st.tuples(_NODES, _NODES, st.sampled_from(["", ":1", "^"])), min_size=1, max_size=4))
def test_rewired_control_flow_never_crashes(tmp_path: Path, rewires: list[tuple[int, int, str]]) -> None:
    graph = v1_graphs.loop()
    for user, used, how in rewires:
        name = graph.node[used].name
        text = f"^{name}" if how == "^" else name + how
        inputs = graph.node[user].input
        if inputs and how != "^":
            inputs[0] = text
        else:
            inputs.append(text)
    with suppress(ConversionError):
        imported(tmp_path, graph, outputs=["exit"])
