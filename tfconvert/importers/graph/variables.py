"""The initial values of a model's variables: the checkpoint key of each.

TensorFlow 2: a called function's bound inputs name objects of the saved object graph; the checkpoint has an object
graph of its own, whose edges have the same names, and whose nodes know their keys.

TensorFlow 1: the restore op's assignments, `Assign(variable, RestoreV2(prefix, names, slices)[i])`, determine the key
of each variable. A variable that is not saved may have its value from the model's initialisation, as long as that is a
constant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.importers.checkpoint.bundle import WHOLE, Checkpoint, Extent
from tfconvert.importers.containment import Folder
from tfconvert.importers.graph.attributes import import_tensor, shape_of
from tfconvert.importers.graph.legacy_ops import HANDLE, TEMPORARY
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.importers.graph.op_signatures import OpRegistry
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

_ASSIGNMENTS = frozenset({"Assign", "AssignVariableOp"})
# Collections of the ops that run once when a model is loaded.
_INITIALIZERS = ("saved_model_main_op", "legacy_init_op", "main_op")

_SLICE = re.compile(r"(?P<start>[0-9]{1,18}),(?P<length>[0-9]{1,18})|-")


class Saved(NamedTuple):
    """A value in a checkpoint.

    Attributes:
        key: The tensor's key.
        extents: Start and length of the part of the tensor in each dimension; `None` for all of it.
    """

    key: str
    extents: tuple[Extent, ...] | None = None


def saved_variables(
    meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef], keys: Collection[str]
) -> dict[str, Saved]:
    """Returns the place of each variable node's value.

    Args:
        meta_graph: The MetaGraph, whose saver names its restore op; without one, values are under variables' names.
        nodes: The graph's nodes by name.
        keys: The keys of the checkpoint.

    Raises:
        ConversionError: The restore nodes are damaged (`bad-slice`, `bad-tensor`).
    """
    saver = meta_graph.saver_def
    if not saver.restore_op_name:
        return {name: Saved(name) for name in nodes if name in keys}
    if saver.version == pb.SaverDef.V1:
        raise error(
            "old-checkpoint",
            "the model's checkpoint has the format V1, which no TensorFlow since 2016 writes",
            hint="restore it in TensorFlow 1 and save it again",
        )
    saved: dict[str, Saved] = {}
    constants: dict[str, list[str]] = {}
    for variable, value in _assignments([saver.restore_op_name], nodes):
        source = _saved(value, nodes, constants)
        if source is not None:
            saved[variable] = source
    return saved


def initial_value(
    variable: str, meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef]
) -> tensor_data.Constant | None:
    """Returns a variable's value without a checkpoint, `None` if it is unknown."""
    node = nodes.get(variable)
    if node is not None and node.op == TEMPORARY:
        shape, element = shape_of(node.attr["shape"].shape), types.from_number(node.attr["dtype"].type)
        if element is None or shape is None or not types.is_static(shape):
            return None
        return tensor_data.of_array(np.zeros(shape, element.dtype), element.mlir)
    collections = (meta_graph.collection_def[name] for name in _INITIALIZERS if name in meta_graph.collection_def)
    starts = [name for each in collections for name in each.node_list.value]
    starts += [
        each.name
        for key, signature in meta_graph.signature_def.items()
        if key == "__saved_model_init_op"
        for _, each in sorted(signature.outputs.items())
    ]
    value = dict(_assignments(starts, nodes)).get(variable)
    source, _ = _through_identities(value, nodes) if value is not None else (None, 0)
    if source is not None and source.op == "Fill" and len(source.input) >= 2:
        return _filled(source, nodes)
    return _constant(source)


def _constant(node: pb.NodeDef | None) -> tensor_data.Constant | None:
    return import_tensor(node.attr["value"].tensor, node.name) if node is not None and node.op == "Const" else None


def _filled(fill: pb.NodeDef, nodes: Mapping[str, pb.NodeDef]) -> tensor_data.Constant | None:
    """Returns the result of a `Fill` of constants, as used for large initial values."""
    dims, value = (_constant(_through_identities(text, nodes)[0]) for text in fill.input[:2])
    if dims is None or value is None or value.shape != ():
        return None
    shape = [pb.TensorShapeProto.Dim(size=int(dim)) for dim in tensor_data.to_array(dims).ravel()]
    blank = pb.TensorProto(dtype=fill.attr["T"].type, tensor_shape=pb.TensorShapeProto(dim=shape))
    zeros = import_tensor(blank, fill.name)
    whole = np.broadcast_to(tensor_data.to_array(value), zeros.shape or ())
    return tensor_data.of_array(whole, types.element_of(value.type))


def _assignments(starts: Iterable[str], nodes: Mapping[str, pb.NodeDef]) -> list[tuple[str, str]]:
    """Returns the variables that nodes or their control inputs assign, with the assigned tensors."""
    found = []
    pending = list(starts)
    seen: set[str] = set()
    while pending:
        name = parse_graph_input(pending.pop().removeprefix("^")).node
        node = nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.op in _ASSIGNMENTS and len(node.input) >= 2:
            found.append((parse_graph_input(node.input[0]).node, node.input[1]))
        pending.extend(node.input)
    return found


def _through_identities(text: str, nodes: Mapping[str, pb.NodeDef]) -> tuple[pb.NodeDef | None, int]:
    """Returns the node and the output that define a value, looking through identities."""
    tensor = parse_graph_input(text)
    node = nodes.get(tensor.node)
    seen: set[str] = set()
    while node is not None and node.op == "Identity" and node.input and node.name not in seen:
        seen.add(node.name)
        tensor = parse_graph_input(node.input[0])
        node = nodes.get(tensor.node)
    return node, tensor.position


def _saved(text: str, nodes: Mapping[str, pb.NodeDef], constants: dict[str, list[str]]) -> Saved | None:
    """Returns the key that a value was restored from, `None` if it was not."""
    node, index = _through_identities(text, nodes)
    if node is None or node.op != "RestoreV2" or len(node.input) < 3:
        return None
    keys, slices = (_strings(text, nodes, constants) for text in node.input[1:3])
    if index >= len(keys):
        return None
    part = slices[index] if index < len(slices) else ""
    return Saved(keys[index], _extents(part, node) if part else None)


def _strings(text: str, nodes: Mapping[str, pb.NodeDef], constants: dict[str, list[str]]) -> list[str]:
    """Returns the elements of a constant of strings; each constant is read once."""
    name = parse_graph_input(text).node
    if name not in constants:
        node = nodes.get(name)
        constants[name] = []
        if node is not None and node.op == "Const":
            array = tensor_data.to_array(import_tensor(node.attr["value"].tensor, name)).ravel()
            constants[name] = [value.decode(errors="replace") for value in array if isinstance(value, bytes)]
    return constants[name]


def _extents(text: str, node: pb.NodeDef) -> tuple[Extent, ...]:
    """Parses `10 4 0,5:-`: the whole tensor's dimensions, then start and length, or `-` for all, of each."""
    extents = []
    for part in text.rstrip().rpartition(" ")[2].split(":"):
        match = _SLICE.fullmatch(part)
        if match is None:
            raise error(
                "bad-slice",
                f"{text!r} is not a slice of a tensor",
                op=f"tf.{node.op}",
                node=node.name,
                hint="the model file is damaged",
            )
        extents.append((0, WHOLE) if part == "-" else (int(match["start"]), int(match["length"])))
    return tuple(extents)


_VALUE = "VARIABLE_VALUE"
_HANDLE = "tf.VarHandleOp"
# Ops that use a variable without assigning it.
_QUESTIONS = frozenset({"tf.ReadVariableOp", "tf.VarIsInitializedOp", "tf.VariableShape", "tf.ResourceGather"})


def import_variables(
    prefix: str | os.PathLike[str] | None,
    folder: Folder | None,
    meta_graph: pb.MetaGraphDef,
    nodes: Mapping[str, pb.NodeDef],
    functions: Sequence[FuncOp],
    values: Mapping[str, tensor_data.Constant],
) -> list[GlobalTensorOp]:
    """Returns a global tensor for each variable that the functions reach, and points the handles at them.

    Args:
        prefix: The checkpoint's path without its files' extensions; `None` if the model is a message without one.
        folder: The model's directory; that of the checkpoint by default.
        meta_graph: The graph's MetaGraph.
        nodes: The main graph's nodes by name, as the file has them.
        functions: The imported entry points; the `shared_name` of their `tf.VarHandleOp`s becomes the symbol.
        values: The values of variables in memory, by their nodes.

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
                value = values.get(node) or initial_value(node, meta_graph, nodes)
            if value is None:
                missing.append(handle)
                continue
            tensors[key] = _global_tensor(handle, node, value, len(tensors))
        handle.properties["shared_name"] = tensors[key].properties["sym_name"]
    if missing:
        if prefix is None:
            raise ConversionError(map(_without_checkpoint, missing))
        if checkpoint is None:
            Checkpoint(prefix, folder)  # it is required: opening it raises the error
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
    """Returns the values of variable nodes in the checkpoint, and the checkpoint, if there is one."""
    is_object = meta_graph.HasField("object_graph_def")
    if prefix is None or (not is_object and is_missing(f"{os.fspath(prefix)}.index")):
        return {}, None
    checkpoint = Checkpoint(prefix, folder)
    if is_object:
        keys = _object_graph_keys(meta_graph.object_graph_def, checkpoint, ops)
        return {node: Saved(key) for node, key in keys.items()}, checkpoint
    return saved_variables(meta_graph, nodes, checkpoint.entries()), checkpoint


def check_values(functions: Sequence[FuncOp], registry: OpRegistry) -> None:
    """Checks that functions of a graph without a checkpoint read no variable.

    Args:
        functions: The functions.
        registry: The registry that they were imported with.

    Raises:
        ConversionError: They read variables that nothing writes (`no-checkpoint`).
    """
    if not registry.has_found(_HANDLE.removeprefix(tf.PREFIX)):
        return
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
        "the variable's value is in a checkpoint, which was not given with the model",
        handle.name,
        _variable_name(handle),
        hint="give the checkpoint's path (tfconvert.Source(model, checkpoint=...)), or save the model to a directory",
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
    """Yields the op of each node of imported functions, also those in an island, except for executor ops."""
    for function in functions:
        for op in function.body.block.ops:
            if not isinstance(op, tf_executor.GraphOp):
                yield op
                continue
            for island in op.body.ops:
                if isinstance(island, tf_executor.IslandOp) and island.body.first_op is not None:
                    yield island.body.first_op


def _outside(op: Operation) -> Operation:
    """Returns the island of an op, or the op itself."""
    island = op.parent_op()
    return island if isinstance(island, tf_executor.IslandOp) else op


def _inside(op: Operation) -> Operation:
    """Returns the op in an island, or the op itself."""
    return (op.wrapped or op) if isinstance(op, tf_executor.IslandOp) else op


def node_name(op: Operation) -> str:
    """Returns the name of an op's node in the file; empty if its location has none."""
    return op.location.name if isinstance(op.location, NameLoc) else ""


def _variable_name(handle: Operation) -> str:
    """Returns the name of a handle's node in the file."""
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
    shape = value.shape or ()
    clash = declared is not None and (
        len(declared) != len(shape) or any(a >= 0 and a != b for a, b in zip(declared, shape, strict=True))
    )
    if clash or handle.properties.get("dtype") != value.type.element_type:
        raise error(
            "variable-mismatch",
            f"the graph declares a variable of shape {list(declared or ())}, the saved value is a {value.type}",
            op=handle.name,
            node=node,
            hint="the graph and the checkpoint belong to different models",
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
