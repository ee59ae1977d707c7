"""Variables of a SavedModel: the checkpoint key of each variable node.

TensorFlow 2: a called function's bound inputs name objects of the saved object graph; the checkpoint has an object
graph of its own, whose edges have the same names, and whose nodes know their keys. TensorFlow 1: the restore op's
assignments determine the key of each variable (`tfconvert/importers/graph/restore_ops.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.importers.containment import Folder
from tfconvert.importers.graph.ref_variables import HANDLE
from tfconvert.importers.graph.restore_ops import Saved, initial_value, saved_variables
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error
from tfconvert.schema.dialects import tensor_data, tf, tf_executor, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import GlobalTensorOp
from tfconvert.schema.files import is_missing
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_VALUE = "VARIABLE_VALUE"
_HANDLE = "tf.VarHandleOp"
# Ops that read a variable's value and don't assign one.
_QUESTIONS = frozenset({"tf.ReadVariableOp", "tf.VarIsInitializedOp", "tf.VariableShape", "tf.ResourceGather"})


def import_variables(
    prefix: str | os.PathLike[str] | None,
    folder: Folder | None,
    meta_graph: pb.MetaGraphDef,
    nodes: Mapping[str, pb.NodeDef],
    functions: Sequence[FuncOp],
) -> list[GlobalTensorOp]:
    """Returns a global tensor for each variable that the functions reach, and points the handles at them.

    Args:
        prefix: The checkpoint's path without its files' endings; `None` if the model is a message without one.
        folder: The model's folder; that of the checkpoint by default.
        meta_graph: The graph's MetaGraph.
        nodes: The main graph's nodes by name, as the file has them.
        functions: The imported entry points; the `shared_name` of their `tf.VarHandleOp`s becomes the symbol.

    Raises:
        ConversionError: The checkpoint is missing or damaged, a variable isn't in it or has another shape there.
    """
    ops = list(imported_ops(functions))
    handles = [op for op in ops if op.name == _HANDLE]
    if not handles:
        return []
    saved, checkpoint = _saved_values(prefix, folder, meta_graph, nodes, ops)
    tensors: dict[Saved | str, GlobalTensorOp] = {}
    missing: list[Operation] = []
    for handle in handles:
        node = _variable_name(handle)
        key = saved.get(node) or node
        if key not in tensors:
            value: tensor_data.Constant | None
            if checkpoint is not None and isinstance(key, Saved):
                value = _value(checkpoint, key)
            else:
                value = initial_value(node, meta_graph, nodes)
            if value is None:
                missing.append(handle)
                continue
            tensors[key] = _global_tensor(handle, node, value, len(tensors))
        handle.properties["shared_name"] = tensors[key].properties["sym_name"]
    if missing:
        if prefix is None:
            raise ConversionError(map(_without_checkpoint, missing))
        if checkpoint is None:
            Checkpoint(prefix, folder)  # it is needed, so that opening it reports what is wrong
        is_object = meta_graph.HasField("object_graph_def")
        raise ConversionError(_untracked(handle, is_object=is_object) for handle in missing)
    return list(tensors.values())


def _saved_values(
    prefix: str | os.PathLike[str] | None,
    folder: Folder | None,
    meta_graph: pb.MetaGraphDef,
    nodes: Mapping[str, pb.NodeDef],
    ops: Sequence[Operation],
) -> tuple[Mapping[str, Saved], Checkpoint | None]:
    """Returns which variable nodes have which values in the checkpoint; a graph may have a checkpoint, or none."""
    is_object = meta_graph.HasField("object_graph_def")
    if prefix is None or (not is_object and is_missing(f"{os.fspath(prefix)}.index")):
        return {}, None
    checkpoint = Checkpoint(prefix, folder)
    if is_object:
        keys = _object_graph_keys(meta_graph.object_graph_def, checkpoint, ops)
        return {node: Saved(key) for node, key in keys.items()}, checkpoint
    return saved_variables(meta_graph, nodes, checkpoint.entries()), checkpoint


def check_values(functions: Sequence[FuncOp]) -> None:
    """Checks that functions of a graph without a checkpoint read no variable.

    Raises:
        ConversionError: They read variables that nothing writes (`no-checkpoint`).
    """
    unknown = [
        op
        for op in imported_ops(functions)
        if op.name == _HANDLE and all(use.operation.name in _QUESTIONS for use in _outside(op).results[0].uses)
    ]
    if unknown:
        raise ConversionError(
            Diagnostic(
                "no-checkpoint",
                "the variable's value is not in this file",
                op.name,
                _variable_name(op),
                hint="freeze the graph, or give the .meta file beside the checkpoint",
            )
            for op in unknown
        )


def _without_checkpoint(handle: Operation) -> Diagnostic:
    return Diagnostic(
        "no-checkpoint",
        "the variable's value is in a checkpoint, and the model came without one",
        handle.name,
        _variable_name(handle),
        hint="give the checkpoint's path (tfconvert.Source(model, checkpoint=...)), or save the model to a folder",
    )


def _untracked(handle: Operation, *, is_object: bool) -> Diagnostic:
    return Diagnostic(
        "untracked-variable",
        "the variable's value is not in the checkpoint",
        handle.name,
        _variable_name(handle),
        hint="track the variable (assign its owner to an attribute of the saved object) before saving"
        if is_object
        else "save it with the others, or have the model's init op assign it a constant",
    )


def imported_ops(functions: Sequence[FuncOp]) -> Iterator[Operation]:
    """Yields the op of each node of imported functions, but for executor ops; it may be in an island of its own."""
    for function in functions:
        for op in function.body.block.ops:
            if not isinstance(op, tf_executor.GraphOp):
                yield op
                continue
            for island in op.body.ops:
                if isinstance(island, tf_executor.IslandOp) and island.body.first_op is not None:
                    yield island.body.first_op


def _outside(op: Operation) -> Operation:
    """Returns the op whose results others use: the island of an op, if it is in one."""
    island = op.parent_op()
    return island if isinstance(island, tf_executor.IslandOp) else op


def _inside(op: Operation) -> Operation:
    """Returns the op that an island holds; any other op itself."""
    return (op.wrapped or op) if isinstance(op, tf_executor.IslandOp) else op


def node_name(op: Operation) -> str:
    """Returns the name of the node that an op was in the file; empty if its location is none's."""
    return op.location.name if isinstance(op.location, NameLoc) else ""


def _variable_name(handle: Operation) -> str:
    """Returns the name of the node that a handle was in the file."""
    return node_name(handle).removesuffix(HANDLE)


def _global_tensor(handle: Operation, node: str, value: tensor_data.Constant, index: int) -> GlobalTensorOp:
    attribute = handle.properties.get("shape")
    if not isinstance(attribute, tf.ShapeAttr | None):
        raise error(
            "bad-attribute",
            "the attribute 'shape' is not a shape",
            op=handle.name,
            node=node,
            hint="the model file is damaged",
        )
    declared = None if attribute is None else attribute.shape
    shape = types.shape_of(value.type) or ()
    clash = declared is not None and (
        len(declared) != len(shape) or any(a >= 0 and a != b for a, b in zip(declared, shape, strict=True))
    )
    if clash or handle.properties.get("dtype") != value.type.element_type:
        raise error(
            "variable-mismatch",
            f"the graph declares a variable of shape {list(declared or ())}, the saved value is a {value.type}",
            op=handle.name,
            node=node,
            hint="graph and checkpoint are of different models",
        )
    declared_type = types.tensor(value.type.element_type, declared)
    # The index makes the symbol unique: two variables may have one name.
    return GlobalTensorOp.build(
        f"__sm_{index}__{node}", declared_type, value, is_mutable=True, location=handle.location
    )


def _value(checkpoint: Checkpoint, saved: Saved) -> tensor_data.TensorData:
    if saved.extents is None:
        source = checkpoint.read(saved.key)
        shape = checkpoint.entries()[saved.key].shape
    else:
        source, shape = checkpoint.read_part(saved.key, saved.extents)
    element = types.element_type(checkpoint.entries()[saved.key].dtype)
    assert element is not None
    value_type = types.tensor(element, shape)
    assert isinstance(value_type, TensorType)
    return tensor_data.TensorData.get(value_type, source)


def _object_graph_keys(
    objects: pb.SavedObjectGraph, checkpoint: Checkpoint, ops: Sequence[Operation]
) -> dict[str, str]:
    """Returns variable node -> checkpoint key, through the bound inputs of the functions that the main graph calls."""
    ids: dict[str, int] = {}
    for call in ops:
        callee = call.properties.get("f")
        if not isinstance(callee, SymbolRefAttr) or callee.root not in objects.concrete_functions:
            continue
        bound = objects.concrete_functions[callee.root].bound_inputs
        # From the end: captured values follow a function's own arguments.
        for operand, node_id in zip(reversed(call.operands), reversed(bound), strict=False):
            if isinstance(operand.owner, Operation):
                ids[node_name(_inside(operand.owner))] = node_id
    key_of_object = _checkpoint_keys(objects, checkpoint)
    return {node: key_of_object[node_id] for node, node_id in ids.items() if node_id in key_of_object}


def _checkpoint_keys(objects: pb.SavedObjectGraph, checkpoint: Checkpoint) -> dict[int, str]:
    """Returns saved object -> checkpoint key; the two object graphs are walked side by side from their roots."""
    graph = checkpoint.object_graph()
    tracked = graph.nodes if graph is not None else []
    saved = objects.nodes
    keys: dict[int, str] = {}
    seen = {0}
    pending = [(0, 0)] if len(saved) and len(tracked) else []
    while pending:
        saved_id, tracked_id = pending.pop()
        for attribute in tracked[tracked_id].attributes:
            if attribute.name == _VALUE:
                keys[saved_id] = attribute.checkpoint_key
        children = {child.local_name: child.node_id for child in tracked[tracked_id].children}
        for child in saved[saved_id].children:
            there = children.get(child.local_name)
            inside = there is not None and 0 <= there < len(tracked) and 0 <= child.node_id < len(saved)
            if inside and child.node_id not in seen:
                seen.add(child.node_id)
                pending.append((child.node_id, there or 0))
    return keys
