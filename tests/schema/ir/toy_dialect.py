"""A dialect for tests of the parser, with something of everything that a dialect can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter, Type
from tfconvert.schema.ir.attribute_parser import AttributeParser, UntypedAttr
from tfconvert.schema.ir.attributes import StringAttr, SymbolRefAttr, symbol_text
from tfconvert.schema.ir.builtin import BUILTIN
from tfconvert.schema.ir.dialect import Dialect, DialectRegistry
from tfconvert.schema.ir.errors import ParseError, VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.parser import Parser
from tfconvert.schema.ir.printer import Printer
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import dimension_list


class AnyOp(Operation):
    """`"toy.any_name"`: an op that is written in the generic form."""

    __slots__ = ()


class FunctionOp(Operation):
    """`toy.function @name(%x: i32 {a = 1}) {...}`."""

    __slots__ = ()

    NAME: ClassVar[str] = "toy.function"
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.ISOLATED_FROM_ABOVE, Trait.SYMBOL})
    HAS_ASSEMBLY: ClassVar[bool] = True

    def print(self, printer: Printer) -> None:
        """Prints the name, the arguments and the region."""
        name = self.properties["sym_name"]
        assert isinstance(name, StringAttr)
        printer.write(f" {symbol_text(name.data)}(")
        for index, argument in enumerate(self.regions[0].blocks[0].args):
            if index:
                printer.write(", ")
            printer.argument(argument)
        printer.write(") ")
        printer.region(self.regions[0], with_entry_arguments=False)

    @classmethod
    def parse(cls, parser: Parser) -> FunctionOp:
        """Parses the form that `print` prints."""
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(with_attributes=True)
        )
        region = parser.parse_region(arguments)
        attributes = {argument.name: value for argument in arguments for value in argument.attributes.values()}
        return cls.create(regions=[region], properties={"sym_name": StringAttr.get(name)}, attributes=attributes)


class GiveOp(Operation):
    """`toy.give %x : i32`, in which the type may be left out after the definition."""

    __slots__ = ()

    NAME: ClassVar[str] = "toy.give"
    HAS_ASSEMBLY: ClassVar[bool] = True

    def print(self, printer: Printer) -> None:
        """Prints the operand and its type."""
        printer.write(" ")
        printer.operands(self.operands)
        printer.write(" : ")
        printer.types(self.operands)

    @classmethod
    def parse(cls, parser: Parser) -> GiveOp:
        """Parses the form that `print` prints."""
        operand = parser.parse_unresolved_operand()
        operand_type = parser.parse_type() if parser.parse_optional_punctuation(":") else parser.defined_type(operand)
        if operand_type is None:
            raise VerifyError("the type is not known yet")
        return cls.create(operands=[parser.resolve_operand(operand, operand_type)])


class ShapeAttr(Attribute):
    """`#toy.shape<2x?>`."""

    __slots__ = ("dims",)

    NAME: ClassVar[str] = "toy.shape"

    dims: tuple[int, ...]

    def print_parameters(self, printer: AttributePrinter) -> None:
        """Prints the dimensions."""
        printer.write(f"<{dimension_list(self.dims).removesuffix('x')}>")


class BoxType(Type):
    """`!toy.box<i32>`."""

    __slots__ = ("inner",)

    NAME: ClassVar[str] = "toy.box"

    inner: Type

    def print_parameters(self, printer: AttributePrinter) -> None:
        """Prints the type inside."""
        printer.write("<")
        printer.attribute(self.inner)
        printer.write(">")


class TokenType(Type):
    """`!toy.token`."""

    __slots__ = ()

    NAME: ClassVar[str] = "toy.token"


def _shape(parser: AttributeParser) -> Attribute:
    with parser.in_angle_brackets():
        return ShapeAttr.intern(tuple(parser.parse_dimension_list()))


def _box(parser: AttributeParser) -> Attribute:
    with parser.in_angle_brackets():
        return BoxType.intern(parser.parse_type())


def _token(parser: AttributeParser) -> Attribute:
    return TokenType.intern()


def _symbol(parser: AttributeParser) -> Attribute:
    """`#toy.symbol<@a>`, which is a symbol whatever the parameters are."""
    with parser.in_angle_brackets():
        attribute = parser.parse_attribute()
        if not isinstance(attribute, SymbolRefAttr):
            raise VerifyError("expected a symbol")
    return attribute


def _typed(parser: AttributeParser) -> Attribute:
    """`#toy<typed : "x"> : i32`, which is an array of both."""
    parser.parse_punctuation(":")
    name = parser.parse_str_literal()

    def complete(after: Type) -> Attribute:
        if name == "bad":
            raise VerifyError(f"{after} is a bad type")
        return StringAttr.get(f"{name}: {after}")

    return UntypedAttr.intern(complete)


def _op(name: str) -> type[Operation] | None:
    return None if name.endswith(("unknown", "module")) else AnyOp


TOY = Dialect(
    "toy",
    (FunctionOp, GiveOp),
    _op,
    {"shape": _shape, "symbol": _symbol, "typed": _typed},
    {"box": _box, "token": _token},
)


def _two(parser: AttributeParser) -> Attribute:
    """`pair "a"`, a word of the registry."""
    return StringAttr.get(parser.parse_str_literal() * 2)


REGISTRY = DialectRegistry([BUILTIN, TOY], {"twice": _two})


def refusal(run: Callable[[], object]) -> tuple[str, str, str]:
    """Returns the place, the message and the text under the caret of the error that a parser raises."""
    with pytest.raises(ParseError) as caught:
        run()
    head, source, caret = caught.value.report().split("\n")
    filename, line, column, message = head.split(":", 3)
    assert filename == "toy.mlir"
    assert caret == " " * (int(column) - 1) + "^"
    return f"{line}:{column}", message[1:], source[int(column) - 1 :]
