"""A main graph's exported functions: feeds, fetches, and the nodes between them; and tensors to cut a SavedModel at.

SavedModels, MetaGraphs and GraphDefs differ in how they state feeds and fetches, and in where values of variables are;
from there on they are the same.

Tensors by name that become the inputs and outputs of a SavedModel's signatures are mostly inside functions that the
signatures call, where an importer can't find them. It marks the functions of signatures, and the pass `cut` does the
rest. The importer knows the main graph's names of a signature's inputs and outputs, and nodes of the main graph that no
signature leads to.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.importers.graph.function_library import make_function
from tfconvert.importers.graph.legacy_ops import LEGACY, VARIABLES, upgrade_legacy_ops, upgrade_ref_variables
from tfconvert.importers.graph.node_graph import ImportContext, NodeGraphImporter, TensorName, parse_graph_input
from tfconvert.importers.graph.reachability import needed_nodes
from tfconvert.importers.pinned_shapes import override_shape
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf_saved_model, types
from tfconvert.schema.dialects.cut import CUT, Cut, End
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# Maximum number of similar names in a hint.
_NEAR = 4

# Maximum number of results in a hint.
_RESULTS = 8


def tensor_hint(name: str, nodes: Iterable[str], results: Sequence[str]) -> str:
    """Returns a hint with similar names.

    Args:
        name: The unknown name.
        nodes: The existing names.
        results: Those of the model's results.
    """
    near = _near(name, list(dict.fromkeys(nodes)))
    parts = [f"did you mean {', '.join(near)}?"] if near else []
    if results:
        more = ", ..." if len(results) > _RESULTS else ""
        parts.append(f"{'The' if near else 'the'} results are: {', '.join(results[:_RESULTS])}{more}")
    return " ".join(parts) or "name a node, or node:index"


def _near(name: str, nodes: Sequence[str]) -> list[str]:
    """Returns similar names: those with the same end, those that contain the name, those that are alike."""
    wanted = name.lower()
    last = wanted.rpartition("/")[2]
    ending = [each for each in nodes if each.lower().rpartition("/")[2] == last]
    holding = [each for each in nodes if wanted in each.lower()]
    lasts = {each.lower().rpartition("/")[2]: each for each in sorted(nodes, key=len, reverse=True)}
    alike = [lasts[each] for each in difflib.get_close_matches(last, lasts, _NEAR)]
    near = [*sorted(ending, key=len), *sorted(holding, key=len), *difflib.get_close_matches(name, nodes, _NEAR), *alike]
    return list(dict.fromkeys(near))[:_NEAR]


CONSUMER = 2474
"""The newest supported version of TensorFlow's graphs."""


class GraphInput(NamedTuple):
    """A value that the caller feeds.

    Attributes:
        tensor: The tensor of the graph.
        type: Its type.
        name: Its name to the caller.
        is_optional: Whether it is left out if it is dead.
        label: Its name in TensorFlow's own converter; empty if it is the same.
    """

    tensor: TensorName
    type: types.AnyTensor
    name: str
    is_optional: bool = False
    label: str = ""


class GraphOutput(NamedTuple):
    """A value that the caller gets: a tensor of the graph, its name to the caller, and a label as for an input."""

    tensor: TensorName
    name: str
    label: str = ""


def tensor_of(each: GraphInput | GraphOutput) -> str:
    """Returns the tensor of the graph that an input or output is, as TensorFlow writes it."""
    return f"{each.tensor.node}:{each.tensor.position}"


PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
"""The ops of feeds."""


class EntryPoint(NamedTuple):
    """One exported function of a main graph.

    Attributes:
        symbol: The function's symbol.
        exported_names: The signatures that are this function; empty for a plain graph.
        inputs: The feeds, in the function's order.
        outputs: The fetches, in the function's order.
        controls: Nodes that must run.
        other_names: Other signatures of this function, which were not requested.
        cut: Where to cut the function; `None` if it isn't cut.
    """

    symbol: str
    exported_names: list[str]
    inputs: list[GraphInput]
    outputs: list[GraphOutput]
    controls: Sequence[str] = ()
    other_names: Sequence[str] = ()
    cut: Cut | None = None

    @property
    def input_names(self) -> list[str]:
        """The names of its final inputs."""
        ends = None if self.cut is None else self.cut.inputs
        return [each.name for each in (self.inputs if ends is None else ends)]

    @property
    def output_names(self) -> list[str]:
        """The names of its final outputs."""
        ends = None if self.cut is None else self.cut.outputs
        return [each.name for each in (self.outputs if ends is None else ends)]


def import_entries(
    nodes: Mapping[str, pb.NodeDef], context: ImportContext, entries: Sequence[EntryPoint]
) -> list[FuncOp]:
    """Returns the functions of entry points, with legacy nodes upgraded unless the graph is imported as it is.

    Args:
        nodes: The main graph's nodes by name.
        context: The state that all graphs of the model share.
        entries: The entry points.
    """
    kinds = set() if context.is_raw else {node.op for node in nodes.values()}
    if not kinds.isdisjoint(LEGACY):
        nodes = upgrade_legacy_ops(nodes)
    if not kinds.isdisjoint(VARIABLES):
        targets = [output.tensor for entry in entries for output in entry.outputs]
        targets += [TensorName(control, "", 0) for entry in entries for control in entry.controls]
        fed = set.intersection(
            *({(each.tensor.node, each.tensor.position) for each in entry.inputs} for entry in entries)
        )
        nodes = upgrade_ref_variables(nodes, targets, fed)
    return [_import_entry(nodes, context, entry) for entry in entries]


def _import_entry(nodes: Mapping[str, pb.NodeDef], context: ImportContext, entry: EntryPoint) -> FuncOp:
    """Returns the function of an entry point."""
    block = Block()
    feeds: dict[tuple[str, int], Value] = {}
    for index, source in enumerate(entry.inputs):
        feeds[source.tensor.node, source.tensor.position] = block.insert_arg(source.type, index)
    importer = NodeGraphImporter(nodes, context, parse_graph_input, feeds=feeds)
    results = importer.import_into(block, [output.tensor for output in entry.outputs], entry.controls)
    inputs = []
    for each, arg in zip(entry.inputs, list(block.args), strict=True):
        if each.is_optional and arg.first_use is None and arg not in results:
            block.erase_arg(arg)
        else:
            inputs.append(each)
    attributes: dict[str, Attribute] = {
        tf_saved_model.ENTRY_FUNCTION: tf_saved_model.entry_attribute(
            [each.label or each.name for each in inputs],
            [each.label or each.name for each in entry.outputs],
            entry.controls,
        )
    }
    if entry.cut is not None:
        attributes[CUT] = entry.cut.to_attribute()
    arg_attrs: list[dict[str, Attribute]] = [{} for _ in inputs]
    res_attrs: list[dict[str, Attribute]] = [{} for _ in entry.outputs]
    if entry.exported_names:
        attributes[tf_saved_model.EXPORTED_NAMES] = attrs.of(entry.exported_names)
        if entry.other_names:
            attributes[tf_saved_model.OTHER_NAMES] = attrs.of(list(entry.other_names))
        arg_attrs = [tf_saved_model.path_attributes(each.name) for each in inputs]
        res_attrs = [tf_saved_model.path_attributes(each.name) for each in entry.outputs]
    return make_function(entry.symbol, block, results, attributes, arg_attrs, res_attrs, visibility="public")


def versions_attribute(versions: pb.VersionDef) -> Attribute:
    """Returns a graph's versions as an attribute of TensorFlow's modules."""
    return DictionaryAttr.get(
        {
            "bad_consumers": ArrayAttr.get([attrs.int32(version) for version in versions.bad_consumers]),
            "min_consumer": attrs.int32(versions.min_consumer),
            "producer": attrs.int32(versions.producer),
        }
    )


def check_versions(versions: pb.VersionDef) -> None:
    """Checks that a graph can be read by consumers of version `CONSUMER`.

    Raises:
        ConversionError: It requires a newer consumer (`newer-graph`).
    """
    if versions.min_consumer > CONSUMER or CONSUMER in versions.bad_consumers:
        raise error(
            "newer-graph",
            f"the graph requires version {versions.min_consumer}, the newest known is {CONSUMER}",
            hint="save it with an older TensorFlow, or use a newer tfconvert",
        )


def cut_name(tensor: str) -> str:
    """Returns the name of an input or output for a tensor that the user names: `x` for `x:0`."""
    return tensor.removesuffix(":0")


class Cuts(NamedTuple):
    """The user's choice of tensors at which to cut a model.

    Attributes:
        inputs: The tensors that become inputs; `None` leaves the signature's own.
        outputs: The tensors that become outputs; `None` leaves the signature's own.
        input_shapes: The shapes that the user sets, by input.
        batch: The first dimension of every input whose first dimension is unknown; `None` leaves them.
    """

    inputs: Sequence[str] | None
    outputs: Sequence[str] | None
    input_shapes: Mapping[str, Sequence[int | None]]
    batch: int | None

    @property
    def fixed_shapes(self) -> dict[str, Sequence[int | None]]:
        """The shapes that the user sets for tensors that become inputs, by the names of these inputs."""
        names = set(map(cut_name, self.inputs or ()))
        return {cut_name(key): shape for key, shape in self.input_shapes.items() if cut_name(key) in names}


def with_cuts(
    entries: Sequence[EntryPoint],
    nodes: Mapping[str, pb.NodeDef],
    tensors: Mapping[str, Mapping[TensorName, str]],
    cuts: Cuts,
) -> list[EntryPoint]:
    """Returns the entry points of signatures with their cuts.

    Args:
        entries: The entry points.
        nodes: The main graph's nodes by name.
        tensors: For each entry point, the names of inputs and outputs in all its signatures, by their tensors in the
            main graph.
        cuts: The user's choice.

    Raises:
        ConversionError: There are no outputs, or two inputs of one name (`wrong-option`).
    """
    if cuts.outputs is not None and not cuts.outputs:
        raise error("wrong-option", "outputs is empty", hint="name the tensors to fetch, or leave it out")
    names = list(map(cut_name, cuts.inputs or ()))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise error("wrong-option", f"inputs names {', '.join(twice)} twice", hint="name every tensor once")
    shapes = {name: override_shape(name, None, shape) for name, shape in cuts.fixed_shapes.items()}
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
    """Returns the entry points that reach all those of some tensors that are in the main graph; all if none does."""
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

    A tensor of the main graph is fetched, so that it exists whatever happens to its node, even if nothing reaches it.

    Attributes:
        outputs: The entry point's outputs, and other fetched tensors.
    """

    def __init__(self, entry: EntryPoint, nodes: Mapping[str, pb.NodeDef], tensors: Mapping[TensorName, str]) -> None:
        self._nodes, self._tensors = nodes, tensors
        self._names = {"inputs": {each.name for each in entry.inputs}, "outputs": {each.name for each in entry.outputs}}
        self.outputs: list[GraphOutput] = list(entry.outputs)

    def input(self, given: str, shapes: Mapping[str, types.Shape]) -> End:
        """Returns the end of an input; the importer sets the shapes of the signature's own inputs."""
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
        """Returns the name to look up a tensor by if it isn't named as one of its own side."""
        tensor = parse_graph_input(given)
        if tensor in self._tensors:
            return self._tensors[tensor]
        known = {*self._names[side], *(each.name for each in self.outputs)}
        if tensor.node in self._nodes and given not in known:
            self.outputs.append(GraphOutput(tensor, given))
        return given
