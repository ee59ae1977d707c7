"""Tiny graphs, with the shapes that TensorFlow infers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfconvert.converter.passes.executor_to_functional import ExecutorToFunctional
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.builtin import ModuleOp

Builder = Callable[[], Any]
Infer = Callable[[Builder], ModuleOp]
Inferred = Callable[[Builder], tuple[list[Shape | None], list[Shape | None]]]
_SPEC = re.compile(r"(\w+)\[([^]]*)\]")


def operand(spec: Any) -> Any:
    """Returns a placeholder for `f32[2,?]` or `f32[*]`, and anything else as it is."""
    match = _SPEC.fullmatch(spec) if isinstance(spec, str) else None
    if match is None:
        return spec
    dtype = {"f32": tf.float32, "i32": tf.int32, "i64": tf.int64, "i1": tf.bool, "f64": tf.float64}[match[1]]
    shape = None if match[2] == "*" else [None if dim == "?" else int(dim) for dim in match[2].split(",") if dim]
    return tf.compat.v1.placeholder(dtype, shape)


def _shapes(outputs: Any) -> list[Shape | None]:
    return [
        None if value.shape.rank is None else tuple(-1 if dim is None else dim for dim in value.shape)
        for value in outputs
    ]


def output_shapes(module: ModuleOp) -> list[Shape | None]:
    """Returns the shapes of what `main` returns."""
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    return [types.shape_of(output) for output in main.function_type.results]


def build(path: Path, builder: Builder) -> tuple[ModuleOp, list[Shape | None]]:
    """Builds a graph and imports it, without what TensorFlow knows of its shapes.

    Returns:
        The functional module, and the shapes that TensorFlow infers.
    """
    with tf.Graph().as_default() as graph:
        outputs = builder()
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        expected = _shapes(outputs)
        path.write_bytes(graph.as_graph_def().SerializeToString())
    module = import_graph_def(path, None, [output.name for output in outputs])
    ExecutorToFunctional().apply(module)
    return module, expected
