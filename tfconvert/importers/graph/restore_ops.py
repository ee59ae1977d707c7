"""Where TensorFlow 1 keeps its variables' values: the nodes that restore, else initialise, them.

A saver restores by `Assign(variable, RestoreV2(prefix, names, slices)[i])`. A variable that is not saved may have
its value from the model's initialisation, as long as that is a constant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tfconvert.importers.checkpoint.slices import WHOLE, Extent
from tfconvert.importers.graph.node_graph import parse_graph_input
from tfconvert.importers.graph.ref_variables import TEMPORARY
from tfconvert.importers.graph.tensor_proto import import_tensor, shape_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_ASSIGNMENTS = frozenset({"Assign", "AssignVariableOp"})
# The collections of the ops that run once when a model is loaded.
_INITIALIZERS = ("saved_model_main_op", "legacy_init_op", "main_op")

_SLICE = re.compile(r"(?P<start>[0-9]{1,18}),(?P<length>[0-9]{1,18})|-")


class Saved(NamedTuple):
    """A value in a checkpoint.

    Attributes:
        key: The tensor's key.
        extents: Which part of the tensor it is, start and length in each dimension; `None` if it is all of it.
    """

    key: str
    extents: tuple[Extent, ...] | None = None


def saved_variables(
    meta_graph: pb.MetaGraphDef, nodes: Mapping[str, pb.NodeDef], keys: Collection[str]
) -> dict[str, Saved]:
    """Returns for each variable node where its value is.

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
            "the model's checkpoint is of the format V1, which nothing writes since 2016",
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
    """Returns the value that a variable has without any checkpoint, `None` if that is unknown."""
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
        for each in signature.outputs.values()
    ]
    value = dict(_assignments(starts, nodes)).get(variable)
    source, _ = _through_identities(value, nodes) if value is not None else (None, 0)
    if source is not None and source.op == "Fill" and len(source.input) >= 2:
        return _filled(source, nodes)
    return _constant(source)


def _constant(node: pb.NodeDef | None) -> tensor_data.Constant | None:
    return import_tensor(node.attr["value"].tensor, node.name) if node is not None and node.op == "Const" else None


def _filled(fill: pb.NodeDef, nodes: Mapping[str, pb.NodeDef]) -> tensor_data.Constant | None:
    """Returns the result of a `Fill` of constants, which large initial values are written as."""
    dims, value = (_constant(_through_identities(text, nodes)[0]) for text in fill.input[:2])
    if dims is None or value is None or types.shape_of(value.type) != ():
        return None
    shape = [pb.TensorShapeProto.Dim(size=int(dim)) for dim in tensor_data.to_array(dims).ravel()]
    blank = pb.TensorProto(dtype=fill.attr["T"].type, tensor_shape=pb.TensorShapeProto(dim=shape))
    zeros = import_tensor(blank, fill.name)
    whole = np.broadcast_to(tensor_data.to_array(value), types.shape_of(zeros.type) or ())
    return tensor_data.of_array(whole, types.element_of(value.type))


def _assignments(starts: Iterable[str], nodes: Mapping[str, pb.NodeDef]) -> list[tuple[str, str]]:
    """Returns the variables that some nodes assign, or that are assigned before they run, with the assigned tensors."""
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
