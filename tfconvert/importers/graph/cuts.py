"""Tensors by name that become the inputs and outputs of a SavedModel's signatures.

Most are inside of functions that the signatures call, so that an importer can't find them: it marks the functions of
signatures, and the pass `cut` does the rest. What the importer knows is what the main graph calls a signature's inputs
and outputs, and nodes of the main graph that no signature leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.importers.graph.entry_points import EntryPoint, GraphInput, GraphOutput, override_shape
from tfconvert.importers.graph.node_graph import TensorName, parse_graph_input
from tfconvert.importers.graph.reachability import needed_nodes
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.cut import Cut, End
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def cut_name(tensor: str) -> str:
    """Returns the name of an input or output for a tensor that the user names: `x` for `x:0`."""
    return tensor.removesuffix(":0")


class Cuts(NamedTuple):
    """Where the user wants a model to be cut.

    Attributes:
        inputs: The tensors that become inputs; `None` leaves the signature's own.
        outputs: The tensors that become outputs; `None` leaves the signature's own.
        input_shapes: The shapes that the user pins, by input.
        batch: The first dimension of every input whose first dimension is unknown; `None` leaves them.
    """

    inputs: Sequence[str] | None
    outputs: Sequence[str] | None
    input_shapes: Mapping[str, Sequence[int | None]]
    batch: int | None

    @property
    def pinned(self) -> dict[str, Sequence[int | None]]:
        """The shapes that the user pins for tensors that become inputs, by the names of these inputs."""
        names = set(map(cut_name, self.inputs or ()))
        return {cut_name(key): shape for key, shape in self.input_shapes.items() if cut_name(key) in names}


def with_cuts(
    entries: Sequence[EntryPoint],
    nodes: Mapping[str, pb.NodeDef],
    tensors: Mapping[str, Mapping[TensorName, str]],
    cuts: Cuts,
) -> list[EntryPoint]:
    """Returns the entry points of signatures with where each is to be cut.

    Args:
        entries: The entry points.
        nodes: The main graph's nodes by name.
        tensors: By entry point the names of inputs and outputs by the tensors that they are in the main graph: in all
            signatures that are this entry point.
        cuts: Where the user wants the model to be cut.

    Raises:
        ConversionError: There are no outputs, or two inputs of one name (`wrong-option`).
    """
    if cuts.outputs is not None and not cuts.outputs:
        raise error("wrong-option", "outputs is empty", hint="name the tensors to fetch, or leave it out")
    names = list(map(cut_name, cuts.inputs or ()))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise error("wrong-option", f"inputs names {', '.join(twice)} twice", hint="name every tensor once")
    shapes = {name: override_shape(name, None, shape) for name, shape in cuts.pinned.items()}
    found = []
    for entry in _that_reach(entries, nodes, cuts.outputs or ()):
        known, outputs = tensors[entry.symbol], list(entry.outputs)
        fed = [_input(each, entry.inputs, known, shapes) for each in cuts.inputs or ()]
        fetched = [_output(each, nodes, known, outputs) for each in cuts.outputs or ()]
        cut = Cut(
            None if cuts.inputs is None else tuple(fed), None if cuts.outputs is None else tuple(fetched), cuts.batch
        )
        found.append(entry._replace(outputs=outputs, cut=cut))
    return found


def _that_reach(
    entries: Sequence[EntryPoint], nodes: Mapping[str, pb.NodeDef], outputs: Sequence[str]
) -> Sequence[EntryPoint]:
    """Returns the entry points that lead to the nodes of the main graph among some outputs; all if none does."""
    wanted = {node for each in outputs if (node := parse_graph_input(each).node) in nodes}
    if not wanted:
        return entries
    reaching = [
        entry for entry in entries
        if wanted - {each.name for each in entry.outputs}
        <= needed_nodes(nodes, [each.tensor for each in entry.outputs]).keys()
    ]  # fmt: skip
    return reaching or entries


def _input(
    given: str, inputs: Sequence[GraphInput], known: Mapping[TensorName, str], shapes: Mapping[str, types.Shape]
) -> End:
    if given in [each.name for each in inputs]:
        return End(given, given)  # Its shape is pinned by the importer.
    name = cut_name(given)
    return End(known.get(parse_graph_input(given), given), name, shapes.get(name))


def _output(
    given: str, nodes: Mapping[str, pb.NodeDef], known: Mapping[TensorName, str], outputs: list[GraphOutput]
) -> End:
    """Returns an output's end; a tensor of the main graph that isn't fetched yet is fetched from then on."""
    tensor = parse_graph_input(given)
    if given in [each.name for each in outputs]:
        return End(given, cut_name(given))
    if tensor in known:
        return End(known[tensor], cut_name(given))
    if tensor.node in nodes:
        outputs.append(GraphOutput(tensor, given))
    return End(given, cut_name(given))
