"""A model's tables: the nodes that make their handles, and those that fill them.

Tables are filled by a part of the init op. TensorFlow 2 calls a function for each table, TensorFlow 1 has the nodes in
the main graph. Vocabulary files are assets: the MetaGraph states which tensor holds a file's path, and the nodes that
forward the path are replaced by it.

A model that was loaded from a SavedModel and saved again calls functions where it had an op: a creator returns the
handle, which signatures and the init op share. Each such call is replaced by the op itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from tfconvert.importers.containment import Folder
from tfconvert.importers.graph.entry_points import EntryPoint, import_entries
from tfconvert.importers.graph.node_graph import ImportContext, parse_function_input, parse_graph_input
from tfconvert.importers.graph.variables import imported_ops, node_name
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, AssetOp, SessionInitializerOp, export_initializer
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

INITIALIZER = "__saved_model_init_op"
"""The pseudo signature that names a SavedModel's init op, and the symbol of its function."""

_COLLECTIONS = ("saved_model_main_op", "legacy_init_op", "main_op", "table_initializer")
_ASSETS = "saved_model_assets"
ASSETS = "assets"
"""The subdirectory of a model with vocabularies and other files that the model reads."""
_TABLE = "HashTableV2"
# Makes another table each time that it runs, so its handle is made once, by a node of the main graph.
_ANONYMOUS = "AnonymousHashTable"
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
_RESOURCE = 20
# The number of the type of strings.
_STRING = 7


class _Library:
    """The functions of a graph.

    Args:
        meta_graph: The MetaGraph.
    """

    def __init__(self, meta_graph: pb.MetaGraphDef) -> None:
        self._functions = {each.signature.name: each for each in meta_graph.graph_def.library.function}

    def callee(self, call: pb.NodeDef) -> pb.FunctionDef | None:
        return self._functions.get(call.attr["f"].func.name) if call.op in _CALLS else None

    def made_table(self, call: pb.NodeDef) -> pb.NodeDef | None:
        """Returns the node whose handle is the only result of a call, `None` if that is not the handle of a table."""
        node: pb.NodeDef | None = call
        seen = set[str]()
        while node is not None and node.op not in (_TABLE, _ANONYMOUS):
            function = self.callee(node)
            if function is None or len(function.ret) != 1 or function.signature.name in seen:
                return None
            seen.add(function.signature.name)
            node = _result(function)
        return node

    def fills_own_table(self, call: pb.NodeDef) -> bool:
        """Returns whether a call makes the handle of a table and fills it, as in loaded models of TensorFlow 1."""
        found, pending, seen = set[str](), [call], set[str]()
        while pending:
            function = self.callee(pending.pop())
            if function is not None and function.signature.name not in seen:
                seen.add(function.signature.name)
                found |= {node.op for node in function.node_def}
                pending += function.node_def
        return _TABLE in found and not found.isdisjoint(_FILLS)


def _result(function: pb.FunctionDef) -> pb.NodeDef | None:
    """Returns the node of a function that defines its only result, looking through identities."""
    nodes = {node.name: node for node in function.node_def}
    node = nodes.get(parse_function_input(next(iter(function.ret.values()))).node)
    for _ in nodes:
        if node is None or node.op != "Identity" or not node.input:
            break
        node = nodes.get(parse_function_input(node.input[0]).node)
    return node


def with_tables(nodes: Mapping[str, pb.NodeDef], meta_graph: pb.MetaGraphDef) -> Mapping[str, pb.NodeDef]:
    """Returns nodes in which an op of its own makes the handle of each table, with a name that no other table has.

    Args:
        nodes: The main graph's nodes by name.
        meta_graph: The MetaGraph.
    """
    makers = [node for node in nodes.values() if node.op == _ANONYMOUS or _is_creator(node)]
    if not makers:
        return nodes
    library = _Library(meta_graph)
    found = {node.name: library.made_table(node) for node in makers}
    made = {name: _table_node(name, table) for name, table in found.items() if table is not None}
    return {**nodes, **made}


def _is_creator(node: pb.NodeDef) -> bool:
    """Returns whether a node is a call without operands that returns a handle."""
    return node.op in _CALLS and not node.input and list(node.attr["Tout"].list.type) == [_RESOURCE]


def _table_node(name: str, table: pb.NodeDef) -> pb.NodeDef:
    node = pb.NodeDef(name=name, op=_TABLE)
    for key in ("key_dtype", "value_dtype"):
        node.attr[key].CopyFrom(table.attr[key])
    # Handles of one shared name are of one table.
    node.attr["shared_name"].s = table.attr["shared_name"].s or name.encode()
    return node


def import_table_initializers(
    folder: Folder | None,
    meta_graph: pb.MetaGraphDef,
    nodes: Mapping[str, pb.NodeDef],
    context: ImportContext,
    functions: Sequence[FuncOp],
) -> list[Operation]:
    """Returns the function that fills used tables, and the ops that declare it; empty without tables.

    Args:
        folder: The model's directory; `None` if it has none.
        meta_graph: The MetaGraph.
        nodes: Its nodes by name.
        context: The state that all graphs of the model share.
        functions: The imported entry points.
    """
    starts = _init_ops(meta_graph)
    if not starts:
        return []
    tables = {node_name(op) for op in imported_ops(functions) if op.name == tf.PREFIX + _TABLE}
    fills = _fills(starts, nodes, tables, _Library(meta_graph))
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
        names += [each.name for _, each in sorted(meta_graph.signature_def[INITIALIZER].outputs.items())]
    return names


def _fills(
    starts: Iterable[str], nodes: Mapping[str, pb.NodeDef], tables: Collection[str], library: _Library
) -> list[str]:
    """Returns the nodes that fill some tables, or call functions that do, in the order of the graph."""
    pending, seen = list(starts), set[str]()
    while pending:
        name = parse_graph_input(pending.pop().removeprefix("^")).node
        if name in nodes and name not in seen:
            seen.add(name)
            pending.extend(nodes[name].input)

    def fills(node: pb.NodeDef) -> bool:
        has_table = any(parse_graph_input(text.removeprefix("^")).node in tables for text in node.input)
        return (has_table and node.op in (_FILLS | _CALLS)) or (node.op in _CALLS and library.fills_own_table(node))

    return [name for name, node in nodes.items() if name in seen and fills(node)]


def _asset_paths(meta_graph: pb.MetaGraphDef, folder: Folder | None) -> dict[str, str]:
    """Returns the nodes that hold files' paths, with the paths on this machine."""
    paths = {}
    for asset in (*meta_graph.asset_file_def, *_collected(meta_graph)):
        name = asset.filename
        if folder is None:
            raise error(
                "missing-asset",
                f"the file {name!r}, which fills a table, lies in a SavedModel's directory",
                node=asset.tensor_info.name,
                hint="save the model to a directory, and convert that",
            )
        if not folder.holds(folder.path / ASSETS):
            raise error(
                "bad-asset",
                f"{folder.path / ASSETS} is a link that leads out of the model's directory",
                hint="copy the files that it leads to into the model's directory",
            )
        path = folder.path / ASSETS / name
        leads_out = Path(name).is_absolute() or Path(os.path.normpath(name)).parts[:1] == (os.pardir,)
        if not name or leads_out or not folder.holds(path):
            raise error(
                "bad-asset",
                f"the asset {name!r} is not in the model's directory",
                node=asset.tensor_info.name,
                hint="save the model again, or copy the targets of links into its directory",
            )
        # The file is read when the table is made static; the resolved path contains no link that could change until
        # then.
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
    """Returns nodes in which constants replace files' paths and reads of variables that hold these."""
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
