"""The output of TensorFlow's importers parses, verifies, and equals our importers' for the same graph."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.mlir import graphs
from tests.mlir.structure import check_same
from tests.support import sample_models
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.importers.saved_model import import_saved_model
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.selection import Selection

_SAVED_MODELS = sample_models.MODELS | sample_models.UNSUPPORTED


def _parse(text: str) -> ModuleOp:
    module = IRParser(text).parse_module()
    verify(module)
    return module


@cache
def _case(tf: ModuleType, name: str) -> graphs.Case:
    return graphs.build(tf, graphs.CASES[name])


@pytest.mark.parametrize("name", graphs.CASES)
def test_a_graph_with_feeds_and_fetches(tf: ModuleType, tmp_path: Path, name: str) -> None:
    case = _case(tf, name)
    names, dtypes, shapes = zip(*case.inputs, strict=True)
    dims = [",".join(map(str, shape)) for shape in shapes]
    # The public entry point has no feeds and fetches.
    convert = importlib.import_module("tensorflow.python.pywrap_mlir").import_graphdef
    theirs = _parse(convert(case.graph, "", True, names, dtypes, dims, case.outputs))
    check_same(
        import_graph_def(case.save(tmp_path / "graph.pb"), Selection(inputs=names, outputs=case.outputs, is_raw=True)),
        theirs,
    )


@pytest.mark.parametrize("name", graphs.CASES)
def test_a_graph_as_it_is(tf: ModuleType, tmp_path: Path, name: str) -> None:
    case = _case(tf, name)
    theirs = _parse(tf.mlir.experimental.convert_graph_def(case.graph, "", True))
    ours = import_graph_def(case.save(tmp_path / "graph.pb"), Selection(inputs=[], outputs=case.outputs, is_raw=True))
    # Without feeds and fetches theirs is not an entry function.
    _function(ours, "main").attributes.pop("tf.entry_function")
    check_same(ours, theirs)


def test_a_function(tf: ModuleType, tmp_path: Path) -> None:
    def step(x: object) -> object:
        return tf.while_loop(lambda y: tf.reduce_sum(y) < 9.0, lambda y: (tf.nn.relu(y) + 1.0,), [x])

    function = tf.function(step).get_concrete_function(tf.TensorSpec([2], name="x"))
    graph = tf.compat.v1.Graph()
    with graph.as_default():
        function(tf.compat.v1.placeholder(tf.float32, [2], "x"))
    call = next(op for op in graph.get_operations() if op.type.endswith("PartitionedCall"))
    case = graphs.Case(graph.as_graph_def(), (), (call.name,))
    case.graph.versions.min_consumer = 0  # A function alone demands nothing.
    ours = import_graph_def(case.save(tmp_path / "graph.pb"), Selection(inputs=["x"], outputs=case.outputs))
    theirs = _parse(tf.mlir.experimental.convert_function(function, "", True))
    (name,) = (each for each in _names(theirs) if each == call.get_attr("f").name)
    _function(theirs, name).attributes.pop("tf.entry_function")
    check_same(ours, theirs, name, name)


def _function(module: ModuleOp, name: str) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name == name)


def _names(module: ModuleOp) -> list[str]:
    return [op.sym_name for op in module.ops if isinstance(op, FuncOp)]


@pytest.mark.parametrize("name", _SAVED_MODELS)
def test_the_functions_of_a_saved_model(tf: ModuleType, tmp_path: Path, name: str) -> None:
    path = sample_models.save(tf, _SAVED_MODELS[name], tmp_path / name)
    ours = import_saved_model(path)
    theirs = _parse(tf.mlir.experimental.convert_saved_model(str(path), "", True))
    # TensorFlow's importer makes names unique by a digit; it has no wrappers of signatures.
    pairs = [(each, f"{each}0") for each in _names(ours) if f"{each}0" in _names(theirs)]
    assert pairs
    for pair in pairs:
        check_same(ours, theirs, *pair)


@pytest.mark.parametrize("name", ["nested", "branches_and_loops"])
def test_a_saved_model_through_the_importer_of_sessions_parses(tf: ModuleType, tmp_path: Path, name: str) -> None:
    path = sample_models.save(tf, _SAVED_MODELS[name], tmp_path / name)
    text = tf.mlir.experimental.convert_saved_model_v1(str(path), "serving_default", "serve", False, True, True, True)
    assert "serving_default" in _names(_parse(text))
