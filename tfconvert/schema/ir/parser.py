"""Reads MLIR's text: ops in the generic form or in their own assembly, blocks, regions and the names of values.

    module = Parser(registry, text, "model.mlir").parse_module()

Nesting is recursion; a caller that reads untrusted text reports `RecursionError` as a diagnostic.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attribute_parser import AttributeParser
from tfconvert.schema.ir.attributes import DictionaryAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.token_parser import BARE, CARET, END, EXCLAMATION, HASH, INTEGER, PERCENT, STRING
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.values import BlockArgument, Value, value_of

if TYPE_CHECKING:
    from tfconvert.schema.ir.dialect import Assembly, DialectRegistry


NO_DICTIONARY: Mapping[str, Attribute] = DictionaryAttr.get({}).data

_HINT = re.compile(r"[A-Za-z_$.-][\w$.-]*+")
_COUNT = re.compile(r"_\d+\Z")
_DEFAULT_BLOCK = re.compile(r"bb[0-9]+")


@dataclass(slots=True)
class UnresolvedOperand:
    """An operand as the text names it, whose type is not known yet.

    Attributes:
        name: The name without `%`.
        index: Which value of several that share the name, `%name#1`.
        position: Where it is in the text.
    """

    name: str
    index: int
    position: int


class Argument(NamedTuple):
    """An argument of a region's first block.

    Attributes:
        name: The name without `%`.
        type: Its type.
        position: Where it is in the text.
        attributes: Its attributes in a function, `%x: i32 {name = value}`.
        location: The location.
    """

    name: str
    type: Attribute
    position: int
    attributes: Mapping[str, Attribute] = NO_DICTIONARY
    location: Location = UNKNOWN_LOC


class Forward(NamedTuple):
    """A use of a value before its definition.

    Attributes:
        value: The placeholder of the value until then.
        position: Where the first use is in the text.
    """

    value: Value
    position: int


class NamedBlock(NamedTuple):
    """A block that was used or defined.

    Attributes:
        block: The block.
        position: Where it occurs first.
        is_defined: Whether that is not only a use.
    """

    block: Block
    position: int
    is_defined: bool


class ParserScope:
    """The names that are known in a region.

    Args:
        outer: The scope around it, `None` if it is isolated from above.

    Attributes:
        values: The values of each name, including enclosing scopes.
        places: Where these are defined in the text.
        forward: Values that are used before their definition, by name and index.
        blocks: The blocks of the region.
    """

    __slots__ = ("_names", "blocks", "forward", "places", "values")

    def __init__(self, outer: ParserScope | None) -> None:
        # One dictionary for all regions of an isolated op: a copy for each would take quadratic time.
        self.values: dict[str, Sequence[Value]] = {} if outer is None else outer.values
        self.places: dict[str, int] = {} if outer is None else outer.places
        self.forward: dict[str, dict[int, Forward]] = {} if outer is None else outer.forward
        self.blocks: dict[str, NamedBlock] = {}
        self._names: list[str] = []

    def define(self, name: str, values: Sequence[Value], position: int) -> None:
        """Defines a new name."""
        self.values[name] = values
        self.places[name] = position
        self._names.append(name)

    def leave(self) -> None:
        """Forgets the names that the region defined."""
        for name in self._names:
            del self.values[name]
            del self.places[name]

    def first_undefined(self) -> tuple[int, str] | None:
        """Returns the position and name of the first use of an undefined value, or `None`."""
        return min(((use.position, name) for name, uses in self.forward.items() for use in uses.values()), default=None)

    def first_undefined_block(self) -> tuple[int, str] | None:
        """Returns the position and name of the first use of an undefined block, or `None`."""
        return min(
            ((block.position, name) for name, block in self.blocks.items() if not block.is_defined), default=None
        )


def value_hint(name: str) -> str | None:
    """Returns the name hint of a value's name: no numbers, and no suffix that made the name unique."""
    if _HINT.fullmatch(name) is None:
        return None
    return _COUNT.sub("", name) or None


def block_hint(name: str) -> str | None:
    """Returns the name hint of a block's name; names such as `bb1` are generated by the printer."""
    return None if _DEFAULT_BLOCK.fullmatch(name) is not None else value_hint(name)


def parse_file_metadata(parser: AttributeParser) -> dict[str, str]:
    """Parses file metadata.

    Args:
        parser: The parser, before `{-#`.

    Returns:
        The resources of the dialect `builtin`, by their names: hexadecimal digits.
    """
    resources: dict[str, str] = {}

    def section() -> None:
        position = parser.pos
        kind = _key(parser)
        if kind not in ("dialect_resources", "external_resources"):
            parser.raise_error(f"got an unexpected key in file metadata: {kind}", position)
        parser.parse_comma_separated_list(
            parser.Delimiter.BRACES, lambda: _owner(parser, resources if kind == "dialect_resources" else None)
        )

    parser.parse_comma_separated_list(parser.Delimiter.METADATA, section, " in file metadata")
    return resources


def _owner(parser: AttributeParser, resources: dict[str, str] | None) -> None:
    """Parses `dialect: {name: value, ...}`; all but the dialect `builtin`'s is skipped."""
    target = resources if _key(parser) == "builtin" else None
    parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _resource(parser, target))


def _resource(parser: AttributeParser, resources: dict[str, str] | None) -> None:
    position = parser.pos
    name = _key(parser)
    if resources is None:
        parser.parse_attribute()
        return
    digits = parser.parse_str_literal(" as a resource")
    if name in resources:
        parser.raise_error(f"the resource '{name}' is there already", position)
    resources[name] = digits


def _key(parser: AttributeParser) -> str:
    key = parser.parse_str_literal() if parser.token[0] == STRING else parser.parse_identifier(" in file metadata")
    parser.parse_punctuation(":", f" after '{key}'")
    return key


# Value names as the lexer splits them, token by token.
_NAME = r"%(?:[0-9]++(?![\w$.-])|(?![0-9])[\w$.-]++)"
_NAMES = rf"{_NAME}(?:, {_NAME})*+"
_RESULT = re.compile(rf"({_NAME}) =")
_LISTED = re.compile(rf"({_NAMES})(?= :|, )")
_OPERANDS = re.compile(rf"\((?:({_NAMES}))?\)")


class Parser(AttributeParser):
    """Reads ops, blocks and regions, and resolves the names of values.

    Args:
        registry: Where names are looked up.
        text: The text.
        filename: The name that errors and locations show.
        first_line: The number of its first line, if it is a part of a file.
        locate: Whether ops without a location get their place in the text.

    Attributes:
        first_line: The number of the first line.
        scope: The names that are known where the parser is.
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
        super().__init__(registry, text, filename)
        self.first_line = first_line
        self.scope = ParserScope(None)
        self.resources: dict[str, str] = {}
        self.op_name = ""
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))] if locate else None
        # The ops around the next token, the outermost first: their classes and names.
        self._enclosing: list[tuple[type[Operation], str]] = []
        self._classes: dict[str, type[Operation]] = {}
        # What words with a dialect stand for.
        self._assemblies: dict[str, tuple[str, type[Operation], Assembly]] = {}

    def line_of(self, position: int) -> int:
        """Returns the number of the line of a position."""
        return self.first_line + self.text.count("\n", 0, position)

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
        start = self.token[1]
        # The usual form, in one match.
        match = _RESULT.match(self.text, start)
        if match is not None:
            self.token = self._lex(match.end())
            return [(match[1][1:], 1, start)]
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
                self.raise_error("expected a name for at least one result", position)
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
        self._enclosing.append((cls, name))
        regions = self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_region)
        self._enclosing.pop()
        return regions

    def _parse_assembly(self) -> Operation:
        """Parses an op in a form of its own."""
        _, position, end, _ = self.token
        word = self.text[position:end]
        name, cls, parse = self._assemblies.get(word) or self._class_with_assembly(word, position)
        self.token = self._lex(end)
        self._enclosing.append((cls, name))
        self.op_name = name
        try:
            op = parse(self)
        except VerifyError as problem:
            self.raise_error(str(problem), position)
        self._enclosing.pop()
        location = self.parse_optional_location()
        if location is not None:
            op.location = location
        return op

    def _class_with_assembly(self, word: str, position: int) -> tuple[str, type[Operation], Assembly]:
        """Returns the full name and the class of an op, and the parser of its text.

        The dialects of the ops around it may be left out.
        """
        around = [name.partition(".")[0] for _, name in reversed(self._enclosing)]
        dialects = () if "." in word else dict.fromkeys([*around, "builtin"])
        for name in [f"{dialect}.{word}" for dialect in dialects] or [word]:
            found, parse = self.registry.op(name), self.registry.assembly(name)
            if found is not None and parse is not None:
                if name == word:
                    self._assemblies[word] = name, found, parse
                return name, found, parse
        if "." in word and self.registry.op(word) is not None:
            self.raise_error(f'Operation {word} does not have a custom format; write "{word}"(...)', position)
        return self.raise_error(f"Operation {word} is not registered", position)

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
        isolated = bool(self._enclosing) and Trait.ISOLATED_FROM_ABOVE in self._enclosing[-1][0].TRAITS
        scope = self.scope = ParserScope(None if isolated else outer)
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

    def _leave(self, scope: ParserScope, isolated: bool) -> None:
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

    # Operands.

    def parse_unresolved_operand(self, message: str = "operand expected") -> UnresolvedOperand:
        """Parses `%name` or `%name#1`; `resolve_operand` returns the value when the type is known."""
        kind, start, end, _ = self.token
        if kind != PERCENT:
            self.raise_error(message)
        self.token = self._lex(end)
        index = self._parse_operand_index() if self.token[0] == HASH else 0
        return UnresolvedOperand(self.text[start + 1 : end], index, start)

    def parse_operands(self) -> list[UnresolvedOperand]:
        """Parses `%a, %b#1`, or nothing."""
        if self.token[0] != PERCENT:
            return []
        return self.parse_comma_separated_list(self.Delimiter.NONE, self.parse_unresolved_operand)

    def parse_typed_operands(self) -> list[Value]:
        """Parses `%a, %b#1 : type, type`, or nothing."""
        operands = self.parse_operands()
        if not operands:
            return []
        self.parse_punctuation(":", " before the types")
        position = self.pos
        types = self.parse_comma_separated_list(self.Delimiter.NONE, self.parse_type)
        return self.resolve_operands(operands, types, position)

    def parse_operand_list(self) -> list[UnresolvedOperand]:
        """Parses `(%a, %b#1)`."""
        # The usual form, in one match.
        match = _OPERANDS.match(self.text, self.token[1])
        if match is None:
            return self.parse_comma_separated_list(
                self.Delimiter.PAREN, self.parse_unresolved_operand, " in operation argument list"
            )
        return self._named(match)

    def parse_listed_operands(self) -> list[UnresolvedOperand]:
        """Parses the operands at the beginning of a list that may go on with something else: `%a, %b, low = 0`."""
        match = _LISTED.match(self.text, self.token[1])
        return [self.parse_unresolved_operand()] if match is None else self._named(match)

    def _named(self, match: re.Match[str]) -> list[UnresolvedOperand]:
        """Returns the operands in the first group of a match, whose end is the end of what is parsed."""
        operands: list[UnresolvedOperand] = []
        position = match.start(1)
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
            use = uses[operand.index] = Forward(value_of(type), operand.position)
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

    def check_defined(self, scope: ParserScope) -> None:
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


_OP_BEGINS = frozenset({PERCENT, STRING, BARE})
