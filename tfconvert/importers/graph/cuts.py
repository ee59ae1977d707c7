"""Tensors by name that become the inputs and outputs of a SavedModel's signatures.

Most are inside of functions that the signatures call, so that an importer can't find them: it marks the functions of
signatures, and the pass `cut` does the rest. What the importer knows is what the main graph calls a signature's inputs
and outputs, and nodes of the main graph that no signature leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.importers.graph.entry_points import EntryPoint, GraphOutput, override_shape
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
    for entry in _that_reach(entries, nodes, tensors, [*(cuts.inputs or ()), *(cuts.outputs or ())]):
        ends = _Ends(entry, nodes, tensors[entry.symbol])
        fetched = None if cuts.outputs is None else tuple(map(ends.output, cuts.outputs))
        fed = None if cuts.inputs is None else tuple(ends.input(each, shapes) for each in cuts.inputs)
        if fetched is None and len(ends.outputs) > len(entry.outputs):
            fetched = tuple(End(each.name, each.name) for each in entry.outputs)
        found.append(entry._replace(outputs=ends.outputs, cut=Cut(fed, fetched, cuts.batch)))
    return found


def _that_reach(
    entries: Sequence[EntryPoint],
    nodes: Mapping[str, pb.NodeDef],
    tensors: Mapping[str, Mapping[TensorName, str]],
    given: Sequence[str],
) -> Sequence[EntryPoint]:
    """Returns the entry points that lead to all nodes of the main graph among some tensors; all if none does."""
    wanted = {each: node for each in given if (node := parse_graph_input(each).node) in nodes}
    if not wanted or len(entries) == 1:
        return entries
    reaching = []
    for entry in entries:
        reached = {
            *needed_nodes(nodes, [each.tensor for each in entry.outputs]),
            *(tensor.node for tensor in tensors[entry.symbol]),
        }
        names = {*entry.input_names, *entry.output_names}
        if all(each in names or node in reached for each, node in wanted.items()):
            reaching.append(entry)
    return reaching or entries


class _Ends:
    """The ends of one entry point.

    A tensor of the main graph is fetched: so it is there, whatever becomes of its node, also if nothing leads to it.

    Attributes:
        outputs: The entry point's outputs, with the tensors that are fetched beside them.
    """

    def __init__(self, entry: EntryPoint, nodes: Mapping[str, pb.NodeDef], tensors: Mapping[TensorName, str]) -> None:
        self._nodes, self._tensors = nodes, tensors
        self._names = {"inputs": {each.name for each in entry.inputs}, "outputs": {each.name for each in entry.outputs}}
        self.outputs: list[GraphOutput] = list(entry.outputs)

    def input(self, given: str, shapes: Mapping[str, types.Shape]) -> End:
        """Returns the end of an input; the importer pins the shapes of the signature's own."""
        name = cut_name(given)
        if given in self._names["inputs"]:
            return End(given, name)
        return End(self._looked_up(given, "outputs"), name, shapes.get(name))

    def output(self, given: str) -> End:
        """Returns the end of an output."""
        if given in self._names["outputs"]:
            return End(given, cut_name(given))
        return End(self._looked_up(given, "inputs"), cut_name(given))

    def _looked_up(self, given: str, side: str) -> str:
        """Returns the name by which a tensor is looked up that isn't one of its own side by name."""
        tensor = parse_graph_input(given)
        if tensor in self._tensors:
            return self._tensors[tensor]
        known = {*self._names[side], *(each.name for each in self.outputs)}
        if tensor.node in self._nodes and given not in known:
            self.outputs.append(GraphOutput(tensor, given))
        return given
