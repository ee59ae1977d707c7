"""Prints IR as MLIR's text: an op's own assembly where it has one, else the generic form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.ir.attribute import Attribute, AttributePrinter
from tfconvert.schema.ir.attributes import print_dictionary
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import print_function_type

if TYPE_CHECKING:
    from tfconvert.schema.ir.block import Block, Region
    from tfconvert.schema.ir.operation import Operation
    from tfconvert.schema.ir.values import BlockArgument, Value


class _Names:
    """The names that are taken in one scope: how often each hint occurred, and how many numbers."""

    __slots__ = ("hints", "numbers")

    def __init__(self) -> None:
        self.hints: dict[str, int] = {}
        self.numbers = 0

    def new(self, hint: str | None) -> str:
        if hint is None:
            self.numbers += 1
            return str(self.numbers - 1)
        count = self.hints.get(hint, 0)
        self.hints[hint] = count + 1
        return f"{hint}_{count}" if count else hint


class Printer(AttributePrinter):
    """Prints ops to a function that consumes text.

    Args:
        write: Consumes each piece of text.
        generic: Whether every op is printed in the generic form.
        locations: Whether to print every op's location.
    """

    __slots__ = ("_blocks", "_depth", "_scopes", "_values", "generic", "locations")

    def __init__(self, write: Callable[[str], object], *, generic: bool = False, locations: bool = False) -> None:
        super().__init__(write)
        self.generic = generic
        self.locations = locations
        self._depth = 0
        self._values: dict[Value, str] = {}
        self._blocks: dict[Block, str] = {}
        self._scopes = [_Names()]

    def operation(self, op: Operation) -> None:
        """Prints an op with its results' names and, if requested, its location."""
        if op.results:
            self.operands(op.results)
            self.write(" = ")
        isolated = op.has_trait(Trait.ISOLATED_FROM_ABOVE)
        if isolated:
            self._scopes.append(_Names())
        if op.HAS_ASSEMBLY and not self.generic:
            self.write(op.name)
            op.print(self)  # type: ignore[attr-defined]  # as HAS_ASSEMBLY promises
        else:
            self.write(f'"{op.name}"')
            self.generic_form(op)
        if isolated:
            self._scopes.pop()
        if self.locations:
            self.write(" ")
            self.attribute(op.location)

    def generic_form(self, op: Operation) -> None:
        """Prints the generic form of an op after its name."""
        self.write("(")
        self.operands(op.operands)
        self.write(")")
        if op.successors:
            self._successors(op.successors)
        attributes: Mapping[str, Attribute] = op.attributes
        if op.properties and op.has_trait(Trait.NO_PROPERTIES):
            attributes = {**op.properties, **op.attributes}
        elif op.properties:
            self.write(" <")
            self.dictionary(op.properties)
            self.write(">")
        self.regions(op.regions)
        self.optional_attr_dict(attributes)
        self.write(" : ")
        self.functional_type(op)

    def _successors(self, successors: Iterable[Block]) -> None:
        self.write("[")
        for index, block in enumerate(successors):
            self.write(f", ^{self._block_name(block)}" if index else f"^{self._block_name(block)}")
        self.write("]")

    def operand(self, value: Value) -> None:
        """Prints a value's name, `%name`; it gets one if it has none yet."""
        name = self._values.get(value)
        if name is None:
            name = self._values[value] = self._scopes[-1].new(value.name_hint)
        self.write(f"%{name}")

    def operands(self, values: Sequence[Value]) -> None:
        """Prints values' names, separated by commas."""
        for index, value in enumerate(values):
            if index:
                self.write(", ")
            self.operand(value)

    def dictionary(self, attributes: Mapping[str, Attribute]) -> None:
        """Prints `{name = value}`."""
        print_dictionary(self, attributes)

    def optional_attr_dict(self, attributes: Mapping[str, Attribute], elided: Sequence[str] = ()) -> None:
        """Prints ` {name = value}` of all but some attributes, or nothing if none is left."""
        shown = {name: value for name, value in attributes.items() if name not in elided} if elided else attributes
        if shown:
            self.write(" ")
            self.dictionary(shown)

    def functional_type(self, op: Operation) -> None:
        """Prints the types of an op's operands and results, `(i32) -> f32`."""
        print_function_type(self, op.operand_types, op.result_types)

    def types(self, values: Iterable[Value]) -> None:
        """Prints values' types, separated by commas."""
        self.attributes([value.type for value in values])

    def typed_operands(self, values: Sequence[Value]) -> None:
        """Prints ` %a, %b : type, type`, or nothing."""
        if values:
            self.write(" ")
            self.operands(values)
            self.write(" : ")
            self.types(values)

    def regions(self, regions: Sequence[Region]) -> None:
        """Prints ` ({...}, {...})`, or nothing."""
        if not regions:
            return
        self.write(" (")
        for index, region in enumerate(regions):
            if index:
                self.write(", ")
            self.region(region)
        self.write(")")

    def region(self, region: Region, *, with_entry_arguments: bool = True) -> None:
        """Prints `{...}`.

        Args:
            region: The region.
            with_entry_arguments: Whether the entry's arguments are printed; an op's own assembly may have them already.
        """
        for index, block in enumerate(region.blocks):
            self._blocks.setdefault(block, f"bb{index}")
        self.write("{")
        for index, block in enumerate(region.blocks):
            has_label = index > 0 or (bool(block.args) and with_entry_arguments)
            self._block(block, has_label=has_label or (not block.ops and with_entry_arguments))
        self.newline()
        self.write("}")

    def _block(self, block: Block, *, has_label: bool) -> None:
        if has_label:
            self.newline()
            self.write(f"^{self._block_name(block)}")
            if block.args:
                self.write("(")
                for index, argument in enumerate(block.args):
                    if index:
                        self.write(", ")
                    self.argument(argument)
                self.write(")")
            self.write(":")
        self._depth += 1
        for op in block.ops:
            self.newline()
            self.operation(op)
        self._depth -= 1

    def argument(self, argument: BlockArgument, attributes: Mapping[str, Attribute] | None = None) -> None:
        """Prints `%arg0: tensor<2xf32> {name = value}`."""
        self.operand(argument)
        self.write(": ")
        self.attribute(argument.type)
        if attributes:
            self.optional_attr_dict(attributes)
        if self.locations:
            self.write(" ")
            self.attribute(argument.location)

    def _block_name(self, block: Block) -> str:
        return self._blocks.setdefault(block, f"bb{len(self._blocks)}")

    def newline(self) -> None:
        """Starts a line."""
        self.write("\n" + "  " * self._depth)


def text_of(op: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """Returns an op's text, with large constants left out."""
    pieces: list[str] = []
    Printer(pieces.append, generic=generic, locations=locations).operation(op)
    return "".join(pieces)
