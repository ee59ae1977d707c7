"""The attributes of `tf_type`: shapes, functions with their arguments, parameters of a function's definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import DictionaryAttr, SymbolRefAttr, quoted

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


NO_PROPERTIES = frozenset(
    {
        "tf.ConfigureAndInitializeGlobalTPU",
        "tf.EmptyTensorList",
        "tf.IteratorGetNext",
        "tf.IteratorGetNextSync",
        "tf.MultiDeviceIteratorGetNextFromShard",
        "tf.OptionalGetValue",
        "tf.Placeholder",
        "tf.PlaceholderWithDefault",
        "tf.TensorListReserve",
        "tf.UncompressElement",
    }
)
"""Ops all of whose OpDef attributes MLIR derives from types: they have attributes instead of properties."""

KEPT: Mapping[str, frozenset[str]] = {"ParseExampleV2": frozenset({"num_sparse"})}
"""Attributes that follow from operands and results, but which MLIR requires nevertheless, by op."""

OPERAND_SEGMENTS, RESULT_SEGMENTS = "operandSegmentSizes", "resultSegmentSizes"
"""Segment sizes: properties that hold the number of values of each argument, where several are variadic."""


class ShapeAttr(Attribute):
    """`#tf_type.shape<2x?x3>`, or `#tf_type.shape<*>` where the rank is unknown."""

    __slots__ = ("shape",)

    NAME = "tf_type.shape"

    shape: types.Shape | None  # The dimensions, -1 where unknown; `None` if the rank is unknown.

    @classmethod
    def get(cls, shape: types.Shape | None) -> ShapeAttr:
        return cls.intern(shape)

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> ShapeAttr:
        """Parses the dimensions."""
        with parser.in_angle_brackets():
            if parser.parse_optional_punctuation("*") is not None:
                return cls.get(None)
            return cls.get(tuple([max(dim, -1) for dim in parser.parse_dimension_list()]))

    def print_parameters(self, printer: AttributePrinter) -> None:
        shape = self.shape
        text = "*" if shape is None else "x".join(["?" if dim < 0 else str(dim) for dim in shape])
        printer.write(f"<{text}>")


class FunctionAttr(Attribute):
    """`#tf_type.func<@name, {...}>`: a function with the attributes that instantiate it."""

    __slots__ = ("arguments", "function")

    NAME = "tf_type.func"

    function: SymbolRefAttr
    arguments: DictionaryAttr

    @classmethod
    def get(cls, function: SymbolRefAttr, arguments: DictionaryAttr) -> FunctionAttr:
        return cls.intern(function, arguments)

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> FunctionAttr:
        """Parses the symbol and the dictionary."""
        with parser.in_angle_brackets():
            symbol = parser.parse_attribute()
            parser.parse_punctuation(",")
            arguments = parser.parse_attribute()
        if not isinstance(symbol, SymbolRefAttr) or not isinstance(arguments, DictionaryAttr):
            parser.raise_error("expected a symbol and a dictionary")
        return cls.get(symbol, arguments)

    def print_parameters(self, printer: AttributePrinter) -> None:
        printer.write("<")
        printer.attributes((self.function, self.arguments))
        printer.write(">")


class PlaceholderAttr(Attribute):
    """`#tf_type.placeholder<"name">`: an attribute that is bound when the enclosing function is instantiated."""

    __slots__ = ("parameter",)

    NAME = "tf_type.placeholder"

    parameter: str

    @classmethod
    def get(cls, parameter: str) -> PlaceholderAttr:
        return cls.intern(parameter)

    @classmethod
    def parse_parameters(cls, parser: AttributeParser) -> PlaceholderAttr:
        """Parses the name."""
        with parser.in_angle_brackets():
            return cls.get(parser.parse_str_literal())

    def print_parameters(self, printer: AttributePrinter) -> None:
        printer.write(f"<{quoted(self.parameter)}>")
