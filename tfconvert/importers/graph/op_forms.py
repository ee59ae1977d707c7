"""Ops of nodes where TensorFlow's MLIR differs from the op's definition, and V1 control flow as the executor's ops.

Functional control flow has no stateless variants there, handle types have subtypes, and an op with several lists of
tensors has their lengths in a property.

A NextIteration becomes two ops, since SSA form has no cycles: a source, which yields the value and precedes its users,
and a sink, which consumes it at the end. A token ties them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.importers.graph.attributes import shape_of
from tfconvert.importers.graph.op_signatures import NodeTypes
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import locations, tensor_data, tf, tf_executor, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr, UnitAttr
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

NEXT_ITERATION = frozenset({"NextIteration", "RefNextIteration"})
"""Nodes that forward a value to a loop's next iteration: the only back edges of a graph."""

ENTER = frozenset({"Enter", "RefEnter"})
"""The nodes that bring a value into a loop's frame."""

_NO_FRAME = attrs.string("")
_SCALAR_BOOL = types.tensor(types.I1, ())
_SCALAR_INT = types.tensor(types.I32, ())


class ExecutorNode(NamedTuple):
    """A resolved node: the parts of its op.

    Attributes:
        op: The node's op.
        elements: The outputs' element types.
        attr: The node's attributes.
        properties: Those that the op declares and that don't follow from operands, with defaults filled in.
        attributes: The private ones.
        location: The location of the node.
    """

    op: str
    elements: Sequence[Attribute]
    attr: Mapping[str, pb.AttrValue]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    location: Location

    @property
    def kept(self) -> dict[str, Attribute]:
        """The op's attributes: the private ones, and `T` and `N`, which TensorFlow keeps on executor ops."""
        kept = dict(self.attributes)
        if (element := self.attr.get("T")) is not None:
            kept["T"] = types.element_type(element.type) or NONE
        if (count := self.attr.get("N")) is not None:
            kept["N"] = attrs.integer(count.i)
        return dict(sorted(kept.items()))


def build_executor_op(node: ExecutorNode, data: Sequence[Value], controls: Sequence[Value]) -> Operation:
    """Returns the executor op of a node whose op is in `OPS`.

    Args:
        node: The node.
        data: Its data inputs, as many as its op has.
        controls: The control results of the ops that must run before it.

    Raises:
        ConversionError: A frame's name is not UTF-8 (`bad-attribute`).
    """
    row = _ROWS[node.op]
    properties = dict(node.properties)
    if not isinstance(properties.get("frame_name", _NO_FRAME), StringAttr):
        raise error(
            "bad-attribute",
            "the frame's name is not UTF-8",
            op=f"tf.{node.op}",
            node=locations.node_of(node.location),
            hint="the model file is damaged",
        )
    if (outputs := node.attr.get("num_outs")) is not None:
        properties["num_outs"] = attrs.integer(outputs.i)
    return row.op.create(
        operands=[*data, *controls],
        result_types=[*row.results(node, data), tf_executor.CONTROL],
        properties=properties,
        attributes=node.kept,
        location=node.location,
    )


def build_source(node: ExecutorNode) -> Operation:
    """Returns the source of a NextIteration: value, token and control of the next iteration."""
    value = types.tensor(node.elements[0], None)
    return tf_executor.NextIterationSourceOp.create(
        result_types=[value, tf_executor.TOKEN, tf_executor.CONTROL], attributes=node.kept, location=node.location
    )


def build_sink(source: Operation, value: Value, controls: Sequence[Value]) -> Operation:
    """Returns the sink that forwards a value to a source, whose type becomes the value's.

    Args:
        source: The result of `build_source`.
        value: The value; of the source's element type.
        controls: The control results of the ops that must run before it.
    """
    source.results[0].type = value.type
    return tf_executor.NextIterationSinkOp.create(
        operands=[source.results[1], value, *controls], attributes=source.attributes.copy(), location=source.location
    )


def _forwarded(node: ExecutorNode, data: Sequence[Value]) -> list[Attribute]:
    """Returns the types of outputs that are the first input, dead or alive."""
    return [_as_element(element, data[0].type) for element in node.elements]


def _as_element(element: Attribute, there: Attribute) -> Attribute:
    """Returns a tensor type with another element type; handles keep their subtypes."""
    own = types.element_of(there)
    if own == element or (not isinstance(own, types.RefType) and types.dereferenced(own) == element):
        return there
    return types.tensor(element, types.shape_of(there))


def _merged(node: ExecutorNode, data: Sequence[Value]) -> list[Attribute]:
    """Returns the types of a Merge's value, which all its inputs have in common, and of its index."""
    candidates = [_as_element(node.elements[0], value.type) for value in data]
    common = candidates[0]
    if any(other != common for other in candidates):
        common = types.tensor(node.elements[0], _common_shape([types.shape_of(each) for each in candidates]))
    noted = node.attr.get("_output_shapes")
    if noted is not None and noted.list.shape:
        common = types.most_specific(common, types.tensor(types.element_of(common), shape_of(noted.list.shape[0])))
    return [common, _SCALAR_INT]


def _common_shape(shapes: Sequence[types.Shape | None]) -> types.Shape | None:
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or len({len(shape) for shape in known}) != 1:
        return None
    return tuple(dims[0] if len(set(dims)) == 1 else -1 for dims in zip(*known, strict=True))


class _Row(NamedTuple):
    """The mapping of a node to an op: the op's class, and the types of its values."""

    op: type[tf_executor.ExecutorOp]
    results: Callable[[ExecutorNode, Sequence[Value]], list[Attribute]]


_ROWS: Mapping[str, _Row] = {
    "Switch": _Row(tf_executor.SwitchOp, _forwarded),
    "RefSwitch": _Row(tf_executor.SwitchOp, _forwarded),
    "_SwitchN": _Row(tf_executor.SwitchNOp, _forwarded),
    "Merge": _Row(tf_executor.MergeOp, _merged),
    "RefMerge": _Row(tf_executor.MergeOp, _merged),
    "Enter": _Row(tf_executor.EnterOp, _forwarded),
    "RefEnter": _Row(tf_executor.EnterOp, _forwarded),
    "Exit": _Row(tf_executor.ExitOp, _forwarded),
    "RefExit": _Row(tf_executor.ExitOp, _forwarded),
    "LoopCond": _Row(tf_executor.LoopCondOp, lambda node, data: [_SCALAR_BOOL]),
    "ControlTrigger": _Row(tf_executor.ControlTriggerOp, lambda node, data: []),
}

OPS = frozenset(_ROWS) | NEXT_ITERATION
"""The nodes that are not islands."""


_EFFECTS: dict[str, Attribute] = {"is_stateless": attrs.boolean(False)}
_NO_EFFECTS: dict[str, Attribute] = {"is_stateless": attrs.boolean(True)}
_ANY_SHAPES: dict[str, Attribute] = {"shape_invariant": UnitAttr.intern()}

# The op in MLIR and its further properties: whether it has effects, and for loops that shapes may change.
_CONTROL_FLOW: Mapping[str, tuple[str, Mapping[str, Attribute]]] = {
    "If": ("If", _EFFECTS),
    "Case": ("Case", _EFFECTS),
    "While": ("While", _EFFECTS | _ANY_SHAPES),
    "StatelessIf": ("If", _NO_EFFECTS),
    "StatelessCase": ("Case", _NO_EFFECTS),
    "StatelessWhile": ("While", _NO_EFFECTS | _ANY_SHAPES),
}


class NodeForm(NamedTuple):
    """The common parts of nodes that have one op and equal attributes.

    Attributes:
        types: The types of the op's arguments.
        op: The full name of the `tf` op.
        result_types: The types of its results.
        properties: Its properties.
        attributes: The private attributes.
    """

    types: NodeTypes
    op: str
    result_types: Sequence[Attribute]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]


def form(
    node: pb.NodeDef,
    attr: Mapping[str, pb.AttrValue],
    types_of_node: NodeTypes,
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
) -> NodeForm:
    """Returns the form of a node.

    Args:
        node: The node.
        attr: Its attributes.
        types_of_node: The types of the op's arguments, resolved with these.
        properties: The op's properties, except for those that only MLIR has.
        attributes: The private attributes.
    """
    name = node.op
    if name in _CONTROL_FLOW:
        name, added = _CONTROL_FLOW[name]
        properties = {**properties, **added}
    if types_of_node.segments:
        properties = {**properties, **types_of_node.segments}
    result_type = _RESULT_TYPES.get(name)
    if result_type is not None:
        result_types = [result_type(node, properties, types_of_node.outputs[0])]
    else:
        result_types = _noted_types(types_of_node.outputs, attr.get("_output_shapes"))
    return NodeForm(types_of_node, tf.full_name(name), result_types, properties, attributes)


def _noted_types(elements: Sequence[Attribute], noted: pb.AttrValue | None) -> list[Attribute]:
    """Returns the types of a node's results, with the shapes that the graph recorded."""
    if noted is None:
        return [types.tensor(element, None) for element in elements]
    shapes = map(shape_of, noted.list.shape)
    return [types.tensor(element, next(shapes, None)) for element in elements]


def _constant(node: pb.NodeDef, properties: Mapping[str, Attribute], element: Attribute) -> Attribute:
    """Returns the type of a constant node: that of its value, which must be of the declared element type."""
    value = properties["value"]
    if not tensor_data.is_constant(value) or value.type.element_type != element:
        raise error(
            "bad-tensor",
            "the node declares another element type than its value has",
            op="tf.Const",
            node=node.name,
            hint="the model file is damaged",
        )
    return value.type


def _variable(node: pb.NodeDef, properties: Mapping[str, Attribute], element: Attribute) -> Attribute:
    """Returns the type of a variable's handle, whose subtype is the variable's type."""
    shape = properties.get("shape")
    return types.resource_of(
        types.tensor(properties["dtype"], shape.shape if isinstance(shape, tf.ShapeAttr) else None)
    )


def _list(node: pb.NodeDef, properties: Mapping[str, Attribute], element: Attribute) -> Attribute:
    """Returns the type of a tensor list, whose subtype is that of its elements."""
    held = types.tensor(properties["element_dtype"], None)
    return types.tensor(types.VariantType.get((held,)), ())


# The ops whose one result has a type that follows from their attributes.
_RESULT_TYPES: Mapping[str, Callable[[pb.NodeDef, Mapping[str, Attribute], Attribute], Attribute]] = {
    "Const": _constant,
    "VarHandleOp": _variable,
    "EmptyTensorList": _list,
    "TensorListReserve": _list,
}
