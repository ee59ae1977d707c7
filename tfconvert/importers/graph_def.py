"""GraphDefs: a graph's feeds and fetches become a function, the functions it calls are imported too."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from google.protobuf.message import DecodeError

from tfconvert.importers.graph.adjustments import adjusted
from tfconvert.importers.graph.attributes import shape_of
from tfconvert.importers.graph.entry_points import (
    PLACEHOLDERS,
    EntryPoint,
    GraphInput,
    GraphOutput,
    check_versions,
    import_entries,
    tensor_hint,
    versions_attribute,
)
from tfconvert.importers.graph.function_instances import FunctionLibrary
from tfconvert.importers.graph.function_library import as_graph, import_callees
from tfconvert.importers.graph.node_graph import ImportContext, TensorName, parse_graph_input
from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.importers.graph.protos import parse_proto, read_op_defs
from tfconvert.importers.graph.reachability import needed_nodes, unused_nodes
from tfconvert.importers.graph.variables import check_values
from tfconvert.importers.pinned_shapes import override_shape
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.files import read_input
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import WHOLE, Selection

_WITH_DEFAULT = "PlaceholderWithDefault"
_WANTED = "give a frozen graph (.pb, .pbtxt) or a SavedModel directory"


def import_graph_def(path: str | os.PathLike[str], selection: Selection = WHOLE) -> ModuleOp:
    """Returns the module of a frozen graph: one public function `main`.

    Args:
        path: A GraphDef, binary or text.
        selection: The part to import: inputs are by default the placeholders that the outputs reach, but those with a
            default only if they are named; outputs are by default the nodes that nothing uses.
    """
    return import_graph(read_graph_def(path), selection)


def import_graph(graph: pb.GraphDef, selection: Selection = WHOLE) -> ModuleOp:
    """Returns the module of a frozen graph in memory, which is not changed; see `import_graph_def`.

    Raises:
        ConversionError: The graph has no nodes (`not-a-graph-def`), or its contents can't be imported.
    """
    if not graph.node:
        raise error("not-a-graph-def", "the GraphDef holds no nodes", hint=_WANTED)
    check_versions(graph.versions)
    nodes: Mapping[str, pb.NodeDef] = {node.name: node for node in graph.node}
    inputs, outputs, is_raw = selection.inputs, selection.outputs, selection.is_raw
    function = as_graph(nodes)
    if function is not None:
        nodes = function.nodes
        inputs = function.inputs if inputs is None else inputs
        outputs = function.outputs if outputs is None and function.outputs else outputs
    registry = OpRegistry(read_op_defs(selection.op_defs))
    context = ImportContext(
        registry, FunctionLibrary(graph.library), is_raw=is_raw, is_functional=selection.is_functional
    )
    if is_raw and outputs is None:
        entry = _whole_entry(nodes, context, inputs)
    else:
        output_names = list(outputs) if outputs is not None else _sinks(nodes, context)
        entry = named_entry(nodes, context, inputs, output_names, selection.input_shapes)
    functions = import_entries(nodes, context, adjusted([entry], selection))
    if not is_raw:
        check_values(functions, registry)
    module = ModuleOp.of([*functions, *import_callees(context)])
    module.attributes[tf.VERSIONS] = versions_attribute(graph.versions)
    return module


def named_entry(
    nodes: Mapping[str, pb.NodeDef],
    context: ImportContext,
    inputs: Sequence[str] | None,
    outputs: Sequence[str],
    input_shapes: Mapping[str, Sequence[int | None]] | None,
) -> EntryPoint:
    """Returns the entry point `main` for tensors by name.

    Args:
        nodes: The graph's nodes by name.
        context: The context that the graph will be imported with.
        inputs: Tensors to feed; by default the placeholders that the outputs reach.
        outputs: Tensors to fetch.
        input_shapes: Shapes of inputs by name.

    Raises:
        ConversionError: A name is wrong, an input's shape contradicts the graph's, or there is no output.
    """
    if not outputs:
        raise error("no-outputs", "the graph has no node that could be an output", hint="name one with outputs=[...]")
    shapes = dict(input_shapes or {})
    names = inputs if inputs is not None else [name for name, node in nodes.items() if node.op in PLACEHOLDERS]
    # A placeholder with a given shape is fed.
    named = [name for name in shapes if name in nodes and nodes[name].op == _WITH_DEFAULT] if inputs is None else []
    sources = [
        _graph_input(name, nodes, context, shapes, is_optional=inputs is None)
        for name in dict.fromkeys([*names, *named])
    ]
    if shapes:
        raise error(
            "unknown-input",
            f"input_shapes names {sorted(shapes)}, which the graph doesn't feed",
            hint=f"the inputs are {list(names)}",
        )
    return EntryPoint("main", [], sources, [_graph_output(name, nodes, context) for name in outputs])


def _whole_entry(nodes: Mapping[str, pb.NodeDef], context: ImportContext, inputs: Sequence[str] | None) -> EntryPoint:
    """Returns the entry point that runs every node and fetches nothing; placeholders stay unless they are named."""
    reached = needed_nodes(nodes, [TensorName(name, "", 0) for name in unused_nodes(nodes)])
    sources = [_graph_input(name, nodes, context, {}, is_optional=False) for name in inputs or ()]
    fed = set(inputs or ())
    # In nodes of a cycle without users no node is unused.
    ends = [
        name for name in (*unused_nodes(nodes), *(name for name in nodes if name not in reached)) if name not in fed
    ]
    return EntryPoint("main", [], sources, [], list(dict.fromkeys(ends)))


def read_graph_def(path: str | os.PathLike[str]) -> pb.GraphDef:
    """Returns the GraphDef of a file.

    Raises:
        ConversionError: The file isn't one (`not-a-graph-def`).
    """
    data = read_input(path)
    is_text = os.fspath(path).endswith((".pbtxt", ".prototxt"))
    try:
        graph = parse_proto(data, pb.GraphDef, is_text=is_text)
    except DecodeError as problem:
        where = f": {problem}" if is_text else ""  # Of text, it names the line.
        raise error("not-a-graph-def", f"{os.fspath(path)} is not a GraphDef{where}", hint=_WANTED) from None
    if not graph.node:
        raise error("not-a-graph-def", f"{os.fspath(path)} holds no nodes", hint=_WANTED)
    return graph


def check_tensors(names: Iterable[str], graph: pb.GraphDef) -> None:
    """Checks that a graph has the named tensors."""
    nodes = {node.name: node for node in graph.node}
    context = ImportContext(OpRegistry(()), FunctionLibrary(graph.library))
    for name in names:
        _known(name, nodes, context)


def _known(name: str, nodes: Mapping[str, pb.NodeDef], context: ImportContext) -> str:
    node = parse_graph_input(name).node
    if node not in nodes:
        raise error(
            "unknown-tensor", f"the graph has no tensor {name!r}", hint=tensor_hint(node, nodes, _sinks(nodes, context))
        )
    return name


def _sinks(nodes: Mapping[str, pb.NodeDef], context: ImportContext) -> list[str]:
    """Returns the nodes with outputs that nothing uses."""
    return [
        name
        for name in unused_nodes(nodes)
        if nodes[name].op not in (*PLACEHOLDERS, _WITH_DEFAULT, "Const") and output_types(nodes[name], context)
    ]


def output_types(node: pb.NodeDef, context: ImportContext) -> Sequence[Attribute]:
    """Returns the element types of a node's outputs."""
    if node.op in context.library.definitions:
        node, _ = context.library.call(node)
    return context.registry.signature(node.op, node.name).resolve(node, node.attr).outputs


def _output_type(name: str, nodes: Mapping[str, pb.NodeDef], context: ImportContext) -> Attribute:
    tensor = parse_graph_input(_known(name, nodes, context))
    node = nodes[tensor.node]
    outputs = output_types(node, context)
    if tensor.position >= len(outputs):
        what = f"the op has no output {tensor.position}" if outputs else "the op has no outputs, only effects"
        raise error("missing-output", what, op=f"tf.{node.op}", node=node.name, hint="name a tensor of another node")
    return outputs[tensor.position]


def _graph_output(name: str, nodes: Mapping[str, pb.NodeDef], context: ImportContext) -> GraphOutput:
    _output_type(name, nodes, context)
    return GraphOutput(parse_graph_input(name), name)


def _graph_input(
    name: str,
    nodes: Mapping[str, pb.NodeDef],
    context: ImportContext,
    shapes: dict[str, Sequence[int | None]],
    *,
    is_optional: bool,
) -> GraphInput:
    output = _output_type(name, nodes, context)
    element = output.base if isinstance(output, types.RefType) else output
    tensor = parse_graph_input(name)
    node = nodes[tensor.node]
    noted: types.Shape | None = None
    if "_output_shapes" in node.attr and tensor.position < len(node.attr["_output_shapes"].list.shape):
        noted = shape_of(node.attr["_output_shapes"].list.shape[tensor.position])
    elif "shape" in node.attr and node.op in (*PLACEHOLDERS, _WITH_DEFAULT):
        noted = shape_of(node.attr["shape"].shape)
    wanted = shapes.pop(name, None)
    shape = noted if wanted is None else override_shape(name, noted, wanted)
    return GraphInput(tensor, types.tensor(element, shape), name, is_optional)
