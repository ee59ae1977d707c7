"""The `tf` dialect: open and data-driven; TensorFlow's ops are entries of its registry.

An op's OpDef attributes are *properties* under their OpDef names, all others (`device`, names that begin with `_`) are
*attributes*. Type attributes that follow from operands and results (`T`, `N`, ...) are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tf_attributes import NO_PROPERTIES, FunctionAttr, PlaceholderAttr, ShapeAttr
from tfconvert.schema.dialects.tf_effects import has_side_effects
from tfconvert.schema.dialects.tf_traits import SAME_TYPE, full_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    ArrayAttr,
    BytesAttr,
    DenseArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.traits import NO_TRAITS, Trait
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

__all__ = [
    "PRODUCER_VERSION",
    "VERSIONS",
    "FunctionAttr",
    "PlaceholderAttr",
    "ShapeAttr",
    "TFOp",
    "build",
    "constant",
    "get",
    "has_side_effects",
    "normalize",
    "python_value",
]

PREFIX = "tf."

PRODUCER_VERSION = "tf.producer_version"
"""Module attribute: the version of the TensorFlow that created the model."""

VERSIONS = "tf.versions"
"""Module attribute: a graph's versions, `{bad_consumers = [], min_consumer = 0 : i32, producer = 1 : i32}`."""


# The traits of ops that have any.
_TRAITS: Mapping[str, frozenset[Trait]] = {
    "tf.Yield": frozenset({Trait.TERMINATOR}),
    **dict.fromkeys(NO_PROPERTIES, frozenset({Trait.NO_PROPERTIES})),
}


_SAME_TYPE = full_names(SAME_TYPE)


class TFOp(Operation):
    """A `tf` op of any name."""

    __slots__ = ()

    @classmethod
    def infer_result_types(
        cls, name: str, operands: Sequence[Value], properties: Mapping[str, Attribute]
    ) -> Sequence[Attribute] | None:
        if name in _SAME_TYPE:
            return [operand.type for operand in operands]
        value = properties.get("value") if name == "tf.Const" else None
        return (value.type,) if tensor_data.is_constant(value) else None

    @property
    def op_name(self) -> str:
        """The name in TensorFlow's registry, without `tf.`."""
        return self.name[len(PREFIX) :]

    @property
    def op_def(self) -> pb.OpDef | None:
        """TensorFlow's definition of the op; `None` for an op the bundled registry doesn't know."""
        return op_defs.lookup(self.op_name)

    def has_trait(self, trait: Trait) -> bool:
        return trait in _TRAITS.get(self.name, NO_TRAITS)

    def verify_(self) -> None:
        from tfconvert.schema.dialects.tf_verify import verify

        verify(self, self.op_name)


@lru_cache(4096)
def full_name(op_name: str) -> str:
    """Returns the full name of an op: all ops of a name share one string with a cached hash."""
    return PREFIX + op_name


def build(
    op_name: str,
    operands: Sequence[Value] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, attrs.Value] | None = None,
    location: Location = UNKNOWN_LOC,
    attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
    regions: Sequence[Region] = (),
) -> TFOp:
    """Returns a detached `tf` op.

    Args:
        op_name: The name in TensorFlow's registry (`Relu`).
        operands: The operands.
        result_types: The results' types.
        properties: OpDef attributes, as attributes or Python values (integers become `i64`).
        location: The location of the op.
        attributes: All other attributes.
        regions: The regions.
    """
    converted = {name: attrs.of(value) for name, value in properties.items()} if properties else NO_ATTRIBUTES
    return TFOp(full_name(op_name), operands, result_types, converted, attributes, regions, location)


def constant(value: tensor_data.Constant, location: Location = UNKNOWN_LOC) -> TFOp:
    return TFOp("tf.Const", (), (value.type,), {"value": value}, location=location)


def normalize(op: TFOp) -> None:
    """Puts the attributes of a parsed op where ours have them.

    TensorFlow's MLIR keeps OpDef attributes that it has no property for as attributes, and ops that it has no
    definition of also have the derived ones; ours have OpDef attributes as properties, and no derived ones.
    """
    from tfconvert.schema.dialects.tf_verify import plan_of

    plan = plan_of(op.op_name)
    if plan is None:
        return
    for name in plan.derived:
        op.attributes.pop(name, None)
        op.properties.pop(name, None)
    for name in plan.attributes.keys() & op.attributes.keys():
        op.properties.setdefault(name, op.attributes.pop(name))
    if op.name == "tf.Const" and len(op.results) == 1:
        _shape_constant(op)


def _shape_constant(op: TFOp) -> None:
    """Gives a constant's value the shape of its result, where both are scalars or hold one element."""
    value, result = op.properties.get("value"), op.results[0].type
    if not isinstance(value, tensor_data.DenseElementsAttr) or not isinstance(result, TensorType):
        return
    ones = all(dim == 1 for dim in (*value.type.shape, *result.shape))
    if ones and value.type.shape != result.shape and value.type.element_type == result.element_type:
        op.properties["value"] = tensor_data.DenseElementsAttr.get(result, value.data)


def python_value(attribute: Attribute) -> Any:
    """Returns an attribute as a Python value.

    Integers, floats and booleans become numbers, strings `str`, arrays tuples, element types numpy dtypes, shapes
    tuples (-1 where unknown) or `None`, symbols their name, dense values numpy arrays.
    """
    if isinstance(attribute, IntegerAttr):
        return attribute.to_python()
    if isinstance(attribute, FloatAttr | BytesAttr | StringAttr):
        return attribute.value if isinstance(attribute, FloatAttr) else attribute.data
    if isinstance(attribute, ArrayAttr):
        return _items(attribute)
    if isinstance(attribute, ShapeAttr):
        return attribute.shape
    if isinstance(attribute, DenseArrayAttr):
        return tuple(attribute.values)
    if isinstance(attribute, FunctionAttr):
        attribute = attribute.function
    if isinstance(attribute, SymbolRefAttr):
        return attribute.root
    if (row := types.from_mlir(attribute)) is not None:
        return row.dtype
    return tensor_data.to_array(attribute)


@lru_cache(4096)
def _items(array: ArrayAttr) -> tuple[Any, ...]:
    return tuple(map(python_value, array.data))


def get(op: Operation, name: str, default: Any = None) -> Any:
    """Returns an OpDef attribute of an op as a Python value, `default` if it is absent."""
    attribute = op.properties.get(name)
    return default if attribute is None else python_value(attribute)


TF = Dialect("tf", open_ops=lambda name: TFOp if len(name) > len(PREFIX) else None)
