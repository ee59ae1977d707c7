"""The official assembly of the `tf_executor` dialect, both ways: the pieces of its ops' `print` and `parse`.

Most ops read `name operands : types {attributes}`. The types are one type (the short form) where that suffices, and a
function type otherwise, which then lists the control tokens too. Texts are TensorFlow's to the letter. Where its own
form would lose a type (an `Exit` or a `_SwitchN` whose results differ from their operand) ours is the function type,
which TensorFlow refuses instead of misreading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.dialects.tf_executor.values import CONTROL
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser, UnresolvedOperand
    from tfconvert.schema.ir.printer import Printer


def print_operands(printer: Printer, operands: Sequence[Value]) -> None:
    """Prints ` %a, %b`, or nothing."""
    if operands:
        printer.write(" ")
        printer.operands(operands)


def print_types(printer: Printer, op: Operation, short: Attribute | None) -> None:
    """Prints ` : type`, or where there is no short form ` : (types) -> (types)`."""
    printer.write(" : ")
    if short is not None:
        printer.attribute(short)
    else:
        printer.functional_type(op)


def print_attributes(printer: Printer, op: Operation, elided: Sequence[str] = ()) -> None:
    """Prints ` {name = value}` of an op's properties and attributes but for those that the text has already."""
    printer.optional_attr_dict(op.properties | op.attributes, elided)


def print_values(printer: Printer, op: Operation) -> None:
    """Prints a terminator: ` %a, %b : type, type {attributes}`."""
    print_operands(printer, op.operands)
    if op.operands:
        printer.write(" : ")
        printer.types(op.operands)
    print_attributes(printer, op)


def print_wrapped(printer: Printer, op: Operation) -> None:
    """Prints ` wraps "op"(...)`: the op in its generic form without a location, which the island's text ends with."""
    printer.write(f' wraps "{op.name}"')
    printer.generic_form(op)


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parses `%a, %b`, or nothing."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def parse_controls(parser: Parser) -> list[UnresolvedOperand]:
    """Parses `(%a, %b)`, or nothing."""
    found = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand, " in the list of control operands"
    )
    return found or []


def known_type(parser: Parser, operand: UnresolvedOperand, default: Attribute) -> Attribute:
    """Returns the type that an operand was defined with, for short forms that have the results' type only."""
    return parser.defined_type(operand) or default


def parse_types(
    parser: Parser,
    operands: Sequence[UnresolvedOperand],
    short: Callable[[Attribute], tuple[list[Attribute], list[Attribute]]],
) -> tuple[list[Value], list[Attribute]]:
    """Parses `: type` or `: (types) -> (types)`; returns the operands and the results' types.

    Args:
        parser: The parser.
        operands: The preceding operands.
        short: The types of the data operands, and those of all results, that the short form's type implies.
    """
    parser.parse_punctuation(":", " before the types")
    position = parser.pos
    function = parser.parse_optional_function_type()
    if function is not None:
        return list(parser.resolve_operands(operands, function.inputs, position)), list(function.results)
    data, results = short(parser.parse_type())
    return _resolve(parser, operands, data, position), results


def parse_attributes(parser: Parser, elided: Sequence[str] = ()) -> dict[str, Attribute]:
    """Parses an optional `{name = value}`, none of whose names may be in the text already."""
    position = parser.pos
    attributes = parser.parse_optional_attr_dict()
    for name in elided:
        if name in attributes:
            parser.raise_error(f"expected {name!r} once, found it in the attributes too", position)
    return attributes


def parse_values(parser: Parser) -> tuple[list[Value], dict[str, Attribute]]:
    """Parses a terminator: `%a, %b : type, type {attributes}`; returns operands and attributes."""
    operands = parse_operands(parser)
    values: list[Value] = []
    if operands:
        parser.parse_punctuation(":", " before the types")
        position = parser.pos
        kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        values = list(parser.resolve_operands(operands, kinds, position))
    return values, parse_attributes(parser)


def parse_body(parser: Parser, terminator: type[Operation], others: Sequence[type[Operation]]) -> Region:
    """Parses a region; one whose text leaves out the terminator gets an empty one.

    Args:
        parser: The parser.
        terminator: The terminator's class.
        others: Ops that end a block too; the verifier reports them.
    """
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    block = region.first_block
    if block is not None and not isinstance(block.last_op, (terminator, *others)):
        block.add_op(terminator.create())
    return region


def _resolve(
    parser: Parser, operands: Sequence[UnresolvedOperand], data: Sequence[Attribute], position: int
) -> list[Value]:
    """Returns the values of operands of which the first have the types `data` and all others are control tokens."""
    if len(operands) < len(data):
        parser.raise_error(f"expected {len(data)} data operands before the type, found {len(operands)}", position)
    kinds = [*data, *[CONTROL] * (len(operands) - len(data))]
    return list(parser.resolve_operands(operands, kinds, position))
