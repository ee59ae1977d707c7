"""The NodeDef of a `tf` op: what TensorFlow's runtime needs to create its kernel.

Every attribute is written, those that the model leaves to their defaults too, and those that follow from the operands:
the kernel may come from another version of TensorFlow than the one that made the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfconvert.schema.dialects import tf, tf_verify, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, BytesAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.types import NoneType
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


class UnwritableError(ValueError):
    """An op that no NodeDef can be written for; the message says why, as the end of a sentence."""


def node_def(op: tf.TFOp) -> pb.NodeDef:
    """Returns the NodeDef of an op, without a name and with nameless inputs, as the Flex delegate takes it."""
    op_def = op.op_def
    node = pb.NodeDef(op=op.op_name, input=[""] * len(op.operands))
    if op_def is not None:
        derived = tf_verify.derived_values(op, op.op_name)
        for attr in op_def.attr:
            node.attr[attr.name].CopyFrom(_value(op, attr, derived))
    else:
        for key, value in {**op.properties, **op.attributes}.items():
            if key[0] != "_" and key != "device":
                node.attr[key].CopyFrom(_written(key, _kind_of(value), value))
    name, _, function = _name(op).partition("@")
    if name:
        node.experimental_debug_info.original_node_names.append(name)
        if function:
            node.experimental_debug_info.original_func_names.append(function)
    return node


def _name(op: tf.TFOp) -> str:
    location = op.location
    return location.name if isinstance(location, NameLoc) else ""


def _value(op: tf.TFOp, attr: pb.OpDef.AttrDef, derived: Mapping[str, object]) -> pb.AttrValue:
    if attr.name in derived:
        return _derived(derived[attr.name])
    value = op.properties.get(attr.name)
    if value is None or isinstance(value, NoneType):
        held = None if attr.HasField("default_value") else _held(op, attr.type)
        if held is None and not attr.HasField("default_value"):
            raise UnwritableError(f"its attribute {attr.name!r} is not known")
        return held or attr.default_value
    return _written(attr.name, attr.type, value)


def _derived(value: object) -> pb.AttrValue:
    """Returns what operands and results determine: a count, a type, or a list of types."""
    if isinstance(value, int):
        return pb.AttrValue(i=value)
    if isinstance(value, tuple):
        return pb.AttrValue(list=pb.AttrValue.ListValue(type=[_type(each) for each in value]))
    return pb.AttrValue(type=_type(value))


def _held(op: tf.TFOp, kind: str) -> pb.AttrValue | None:
    """Returns what a handle's subtype tells of the tensors that it holds, `None` if there is nothing."""
    found = (types.held_by(value.type) for value in (*op.results, *op.operands))
    held = next((each for each in found if each is not None), None)
    if held is None or kind not in ("type", "shape"):
        return None
    return pb.AttrValue(type=_type(types.element_of(held))) if kind == "type" else _shape(types.shape_of(held))


def _written(name: str, kind: str, value: Attribute) -> pb.AttrValue:
    is_list = kind.startswith("list(")
    write = _KINDS.get(kind[5:-1] if is_list else kind)
    if write is None:
        raise UnwritableError(f"its attribute {name!r} is a {kind}, which no Flex op can have")
    try:
        if not is_list:
            return write(value)
        if not isinstance(value, ArrayAttr):
            raise TypeError(value)
        return _list([write(item) for item in value.data])
    except (TypeError, AttributeError) as problem:
        raise UnwritableError(f"its attribute {name!r} is not a plain value") from problem


def _kind_of(value: Attribute) -> str:
    """Returns the kind of an attribute that no OpDef tells of."""
    if isinstance(value, ArrayAttr):
        return f"list({_kind_of(value.data[0]) if value.data else 'int'})"
    if isinstance(value, IntegerAttr):
        return "bool" if value.type == types.I1 else "int"
    return next((kind for kind, classes in _CLASSES.items() if isinstance(value, classes)), "type")


def _list(items: list[pb.AttrValue]) -> pb.AttrValue:
    result = pb.AttrValue(list=pb.AttrValue.ListValue())
    for item in items:
        field: Any = item.WhichOneof("value")
        target: Any = getattr(result.list, field)
        target.append(getattr(item, field))
    return result


def _string(value: Attribute) -> pb.AttrValue:
    if isinstance(value, BytesAttr):
        return pb.AttrValue(s=value.data)
    if not isinstance(value, StringAttr):
        raise TypeError(value)
    return pb.AttrValue(s=value.data.encode())


def _number(value: Attribute) -> Any:
    if not isinstance(value, IntegerAttr | FloatAttr):
        raise TypeError(value)
    return value.value


def _type(value: Any) -> Any:
    row = types.from_mlir(types.dereferenced(value) or value)
    if row is None:
        raise UnwritableError(f"TensorFlow has no element type {value}")
    return row.number


def _shape(shape: types.Shape | None) -> pb.AttrValue:
    if shape is None:
        return pb.AttrValue(shape=pb.TensorShapeProto(unknown_rank=True))
    return pb.AttrValue(shape=pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in shape]))


def _shape_attribute(value: Attribute) -> pb.AttrValue:
    if not isinstance(value, tf.ShapeAttr):
        raise TypeError(value)
    return _shape(value.shape)


# How attributes are written, by the OpDef's name of their kind; functions and tensors are not.
_KINDS: Mapping[str, Callable[[Attribute], pb.AttrValue]] = {
    "string": _string,
    "int": lambda value: pb.AttrValue(i=_number(value)),
    "float": lambda value: pb.AttrValue(f=_number(value)),
    "bool": lambda value: pb.AttrValue(b=bool(_number(value))),
    "type": lambda value: pb.AttrValue(type=_type(value)),
    "shape": _shape_attribute,
}

# Kinds of attributes that their classes tell.
_CLASSES: Mapping[str, tuple[type[Attribute], ...]] = {
    "float": (FloatAttr,),
    "string": (StringAttr, BytesAttr),
    "shape": (tf.ShapeAttr,),
    "function": (tf.FunctionAttr, SymbolRefAttr),
}
