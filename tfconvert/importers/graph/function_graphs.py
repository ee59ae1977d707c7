"""Graphs that are a function's body: `_Arg` nodes are its arguments, `_Retval` nodes its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.schema.diagnostics import error
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

ARGUMENTS = frozenset({"_Arg", "_DeviceArg"})
RESULTS = frozenset({"_Retval", "_DeviceRetval"})


class FunctionGraph(NamedTuple):
    """A function's body as a graph with feeds and fetches.

    Attributes:
        nodes: Its nodes by name, placeholders in place of the arguments, and without the results.
        inputs: The arguments, in order.
        outputs: The tensors that it returns, in order.
    """

    nodes: Mapping[str, pb.NodeDef]
    inputs: list[str]
    outputs: list[str]


def as_graph(nodes: Mapping[str, pb.NodeDef]) -> FunctionGraph | None:
    """Returns the graph of a function's body, `None` if the nodes are not one.

    Raises:
        ConversionError: A result has no operand (`bad-input`).
    """
    if not any(node.op in ARGUMENTS or node.op in RESULTS for node in nodes.values()):
        return None
    arguments: list[tuple[int, str]] = []
    results: list[tuple[int, str]] = []
    kept: dict[str, pb.NodeDef] = {}
    for name, node in nodes.items():
        index = node.attr["index"].i if "index" in node.attr else 0
        if node.op in RESULTS:
            if not node.input or node.input[0].startswith("^"):
                raise error(
                    "bad-input",
                    "the result of a function has no value",
                    op=f"tf.{node.op}",
                    node=name,
                    hint="the model file is damaged",
                )
            results.append((index, node.input[0]))
            continue
        if node.op in ARGUMENTS:
            arguments.append((index, name))
            node = _placeholder(node)
        kept[name] = node
    outputs = [tensor for _, tensor in sorted(results)]
    return FunctionGraph(kept, [name for _, name in sorted(arguments)], list(map(_tensor, outputs)))


def _placeholder(node: pb.NodeDef) -> pb.NodeDef:
    made = pb.NodeDef(name=node.name, op="Placeholder", device=node.device)
    if "T" in node.attr:
        made.attr["dtype"].CopyFrom(node.attr["T"])
    made.attr["shape"].shape.unknown_rank = True
    if "_output_shapes" in node.attr:
        made.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
    elif "shape" in node.attr:
        made.attr["shape"].CopyFrom(node.attr["shape"])
    return made


def _tensor(text: str) -> str:
    """Returns an input's text as a tensor's name, without the index of a first output."""
    tensor = parse_graph_input(text)
    return tensor.node if not tensor.position else text
