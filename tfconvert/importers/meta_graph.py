"""MetaGraphs of TensorFlow 1: `model.ckpt-100.meta`, a graph with a checkpoint of its variables beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from tfconvert.importers.containment import Folder
from tfconvert.importers.graph.adjustments import adjusted
from tfconvert.importers.graph.entry_points import PLACEHOLDERS, EntryPoint
from tfconvert.importers.graph.node_graph import ImportContext, parse_graph_input
from tfconvert.importers.graph.protos import parse_proto
from tfconvert.importers.graph.reachability import dependent_nodes, unused_nodes
from tfconvert.importers.graph_def import named_entry, output_types
from tfconvert.importers.saved_model import Files, context_of, module_of, signature_entries
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import types
from tfconvert.schema.files import is_file, is_folder, read_input
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import WHOLE, Selection

_SUFFIX = ".meta"
STATE = "checkpoint"
"""The file in which TensorFlow records a directory's newest checkpoint."""

# Maximum size of such a file, which has a line for each kept checkpoint.
_MAX_STATE = 1 << 24

_PATH_KEY = "model_checkpoint_path"

# Maximum number of nodes suggested as outputs.
_SHOWN = 8


def find_meta_graph(path: Path, *, follow_links: bool = False) -> Path | None:
    """Returns the MetaGraph file that a path refers to, or `None`.

    Args:
        path: The file, any other of a checkpoint's files, their common prefix, or a directory with a `checkpoint` file.
        follow_links: Whether links may lead out of the directory.
    """
    if path.suffix == _SUFFIX:
        return path
    if is_folder(path):
        return _in_folder(Folder(path, follow_links))
    if path.suffix == ".index" or path.suffix.startswith(".data-"):
        return _beside(path.with_suffix(""))
    return _beside(path)


def _beside(prefix: Path) -> Path | None:
    file = prefix.with_name(prefix.name + _SUFFIX) if prefix.name else prefix
    return file if is_file(file) else None


def _in_folder(folder: Folder) -> Path | None:
    named = _named(folder)
    if named is None:
        return None
    found = _beside(_here(named, folder))
    if found is None and not folder.holds(named):
        raise error(
            "outside-model",
            f"{folder.path / STATE} names {str(named)!r}, which is not in the model's directory",
            hint="give the .meta file, or copy the checkpoint's files into the directory",
        )
    return found if found is None else folder.check(found)


def _named(folder: Folder) -> Path | None:
    """Returns the prefix of a directory's newest checkpoint as the directory's `checkpoint` file names it."""
    try:
        lines = folder.read(folder.path / STATE, _MAX_STATE).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == _PATH_KEY:
            named = folder.path / value.strip().strip('"')
            return named if named.name else None
    return None


def _here(named: Path, folder: Folder) -> Path:
    """Returns the prefix of a named checkpoint in the directory: the path may be from the machine that saved it."""
    there = folder.holds(named) and is_file(_index(named))
    return named if there else folder.path / named.name


def _index(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".index")


def import_meta_graph(path: str | os.PathLike[str], selection: Selection = WHOLE) -> ModuleOp:
    """Returns the module of a MetaGraph and the checkpoint beside it.

    Args:
        path: The `.meta` file, binary or text. The checkpoint has the same name with other extensions, or is the one
            that the directory's `checkpoint` file names.
        selection: The part to import: signatures are by default every one, if there are some and no tensors are named;
            inputs are by default the placeholders that the outputs reach, and outputs the only node that has no users
            and that an input reaches.
    """
    file = Path(path)
    folder = Folder(file.parent, selection.follow_links)
    meta_graph = _read(file)
    context = context_of(meta_graph, selection)
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    entries: list[EntryPoint]
    inputs, outputs = selection.inputs, selection.outputs
    if selection.signatures is not None or (meta_graph.signature_def and inputs is None and outputs is None):
        entries = signature_entries(meta_graph, nodes, selection)
    else:
        names = list(outputs) if outputs is not None else [_result(meta_graph, nodes, context, inputs)]
        entries = adjusted([named_entry(nodes, context, inputs, names, selection.input_shapes)], selection)
    prefix = checkpoint_of(file, follow_links=selection.follow_links)
    files = Files(folder, prefix)
    return module_of(meta_graph, nodes, context, entries, files, has_values=prefix is not None)


def _read(file: Path) -> pb.MetaGraphDef:
    data = read_input(file)
    try:
        meta_graph = parse_proto(data, pb.MetaGraphDef, is_text=False)
    except DecodeError:
        meta_graph = pb.MetaGraphDef()
    if not meta_graph.graph_def.node:
        raise error(
            "not-a-meta-graph",
            f"{file} is not a MetaGraph, or holds no nodes",
            hint="give the .meta file that TensorFlow 1's Saver writes",
        )
    return meta_graph


def checkpoint_of(file: Path, *, follow_links: bool = False) -> Path | None:
    """Returns the prefix of a MetaGraph's checkpoint, or `None`.

    Args:
        file: The MetaGraph.
        follow_links: Whether links may lead out of its directory.
    """
    own = file.with_suffix("")
    if is_file(_index(own)):
        return own
    folder = Folder(file.parent, follow_links)
    named = _named(folder)
    newest = _here(named, folder) if named is not None else None
    return newest if newest is not None and is_file(_index(newest)) else None


def _result(
    meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef], context: ImportContext, inputs: Sequence[str] | None
) -> str:
    """Returns the one node that nothing uses and an input reaches; savers and initializers don't count.

    Raises:
        ConversionError: There is not exactly one, for instance in a training graph (`no-outputs`).
    """
    names = inputs if inputs is not None else [name for name, node in nodes.items() if node.op in PLACEHOLDERS]
    reached = dependent_nodes(nodes, [parse_graph_input(name).node for name in names])
    reached -= dependent_nodes(nodes, [parse_graph_input(meta_graph.saver_def.filename_tensor_name).node])
    found = [name for name in unused_nodes(nodes) if name in reached and _has_value(nodes[name], context)]
    if len(found) != 1:
        raise error(
            "no-outputs",
            "the graph has no signature, and its outputs are ambiguous",
            hint=f"name them with --output; unused nodes: {', '.join(found[:_SHOWN]) or '(nothing)'}",
        )
    return found[0]


def _has_value(node: pb.NodeDef, context: ImportContext) -> bool:
    outputs = () if node.op in PLACEHOLDERS else output_types(node, context)
    return bool(outputs) and not isinstance(outputs[0], types.RefType)
