"""The `tf` dialect: open and data-driven; every TensorFlow op has a class, none is written by hand (design §3).

`op_class("Relu")` makes the class of `tf.Relu` on first use. An op's OpDef attributes are *properties* under their
OpDef names, all others (`device`, names that begin with `_`) are *attributes*. Type attributes that operands and
results already tell (`T`, `N`, ...) are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, OpTraits, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition

from schema.dialects import attributes as attrs
from schema.dialects import tensor_data, types
from schema.tensorflow import op_defs
from schema.tensorflow.generated import tensorflow_pb2 as pb

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


PRODUCER_VERSION = "tf.producer_version"
"""Module attribute: the version of the TensorFlow that made the model."""


@irdl_attr_definition
class ShapeAttr(ParametrizedAttribute):
    """`#tf_type.shape<2x?x3>`, or `#tf_type.shape<*>` where the rank is unknown."""

    name = "tf_type.shape"
    dims: Attribute

    @property
    def shape(self) -> types.Shape | None:
        """The dimensions, -1 where unknown; `None` if the rank is unknown."""
        if not isinstance(self.dims, ArrayAttr):
            return None
        return tuple(dim.value.data for dim in self.dims.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parses the dimensions."""
        with parser.in_angle_brackets():
            if parser.parse_optional_punctuation("*") is not None:
                return [NoneAttr()]
            dims = [max(dim, -1) for dim in parser.parse_dimension_list()]
            return [ArrayAttr([attrs.integer(dim) for dim in dims])]

    def print_parameters(self, printer: Printer) -> None:
        """Prints the dimensions in TensorFlow's way."""
        shape = self.shape
        text = "*" if shape is None else "x".join("?" if dim < 0 else str(dim) for dim in shape)
        printer.print_string(f"<{text}>")


@cache
def shape_attr(shape: types.Shape | None) -> ShapeAttr:
    """Returns the attribute of a shape; `None` is unknown rank."""
    return ShapeAttr(NoneAttr() if shape is None else ArrayAttr([attrs.integer(dim) for dim in shape]))


@irdl_attr_definition
class FunctionAttr(ParametrizedAttribute):
    """`#tf_type.func<@name, {...}>`: a function with the attributes that instantiate it."""

    name = "tf_type.func"
    function: SymbolRefAttr
    arguments: Attribute

    def print_parameters(self, printer: Printer) -> None:
        """Prints the symbol and the dictionary."""
        with printer.in_angle_brackets():
            printer.print_list(self.parameters, printer.print_attribute)


@irdl_attr_definition
class PlaceholderAttr(ParametrizedAttribute):
    """`#tf_type.placeholder<"name">`: an attribute that the enclosing function's instantiation gives."""

    name = "tf_type.placeholder"
    parameter: Attribute


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


_CLASSES: dict[str, type[TFOp]] = {}


def op_class(op_name: str) -> type[TFOp]:
    """Returns the class of an op by its name in TensorFlow's registry (`Relu`)."""
    made = _CLASSES.get(op_name)
    if made is None:
        made = _CLASSES[op_name] = type(op_name, (TFOp,), {"name": f"tf.{op_name}", "op_name": op_name})
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


_NO_EFFECT_STATEFUL = frozenset({"VarHandleOp", "ReadVariableOp", "MutexLock", "Placeholder"})


def has_side_effects(op: Operation) -> bool:
    """Tells whether an op may not be erased although nothing uses its results.

    TensorFlow's `is_stateful` decides; reading a variable changes nothing. An unknown op counts as effectful.
    """
    if not isinstance(op, TFOp):
        return True
    if op.op_name in _NO_EFFECT_STATEFUL:
        return False
    return _is_stateful(op.op_name)


@cache
def _is_stateful(op_name: str) -> bool:
    op_def = op_defs.lookup(op_name)
    return op_def is None or op_def.is_stateful
