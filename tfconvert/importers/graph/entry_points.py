"""A main graph's exported functions: feeds, fetches, and the nodes between them.

SavedModels, MetaGraphs and GraphDefs differ in how they state feeds and fetches, and in where values of variables
are; from there on they are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex

from tfconvert.importers.graph.function_library import make_function
from tfconvert.importers.graph.legacy_ops import upgrade_legacy_ops
from tfconvert.importers.graph.node_graph import ImportContext, NodeGraphImporter, TensorName, parse_graph_input
from tfconvert.importers.graph.ref_variables import upgrade_ref_variables
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf_saved_model, types
from tfconvert.schema.dialects.cut import CUT, Cut
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

CONSUMER = 2474
"""The newest version of TensorFlow's graphs that is supported."""


class GraphInput(NamedTuple):
    """A value that the caller feeds.

    Attributes:
        tensor: The tensor of the graph.
        type: Its type.
        name: Its name to the caller.
        is_optional: Whether it is left out if it is dead.
        label: What TensorFlow's own converter calls it; empty for its name.
    """

    tensor: TensorName
    type: types.AnyTensor
    name: str
    is_optional: bool = False
    label: str = ""


class GraphOutput(NamedTuple):
    """A value that the caller gets: a tensor of the graph, its name for the caller, and its label as an input's."""

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
        controls: Nodes that must have run.
        other_names: Signatures that are this function, too, and that nobody asked for.
        cut: Where the function is to be cut; `None` if it is not.
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
        """The names of the inputs that it has in the end."""
        ends = None if self.cut is None else self.cut.inputs
        return [each.name for each in (self.inputs if ends is None else ends)]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs that it has in the end."""
        ends = None if self.cut is None else self.cut.outputs
        return [each.name for each in (self.outputs if ends is None else ends)]


def import_entries(
    nodes: Mapping[str, pb.NodeDef], context: ImportContext, entries: Sequence[EntryPoint]
) -> list[FuncOp]:
    """Returns the functions of entry points, legacy nodes upgraded unless the graph is imported as it is.

    Args:
        nodes: The main graph's nodes by name.
        context: The state that all graphs of the model share.
        entries: The entry points.
    """
    if not context.is_raw:
        nodes = upgrade_legacy_ops(nodes)
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
    """Returns a graph's versions as TensorFlow's modules carry them."""
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


def override_shape(name: str, noted: types.Shape | None, wanted: Any) -> types.Shape:
    """Returns the shape that the user pins for an input.

    Args:
        name: The input.
        noted: The shape that the model records.
        wanted: The user's shape; -1 or `None` leaves a dimension as the model has it.

    Raises:
        ConversionError: The user's shape contradicts the model's (`shape-mismatch`), or isn't one (`wrong-option`).
    """
    if not isinstance(wanted, Sequence) or not all(dim is None or isinstance(dim, SupportsIndex) for dim in wanted):
        raise error(
            "wrong-option",
            f"the shape of {name!r} can't be {wanted!r}",
            hint="give a list of integers; -1 or None leaves a dimension as it is",
        )
    shape = tuple(-1 if dim is None or dim < 0 else int(dim) for dim in wanted)
    clash = noted is not None and (
        len(noted) != len(shape) or any(a >= 0 and b >= 0 and a != b for a, b in zip(noted, shape, strict=True))
    )
    if clash:
        requested, known = list(shape), list(noted or ())
        raise error(
            "shape-mismatch",
            f"the shape {requested} for {name!r} contradicts the model's {known}",
            hint="pin unknown dimensions (-1) only",
        )
    return shape if noted is None else tuple(a if b < 0 else b for a, b in zip(noted, shape, strict=True))
