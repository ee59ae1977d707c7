"""Compares kernels with TensorFlow itself, eagerly, and infers the shapes of tiny graphs with it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ops.comparison import Agree, compare, operand, tensorflow
from tests.ops.tiny_graphs import Builder, Infer, Inferred, build, output_shapes
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.builtin import ModuleOp


@pytest.fixture(scope="session")
def agree() -> Agree:
    """Returns a function that asserts that a kernel and TensorFlow agree on an op."""

    def check(op: str, specs: Sequence[Any], attributes: Mapping[str, Any] | None = None, **options: Any) -> None:
        seed = zlib.crc32(op.encode())
        inputs = tuple(operand(spec, seed + i) for i, spec in enumerate(specs))
        expected = tensorflow(op, inputs, attributes or {})
        before = [x.copy() for x in inputs]
        results = evaluate(Call(op, inputs, attributes or {}))
        for x, was in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(x, was, "an operand was written to")
        count = options.pop("results", len(expected))
        assert len(results) >= count
        for got, wanted in zip(results[:count], expected[:count], strict=True):
            compare(got, wanted, **options)

    return check


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
