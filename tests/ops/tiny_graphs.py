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
from tfconvert.settings.selection import Selection

Builder = Callable[[], Any]
Infer = Callable[[Builder], ModuleOp]
Inferred = Callable[[Builder], tuple[list[Shape | None], list[Shape | None]]]
_DTYPES = {"c64": tf.complex64, "f32": tf.float32, "f64": tf.float64, "i1": tf.bool, "i32": tf.int32, "i64": tf.int64}
_SPEC = re.compile(r"(\w+)\[([^]]*)\]")


def operand(spec: Any) -> Any:
    """Returns a placeholder for `f32[2,?]` or `f32[*]`, and anything else as it is."""
    match = _SPEC.fullmatch(spec) if isinstance(spec, str) else None
    if match is None:
        return spec
    shape = None if match[2] == "*" else [None if dim == "?" else int(dim) for dim in match[2].split(",") if dim]
    return tf.compat.v1.placeholder(_DTYPES[match[1]], shape)


def zeros(spec: Any) -> Any:
    """Returns a value for `f32[2,3]`, and anything else as it is."""
    match = _SPEC.fullmatch(spec) if isinstance(spec, str) else None
    return spec if match is None else tf.zeros([int(dim) for dim in match[2].split(",") if dim], _DTYPES[match[1]])


class Veil:
    """Operands of which TensorFlow sees no sizes until they are lifted, so that it builds what it would refuse."""

    def __init__(self) -> None:
        self._nodes: dict[str, Any] = {}

    def __call__(self, spec: Any) -> Any:
        """Returns a placeholder for an operand, of unknown shape; of a constant, the rank is known."""
        value = tf.convert_to_tensor(operand(spec))
        veiled = tf.compat.v1.placeholder(value.dtype, None if isinstance(spec, str) else [None] * value.shape.rank)
        self._nodes[veiled.op.name] = value.op.node_def
        return veiled

    def lift(self, graph: Any) -> None:
        """Puts the operands in the place of their placeholders."""
        for node in graph.node:
            own = self._nodes.get(node.name)
            if own is not None:
                name = node.name
                node.CopyFrom(own)
                node.name = name


def _shapes(outputs: Any) -> list[Shape | None]:
    return [
        None if value.shape.rank is None else tuple(-1 if dim is None else dim for dim in value.shape)
        for value in outputs
    ]


def output_shapes(module: ModuleOp) -> list[Shape | None]:
    """Returns the shapes of what `main` returns."""
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    return [types.shape_of(output) for output in main.function_type.results]


def build(
    path: Path, builder: Builder, change: Callable[[Any], None] | None = None
) -> tuple[ModuleOp, list[Shape | None]]:
    """Builds a graph and imports it, without what TensorFlow knows of its shapes.

    Args:
        path: Where the graph is written.
        builder: Builds it, and returns its outputs.
        change: Changes the GraphDef before it is written.

    Returns:
        The functional module, and the shapes that TensorFlow infers.
    """
    with tf.Graph().as_default() as graph:
        outputs = builder()
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        expected = _shapes(outputs)
        graph_def = graph.as_graph_def()
        if change is not None:
            change(graph_def)
        path.write_bytes(graph_def.SerializeToString())
    module = import_graph_def(path, Selection(inputs=None, outputs=[output.name for output in outputs]))
    ExecutorToFunctional().apply(module)
    return module, expected
