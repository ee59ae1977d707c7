"""Functions of TensorFlow 1: called by their names, with types that the caller chooses."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfconvert
from tests.importers import v1_graphs
from tests.importers.v1_graphs import FLOAT, INT, node
from tests.support.litert import RunTFLite
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection


def generic() -> pb.GraphDef:
    """Returns two calls of `twice(x: T, n: T) = x + x, n`, for floats by name and for integers by a call."""
    called = node("call", "PartitionedCall", "i", "i")
    called.attr["Tin"].list.type.extend([INT, INT])
    called.attr["Tout"].list.type.extend([INT, INT])
    called.attr["f"].func.name = "twice"
    called.attr["f"].func.attr["T"].type = INT
    graph = v1_graphs.graph(
        v1_graphs.placeholder("x", FLOAT, (2,)),
        v1_graphs.placeholder("i", INT, (2,)),
        node("named", "twice", "x", "x", T=FLOAT),
        node("again", "twice", "named", "named:1", T=FLOAT),
        called,
    )
    function = graph.library.function.add()
    function.signature.name = "twice"
    function.signature.attr.add(name="T", type="type")
    for name in ("x", "n"):
        function.signature.input_arg.add(name=name, type_attr="T")
        function.signature.output_arg.add(name=f"{name}_out", type_attr="T")
    function.node_def.append(node("add", "AddV2", "x", "x"))
    function.node_def[0].attr["T"].placeholder = "T"
    function.ret["x_out"], function.ret["n_out"] = "add:z:0", "n"
    return graph


def write(tmp_path: Path, graph: pb.GraphDef) -> Path:
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def test_each_choice_of_types_is_a_function(tmp_path: Path) -> None:
    module = import_graph_def(write(tmp_path, generic()), Selection(outputs=["again", "again:1", "call"]))
    verify(module)
    private = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is not None]
    elements = [[str(arg.type) for arg in function.body.block.args] for function in private]
    assert elements == [["tensor<*xf32>"] * 2, ["tensor<*xi32>"] * 2]


def test_calls_by_name_compute(tmp_path: Path, run_tflite: RunTFLite) -> None:
    model = tfconvert.convert(write(tmp_path, generic()), outputs=["again:1", "again", "call"])
    value = np.arange(2, dtype=np.float32)
    got = run_tflite(bytes(model), [value, np.arange(2, dtype=np.int32)])
    np.testing.assert_array_equal(got[0], value)
    np.testing.assert_array_equal(got[1], 4 * value)
    np.testing.assert_array_equal(got[2], [0, 2])


def test_tensorflows_own_functions(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite) -> None:
    from tensorflow.python.framework import function  # TensorFlow 1's functions aren't public any more

    @function.Defun(tf.float32, tf.float32)  # type: ignore[untyped-decorator]
    def mixed(a: object, b: object) -> tuple[object, object]:
        return tf.nn.relu(a) + b, tf.nn.elu(b)

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2], "x")
        first, second = mixed(x, -x)
        v1.add(first, second, name="y")
    value = np.array([-1, 2], np.float32)
    with v1.Session(graph=graph) as session:
        wanted = session.run("y:0", {"x:0": value})
    path = tmp_path / "defun.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    np.testing.assert_allclose(run_tflite(bytes(tfconvert.convert(path)), [value])[0], wanted, rtol=1e-6)


def _forget_type(graph: pb.GraphDef) -> None:
    del graph.node[2].attr["T"]


def _undeclared(graph: pb.GraphDef) -> None:
    graph.library.function[0].node_def[0].attr["T"].placeholder = "U"


def _list(graph: pb.GraphDef) -> None:
    graph.library.function[0].signature.attr.add(name="N", type="int").default_value.i = 2
    graph.library.function[0].signature.input_arg[0].number_attr = "N"


def _growing(graph: pb.GraphDef) -> None:
    """Changes the function to call itself, each time with a function around the last one's."""
    function = graph.library.function[0]
    function.signature.attr.add(name="F", type="func")
    graph.node[2].attr["F"].func.name = "twice"
    inner = node("add", "twice", "x", "x")
    inner.attr["T"].type = FLOAT
    inner.attr["F"].func.name = "twice"
    inner.attr["F"].func.attr["F"].placeholder = "F"
    function.node_def[0].CopyFrom(inner)
    function.ret["x_out"] = "add:x_out:0"


@pytest.mark.parametrize("change", [_forget_type, _undeclared, _list, _growing])
def test_invalid_instances_are_reported(tmp_path: Path, change: object) -> None:
    graph = generic()
    assert callable(change)
    change(graph)
    with pytest.raises(ConversionError) as caught:
        import_graph_def(write(tmp_path, graph), Selection(outputs=["named"]))
    assert caught.value.code == "bad-function"
    assert "twice" in str(caught.value)


def test_a_function_named_like_the_op_that_calls_it_ends(tmp_path: Path) -> None:
    graph = generic()
    graph.library.function[0].signature.name = "PartitionedCall"
    graph.node[4].attr["f"].func.name = "PartitionedCall"
    with pytest.raises(ConversionError):
        import_graph_def(write(tmp_path, graph), Selection(outputs=["call"]))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10_000), value=st.integers(0, 255))
def test_damaged_bytes_never_crash(tmp_path: Path, position: int, value: int) -> None:
    data = bytearray(generic().SerializeToString())
    data[position % len(data)] = value
    path = tmp_path / "damaged.pb"
    path.write_bytes(bytes(data))
    with suppress(ConversionError):
        verify(import_graph_def(path))
