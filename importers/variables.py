"""Variables of a SavedModel: which checkpoint key each variable node stands for (design §4).

TensorFlow 2: a called function's bound inputs name objects of the saved object graph; the checkpoint has an object
graph of its own, whose edges have the same names, and whose nodes know their keys. TensorFlow 1: the restore op's
graph says which key is assigned to which variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from xdsl.dialects.builtin import NameLoc, SymbolRefAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from importers.checkpoint import Checkpoint
from importers.node_graph import parse_graph_input
from importers.tensor_proto import import_tensor
from schema.diagnostics import error
from schema.dialects import tensor_data, tf, tf_executor, types
from schema.dialects.tf_saved_model import GlobalTensorOp
from schema.tensorflow.generated import tensorflow_pb2 as pb

_VALUE = "VARIABLE_VALUE"


def import_variables(
    folder: Path, meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef], functions: Sequence[FuncOp]
) -> list[GlobalTensorOp]:
    """Returns a global tensor for each variable that the functions reach, and points the handles at them.

    Args:
        folder: The SavedModel's folder.
        meta_graph: Its graph.
        nodes: The main graph's nodes by name.
        functions: The imported entry points; the `shared_name` of their `tf.VarHandleOp`s becomes the symbol.

    Raises:
        ConversionError: The checkpoint is missing or damaged, a variable isn't in it or has another shape there.
    """
    ops = list(_ops(functions))
    handles = [op for op in ops if op.name == "tf.VarHandleOp"]
    if not handles:
        return []
    checkpoint = Checkpoint(folder / "variables" / "variables")
    if meta_graph.HasField("object_graph_def"):
        keys = _object_graph_keys(meta_graph.object_graph_def, checkpoint, ops)
    else:
        keys = _restored_keys(meta_graph, nodes)
    tensors: dict[str, GlobalTensorOp] = {}
    for handle in handles:
        node = _node_name(handle)
        key = keys.get(node)
        if key is None:
            raise error(
                "untracked-variable", "the variable's value is not in the checkpoint", op=handle.name, node=node,
                hint="track the variable (assign its owner to an attribute of the saved object) before saving",
            )  # fmt: skip
        if key not in tensors:
            tensors[key] = _global_tensor(handle, node, key, checkpoint, len(tensors))
        handle.properties["shared_name"] = tensors[key].properties["sym_name"]
    return list(tensors.values())


def _ops(functions: Sequence[FuncOp]) -> Iterator[Operation]:
    """Yields the op in each island of functions whose islands hold one op."""
    for function in functions:
        for graph in function.body.block.ops:
            if isinstance(graph, tf_executor.GraphOp):
                for island in graph.body.ops:
                    if isinstance(island, tf_executor.IslandOp) and island.body.first_op is not None:
                        yield island.body.first_op


def _node_name(op: Operation) -> str:
    return op.location.desc.data if isinstance(op.location, NameLoc) else ""


def _global_tensor(handle: Operation, node: str, key: str, checkpoint: Checkpoint, index: int) -> GlobalTensorOp:
    value = _value(checkpoint, key)
    declared = tf.get(handle, "shape")
    shape = types.shape_of(value.type) or ()
    clash = declared is not None and (
        len(declared) != len(shape) or any(a >= 0 and a != b for a, b in zip(declared, shape, strict=True))
    )
    if clash or handle.properties.get("dtype") != value.type.element_type:
        raise error(
            "variable-mismatch",
            f"the graph declares a variable of shape {list(declared or ())}, "
            f"the checkpoint holds {key!r} as {value.type}",
            op=handle.name, node=node, hint="graph and checkpoint are of different models",
        )  # fmt: skip
    declared_type: Attribute = types.tensor(value.type.element_type, declared) if declared is not None else value.type
    # The index makes the symbol unique: two variables may have one name.
    return GlobalTensorOp.build(
        f"__sm_{index}__{node}", declared_type, value, is_mutable=True, location=handle.location
    )


def _value(checkpoint: Checkpoint, key: str) -> tensor_data.TensorData:
    source = checkpoint.read(key)
    entry = checkpoint.entries()[key]
    element = types.element_type(entry.dtype)
    assert element is not None
    value_type = types.tensor(element, entry.shape)
    assert isinstance(value_type, TensorType)
    return tensor_data.TensorData(value_type, source)


def _object_graph_keys(
    objects: pb.SavedObjectGraph, checkpoint: Checkpoint, ops: Sequence[Operation]
) -> dict[str, str]:
    """Returns variable node -> checkpoint key, through the bound inputs of the functions that the main graph calls."""
    ids: dict[str, int] = {}
    for call in ops:
        callee = call.properties.get("f")
        if not isinstance(callee, SymbolRefAttr) or callee.root_reference.data not in objects.concrete_functions:
            continue
        bound = objects.concrete_functions[callee.root_reference.data].bound_inputs
        # From the end: captured values come after a function's own arguments.
        for operand, node_id in zip(reversed(call.operands), reversed(bound), strict=False):
            if isinstance(operand.owner, tf_executor.IslandOp) and operand.owner.wrapped is not None:
                ids[_node_name(operand.owner.wrapped)] = node_id
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


def _restored_keys(meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef]) -> dict[str, str]:
    """Returns variable node -> checkpoint key, as the nodes that the restore op runs assign them."""
    keys: dict[str, str] = {}
    pending = [meta_graph.saver_def.restore_op_name]
    seen: set[str] = set()
    while pending:
        name = parse_graph_input(pending.pop().removeprefix("^")).node
        node = nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.op in ("Assign", "AssignVariableOp") and len(node.input) >= 2:
            key = _restored_key(node.input[1], nodes)
            if key is not None:
                keys[parse_graph_input(node.input[0]).node] = key
        pending.extend(node.input)
    return keys


def _restored_key(text: str, nodes: Mapping[str, pb.NodeDef]) -> str | None:
    """Returns the key that a value was restored from; identities between are looked through."""
    tensor = parse_graph_input(text)
    node = nodes.get(tensor.node)
    while node is not None and node.op == "Identity" and node.input:
        tensor = parse_graph_input(node.input[0])
        node = nodes.get(tensor.node)
    if node is None or node.op != "RestoreV2" or len(node.input) < 2:
        return None
    names = nodes.get(parse_graph_input(node.input[1]).node)
    if names is None or names.op != "Const":
        return None
    values = tensor_data.to_array(import_tensor(names.attr["value"].tensor, names.name)).ravel()
    return values[tensor.index].decode() if tensor.index < len(values) else None
