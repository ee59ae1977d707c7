"""Parses value names: operands, and arguments of blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attribute_parser import AttributeParser
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.lexer import HASH, PERCENT
from tfconvert.schema.ir.locations import UNKNOWN_LOC
from tfconvert.schema.ir.name_scopes import NO_DICTIONARY, Argument, Forward, Scope, UnresolvedOperand, value_hint
from tfconvert.schema.ir.values import BlockArgument, Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.dialect import DialectRegistry


# Value names as the lexer splits them, token by token.
_NAME = r"%(?:[0-9]++(?![\w$.-])|(?![0-9])[\w$.-]++)"
_OPERANDS = re.compile(rf"\((?:({_NAME}(?:, {_NAME})*+))?\)")


class ValueParser(AttributeParser):
    """Parses operands and arguments, and resolves the names of values.

    Args:
        registry: Where names are looked up.
        text: The text.
        filename: The name that errors show.
        first_line: The number of its first line, if it is a part of a file.

    Attributes:
        scope: The names that are known where the parser is.
        first_line: The number of the first line.
    """

    def __init__(self, registry: DialectRegistry, text: str, filename: str = "<unknown>", first_line: int = 1) -> None:
        super().__init__(registry, text, filename)
        self.first_line = first_line
        self.scope = Scope(None)

    def line_of(self, position: int) -> int:
        """Returns the number of the line of a position."""
        return self.first_line + self.text.count("\n", 0, position)

    # Operands.

    def parse_unresolved_operand(self, message: str = "operand expected") -> UnresolvedOperand:
        """Parses `%name` or `%name#1`; `resolve_operand` returns the value when the type is known."""
        kind, start, end, _ = self.token
        if kind != PERCENT:
            self.raise_error(message)
        self.token = self._lex(end)
        index = self._parse_operand_index() if self.token[0] == HASH else 0
        return UnresolvedOperand(self.text[start + 1 : end], index, start)

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        """Parses `%name` or `%name#1`, if it is there."""
        return self.parse_unresolved_operand() if self.token[0] == PERCENT else None

    def parse_operand_list(self) -> list[UnresolvedOperand]:
        """Parses `(%a, %b#1)`."""
        # The usual form, at one blow.
        match = _OPERANDS.match(self.text, self.token[1])
        if match is None:
            return self.parse_comma_separated_list(
                self.Delimiter.PAREN, self.parse_unresolved_operand, " in operation argument list"
            )
        operands: list[UnresolvedOperand] = []
        position = match.start() + 1
        for name in match[1].split(", ") if match[1] else ():
            operands.append(UnresolvedOperand(name[1:], 0, position))
            position += len(name) + 2
        self.token = self._lex(match.end())
        return operands

    def _parse_operand_index(self) -> int:
        digits = self.token_text()[1:]
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
            self.raise_error("Expected integer as SSA value tuple index")
        self.advance()
        return int(digits)

    def parse_operand(self, type: Attribute, *, msg: str = "operand expected") -> Value:
        """Parses an operand of a known type; returns the value."""
        return self.resolve_operand(self.parse_unresolved_operand(msg), type)

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> Value:
        """Returns the value of an operand; one without a definition yet must get one of the same type."""
        values = self.scope.values.get(operand.name)
        if values is None:
            return self._resolve_forward(operand, type)
        if operand.index < len(values):
            value = values[operand.index]
            if value.type is type:
                return value
        return self._refuse_operand(operand, type, values)

    def resolve_operands(
        self, operands: Sequence[UnresolvedOperand], types: Sequence[Attribute], position: int
    ) -> list[Value]:
        """Returns the values that operands are.

        Args:
            operands: The operands.
            types: As many types.
            position: Where the types are in the text.
        """
        if len(operands) != len(types):
            self.raise_error(f"expected {len(operands)} operand types but had {len(types)}", position)
        return list(map(self.resolve_operand, operands, types))

    def defined_type(self, operand: UnresolvedOperand) -> Attribute | None:
        """Returns the type that an operand was defined with, `None` if there is no definition yet."""
        values = self.scope.values.get(operand.name, ())
        return values[operand.index].type if operand.index < len(values) else None

    def _resolve_forward(self, operand: UnresolvedOperand, type: Attribute) -> Value:
        uses = self.scope.forward.setdefault(operand.name, {})
        use = uses.get(operand.index)
        if use is None:
            use = uses[operand.index] = Forward(Value(type), operand.position)
        elif use.value.type is not type:
            self.raise_error(
                f"%{operand.name} is used with type {type}, but with type {use.value.type} on line "
                f"{self.line_of(use.position)}",
                operand.position,
            )
        return use.value

    def _refuse_operand(self, operand: UnresolvedOperand, type: Attribute, values: Sequence[Value]) -> NoReturn:
        name, index, position = operand.name, operand.index, operand.position
        if index >= len(values):
            self.raise_error(f"%{name}#{index} is used, but %{name} has {len(values)} results", position)
        self.raise_error(f"%{name} is used with type {type} but defined with type {values[index].type}", position)

    def define(self, name: str, values: Sequence[Value], position: int) -> None:
        """Names values, and replaces their placeholders where they were used already."""
        scope = self.scope
        if name in scope.values:
            line = self.line_of(scope.places[name])
            self.raise_error(f"SSA value %{name} is already defined on line {line}", position)
        scope.define(name, values, position)
        if name in scope.forward:
            self._replace_forward(scope.forward.pop(name), name, values)
        hint = value_hint(name)
        if hint is not None:
            for value in values:
                value.name_hint = hint

    def _replace_forward(self, uses: Mapping[int, Forward], name: str, values: Sequence[Value]) -> None:
        for index, use in uses.items():
            if index >= len(values) or values[index].type is not use.value.type:
                self._refuse_operand(UnresolvedOperand(name, index, use.position), use.value.type, values)
            use.value.replace_all_uses_with(values[index])

    def check_defined(self, scope: Scope) -> None:
        """Checks that each value that is used in a scope and those inside it has a definition."""
        undefined = scope.first_undefined()
        if undefined is not None:
            position, name = undefined
            self.raise_error(f"%{name} is used but never defined", position)

    # Arguments.

    def parse_arguments(self) -> list[Argument]:
        """Parses `(%x: i32, %y: f32 loc(...))`."""
        return self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_argument, " in a list of arguments")

    def parse_argument(self, *, with_attributes: bool = False) -> Argument:
        """Parses `%x: type loc(...)`.

        Args:
            with_attributes: Whether there may be `{name = value}` after the type.
        """
        kind, start, end, _ = self.token
        if kind != PERCENT:
            self.raise_error("argument expected")
        self.token = self._lex(end)
        self.parse_punctuation(":", " after the name of an argument")
        kind_of_value = self.parse_type()
        attributes = self.parse_optional_attr_dict() if with_attributes else NO_DICTIONARY
        location = self.parse_optional_location()
        return Argument(self.text[start + 1 : end], kind_of_value, start, attributes, location or UNKNOWN_LOC)

    def parse_optional_argument(self, *, with_attributes: bool = False) -> Argument | None:
        """Parses `%x: type loc(...)`, if it is there."""
        return self.parse_argument(with_attributes=with_attributes) if self.token[0] == PERCENT else None

    def add_arguments(self, block: Block, arguments: Sequence[Argument]) -> None:
        """Adds arguments to a block that has none, and defines their names."""
        # All at once: one by one takes quadratic time.
        block.args = tuple(
            [BlockArgument(argument.type, block, index, argument.location) for index, argument in enumerate(arguments)]
        )
        for value, argument in zip(block.args, arguments, strict=True):
            self.define(argument.name, (value,), argument.position)
