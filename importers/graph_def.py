"""GraphDefs: a graph's feeds and fetches become a function, the functions it calls come along (design §4)."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from importers.function_library import import_callees, make_function
from importers.node_graph import ImportContext, NodeGraphImporter, TensorName, parse_graph_input
from importers.op_signatures import OpRegistry
from importers.tensor_proto import shape_of
from schema.diagnostics import error
from schema.dialects import attributes as attrs
from schema.dialects import tf, tf_saved_model, types
from schema.tensorflow.generated import tensorflow_pb2 as pb

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


@dataclass(frozen=True, slots=True)
class GraphInput:
    """A value that the caller feeds.

    Attributes:
        tensor: What it stands for in the graph.
        type: Its type.
        name: What the caller calls it.
    """

    tensor: TensorName
    type: types.AnyTensor
    name: str


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """A value that the caller gets: a tensor of the graph and its name for the caller."""

    tensor: TensorName
    name: str


@dataclass(slots=True)
class EntryPoint:
    """One exported function of a main graph.

    Attributes:
        symbol: The function's symbol.
        exported_names: The signatures that are this function; empty for a plain graph.
        inputs: What is fed, in the function's order.
        outputs: What is fetched, in the function's order.
        controls: Nodes that must have run.
    """

    symbol: str
    exported_names: list[str]
    inputs: Sequence[GraphInput]
    outputs: Sequence[GraphOutput]
    controls: Sequence[str] = field(default=())


def import_entry(nodes: Mapping[str, pb.NodeDef], context: ImportContext, entry: EntryPoint) -> FuncOp:
    """Returns the function of an entry point.

    Raises:
        ConversionError: Something that the entry point needs is missing or can't be imported.
    """
    block = Block()
    feeds: dict[tuple[str, int], SSAValue] = {}
    for index, source in enumerate(entry.inputs):
        feeds[source.tensor.node, source.tensor.index] = block.insert_arg(source.type, index)
    importer = NodeGraphImporter(nodes, context, parse_graph_input, feeds=feeds)
    graph = importer.import_graph([output.tensor for output in entry.outputs], entry.controls)
    names = {
        "control_outputs": ",".join(entry.controls),
        "inputs": ",".join(each.name for each in entry.inputs),
        "outputs": ",".join(each.name for each in entry.outputs),
    }
    attributes: dict[str, Attribute] = {
        tf_saved_model.ENTRY_FUNCTION: DictionaryAttr({key: attrs.string(value) for key, value in names.items()})
    }
    arg_attrs: list[dict[str, Attribute]] = [{} for _ in entry.inputs]
    res_attrs: list[dict[str, Attribute]] = [{} for _ in entry.outputs]
    if entry.exported_names:
        attributes[tf_saved_model.EXPORTED_NAMES] = attrs.of(entry.exported_names)
        arg_attrs = [_index_path(each.name) for each in entry.inputs]
        res_attrs = [_index_path(each.name) for each in entry.outputs]
    return make_function(entry.symbol, block, graph, attributes, arg_attrs, res_attrs, visibility="public")


def _index_path(name: str) -> dict[str, Attribute]:
    return {tf_saved_model.INDEX_PATH: ArrayAttr([attrs.string(name)])}


def import_graph_def(
    path: str | os.PathLike[str],
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> ModuleOp:
    """Returns the module of a frozen graph: one public function `main`.

    Args:
        path: A GraphDef, binary, or text where the name ends in `.pbtxt`.
        inputs: Tensors to feed, `node` or `node:index`; the graph's placeholders by default.
        outputs: Tensors to fetch; the nodes that nothing uses by default.
        input_shapes: Shapes of inputs by name; -1 or `None` is an unknown dimension.

    Raises:
        ConversionError: The file is no GraphDef, or what it holds can't be imported.
    """
    graph = read_graph_def(path)
    nodes = {node.name: node for node in graph.node}
    registry = OpRegistry()
    input_names = list(inputs) if inputs is not None else [n.name for n in graph.node if n.op in _PLACEHOLDERS]
    output_names = list(outputs) if outputs is not None else _sinks(graph, registry)
    if not output_names:
        raise error("no-outputs", "the graph has no node that could be an output", hint="name one with outputs=[...]")
    shapes = dict(input_shapes or {})
    sources = [_graph_input(name, nodes, registry, shapes) for name in input_names]
    if shapes:
        raise error("unknown-input", f"input_shapes names {sorted(shapes)}, which the graph doesn't feed",
                    hint=f"the inputs are {input_names}")  # fmt: skip
    targets = [GraphOutput(parse_graph_input(_known(name, nodes)), name) for name in output_names]
    context = ImportContext(registry)
    main = import_entry(nodes, context, EntryPoint("main", [], sources, targets))
    module = ModuleOp([main, *import_callees(graph.library, context)])
    module.attributes[tf.VERSIONS] = versions_attribute(graph.versions)
    return module


def versions_attribute(versions: pb.VersionDef) -> Attribute:
    """Returns a graph's versions as TensorFlow's modules carry them."""
    return DictionaryAttr(
        {
            "bad_consumers": ArrayAttr([attrs.int32(version) for version in versions.bad_consumers]),
            "min_consumer": attrs.int32(versions.min_consumer),
            "producer": attrs.int32(versions.producer),
        }
    )


def read_graph_def(path: str | os.PathLike[str]) -> pb.GraphDef:
    """Returns the GraphDef of a file.

    Raises:
        ConversionError: The file can't be read (`unreadable-file`) or isn't one (`not-a-graph-def`).
    """
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise error("unreadable-file", f"can't read {os.fspath(path)}: {problem.strerror}") from None
    try:
        if os.fspath(path).endswith((".pbtxt", ".prototxt")):
            return text_format.Parse(data.decode(), pb.GraphDef())
        graph = pb.GraphDef.FromString(data)
    except (DecodeError, UnicodeDecodeError, text_format.ParseError) as problem:
        raise error("not-a-graph-def", f"{os.fspath(path)} is no GraphDef: {problem}",
                    hint="give a frozen graph (.pb, .pbtxt) or a SavedModel folder") from None  # fmt: skip
    if not graph.node:
        raise error("not-a-graph-def", f"{os.fspath(path)} holds no nodes",
                    hint="give a frozen graph (.pb, .pbtxt) or a SavedModel folder")  # fmt: skip
    return graph


def _known(name: str, nodes: Mapping[str, pb.NodeDef]) -> str:
    if parse_graph_input(name).node not in nodes:
        close = difflib.get_close_matches(name, nodes, 3)
        raise error("unknown-tensor", f"the graph has no tensor {name!r}",
                    hint=f"did you mean {', '.join(close)}?" if close else "name a node, or node:index")  # fmt: skip
    return name


def _sinks(graph: pb.GraphDef, registry: OpRegistry) -> list[str]:
    """Returns the nodes with outputs that nothing uses."""
    used = {parse_graph_input(text.removeprefix("^")).node for node in graph.node for text in node.input}
    return [
        node.name for node in graph.node
        if node.name not in used
        and node.op not in (*_PLACEHOLDERS, "Const")
        and registry.signature(node.op, node.name).outputs
    ]  # fmt: skip


def _graph_input(
    name: str, nodes: Mapping[str, pb.NodeDef], registry: OpRegistry, shapes: dict[str, Sequence[int | None]]
) -> GraphInput:
    tensor = parse_graph_input(_known(name, nodes))
    node = nodes[tensor.node]
    noted: types.Shape | None = None
    if "_output_shapes" in node.attr and tensor.index < len(node.attr["_output_shapes"].list.shape):
        noted = shape_of(node.attr["_output_shapes"].list.shape[tensor.index])
    elif "shape" in node.attr and node.op in _PLACEHOLDERS:
        noted = shape_of(node.attr["shape"].shape)
    element = _output_type(node, registry, tensor.index)
    wanted = shapes.pop(name, None)
    shape = noted if wanted is None else override_shape(name, noted, wanted)
    return GraphInput(tensor, types.tensor(element, shape), name)


def _output_type(node: pb.NodeDef, registry: OpRegistry, index: int) -> Attribute:
    signature = registry.signature(node.op, node.name)
    outputs = signature.resolve(node, node.attr).outputs
    if index >= len(outputs):
        raise error("missing-output", f"the op has no output {index}", op=f"tf.{node.op}", node=node.name)
    return outputs[index]


def override_shape(name: str, noted: types.Shape | None, wanted: Sequence[int | None]) -> types.Shape:
    """Returns the shape that the user pins for an input.

    Args:
        name: The input.
        noted: The shape that the model notes.
        wanted: The user's shape; -1 or `None` leaves a dimension as the model has it.

    Raises:
        ConversionError: The user's shape contradicts the model's (`shape-mismatch`).
    """
    shape = tuple(-1 if dim is None or dim < 0 else dim for dim in wanted)
    clash = noted is not None and (
        len(noted) != len(shape) or any(a >= 0 and b >= 0 and a != b for a, b in zip(noted, shape, strict=True))
    )
    if clash:
        given, known = list(shape), list(noted or ())
        raise error("shape-mismatch", f"the shape {given} given for {name!r} contradicts the model's {known}",
                    hint="pin unknown dimensions (-1) only")  # fmt: skip
    return shape if noted is None else tuple(a if b < 0 else b for a, b in zip(noted, shape, strict=True))
