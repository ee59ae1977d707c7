"""AttrValues and TensorProtos of NodeDefs and FunctionDefs to attributes and constants, and the checks of an OpDef."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, BytesAttr, DictionaryAttr
from tfconvert.schema.ir.types import NONE
from tfconvert.schema.limits import budget
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

MAX_BYTES = 1 << 33
"""Maximum size of a constant: a hostile file can state any shape in a few bytes."""

# The limit of numpy, even where one dimension is 0.
_MAX_ELEMENTS = 1 << 58

# `DataType` number -> the TensorProto field that holds its elements one by one.
_FIELDS: dict[int, str] = {
    1: "float_val",
    2: "double_val",
    3: "int_val",
    4: "int_val",
    5: "int_val",
    6: "int_val",
    7: "string_val",
    8: "scomplex_val",
    9: "int64_val",
    10: "bool_val",
    11: "int_val",
    12: "int_val",
    13: "int_val",
    14: "half_val",
    15: "int_val",
    16: "int_val",
    17: "int_val",
    18: "dcomplex_val",
    19: "half_val",
    22: "uint32_val",
    23: "uint64_val",
    24: "float8_val",
    25: "float8_val",
    29: "int_val",
    30: "int_val",
}


def shape_of(shape: pb.TensorShapeProto) -> types.Shape | None:
    """Returns a shape proto's dimensions, -1 where unknown; `None` if the rank is unknown."""
    return _shape_of_bytes(shape.SerializeToString())


@lru_cache(4096)
def _shape_of_bytes(data: bytes) -> types.Shape | None:
    # Few shapes are different, and each dimension is a message.
    shape = pb.TensorShapeProto.FromString(data)
    return None if shape.unknown_rank else tuple([max(dim.size, -1) for dim in shape.dim])


def import_tensor(tensor: pb.TensorProto, node: str) -> tensor_data.Constant:
    """Returns the constant that a TensorProto holds.

    Args:
        tensor: The proto; `tensor_content`, or one of the `_val` fields whose last element repeats.
        node: The node whose attribute it is, for error messages.

    Raises:
        ConversionError: Unknown dtype, a shape that is not static or absurd, or contents that don't fill the shape.
    """
    number = tensor.dtype
    row = types.from_number(number)
    if row is None or number not in _FIELDS:
        raise _invalid_node(node, f"has element type {number}, which can't be a constant")
    shape = shape_of(tensor.tensor_shape)
    if shape is None or -1 in shape:
        raise _invalid_node(node, "has a shape that is not static")
    elements = math.prod(shape)
    most = elements or math.prod([dim or 1 for dim in shape])
    size = row.dtype.itemsize
    if len(shape) > types.MAX_RANK:
        raise _invalid_node(node, f"has {len(shape)} dimensions, more than the limit of {types.MAX_RANK}")
    if most > _MAX_ELEMENTS or elements * max(size, 1) > MAX_BYTES:
        raise _invalid_node(node, f"states the absurd shape {list(shape)}")
    content = tensor.tensor_content
    if content and row.dtype.kind != "O":
        if len(content) != elements * size:
            raise _invalid_node(
                node, f"holds {len(content)} bytes, but its shape {list(shape)} needs {elements * size}"
            )
        return tensor_data.of_bytes(content, row, shape)
    return _from_values(tensor, row, shape, elements, node)


def _from_values(
    tensor: pb.TensorProto, row: types.ElementType, shape: types.Shape, elements: int, node: str
) -> tensor_data.Constant:
    field: Any = getattr(tensor, _FIELDS[row.number])
    values = _decode(field, row)
    if len(values) > elements:
        raise _invalid_node(node, f"holds {len(values)} values for {elements} elements")
    if len(values) == elements:
        return tensor_data.of_array(values.reshape(shape), row.mlir)
    last = values[-1:] if len(values) else np.array([b""] if row.dtype == object else [0], row.dtype)
    if len(values) <= 1:
        return tensor_data.of_array(np.broadcast_to(last.reshape(()), shape), row.mlir)
    rest = np.broadcast_to(last, elements - len(values))
    if row.dtype == object or elements * row.dtype.itemsize <= tensor_data.MAX_READ_BYTES:
        # Each string takes a pointer; short lists are read as they are.
        budget().take_bytes(elements * row.dtype.itemsize, f"the constant of the node {node!r}")
        return tensor_data.of_array(np.concatenate((values, rest)).reshape(shape), row.mlir)
    pieces = tuple(tensor_data.of_array(piece, row.mlir) for piece in (values, rest))
    whole = tensor_data.defer("concat", pieces, (elements,), 0)
    return tensor_data.defer("reshape", (whole,), shape, shape)


def _decode(field: Any, row: types.ElementType) -> tensor_data.Array:
    if row.name in ("half", "bfloat16"):
        return np.array(field, np.uint16).view(row.dtype)
    if row.name.startswith("float8"):
        return np.frombuffer(field, row.dtype)
    if row.name.startswith("complex"):
        return np.array(field, np.float64 if row.name == "complex128" else np.float32).view(row.dtype)
    if row.dtype == object:
        values = np.empty(len(field), object)
        values[:] = list(field)
        return values
    if row.dtype.kind in "iu" and row.dtype.itemsize < 4:
        return np.array(field, np.int64).astype(row.dtype)
    return np.array(field, row.dtype)


def _invalid_node(node: str, what: str) -> ConversionError:
    return error("bad-tensor", f"the tensor {what}", op="tf.Const", node=node, hint="the model file is damaged")


def of_type(number: pb.DataType) -> pb.AttrValue:
    """Returns the AttrValue of an element type."""
    return pb.AttrValue(type=number)


def integers(name: str, *values: int) -> pb.NodeDef:
    """Returns a constant node: a scalar of one value, a vector of more."""
    tensor = pb.TensorProto(dtype=pb.DT_INT32, int_val=values)
    if len(values) > 1:
        tensor.tensor_shape.dim.add(size=len(values))
    return pb.NodeDef(name=name, op="Const", attr={"dtype": of_type(pb.DT_INT32), "value": pb.AttrValue(tensor=tensor)})


KINDS = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
"""An OpDef attribute's type -> the AttrValue field that holds it; all others are lists."""

_LISTS = ("s", "i", "f", "b", "type", "shape", "tensor", "func")


class AttributeRule(NamedTuple):
    """The constraints on an attribute.

    Attributes:
        field: The AttrValue field that must hold the value.
        is_required: Whether there is no default.
        items: The field of a list's items, or of the value itself where it is not a list.
        allowed: The allowed values, every item of a list; empty if there is no limit.
        minimum: The minimum value, or length of a list; `None` if there is no limit.
        is_limited: Whether a value of the right kind can be invalid.
    """

    field: str
    is_required: bool
    items: str
    allowed: frozenset[bytes | int]
    minimum: int | None
    is_limited: bool

    @classmethod
    def of(cls, attr: pb.OpDef.AttrDef) -> AttributeRule:
        """Returns the constraints of an OpDef's attribute."""
        listed = attr.type.removeprefix("list(").removesuffix(")")
        values = attr.allowed_values.list
        return cls(
            KINDS.get(attr.type, "list"),
            not attr.HasField("default_value"),
            KINDS.get(listed, ""),
            frozenset([*values.s, *values.type]),
            attr.minimum if attr.has_minimum else None,
            attr.has_minimum or attr.HasField("allowed_values"),
        )

    def problem(self, value: pb.AttrValue) -> str:
        """Returns the reason why a value is invalid, empty if it is valid."""
        there = value.WhichOneof("value")
        if there == "placeholder" or (there is None and not self.is_required):
            return ""
        if there != self.field:
            return f"holds {there or 'nothing'!r} instead of {self.field!r}"
        return self._limit_problem(value) if self.is_limited else ""

    def _limit_problem(self, value: pb.AttrValue) -> str:
        is_list = self.field == "list"
        if self.minimum is not None:
            size = max(len(getattr(value.list, field)) for field in _LISTS) if is_list else value.i
            if size < self.minimum:
                return f"{'has the length' if is_list else 'is'} {size}, which must be at least {self.minimum}"
        if self.allowed:
            items = getattr(value.list, self.items) if is_list else (getattr(value, self.items),)
            wrong = [item for item in items if item not in self.allowed]
            if wrong:
                return f"is {_shown(wrong[0])}, which must be one of {', '.join(sorted(map(_shown, self.allowed)))}"
        return ""


def _shown(value: bytes | int) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    return str(types.element_type(value) or value)


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
        node: The owner of the attribute, for error messages.
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
