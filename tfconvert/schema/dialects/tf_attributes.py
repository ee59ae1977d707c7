"""The attributes of `tf_type`: shapes, functions with their arguments, parameters of a function's definition."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NoneAttr, SymbolRefAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


NO_PROPERTIES = frozenset({
    "tf.ConfigureAndInitializeGlobalTPU", "tf.EmptyTensorList", "tf.IteratorGetNext", "tf.IteratorGetNextSync",
    "tf.MultiDeviceIteratorGetNextFromShard", "tf.OptionalGetValue", "tf.Placeholder", "tf.PlaceholderWithDefault",
    "tf.TensorListReserve", "tf.UncompressElement",
})  # fmt: skip
"""Ops whose OpDef attributes MLIR derives from types, all of them: it takes no properties there, only attributes."""


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

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parses the symbol and the dictionary."""
        with parser.in_angle_brackets():
            symbol = parser.parse_attribute()
            parser.parse_punctuation(",")
            arguments = parser.parse_attribute()
        if not isinstance(symbol, SymbolRefAttr) or not isinstance(arguments, DictionaryAttr):
            parser.raise_error("expected a symbol and a dictionary")
        return [symbol, arguments]

    def print_parameters(self, printer: Printer) -> None:
        """Prints the symbol and the dictionary."""
        with printer.in_angle_brackets():
            printer.print_list(self.parameters, printer.print_attribute)


@irdl_attr_definition
class PlaceholderAttr(ParametrizedAttribute):
    """`#tf_type.placeholder<"name">`: an attribute that the enclosing function's instantiation gives."""

    name = "tf_type.placeholder"
    parameter: Attribute
