"""Nodes that no converted model can have, each with what the user can do about it (design §12).

They are told when they are met in a graph that is imported, before anything is made of it: data that only a running
program has (queues, readers, iterators, what was not fed), and code that no file holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
"""The ops that stand for what is fed."""

_PIPELINES = frozenset({
    "BarrierTakeMany", "IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional",
    "MultiDeviceIteratorGetNextFromShard", "QueueDequeue", "QueueDequeueMany", "QueueDequeueManyV2",
    "QueueDequeueUpTo", "QueueDequeueUpToV2", "QueueDequeueV2", "ReaderRead", "ReaderReadUpTo", "ReaderReadUpToV2",
    "ReaderReadV2", "Unstage",
})  # fmt: skip
PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
"""The ops that call Python code."""

_GRADIENT = "SymbolicGradient"

_REFUSED = _PIPELINES | PYTHON | PLACEHOLDERS | {_GRADIENT}


def refuse(nodes: Iterable[pb.NodeDef], registry: OpRegistry, *, is_main: bool, is_composite: bool = False) -> None:
    """Looks for nodes that can't be converted.

    Args:
        nodes: What is imported of a graph; what is fed is not among them.
        registry: Where op definitions come from.
        is_main: Whether these are a main graph's nodes, which can be fed by name.
        is_composite: Whether these are of a function that says what it implements: what is put in its place may need
            no Python.

    Raises:
        ConversionError: There are some; all are told.
    """
    refused = _REFUSED - PYTHON if is_composite else _REFUSED
    found = [node for node in nodes if node.op in refused]
    problems = [problem for node in found if (problem := _problem(node, registry, is_main)) is not None]
    if problems:
        raise ConversionError(problems)


def _problem(node: pb.NodeDef, registry: OpRegistry, is_main: bool) -> Diagnostic | None:
    op = f"tf.{node.op}"
    if node.op in PLACEHOLDERS:
        if not is_main:
            return None
        return Diagnostic("unfed-input", "an output needs this placeholder, which is not among the inputs", op,
                          node.name, hint="name it among the inputs, too")  # fmt: skip
    if node.op in PYTHON:
        return python_function(op, node.name)
    if node.op == _GRADIENT:
        return Diagnostic("symbolic-gradient", "the node asks TensorFlow's runtime for a function's gradient", op,
                          node.name, hint="export the gradient as a graph (tf.gradients, tf.GradientTape)")  # fmt: skip
    hint = _feeds(node, registry) if is_main else "export a function of tensors"
    return Diagnostic("input-pipeline", "the graph takes its input from a queue, a reader or an iterator", op,
                      node.name, hint=hint)  # fmt: skip


def python_function(op: str, node: str) -> Diagnostic:
    """Returns why a node can't be converted that calls Python code."""
    return Diagnostic("python-function", "the node calls Python code, which the model's file doesn't hold", op, node,
                      hint="write the function with TensorFlow ops, or feed its results")  # fmt: skip


def _feeds(node: pb.NodeDef, registry: OpRegistry) -> str:
    outputs = registry.signature(node.op, node.name).resolve(node, node.attr).outputs
    named = [f"--input {node.name}:{index} ({element})" for index, element in enumerate(outputs)]
    return f"feed what it gives: {', '.join(named)}" if named else "feed the tensors that come of it with --input"
