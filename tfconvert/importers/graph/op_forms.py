"""`tf` ops of nodes: where TensorFlow's MLIR differs from the op's definition in the registry.

Functional control flow has no stateless variants there, handle types have subtypes, and an op with
several lists of tensors has their lengths in a property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.importers.graph.op_signatures import NodeTypes
from tfconvert.importers.graph.tensor_proto import shape_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import UnitAttr
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

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


def build(
    node: pb.NodeDef,
    attr: Mapping[str, pb.AttrValue],
    types_of_node: NodeTypes,
    operands: Sequence[Value],
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
    location: Location,
) -> Operation:
    """Returns the `tf` op of a node.

    Args:
        node: The node.
        attr: Its attributes.
        types_of_node: The types of the op's arguments, resolved with these.
        operands: The data operands.
        properties: The op's properties, but for those that only MLIR has.
        attributes: The private attributes.
        location: The location of the node.
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
    return tf.build(
        name,
        operands=operands,
        result_types=result_types,
        properties=properties,
        attributes=attributes,
        location=location,
    )


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
