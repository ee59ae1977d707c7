"""The ops of the `builtin` dialect that occur: the module, and the symbols in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import StringAttr, symbol_text
from tfconvert.schema.ir.block import Block, BlockOps, Region
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.traits import Trait

if TYPE_CHECKING:
    from tfconvert.schema.ir.parser import Parser
    from tfconvert.schema.ir.printer import Printer


SYMBOL_NAME = "sym_name"


def symbol_name(op: Operation) -> str | None:
    """Returns the name of a symbol, `None` if the op is not one."""
    name = op.properties.get(SYMBOL_NAME) or op.attributes.get(SYMBOL_NAME)
    return name.data if isinstance(name, StringAttr) and op.has_trait(Trait.SYMBOL) else None


def symbols_in(table: Operation) -> Iterator[tuple[str, Operation]]:
    """Yields the symbols directly in an op with a symbol table, in order."""
    for block in table.regions[0].blocks:
        for op in block.ops:
            name = symbol_name(op)
            if name is not None:
                yield name, op


class SymbolTable:
    """The symbols of an op, by name.

    Args:
        table: An op that holds symbols, such as a module.
    """

    __slots__ = ("_symbols", "op")

    def __init__(self, table: Operation) -> None:
        self.op = table
        self._symbols = dict(symbols_in(table))

    def lookup(self, name: str) -> Operation | None:
        """Returns the symbol of a name, or `None`."""
        return self._symbols.get(name)


class ModuleOp(Operation):
    """`builtin.module`: the symbols of a program."""

    __slots__ = ()

    NAME: ClassVar[str] = "builtin.module"
    TRAITS: ClassVar[frozenset[Trait]] = frozenset(
        {Trait.NO_TERMINATOR, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.ISOLATED_FROM_ABOVE}
    )
    HAS_ASSEMBLY: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        ops: Iterable[Operation],
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        location: Location = UNKNOWN_LOC,
    ) -> ModuleOp:
        """Returns a module of ops."""
        return cls.create(regions=(Region(Block(ops)),), attributes=attributes, location=location)

    @property
    def body(self) -> Region:
        return self.regions[0]

    @property
    def ops(self) -> BlockOps:
        return self.regions[0].blocks[0].ops

    def verify_(self) -> None:
        if len(self.regions) != 1 or len(self.body.blocks) != 1 or self.body.block.args:
            raise VerifyError("a module has one region of one block without arguments")

    def print(self, printer: Printer) -> None:
        """Prints ` @name attributes {...} {...}`."""
        name = self.properties.get("sym_name") or self.attributes.get("sym_name")
        if isinstance(name, StringAttr):
            printer.write(f" {symbol_text(name.data)}")
        others = {key: value for key, value in {**self.properties, **self.attributes}.items() if key != "sym_name"}
        if others:
            printer.write(" attributes ")
            printer.dictionary(others)
        printer.write(" ")
        printer.region(self.body, with_entry_arguments=False)

    @classmethod
    def parse(cls, parser: Parser) -> ModuleOp:
        name = parser.parse_optional_symbol_name()
        attributes = dict(parser.parse_optional_attr_dict_with_keyword())
        if name is not None:
            attributes["sym_name"] = StringAttr.get(name)
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls.create(regions=(region,), attributes=attributes)


BUILTIN = Dialect("builtin", (ModuleOp,))
