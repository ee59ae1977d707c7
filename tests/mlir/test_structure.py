"""The comparer must report every kind of difference, and nothing for equal modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.importers import v1_graphs
from tests.mlir.structure import DifferenceError, check_same, is_compatible
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import locations, tensor_data, tf, tf_executor, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def _module(tmp_path: Path, graph: pb.GraphDef | None = None) -> ModuleOp:
    path = tmp_path / "graph.pb"
    path.write_bytes((graph or v1_graphs.cond()).SerializeToString())
    return import_graph_def(path)


def _graph(module: ModuleOp) -> tf_executor.GraphOp:
    return next(op for op in module.walk() if isinstance(op, tf_executor.GraphOp))


def _node(module: ModuleOp, name: str) -> Operation:
    """Returns the op in the graph that is a node's."""
    found: dict[str, Operation] = {locations.node_of(op.location): op for op in _graph(module).body.ops}
    return found[name]


def _inner(module: ModuleOp, name: str) -> Operation:
    island = _node(module, name)
    assert isinstance(island, tf_executor.IslandOp)
    op = island.wrapped
    assert isinstance(op, Operation)
    return op


def _swap(module: ModuleOp) -> None:
    op = _node(module, "merge")
    op.set_operands([op.operands[1], op.operands[0]])


def _other_branch(module: ModuleOp) -> None:
    _inner(module, "neg").operands = [_node(module, "switch").results[0]]


def _no_control(module: ModuleOp) -> None:
    _node(module, "one").operands = []


def _other_constant(module: ModuleOp) -> None:
    _inner(module, "one").properties["value"] = tensor_data.of_array(np.array(2.0, np.float32))


def _more_attributes(module: ModuleOp) -> None:
    _inner(module, "neg").attributes["_class"] = ArrayAttr.get([attrs.string("loc:@x")])


def _other_attribute(module: ModuleOp) -> None:
    _node(module, "merge").attributes["N"] = attrs.integer(3)


def _other_shape(module: ModuleOp) -> None:
    _node(module, "switch").results[0].type = types.tensor(types.F32, (3,))


def _other_location(module: ModuleOp) -> None:
    for op in (_inner(module, "neg"), _node(module, "neg")):
        op.location = NameLoc.get("renamed")


def _other_op(module: ModuleOp) -> None:
    op = _inner(module, "neg")
    block = op.parent
    assert block is not None
    other = tf.build("Abs", list(op.operands), [result.type for result in op.results], location=op.location)
    block.insert_op_before(other, op)
    for result, new in zip(op.results, other.results, strict=True):
        result.replace_all_uses_with(new)
    op.detach()
    op.erase()


def _function_attribute(module: ModuleOp) -> None:
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    function.attributes["tf._implements"] = attrs.string("other")


def test_the_same_graph_is_the_same(tmp_path: Path) -> None:
    check_same(_module(tmp_path), _module(tmp_path))


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (_swap, "merge", "operands"),
        (_other_branch, "neg", "operands"),
        (_no_control, "one", "controls"),
        (_other_constant, "one", "value"),
        (_more_attributes, "neg", "_class"),
        (_other_attribute, "merge", "N"),
        (_other_shape, "switch", "type of a result"),
        (_other_location, "neg", "no such"),
        (_other_op, "neg", "tf.Neg / tf.Abs"),
        (_function_attribute, "function", "tf._implements"),
    ],
)
def test_a_difference_is_reported_with_its_place(
    tmp_path: Path, change: Callable[[ModuleOp], None], where: str, what: str
) -> None:
    theirs = _module(tmp_path)
    change(theirs)
    with pytest.raises(DifferenceError) as caught:
        check_same(_module(tmp_path), theirs)
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_called_functions_are_compared_whatever_their_names(tmp_path: Path) -> None:
    graph = v1_graphs.call()
    graph.node[2].attr["f"].func.name = graph.library.function[0].signature.name = "renamed"
    check_same(_module(tmp_path, v1_graphs.call()), _module(tmp_path, graph))
    graph.library.function[0].node_def[1].op = "Abs"
    with pytest.raises(DifferenceError, match=r"@body / @renamed: at neg .* tf.Neg / tf.Abs"):
        check_same(_module(tmp_path, v1_graphs.call()), _module(tmp_path, graph))


def test_modules_are_compared(tmp_path: Path) -> None:
    graph = v1_graphs.cond()
    graph.versions.producer += 1
    with pytest.raises(DifferenceError, match=r"tf\.versions"):
        check_same(_module(tmp_path), _module(tmp_path, graph))


def test_more_nodes_in_theirs_are_no_difference(tmp_path: Path) -> None:
    theirs = _module(tmp_path)
    island = tf_executor.IslandOp.wrap(tf.build("NoOp", [], [], location=NameLoc.get("more")), [], NameLoc.get("more"))
    graph = _graph(theirs)
    graph.body.insert_op_before(island, graph.terminator)
    check_same(_module(tmp_path), theirs)
    with pytest.raises(DifferenceError, match="more"):
        check_same(theirs, _module(tmp_path))


@pytest.mark.parametrize(
    ("shapes", "is_one"), [((None, (2,)), True), (((-1,), (2,)), True), (((2,), (3,)), False), (((), (-1,)), False)]
)
def test_types_may_know_more_but_not_otherwise(
    shapes: tuple[types.Shape | None, types.Shape | None], is_one: bool
) -> None:
    assert is_compatible(*(types.tensor(types.F32, shape) for shape in shapes)) is is_one
    assert not is_compatible(types.tensor(types.F32, shapes[0]), types.tensor(types.I32, shapes[1]))
