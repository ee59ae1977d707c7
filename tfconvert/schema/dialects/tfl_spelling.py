"""Spellings of `tfl` ops in TensorFlow's MLIR, and their normal form.

An op's options may be written as attributes, `{axis = 0 : i32}`, instead of properties, `<{axis = 0 : i32}>`: MLIR
fills properties from both. Some options also have values of another kind than in the file format, where an enumerator
is a name and the width of an integer is fixed: element types are types (`value_dtype = i64`), a few enumerators are
attributes of their own (`#tfl<mirror_pad_attr REFLECT>`), functions may be named by strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import ArrayAttr, DenseArrayAttr, IntegerAttr, StringAttr
from tfconvert.schema.tflite.tables import TFLITE, Field

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


class MirrorPadAttr(Attribute):
    """`#tfl<mirror_pad_attr REFLECT>`."""

    __slots__ = ("data",)

    NAME = "tfl.mirror_pad_attr"

    data: str

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> MirrorPadAttr:
        """Parses the enumerator."""
        return cls.intern(parser.parse_identifier())

    def print(self, printer: AttributePrinter) -> None:
        """Prints the enumerator."""
        printer.write(f"#tfl<mirror_pad_attr {self.data}>")


class LSTMKernelTypeAttr(Attribute):
    """`#tfl<lstm_kernel_type_attr FULL>`."""

    __slots__ = ("data",)

    NAME = "tfl.lstm_kernel_type_attr"

    data: str

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> LSTMKernelTypeAttr:
        """Parses the enumerator."""
        return cls.intern(parser.parse_identifier())

    def print(self, printer: AttributePrinter) -> None:
        """Prints the enumerator."""
        printer.write(f"#tfl<lstm_kernel_type_attr {self.data}>")


_DERIVED: Mapping[str, str] = {
    "arg_max": "output_type", "arg_min": "output_type", "shape": "out_type", "unique": "idx_out_type",
}  # fmt: skip
"""Options that TensorFlow's MLIR leaves out, since they follow from the last result's element type."""


_BITS = {"int": 32, "long": 64}


def normalize(op: tfl.TFLOp) -> None:
    """Moves the options among a parsed op's attributes to its properties, and converts them to our dialect's values.

    An attribute that is not an option stays, and so does one that is a property already: the verifier refuses both. So
    does a value that no option can have.
    """
    names = tfl.property_names(op.op_name)
    for name in [name for name in op.attributes if name in names and name not in op.properties]:
        op.properties[name] = op.attributes.pop(name)
    fields, calls = tfl.option_fields(op.op_name), tfl.SUBGRAPHS.get(op.op_name, {})
    for name, value in op.properties.items():
        if name in calls:
            op.properties[name] = _symbol(value)
        elif name in fields:
            op.properties[name] = _value(fields[name], value)
    derived = _DERIVED.get(op.op_name)
    if derived is not None and derived not in op.properties and op.results:
        row = types.from_mlir(types.element_of(op.results[-1].type))
        if row is not None and row.tflite:
            op.properties[derived] = attrs.string(row.tflite)


def _symbol(value: Attribute) -> Attribute:
    return attrs.symbol(value.data) if isinstance(value, StringAttr) else value


def _value(field: Field, value: Attribute) -> Attribute:
    """Returns an option's value as `tfl.fits` expects it; one that means nothing as it is."""
    if tfl.fits(field, value):
        return value
    if field.kind[0] == "[":
        return _row(field, value)
    if field.refers:
        name = _enumerator(field.refers, value)
        return value if name is None else attrs.string(name)
    if field.kind in _BITS and isinstance(value, IntegerAttr) and value.type is not types.I1:
        number, beyond = value.value, 1 << _BITS[field.kind] - 1
        return tfl.to_attribute(field, number) if -beyond <= number < beyond else value
    return value


def _row(field: Field, value: Attribute) -> Attribute:
    element = Field(field.name, 0, field.kind[1:-1], None, field.refers, 0)
    if isinstance(value, DenseArrayAttr):
        value = ArrayAttr.get([attrs.of(item) for item in value.values])
    return ArrayAttr.get([_value(element, item) for item in value.data]) if isinstance(value, ArrayAttr) else value


def _enumerator(enum: str, value: Attribute) -> str | None:
    if isinstance(value, MirrorPadAttr | LSTMKernelTypeAttr):
        return value.data
    if isinstance(value, IntegerAttr):
        return TFLITE.member(enum, value.value)
    row = types.from_mlir(value) if enum == "TensorType" else None
    return row.tflite if row is not None and row.tflite else None
