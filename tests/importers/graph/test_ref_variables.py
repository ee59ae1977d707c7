"""Reference variables become handles: when they are read, what they are called, and graphs that make no sense."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.importers import v1_graphs
from tests.importers.v1_graphs import BOOL, FLOAT, node
from tfconvert.converter.executor import executor
from tfconvert.importers.graph.legacy_ops import upgrade_ref_variables
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection


def variable(name: str = "v", op: str = "VariableV2") -> pb.NodeDef:
    return node(name, op, dtype=FLOAT, shape=())


def upgraded(*nodes: pb.NodeDef, targets: str = "y", fed: str = "") -> dict[str, pb.NodeDef]:
    feeds = {(name, 0) for name in fed.split()}
    by_name = {each.name: each for each in nodes}
    return dict(upgrade_ref_variables(by_name, map(parse_graph_input, targets.split()), feeds))


def shown(each: pb.NodeDef) -> str:
    return f"{each.op}({', '.join(each.input)})"


def test_variables_without_writes_are_read_once() -> None:
    nodes = upgraded(
        variable(),
        node("a", "Neg", "v", T=FLOAT),
        node("b", "Neg", "v", T=FLOAT),
        node("y", "AddV2", "a", "b", T=FLOAT),
        node("init", "Assign", "v", "a", T=FLOAT),
    )
    assert shown(nodes["v"]) == "ReadVariableOp(v/handle)"
    assert shown(nodes["v/handle"]) == "VarHandleOp()"
    assert sum(each.op == "ReadVariableOp" for each in nodes.values()) == 1
    assert shown(nodes["init"]) == "Assign(v, a)"


def test_written_variables_are_read_after_each_users_dependencies() -> None:
    nodes = upgraded(
        variable(),
        node("x", "Const", dtype=FLOAT),
        node("w", "AssignAdd", "v", "x", "^before", T=FLOAT),
        node("before", "Neg", "v", T=FLOAT),
        node("i", "Identity", "v", "^w", T=FLOAT),
        node("y", "AddV2", "v", "i", T=FLOAT),
    )
    assert shown(nodes["w/write"]) == "AssignAddVariableOp(v/handle, x, ^before)"
    assert shown(nodes["w"]) == "ReadVariableOp(v/handle, ^w/write)"
    assert shown(nodes["before"]) == "Neg(before/read_0)"
    assert shown(nodes["i"]) == "ReadVariableOp(v/handle, ^w)"
    assert shown(nodes["y"]) == "AddV2(y/read_0, y/read_1)"
    assert shown(nodes["y/read_0"]) == shown(nodes["y/read_1"]) == "ReadVariableOp(v/handle, ^i)"


def test_writes_to_written_values_are_of_the_same_variable() -> None:
    nodes = upgraded(
        variable(),
        node("x", "Const", dtype=FLOAT),
        node("a", "Assign", "v", "x", T=FLOAT),
        node("b", "AssignSub", "a", "x", T=FLOAT),
        node("y", "Neg", "b", T=FLOAT),
    )
    assert shown(nodes["b/write"]) == "AssignSubVariableOp(v/handle, x, ^a/write)"
    assert shown(nodes["y/read_0"]) == "ReadVariableOp(v/handle, ^b/write)"


def test_an_identity_shares_the_memory_of_written_variables() -> None:
    nodes = upgraded(
        variable(),
        node("x", "Const", dtype=FLOAT),
        node("read", "Identity", "v", T=FLOAT),
        node("same", "Identity", "read", T=FLOAT),
        node("w", "AssignAdd", "v", "x", T=FLOAT),
        node("y", "Neg", "same", "^w", T=FLOAT),
    )
    assert shown(nodes["y"]) == "Neg(y/read_0, ^w)"
    assert shown(nodes["y/read_0"]) == "ReadVariableOp(v/handle, ^same, ^w)"
    assert shown(nodes["same"]) == "ReadVariableOp(v/handle, ^read)"


@pytest.mark.parametrize(("op", "is_handle"), [("Switch", True), ("Enter", True), ("Merge", False)])
def test_written_variables_enter_control_flow_as_handles(op: str, is_handle: bool) -> None:
    operands = ("read", "p") if op == "Switch" else ("read",)
    flow = node("f", op, *operands, T=FLOAT, **({"is_constant": True} if op == "Enter" else {}))
    nodes = upgraded(
        variable(),
        v1_graphs.placeholder("p", BOOL),
        node("x", "Const", dtype=FLOAT),
        node("read", "Identity", "v", T=FLOAT),
        node("w", "Assign", "v", "x", T=FLOAT),
        flow,
        node("y", "Neg", "f", "^w", T=FLOAT),
    )
    assert nodes["f"].input[0] == ("v/handle" if is_handle else "f/read_0")
    assert shown(nodes["y"]) == ("Neg(y/read_0, ^w)" if is_handle else "Neg(f, ^w)")


@pytest.mark.parametrize(("is_written", "passed"), [(False, "Switch(v, p)"), (True, "Switch(v/handle, p)")])
def test_control_flow_passes_values_or_handles(is_written: bool, passed: str) -> None:
    user = node("y", "AssignAdd" if is_written else "AddV2", "s:1", "x", T=FLOAT)
    nodes = upgraded(
        variable(),
        node("x", "Const", dtype=FLOAT),
        v1_graphs.placeholder("p", BOOL),
        node("s", "RefSwitch", "v", "p", T=FLOAT),
        user,
    )
    assert shown(nodes["s"]) == passed
    assert nodes["s"].attr["T"].type == (pb.DT_RESOURCE if is_written else FLOAT)


def test_whether_a_variable_has_a_value_is_asked_of_the_handle() -> None:
    nodes = upgraded(variable(), node("y", "IsVariableInitialized", "v", dtype=FLOAT))
    assert shown(nodes["y"]) == "VarIsInitializedOp(v/handle)"


def test_a_variable_can_be_fed(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.graph(variable(), node("y", "Neg", "v", T=FLOAT)).SerializeToString())
    module = import_graph_def(path, Selection(inputs=["v"], outputs=["y"]))
    assert executor.run(module, "main", [np.array(3, np.float32)]) == [-3]


def test_the_oldest_variables_leave_their_shape_open() -> None:
    nodes = upgraded(variable(op="Variable"), node("y", "Neg", "v", T=FLOAT))
    assert nodes["v/handle"].attr["shape"].shape.unknown_rank


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["Assign", "AssignAdd", "AssignSub", "Neg", "AddV2", "Identity"]),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STEPS)
def test_programs_of_reads_and_writes_give_what_tensorflow_gives(
    tf: ModuleType, tmp_path: Path, steps: list[tuple[str, int, int]]
) -> None:
    references, values = ["v", "w"], ["one", "v", "w"]
    nodes = [variable(), variable("w"), v1_graphs.scalar("one", 1)]
    nodes += [
        v1_graphs.scalar("two", 2),
        node("n", "Assign", "v", "one", T=FLOAT),
        node("n0", "Assign", "w", "two", "^n", T=FLOAT),
    ]
    for index, (op, first, second) in enumerate(steps):
        is_write = op.startswith("Assign")
        one = references[first % len(references)] if is_write else values[first % len(values)]
        inputs = [one] if op in ("Neg", "Identity") else [one, values[second % len(values)]]
        made = node(f"n{index + 1}", op, *inputs, f"^n{index}", T=FLOAT)
        nodes.append(made)
        values.append(made.name)
        if is_write:
            references.append(made.name)
    nodes.append(node("y", "Neg", values[-1], f"^n{len(steps)}", T=FLOAT))
    reads = [each.name for each in nodes if each.op in ("Neg", "AddV2")]
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.graph(*nodes).SerializeToString())
    v1 = tf.compat.v1
    as_written = v1.ConfigProto()  # TensorFlow's optimizer moves reads of references over writes
    as_written.graph_options.rewrite_options.disable_meta_optimizer = True
    as_written.graph_options.optimizer_options.opt_level = -1
    with v1.Graph().as_default(), v1.Session(config=as_written) as session:
        v1.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name="")
        wanted = session.run([f"{name}:0" for name in reads])
    assert executor.run(import_graph_def(path, Selection(outputs=reads)), "main", []) == wanted


_OPS = st.sampled_from(
    [
        "Assign",
        "AssignAdd",
        "Identity",
        "Neg",
        "AddV2",
        "RefSwitch",
        "RefMerge",
        "RefIdentity",
        "RefEnter",
        "RefNextIteration",
        "ScatterAdd",
        "CountUpTo",
        "Merge",
        "VariableV2",
        "DestroyTemporaryVariable",
        "IsVariableInitialized",
        "TemporaryVariable",
    ]
)
_NAMES = st.sampled_from(["v", "w", "n0", "n1", "n2:1", "n3", "x", "p", "^n0", "^n2"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([("Assign", []), ("RefSwitch", []), ("RefMerge", ["v", "n0", "n1"])])
@given(st.lists(st.tuples(_OPS, st.lists(_NAMES, max_size=3)), min_size=1, max_size=5))
def test_any_graph_ends_in_a_module_or_an_error(tmp_path: Path, drawn: list[tuple[str, list[str]]]) -> None:
    nodes = [variable(), variable("w"), v1_graphs.placeholder("x"), v1_graphs.placeholder("p", BOOL)]
    for index, (op, inputs) in enumerate(drawn):
        made = node(f"n{index}", op, *inputs, T=FLOAT, dtype=FLOAT)
        made.attr["N"].i = 2
        made.attr["shape"].shape.SetInParent()
        made.attr["frame_name"].s = b"f"
        nodes.append(made)
    path = tmp_path / "graph.pb"
    path.write_bytes(v1_graphs.graph(*nodes).SerializeToString())
    for output in ("n0", f"n{len(drawn) - 1}"):
        with suppress(ConversionError):
            verify(import_graph_def(path, Selection(outputs=[output])))
