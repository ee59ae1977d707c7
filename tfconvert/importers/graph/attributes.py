"""AttrValues of NodeDefs and FunctionDefs to attributes, as TensorFlow's MLIR dialects have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tfconvert.importers.graph.tensor_proto import import_tensor, shape_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, BytesAttr, DictionaryAttr
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb


def _string(value: bytes) -> Attribute:
    try:
        return attrs.string(value.decode())
    except UnicodeDecodeError:
        return BytesAttr.get(value)


def _type(number: int, node: str) -> Attribute:
    element = types.element_type(number)
    if element is None:
        raise error("bad-attribute", f"unknown element type {number}", node=node, hint="the model file is damaged")
    return element


def _function(value: pb.NameAttrList, node: str) -> Attribute:
    if not value.attr:
        return attrs.symbol(value.name)
    return tf.FunctionAttr.get(attrs.symbol(value.name), DictionaryAttr.get(import_attributes(value.attr, node)))


def _list(value: pb.AttrValue.ListValue, node: str) -> Attribute:
    if value.i:
        return attrs.integers(tuple(value.i))
    for field, convert in _LIST_FIELDS.items():
        items = getattr(value, field)
        if items:
            return ArrayAttr.get([convert(item, node) for item in items])
    return _EMPTY


_EMPTY: Attribute = ArrayAttr.get([])

_SCALARS: Mapping[str, Callable[[Any, str], Attribute]] = {
    "s": lambda value, node: _string(value),
    "i": lambda value, node: attrs.integer(value),
    "f": lambda value, node: attrs.float32(value),
    "b": lambda value, node: attrs.boolean(value),
    "type": _type,
    "shape": lambda value, node: tf.ShapeAttr.get(shape_of(value)),
    "tensor": import_tensor,
    "func": _function,
    "placeholder": lambda value, node: tf.PlaceholderAttr.get(value),
}

_LIST_FIELDS = {field: _SCALARS[field] for field in ("s", "f", "b", "type", "shape", "tensor", "func")}


def import_attribute(value: pb.AttrValue, node: str) -> Attribute:
    """Returns the attribute of an AttrValue.

    Args:
        value: The proto.
        node: Whose attribute it is, for error messages.
    """
    kind = value.WhichOneof("value")
    if kind is None:
        return NONE
    if kind == "list":
        return _list(value.list, node)
    return _SCALARS[kind](getattr(value, kind), node)


def import_attributes(values: Mapping[str, pb.AttrValue], node: str) -> dict[str, Attribute]:
    """Returns the attributes of a proto map, in the order of their names."""
    return {name: import_attribute(values[name], node) for name in sorted(values)}
