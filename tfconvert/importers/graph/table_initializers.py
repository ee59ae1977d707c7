"""The initialization of a model's tables before anything else runs: the part of its init op that fills them.

TensorFlow 2 calls a function for each table, TensorFlow 1 has the nodes in the main graph. Vocabulary files are
assets: the MetaGraph states which tensor holds a file's path, and the nodes that forward the path are replaced by it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from tfconvert.importers.containment import Folder
from tfconvert.importers.graph.entry_points import EntryPoint, import_entries
from tfconvert.importers.graph.node_graph import ImportContext, parse_graph_input
from tfconvert.importers.graph.variables import imported_ops, node_name
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, AssetOp, SessionInitializerOp, export_initializer
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

INITIALIZER = "__saved_model_init_op"
"""The pseudo signature that names a SavedModel's init op, and the symbol of its function."""

_COLLECTIONS = ("saved_model_main_op", "legacy_init_op", "main_op", "table_initializer")
_ASSETS = "saved_model_assets"
ASSETS = "assets"
"""Where a model's folder has vocabularies and other files that the model reads."""
_TABLE = "tf.HashTableV2"
_FILLS = frozenset(
    {
        "InitializeTable",
        "InitializeTableFromTextFile",
        "InitializeTableFromTextFileV2",
        "InitializeTableV2",
        "LookupTableImport",
        "LookupTableImportV2",
    }
)
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# The number of the type of strings.
_STRING = 7


def import_table_initializers(
    folder: Folder | None,
    meta_graph: pb.MetaGraphDef,
    nodes: Mapping[str, pb.NodeDef],
    context: ImportContext,
    functions: Sequence[FuncOp],
) -> list[Operation]:
    """Returns the function that fills used tables, and the ops that declare it; nothing without tables.

    Args:
        folder: The model's folder; `None` if it has none.
        meta_graph: The MetaGraph.
        nodes: Its nodes by name.
        context: The state that all graphs of the model share.
        functions: The imported entry points.
    """
    tables = {node_name(op) for op in imported_ops(functions) if op.name == _TABLE}
    if not tables:
        return []
    fills = _fills(_init_ops(meta_graph), nodes, tables)
    if not fills:
        return []
    paths = _asset_paths(meta_graph, folder)
    entry = EntryPoint(INITIALIZER, [], [], [], controls=fills)
    (function,) = import_entries(_with_paths(nodes, paths), context, [entry])
    del function.attributes[ENTRY_FUNCTION]
    export_initializer(function)
    files = [AssetOp.build(f"__asset_{index}", path) for index, path in enumerate(dict.fromkeys(paths.values()))]
    return [*files, SessionInitializerOp.build([INITIALIZER]), function]


def _init_ops(meta_graph: pb.MetaGraphDef) -> list[str]:
    collections = (meta_graph.collection_def[name] for name in _COLLECTIONS if name in meta_graph.collection_def)
    names = [name for each in collections for name in each.node_list.value]
    if INITIALIZER in meta_graph.signature_def:
        names += [each.name for each in meta_graph.signature_def[INITIALIZER].outputs.values()]
    return names


def _fills(starts: Iterable[str], nodes: Mapping[str, pb.NodeDef], tables: Collection[str]) -> list[str]:
    """Returns the nodes that fill some tables, or call functions that do, in the order of the graph."""
    pending, seen = list(starts), set[str]()
    while pending:
        name = parse_graph_input(pending.pop().removeprefix("^")).node
        if name in nodes and name not in seen:
            seen.add(name)
            pending.extend(nodes[name].input)
    return [
        name
        for name, node in nodes.items()
        if name in seen
        and (node.op in _FILLS or node.op in _CALLS)
        and any(parse_graph_input(text.removeprefix("^")).node in tables for text in node.input)
    ]


def _asset_paths(meta_graph: pb.MetaGraphDef, folder: Folder | None) -> dict[str, str]:
    """Returns the nodes that hold files' paths, with the paths as they are here."""
    paths = {}
    for asset in (*meta_graph.asset_file_def, *_collected(meta_graph)):
        name = asset.filename
        if folder is None:
            raise error(
                "missing-asset",
                f"the file {name!r}, which fills a table, lies in a SavedModel's folder",
                node=asset.tensor_info.name,
                hint="save the model to a folder, and convert that",
            )
        if not folder.holds(folder.path / ASSETS):
            raise error(
                "bad-asset",
                f"{folder.path / ASSETS} is a link that leads out of the model's folder",
                hint="put the files that it leads to into the model's folder",
            )
        path = folder.path / ASSETS / name
        leads_out = Path(name).is_absolute() or Path(os.path.normpath(name)).parts[:1] == (os.pardir,)
        if not name or leads_out or not folder.holds(path):
            raise error(
                "bad-asset",
                f"the asset {name!r} is not in the model's folder",
                node=asset.tensor_info.name,
                hint="save the model again; put the files that links lead to into its folder",
            )
        # The file is read when the table is made static, by a path in which no link can lead elsewhere by then.
        paths[parse_graph_input(asset.tensor_info.name).node] = os.fspath(folder.check(path))
    return paths


def _collected(meta_graph: pb.MetaGraphDef) -> list[pb.AssetFileDef]:
    """Returns the assets of a SavedModel of TensorFlow 1, which has them in a collection."""
    if _ASSETS not in meta_graph.collection_def:
        return []
    try:
        return [pb.AssetFileDef.FromString(each.value) for each in meta_graph.collection_def[_ASSETS].any_list.value]
    except DecodeError:
        raise error("bad-asset", "the collection of assets is damaged", hint="save the model again") from None


def _with_paths(nodes: Mapping[str, pb.NodeDef], paths: Mapping[str, str]) -> dict[str, pb.NodeDef]:
    """Returns nodes with constants where files' paths are, and where variables are read that hold them."""
    known = dict(paths)
    for node in nodes.values():
        if node.op == "AssignVariableOp" and len(node.input) >= 2:
            path = paths.get(parse_graph_input(node.input[1]).node)
            if path is not None:
                known[parse_graph_input(node.input[0]).node] = path
    result = dict(nodes)
    for name, node in nodes.items():
        source = parse_graph_input(node.input[0]).node if node.op == "ReadVariableOp" and node.input else name
        if source in known and node.op != "VarHandleOp":
            result[name] = _path_constant(name, known[source])
    return result


def _path_constant(name: str, path: str) -> pb.NodeDef:
    node = pb.NodeDef(name=name, op="Const")
    node.attr["dtype"].type = _STRING  # type: ignore[assignment]  # the generated code accepts the number
    node.attr["value"].tensor.dtype = _STRING  # type: ignore[assignment]
    node.attr["value"].tensor.tensor_shape.SetInParent()
    node.attr["value"].tensor.string_val.append(path.encode("utf-8", "surrogateescape"))
    return node
