"""Reads MLIR's text: ops in the generic form or in their own assembly, blocks and regions.

    module = Parser(registry, text, "model.mlir").parse_module()

Nesting is recursion; a caller that reads untrusted text reports `RecursionError` as a diagnostic.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.file_metadata import parse_file_metadata
from tfconvert.schema.ir.lexer import BARE, CARET, END, EXCLAMATION, HASH, INTEGER, PERCENT, STRING
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc, Location
from tfconvert.schema.ir.name_scopes import Argument, NamedBlock, Scope, block_hint
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.value_parser import ValueParser

if TYPE_CHECKING:
    from tfconvert.schema.ir.dialect import Assembly, DialectRegistry

_OP_BEGINS = frozenset({PERCENT, STRING, BARE})


class Parser(ValueParser):
    """Reads ops.

    Args:
        registry: Where names are looked up.
        text: The text.
        filename: The name that errors and locations show.
        first_line: The number of its first line, if it is a part of a file.
        locate: Whether ops without a location get their place in the text.

    Attributes:
        op_name: The full name of the op whose own assembly is parsed, when its class is called.
        resources: The `builtin` resources of the text, by name: hexadecimal digits.
    """

    def __init__(
        self,
        registry: DialectRegistry,
        text: str,
        filename: str = "<unknown>",
        first_line: int = 1,
        *,
        locate: bool = False,
    ) -> None:
        super().__init__(registry, text, filename, first_line)
        self.resources: dict[str, str] = {}
        self.op_name = ""
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))] if locate else None
        # The ops around the next token, the outermost first.
        self._enclosing: list[type[Operation]] = []
        self._dialects = ["builtin"]
        self._classes: dict[str, type[Operation]] = {}

    # Files.

    def parse_module(self) -> ModuleOp:
        """Parses the whole text; ops that are not in one module are put into one."""
        ops: list[Operation] = []
        while self.token[0] != END:
            kind = self.token[0]
            if kind in _OP_BEGINS:
                ops.append(self.parse_operation())
            elif kind in (HASH, EXCLAMATION):
                self._parse_alias()
            elif kind == "{-#":
                self.resources.update(parse_file_metadata(self))
            else:
                self.raise_error("expected an operation")
        self.check_defined(self.scope)
        if len(ops) == 1 and isinstance(ops[0], ModuleOp):
            return ops[0]
        return ModuleOp.of(ops)

    def _parse_alias(self) -> None:
        """Parses `#name = attribute` or `!name = type`."""
        position = self.pos
        spelling = self.token_text()
        name = spelling[1:]
        self.advance()
        self.parse_punctuation("=", " in the definition of an alias")
        if spelling[0] == "#" and self.location_aliases.is_definition(name, self.pos):
            self.location_aliases.find(name, self)
            self.resume_at(self.location_aliases.end(name))
            return
        if "." in name:
            self.raise_error(f"the name of an alias, '{spelling}', can't have a '.'", position)
        if name in (self.attribute_aliases if spelling[0] == "#" else self.type_aliases):
            self.raise_error(f"re-declaration of alias '{spelling}'", position)
        if spelling[0] == "#":
            self.attribute_aliases[name] = self.parse_attribute()
        else:
            self.type_aliases[name] = self.parse_type()

    # Ops.

    def parse_operation(self) -> Operation:
        """Parses an op with the names of its results, and with its location."""
        start = self.token[1]
        names = self._parse_result_names() if self.token[0] == PERCENT else ()
        kind = self.token[0]
        if kind == STRING:
            op = self._parse_generic()
        elif kind == BARE:
            op = self._parse_assembly()
        else:
            self.raise_error("operation name expected")
        if names:
            self._define_results(op, names, start)
        if self._line_starts is not None and op.location is UNKNOWN_LOC:
            op.location = self._place(start, self._line_starts)
        return op

    def _place(self, position: int, line_starts: Sequence[int]) -> Location:
        row = bisect_right(line_starts, position) - 1
        return FileLineColLoc.get(self.filename, self.first_line + row, position - line_starts[row] + 1)

    def _parse_result_names(self) -> list[tuple[str, int, int]]:
        """Parses `%a, %b:2 =`; returns names, how many results each binds, and their positions."""
        names = self.parse_comma_separated_list(self.Delimiter.NONE, self._parse_result_name)
        self.parse_punctuation("=", " after operation result list")
        return names

    def _parse_result_name(self) -> tuple[str, int, int]:
        kind, start, end, _ = self.token
        if kind != PERCENT:
            self.raise_error("Expected result SSA value!")
        self.token = self._lex(end)
        count = 1
        if self.parse_optional_punctuation(":") is not None:
            position = self.pos
            if self.token[0] != INTEGER:
                self.raise_error("Expected SSA value tuple size")
            count = self.parse_integer()
            if count < 1:
                self.raise_error("expected a name for one result at least", position)
        return self.text[start + 1 : end], count, start

    def _define_results(self, op: Operation, names: Sequence[tuple[str, int, int]], start: int) -> None:
        results = op.results
        if len(names) == 1 and len(results) == names[0][1]:
            self.define(names[0][0], results, names[0][2])
            return
        bound = sum([count for _, count, _ in names])
        if bound != len(results):
            self.raise_error(f"Operation has {len(results)} results, but was given {bound} to bind.", start)
        first = 0
        for name, count, position in names:
            self.define(name, results[first : first + count], position)
            first += count

    def _parse_generic(self) -> Operation:
        """Parses `"dialect.op"(%a)[^bb1] <{properties}> ({regions}) {attributes} : (types) -> types loc(...)`."""
        position = self.token[1]
        name = self.parse_str_literal()
        return self.parse_generic_form(name, self._classes.get(name) or self._find_class(name, position))

    def parse_generic_form(self, name: str, cls: type[Operation]) -> Operation:
        """Parses what follows the name of an op in the generic form.

        Args:
            name: The op's full name.
            cls: Its class.
        """
        operands = self.parse_operand_list()
        successors = self._parse_successors() if self.token[0] == "[" else ()
        properties = self.parse_optional_properties_dict()
        regions = self._parse_regions(cls, name) if self.token[0] == "(" else ()
        attributes = self.parse_optional_attr_dict()
        self.parse_punctuation(":", " before the types")
        position = self.token[1]
        operand_types, result_types = self.parse_signature()
        location = self.parse_optional_location()
        for declared in cls.PROPERTIES:
            if declared in attributes:
                properties.setdefault(declared, attributes.pop(declared))
        values = self.resolve_operands(operands, operand_types, position)
        return cls(name, values, result_types, properties, attributes, regions, location or UNKNOWN_LOC, successors)

    def _find_class(self, name: str, position: int) -> type[Operation]:
        found = self.registry.op(name)
        if found is None:
            self.raise_error(f"Operation {name} is not registered", position)
        self._classes[name] = found
        return found

    def _parse_regions(self, cls: type[Operation], name: str) -> list[Region]:
        self._enter(cls, name)
        regions = self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_region)
        self._exit()
        return regions

    def _parse_assembly(self) -> Operation:
        """Parses an op in a form of its own."""
        _, position, end, _ = self.token
        name, cls, parse = self._class_with_assembly(self.text[position:end], position)
        self.token = self._lex(end)
        self._enter(cls, name)
        self.op_name = name
        try:
            op = parse(self)
        except VerifyError as problem:
            self.raise_error(str(problem), position)
        self._exit()
        location = self.parse_optional_location()
        if location is not None:
            op.location = location
        return op

    def _class_with_assembly(self, word: str, position: int) -> tuple[str, type[Operation], Assembly]:
        """Returns the full name and the class of an op, and the parser of its text.

        The dialects of the ops around it may be left out.
        """
        dialects = () if "." in word else dict.fromkeys(reversed(self._dialects))
        for name in [f"{dialect}.{word}" for dialect in dialects] or [word]:
            found, parse = self.registry.op(name), self.registry.assembly(name)
            if found is not None and parse is not None:
                return name, found, parse
        if "." in word and self.registry.op(word) is not None:
            self.raise_error(f'Operation {word} does not have a custom format; write "{word}"(...)', position)
        return self.raise_error(f"Operation {word} is not registered", position)

    def _enter(self, cls: type[Operation], name: str) -> None:
        self._enclosing.append(cls)
        self._dialects.append(name.partition(".")[0])

    def _exit(self) -> None:
        self._enclosing.pop()
        self._dialects.pop()

    # Regions and blocks.

    def parse_region(self, arguments: Sequence[Argument] = ()) -> Region:
        """Parses `{...}`.

        Args:
            arguments: The arguments of the first block, if the text has them before the region.
        """
        if self.token[0] != "{":
            self.raise_error("'{' expected before a region")
        self.advance()
        outer = self.scope
        isolated = bool(self._enclosing) and Trait.ISOLATED_FROM_ABOVE in self._enclosing[-1].TRAITS
        scope = self.scope = Scope(None if isolated else outer)
        region = Region()
        if arguments and self.token[0] == CARET:
            self.raise_error("invalid block name in region with named arguments")
        if arguments or self.token[0] not in (CARET, "}"):
            entry = Block()
            self.add_arguments(entry, arguments)
            region.add_block(self._parse_ops(entry))
        while self.token[0] == CARET:
            region.add_block(self._parse_block())
        if self.token[0] != "}":
            self.raise_error("expected an operation, a block or '}'")
        self._leave(scope, isolated)
        self.scope = outer
        self.advance()
        return region

    def parse_optional_region(self, arguments: Sequence[Argument] = ()) -> Region | None:
        """Parses `{...}`, if it is there."""
        return self.parse_region(arguments) if self.token[0] == "{" else None

    def _leave(self, scope: Scope, isolated: bool) -> None:
        missing = scope.first_undefined_block()
        if missing is not None:
            position, name = missing
            self.raise_error(f"^{name} is used but never defined", position)
        if isolated:
            self.check_defined(scope)
        else:
            scope.leave()

    def _parse_block(self) -> Block:
        """Parses `^name(%x: type): ops`."""
        _, start, end, _ = self.token
        name = self.text[start + 1 : end]
        known = self.scope.blocks.get(name)
        if known is not None and known.is_defined:
            line = self.line_of(known.position)
            self.raise_error(f"re-declaration of block '{name}', which is on line {line}", start)
        block = Block() if known is None else known.block
        block.name_hint = block_hint(name)
        self.scope.blocks[name] = NamedBlock(block, start, True)
        self.token = self._lex(end)
        self.add_arguments(block, self.parse_arguments() if self.token[0] == "(" else ())
        self.parse_punctuation(":", " after the name of a block")
        return self._parse_ops(block)

    def _parse_ops(self, block: Block) -> Block:
        while self.token[0] in _OP_BEGINS:
            block.add_op(self.parse_operation())
        return block

    def _parse_successors(self) -> tuple[Block, ...]:
        context = " in a list of successors"
        return tuple(self.parse_comma_separated_list(self.Delimiter.SQUARE, self.parse_successor, context))

    def parse_successor(self) -> Block:
        """Parses `^name`; returns the block, which may be defined later."""
        kind, start, end, _ = self.token
        if kind != CARET:
            self.raise_error("successor expected")
        name = self.text[start + 1 : end]
        known = self.scope.blocks.get(name)
        if known is None:
            known = self.scope.blocks[name] = NamedBlock(Block(), start, False)
        self.token = self._lex(end)
        return known.block
