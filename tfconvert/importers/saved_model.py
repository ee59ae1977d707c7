"""SavedModels, of TensorFlow 2 (object graph) and 1 (restore ops), to modules.

A signature is a list of feeds and fetches in the main graph, in both kinds; they differ in how a variable's node is
tied to the checkpoint, see `tfconvert/importers/graph/variables.py`. Only nodes that the chosen signatures reach are
imported: most others are functions for saving and restoring.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import DecodeError

from tfconvert.importers.containment import SAVED_MODEL_FILES, Folder
from tfconvert.importers.graph.adjustments import adjusted
from tfconvert.importers.graph.attributes import shape_of
from tfconvert.importers.graph.debug_info import SourceOf, load_debug_info, no_source
from tfconvert.importers.graph.entry_points import (
    Cuts,
    EntryPoint,
    GraphInput,
    GraphOutput,
    check_versions,
    cut_name,
    import_entries,
    versions_attribute,
    with_cuts,
)
from tfconvert.importers.graph.function_instances import FunctionLibrary
from tfconvert.importers.graph.function_library import import_callees
from tfconvert.importers.graph.node_graph import ImportContext, TensorName, parse_graph_input
from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.importers.graph.protos import parse_proto, read_op_defs
from tfconvert.importers.graph.signature_order import ORDERINGS, Ordering, call_order, output_names
from tfconvert.importers.graph.tables import INITIALIZER, import_table_initializers, with_tables
from tfconvert.importers.graph.variables import check_values, import_variables
from tfconvert.importers.pinned_shapes import override_shape
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, tf_saved_model, types
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.files import is_file, is_folder
from tfconvert.schema.ir.attributes import UnitAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import WHOLE, Selection

# A signature wrapper calls one function and forwards its results; a few nodes in addition to one for each result.
_WRAPPER_NODES = 8

# The signature that is called by default.
_DEFAULT = "serving_default"

_TRAIN_OP = "__saved_model_train_op"


class MetaGraphInfo(NamedTuple):
    """One of the graphs in a SavedModel.

    Attributes:
        tags: The tags that select it.
        tensorflow_version: The version of TensorFlow that wrote it; empty if unknown.
        signatures: The keys of its signatures.
    """

    tags: tuple[str, ...]
    tensorflow_version: str
    signatures: tuple[str, ...]


class SignatureInfo(NamedTuple):
    """A signature's inputs and outputs.

    Attributes:
        inputs: The names of the tensors to feed, by the signature's own names.
        outputs: The names of the tensors to fetch.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


class Files(NamedTuple):
    """The files beside a SavedModel's message, if there are any.

    Attributes:
        folder: The model's directory, where assets, debug info and Keras' own metadata may be.
        checkpoint: The path of the variables' values, without the files' extensions.
        values: The values of variables that are not in a checkpoint, by the names of their handles' nodes.
        source_of: Finds source lines; by default in the directory's debug info.
    """

    folder: Folder | None
    checkpoint: Path | None
    values: Mapping[str, Constant] = {}
    source_of: SourceOf | None = None

    @classmethod
    def of(cls, folder: Folder) -> Files:
        """Returns the files in a SavedModel's directory."""
        return cls(folder, folder.path / "variables" / "variables")


def is_saved_model(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a directory that holds a SavedModel's graph."""
    return any(is_file(Path(path) / name) for name in SAVED_MODEL_FILES)


def graphs_in(path: str | os.PathLike[str], *, follow_links: bool = False) -> tuple[MetaGraphInfo, ...]:
    """Returns the graphs in a SavedModel.

    Args:
        path: The SavedModel's directory.
        follow_links: Whether links may lead out of it.
    """
    return tuple(
        MetaGraphInfo(
            tuple(sorted(graph.meta_info_def.tags)),
            graph.meta_info_def.tensorflow_version,
            tuple(key for key in sorted(graph.signature_def) if key not in (INITIALIZER, _TRAIN_OP)),
        )
        for graph in _read(Folder(Path(path), follow_links)).meta_graphs
    )


def signatures_of(
    path: str | os.PathLike[str], tags: Sequence[str] | None = None, *, follow_links: bool = False
) -> dict[str, SignatureInfo]:
    """Returns the signatures of a SavedModel's graph.

    Args:
        path: The SavedModel's directory.
        tags: The tags of the graph.
        follow_links: Whether links may lead out of the directory.
    """
    return signatures_in(_read(Folder(Path(path), follow_links)), tags)


def signatures_in(message: pb.SavedModel, tags: Sequence[str] | None = None) -> dict[str, SignatureInfo]:
    """Returns the signatures of a graph in a SavedModel's message; see `signatures_of`."""
    graph = _meta_graph(message, tags)
    return {
        key: SignatureInfo(*({name: info.name for name, info in each.items()} for each in (one.inputs, one.outputs)))
        for key, one in sorted(graph.signature_def.items())
        if key not in (INITIALIZER, _TRAIN_OP)
    }


def import_saved_model(path: str | os.PathLike[str], selection: Selection = WHOLE) -> ModuleOp:
    """Returns the module of a SavedModel: one public function a signature, equal signatures sharing one.

    Args:
        path: The SavedModel's directory.
        selection: The part to import: the tags are those of the MetaGraph, by default `serve`, or the only MetaGraph's;
            shapes are for every signature that has the input.
    """
    folder = Folder(Path(path), selection.follow_links)
    return import_message(_read(folder), Files.of(folder), selection)


def import_message(saved_model: pb.SavedModel, files: Files, selection: Selection) -> ModuleOp:
    """Returns the module of a SavedModel's message, which is not changed; see `import_saved_model`.

    Args:
        saved_model: The message.
        files: The files beside it.
        selection: The part to import.
    """
    meta_graph = _meta_graph(saved_model, selection.tags)
    if not selection.results and any(len(each.outputs) > 1 for each in meta_graph.signature_def.values()):
        names = output_names(files.folder, meta_graph)
        selection = replace(selection, results=dict.fromkeys(meta_graph.signature_def, names) if names else {})
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    source_of = files.source_of or (no_source if files.folder is None else load_debug_info(files.folder))
    context = context_of(meta_graph, selection, source_of)
    entries = signature_entries(meta_graph, nodes, selection)
    module = module_of(meta_graph, nodes, context, entries, files)
    module.attributes[tf_saved_model.SEMANTICS] = UnitAttr.intern()
    return module


def context_of(meta_graph: pb.MetaGraphDef, selection: Selection, source_of: SourceOf = no_source) -> ImportContext:
    """Returns the context of importing a MetaGraph, whose versions are checked."""
    check_versions(meta_graph.graph_def.versions)
    registry = OpRegistry((*read_op_defs(selection.op_defs), *meta_graph.meta_info_def.stripped_op_list.op))
    library = FunctionLibrary(meta_graph.graph_def.library)
    return ImportContext(registry, library, source_of, is_functional=selection.is_functional)


def module_of(
    meta_graph: pb.MetaGraphDef,
    nodes: Mapping[str, pb.NodeDef],
    context: ImportContext,
    entries: Sequence[EntryPoint],
    files: Files,
    *,
    has_values: bool = True,
) -> ModuleOp:
    """Returns the module of a MetaGraph's entry points, with variables and table initializers.

    Args:
        meta_graph: The MetaGraph.
        nodes: Its nodes by name.
        context: The context of the import.
        entries: The entry points.
        files: The files beside it.
        has_values: Whether variables have values; if not, no function may use one.
    """
    nodes = with_tables(nodes, meta_graph)
    functions = import_entries(nodes, context, entries)
    initializers = import_table_initializers(files.folder, meta_graph, nodes, context, functions)
    called = import_callees(context)
    if has_values:
        variables = import_variables(files.checkpoint, files.folder, meta_graph, nodes, functions, files.values)
    else:
        variables = []
        check_values(functions, context.registry)
    module = ModuleOp.of([*variables, *functions, *initializers, *called])
    module.attributes[tf.VERSIONS] = versions_attribute(meta_graph.graph_def.versions)
    module.attributes[tf.PRODUCER_VERSION] = attrs.string(meta_graph.meta_info_def.tensorflow_version)
    return module


def missing(path: str | os.PathLike[str]) -> ConversionError:
    """Returns the error about a path that doesn't exist."""
    hint = "check the path: a SavedModel is the directory that holds saved_model.pb"
    return error("model-not-found", f"{os.fspath(path)} doesn't exist", hint=hint)


def _read(folder: Folder) -> pb.SavedModel:
    path = folder.path
    file = next((path / name for name in SAVED_MODEL_FILES if folder.has(path / name)), path / SAVED_MODEL_FILES[0])
    try:
        data = folder.read(file)
    except FileNotFoundError:
        if not is_folder(path):
            raise missing(path) from None
        raise error(
            "not-a-saved-model",
            f"{path} is not a SavedModel: it holds no saved_model.pb",
            hint="give the directory that holds saved_model.pb",
        ) from None
    except OSError as problem:
        raise error("unreadable-file", f"can't read {file}: {problem.strerror}") from None
    try:
        saved_model = parse_proto(data, pb.SavedModel, is_text=file.suffix == ".pbtxt")
    except DecodeError:
        raise error("damaged-saved-model", f"{file} is truncated or damaged", hint="copy the model again") from None
    if not saved_model.meta_graphs:
        raise error("damaged-saved-model", f"{file} holds no graph", hint="copy the model again")
    return saved_model


def _meta_graph(saved_model: pb.SavedModel, tags: Sequence[str] | None) -> pb.MetaGraphDef:
    graphs = list(saved_model.meta_graphs)
    wanted = {"serve"} if tags is None else set(tags)
    for graph in graphs:
        if set(graph.meta_info_def.tags) == wanted:
            return graph
    if tags is None and len(graphs) == 1:
        return graphs[0]
    there = "; ".join(",".join(graph.meta_info_def.tags) or "(none)" for graph in graphs)
    raise error(
        "unknown-tags",
        f"the model has no graph with the tags {','.join(sorted(wanted))}",
        hint=f"the tags of its graphs are: {there}",
    )


def signature_entries(
    meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef], selection: Selection
) -> list[EntryPoint]:
    """Returns an entry point for each chosen signature; equal ones become one with several exported names.

    By default, the one that is `serving_default` has no other name, so that it can be called without one.

    Args:
        meta_graph: The MetaGraph.
        nodes: Its nodes by name.
        selection: The part to import.

    Raises:
        ConversionError: There is no such signature or input, or a signature is damaged.
    """
    wanted, input_shapes = selection.signatures, selection.input_shapes or {}
    library = {function.signature.name: function for function in meta_graph.graph_def.library.function}
    order = ORDERINGS[selection.order]
    by_meaning: dict[Hashable, EntryPoint] = {}
    tensors: dict[str, dict[TensorName, str]] = {}
    used: set[str] = set()
    for key in _chosen_keys(meta_graph, wanted):
        entry = _entry_point(key, meta_graph.signature_def[key], nodes, input_shapes, used)
        _sort(entry, nodes, library, selection)
        entry = _labelled(entry, order, selection)
        meaning = _meaning(entry, nodes, library)
        same = by_meaning.setdefault(meaning, entry)
        ends: Sequence[GraphInput | GraphOutput] = (*entry.inputs, *entry.outputs)
        tensors.setdefault(same.symbol, {}).update({each.tensor: each.name for each in ends})
        if same is entry:
            continue
        same.exported_names.append(key)
        if wanted is None and key == _DEFAULT:
            # A signature that is called without a name has the labels of its own tensors.
            by_meaning[meaning] = entry._replace(symbol=same.symbol, exported_names=same.exported_names)
    entries = list(by_meaning.values())
    if selection.inputs is not None or selection.outputs is not None:
        cuts = Cuts(selection.inputs, selection.outputs, input_shapes, selection.batch)
        used |= {key for key in input_shapes if cut_name(key) in cuts.fixed_shapes}
        entries = with_cuts(entries, nodes, tensors, cuts)
    if unknown := sorted(input_shapes.keys() - used):
        known = sorted({name for entry in entries for name in entry.input_names})
        raise error(
            "unknown-input",
            f"no chosen signature has an input {', '.join(unknown)}",
            hint=f"the inputs are: {', '.join(known)}",
        )
    return adjusted(entries if wanted is not None else [_named_once(each, order) for each in entries], selection)


def _chosen_keys(meta_graph: pb.MetaGraphDef, wanted: Sequence[str] | None) -> list[str]:
    """Returns the keys of the chosen signatures, by default of all."""
    there = [key for key in sorted(meta_graph.signature_def) if key not in (INITIALIZER, _TRAIN_OP)]
    keys = there if wanted is None else list(dict.fromkeys(wanted))
    for key in keys:
        if key not in there:
            raise error(
                "unknown-signature",
                f"the model has no signature {key!r}",
                hint=f"its signatures are: {', '.join(there) or '(none)'}",
            )
    if not keys:
        raise error(
            "no-signature",
            "the model has no signature to convert",
            hint="save it with signatures=model.signature_function.get_concrete_function(...)",
        )
    return keys


def _named_once(entry: EntryPoint, order: Ordering) -> EntryPoint:
    """Returns an entry point without the names that say nothing more than `serving_default`, if it has that."""
    names, second = entry.exported_names, order.second_names
    others = [name for name in names if name != _DEFAULT and (second is None or name in second)]
    if _DEFAULT not in names or not others:
        return entry
    left = [name for name in names if name not in others]
    return entry._replace(symbol=left[0], exported_names=left, other_names=others)


def _entry_point(
    key: str,
    signature: pb.SignatureDef,
    nodes: Mapping[str, pb.NodeDef],
    input_shapes: Mapping[str, Sequence[int | None]],
    used: set[str],
) -> EntryPoint:
    outputs = [
        GraphOutput(parse_graph_input(_tensor_name(key, name, info)), name)
        for name, info in sorted(signature.outputs.items())
    ]
    inputs = []
    for name, info in sorted(signature.inputs.items()):
        tensor = parse_graph_input(_tensor_name(key, name, info))
        element = types.element_type(info.dtype)
        if element is None or tensor.node not in nodes:
            raise error(
                "bad-signature",
                f"input {name!r} of signature {key!r} names a missing tensor",
                hint="the model file is damaged",
            )
        shape = shape_of(info.tensor_shape)
        if name in input_shapes:
            used.add(name)
            shape = override_shape(name, shape, input_shapes[name])
        inputs.append(GraphInput(tensor, types.tensor(element, shape), name))
    return EntryPoint(key, [key], inputs, outputs)


def _tensor_name(key: str, name: str, info: pb.TensorInfo) -> str:
    if info.WhichOneof("encoding") != "name":
        raise error(
            "bad-signature",
            f"{name!r} of signature {key!r} is a sparse or composite tensor",
            hint="export a signature of dense tensors",
        )
    return info.name


def _sort(
    entry: EntryPoint, nodes: Mapping[str, pb.NodeDef], library: Mapping[str, pb.FunctionDef], selection: Selection
) -> None:
    """Returns an entry point, sorted by the names of inputs and outputs, in the requested order."""
    sort_key = ORDERINGS[selection.order].sort_key
    if sort_key is not None:
        entry.inputs.sort(key=sort_key)
        entry.outputs.sort(key=sort_key)
        return
    called = {output.tensor.node for output in entry.outputs}
    order = call_order(nodes.get(next(iter(called))), library) if len(called) == 1 else None
    if order is not None:
        last = len(order.arguments)
        entry.inputs.sort(key=lambda each: order.arguments.get(each.tensor.node, last))
        entry.outputs.sort(key=lambda each: order.results.get(each.tensor.position, each.tensor.position))
    results = selection.tensors if selection.order == "flattened" else selection.results
    told = {name: index for index, name in enumerate(results.get(entry.symbol, ()))}
    entry.outputs.sort(key=lambda each: told.get(each.name, len(told)))


def _labelled(entry: EntryPoint, order: Ordering, selection: Selection) -> EntryPoint:
    """Returns an entry point with the labels of its tensors."""
    own = selection.tensors.get(entry.symbol) if selection.order == "flattened" else None
    return entry._replace(
        inputs=[each._replace(label=each.name if own is not None else order.label(each)) for each in entry.inputs],
        outputs=[
            each._replace(label=order.label(each) if own is None else own.get(each.name, "")) for each in entry.outputs
        ],
    )


def _meaning(entry: EntryPoint, nodes: Mapping[str, pb.NodeDef], library: Mapping[str, pb.FunctionDef]) -> Hashable:
    """Returns a key that is equal only for entry points that compute the same from the same inputs.

    It covers `serve` and `serving_default`: calls with the same arguments of wrappers of the same function or, in
        TensorFlow 1, the same tensors. Other equal functions are imported, and merged by the pass `merge-functions`.
    """
    inputs = tuple((each.name, each.type) for each in entry.inputs)
    called = {output.tensor.node for output in entry.outputs}
    node = nodes.get(next(iter(called))) if len(called) == 1 else None
    if node is None or not node.op.endswith("PartitionedCall"):
        return (inputs, *(each.tensor for each in entry.inputs), *entry.outputs)
    fed = {each.tensor.node: index for index, each in enumerate(entry.inputs)}
    operands = tuple(fed.get(parse_graph_input(text).node, text) for text in node.input)
    outputs = tuple((each.name, each.tensor.position) for each in entry.outputs)
    return (node.op, _wrapper_meaning(node.attr["f"].func.name, library), operands, inputs, outputs)


def _wrapper_meaning(name: str, library: Mapping[str, pb.FunctionDef]) -> Hashable:
    """Returns a structural key of a small function, independent of names; the name of any other."""
    function = library.get(name)
    if function is None or len(function.node_def) > _WRAPPER_NODES + len(function.signature.output_arg):
        return name
    numbers = {argument.name: str(index) for index, argument in enumerate(function.signature.input_arg)}
    return (
        tuple(argument.type for argument in function.signature.input_arg),
        tuple(
            (
                node.name,
                node.op,
                tuple(numbers.get(text, text) for text in node.input),
                tuple((key, node.attr[key].SerializeToString(deterministic=True)) for key in sorted(node.attr)),
            )
            for node in function.node_def
        ),
        tuple(function.ret[output.name] for output in function.signature.output_arg),
        tuple(sorted(function.control_ret.values())),
    )
