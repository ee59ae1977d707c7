"""The `tf` dialect: open and data-driven; every TensorFlow op has a class, none is written by hand (design §3).

`op_class("Relu")` makes the class of `tf.Relu` on first use. An op's OpDef attributes are *properties* under their
OpDef names, all others (`device`, names that begin with `_`) are *attributes*. Type attributes that operands and
results already tell (`T`, `N`, ...) are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.traits import IsTerminator

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tf_verify, types
from tfconvert.schema.dialects.tf_attributes import FunctionAttr, PlaceholderAttr, ShapeAttr, shape_attr
from tfconvert.schema.dialects.tf_effects import has_side_effects
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

__all__ = [
    "PRODUCER_VERSION", "VERSIONS", "FunctionAttr", "PlaceholderAttr", "ShapeAttr", "TFOp", "build", "constant", "get",
    "has_side_effects", "normalize", "op_class", "python_value", "shape_attr",
]  # fmt: skip

PRODUCER_VERSION = "tf.producer_version"
"""Module attribute: the version of the TensorFlow that made the model."""

VERSIONS = "tf.versions"
"""Module attribute: a graph's versions, `{bad_consumers = [], min_consumer = 0 : i32, producer = 1 : i32}`."""


class TFOp(Operation):
    """Base of all `tf` ops.

    Attributes:
        op_name: The name in TensorFlow's registry, without `tf.`.
    """

    op_name: ClassVar[str]
    traits = OpTraits(lambda: ())

    @property
    def op_def(self) -> pb.OpDef | None:
        """TensorFlow's definition of the op; `None` for an op the bundled registry doesn't know."""
        return op_defs.lookup(self.op_name)

    def verify_(self) -> None:
        """Checks the op against its OpDef.

        Raises:
            VerifyException: It doesn't keep to it.
        """
        tf_verify.verify(self, self.op_name)


_TRAITS = {"Yield": OpTraits(lambda: (IsTerminator(),))}
"""Traits of ops that end a region."""

_CLASSES: dict[str, type[TFOp]] = {}


def op_class(op_name: str) -> type[TFOp]:
    """Returns the class of an op by its name in TensorFlow's registry (`Relu`)."""
    made = _CLASSES.get(op_name)
    if made is None:
        members = {"name": f"tf.{op_name}", "op_name": op_name, "traits": _TRAITS.get(op_name, TFOp.traits)}
        made = _CLASSES[op_name] = type(op_name, (TFOp,), members)
    return made


def build(
    op_name: str,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: Mapping[str, attrs.Value] | None = None,
    location: LocationAttr | None = None,
) -> Operation:
    """Returns a detached `tf` op.

    Args:
        op_name: The name in TensorFlow's registry.
        operands: The operands.
        result_types: The results' types.
        properties: OpDef attributes, as attributes or Python values (integers become `i64`).
        location: Where the op comes from.
    """
    return op_class(op_name).create(
        operands=operands,
        result_types=result_types,
        properties={name: attrs.of(value) for name, value in (properties or {}).items()},
        location=location,
    )


def constant(value: tensor_data.Constant, location: LocationAttr | None = None) -> Operation:
    """Returns a `tf.Const` of a value."""
    return op_class("Const").create(result_types=(value.type,), properties={"value": value}, location=location)


def normalize(op: TFOp) -> None:
    """Puts the attributes of a parsed op where ours have them.

    TensorFlow's MLIR keeps OpDef attributes that it has no property for as attributes, and ops that it has no
    definition of also have the derived ones; ours have OpDef attributes as properties, and derived ones not at all.
    """
    plan = tf_verify.plan_of(op.op_name)
    if plan is None:
        return
    for name in plan.derived:
        op.attributes.pop(name, None)
        op.properties.pop(name, None)
    for name in plan.attributes.keys() & op.attributes.keys():
        op.properties.setdefault(name, op.attributes.pop(name))


def python_value(attribute: Attribute) -> Any:
    """Returns an attribute as a Python value.

    Integers, floats and booleans become numbers, strings `str`, arrays tuples, element types numpy dtypes, shapes
    tuples (-1 where unknown) or `None`, symbols their name, dense values numpy arrays.

    Raises:
        TypeError: The attribute has no Python counterpart.
    """
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return bool(value) if attribute.type == types.I1 else value
    if isinstance(attribute, FloatAttr | BytesAttr | StringAttr):
        return attribute.value.data if isinstance(attribute, FloatAttr) else attribute.data
    if isinstance(attribute, ArrayAttr):
        return tuple(python_value(item) for item in attribute.data)
    if isinstance(attribute, ShapeAttr):
        return attribute.shape
    if isinstance(attribute, FunctionAttr):
        attribute = attribute.function
    if isinstance(attribute, SymbolRefAttr):
        return attribute.root_reference.data
    if (row := types.from_mlir(attribute)) is not None:
        return row.dtype
    return tensor_data.to_array(attribute)


def get(op: Operation, name: str, default: Any = None) -> Any:
    """Returns an OpDef attribute of an op as a Python value, `default` if it is not there."""
    attribute = op.properties.get(name)
    return default if attribute is None else python_value(attribute)
