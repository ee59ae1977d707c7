"""Graphs imported as plain ops are what `executor-to-functional` makes of the same graphs with islands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.importers import v1_graphs, v1_models
from tests.support import sample_models
from tfconvert.converter.passes.executor_to_functional import ExecutorToFunctional
from tfconvert.converter.passes.functionalize_conditionals import FunctionalizeConditionals
from tfconvert.converter.passes.functionalize_loops import FunctionalizeLoops
from tfconvert.importers.source import Source
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_executor import GraphOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def _graphs(module: ModuleOp) -> int:
    return sum(isinstance(op, GraphOp) for op in module.walk())


def _functional(source: Source) -> ModuleOp:
    """Returns the module of a source, imported as plain ops where it can be; the passes take the rest."""
    module, plain = source.open(), source.open(functional=True)
    verify(plain)
    assert _graphs(plain) < _graphs(module)
    for each in (module, plain):
        for run in (FunctionalizeLoops(), FunctionalizeConditionals(), ExecutorToFunctional()):
            run.apply(each)
    assert str(plain) == str(module)
    return plain


@pytest.mark.parametrize("name", [*sample_models.MODELS, *sample_models.UNSUPPORTED])
def test_saved_models(name: str, tf: ModuleType, tmp_path: Path) -> None:
    build = {**sample_models.MODELS, **sample_models.UNSUPPORTED}[name]
    _functional(Source(sample_models.save(tf, build, tmp_path / "model", debug_info=True)))


@pytest.mark.parametrize("build", [v1_models.dense, v1_models.counter])
def test_graphs_beside_checkpoints(build: Callable[..., Any], tf: ModuleType, tmp_path: Path) -> None:
    saved = v1_models.save(tf, tmp_path, build)
    _functional(Source(f"{saved.prefix}.meta", inputs=list(saved.inputs), outputs=list(saved.outputs)))


def test_only_graphs_with_control_flow_keep_their_islands() -> None:
    """The main graph does without an executor, the function that it calls doesn't."""
    plain = _functional(Source(v1_graphs.call()))
    assert _graphs(plain) == 0
    (graph,) = (op for op in Source(v1_graphs.call()).open(functional=True).walk() if isinstance(op, GraphOp))
    function = graph.parent_op()
    assert isinstance(function, FuncOp)
    assert function.sym_name == "body"


def test_inputs_that_are_results_stay_inputs() -> None:
    graph = v1_graphs.graph(v1_graphs.placeholder("x"), v1_graphs.placeholder("y"))
    _functional(Source(graph, outputs=["y", "x"]))


def test_controls_are_an_order() -> None:
    """`late` stands before `early` in the file, and nothing but a control ties them."""
    x = v1_graphs.placeholder("x")
    early = v1_graphs.node("early", "Neg", "x", T=pb.DT_FLOAT)
    late = v1_graphs.node("late", "Exp", "x", "^early", T=pb.DT_FLOAT)
    plain = _functional(Source(v1_graphs.graph(x, late, early), outputs=["late"]))
    names = [op.name for op in plain.walk() if op.name.startswith("tf.")]
    assert names == ["tf.Neg", "tf.Exp"]
