"""Infers the shapes of tiny graphs twice: by TensorFlow, and by the pass on the same graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ops.shapes.tiny_graphs import Builder, Infer, Inferred, build, output_shapes
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.dialects.verification import verify
from tfconvert.schema.ir.builtin import ModuleOp


@pytest.fixture
def infer(tmp_path: Path) -> Infer:
    """Returns a function that builds a graph and returns its module with shapes inferred."""

    def run(builder: Builder) -> ModuleOp:
        module, _ = build(tmp_path / "graph.pb", builder)
        ShapeInference().apply(module)
        verify(module)
        return module

    return run


@pytest.fixture
def inferred(tmp_path: Path) -> Inferred:
    """Returns a function that builds a graph and returns TensorFlow's and our shapes of its outputs."""

    def run(builder: Builder) -> tuple[list[Shape | None], list[Shape | None]]:
        module, expected = build(tmp_path / "graph.pb", builder)
        ShapeInference().apply(module)
        verify(module)
        return expected, output_shapes(module)

    return run
