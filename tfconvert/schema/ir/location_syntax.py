"""Parses locations, and the aliases of locations, which MLIR defines at the end of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tfconvert.schema.ir.lexer import BARE, HASH, STRING
from tfconvert.schema.ir.locations import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, FusedLoc, Location, NameLoc

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfconvert.schema.ir.attribute_parser import AttributeParser

_DEFINITION = re.compile(r"^#([\w$-]++)[ \t]*+=[ \t]*+(?=loc\b)", re.MULTILINE)
_REFERENCE = re.compile(r'//[^\n]*+|"(?:[^"\\\n]|\\.)*+"|#([\w$-]++)')


def parse_location_body(parser: AttributeParser) -> Location:
    """Parses the contents of the parentheses of `loc(...)`."""
    kind = parser.token[0]
    if kind == STRING:
        return _name_or_place(parser)
    if kind == HASH:
        position = parser.pos
        attribute = parser.parse_attribute()
        if not isinstance(attribute, Location):
            parser.raise_error("expected an alias of a location", position)
        return attribute
    syntax = _LOCATIONS.get(parser.token_text()) if kind == BARE else None
    if syntax is None:
        parser.raise_error("expected a location")
    parser.advance()
    return syntax(parser)


def _name_or_place(parser: AttributeParser) -> Location:
    """Parses `"name"`, `"name"(child)` or `"file":1:2 to 3:4`; of a range, the start is kept."""
    name = parser.parse_str_literal()
    if parser.token[0] == "(":
        with parser.in_parens():
            return NameLoc.get(name, parse_location_body(parser))
    if parser.parse_optional_punctuation(":") is None:
        return NameLoc.get(name)
    line = _count(parser)
    parser.parse_punctuation(":", " before the column")
    column = _count(parser)
    if parser.parse_optional_keyword("to") is not None:
        if parser.token[0] != ":":
            _count(parser)
        parser.parse_punctuation(":", " before the column")
        _count(parser)
    return FileLineColLoc.get(name, line, column)


def _count(parser: AttributeParser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False, context=" as a line or a column")


def _unknown(parser: AttributeParser) -> Location:
    return UNKNOWN_LOC


def _call_site(parser: AttributeParser) -> Location:
    with parser.in_parens():
        callee = parse_location_body(parser)
        parser.parse_keyword("at", " before the caller")
        return CallSiteLoc.get(callee, parse_location_body(parser))


def _fused(parser: AttributeParser) -> Location:
    metadata = None
    if parser.token[0] == "<":
        with parser.in_angle_brackets():
            metadata = parser.parse_attribute()
    parts = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_location_body(parser), " in a fused location"
    )
    return FusedLoc.get(parts, metadata)


_LOCATIONS: Mapping[str, Callable[[AttributeParser], Location]] = {
    "unknown": _unknown,
    "callsite": _call_site,
    "fused": _fused,
}


class LocationAliases:
    """The definitions `#name = loc(...)` of a text, parsed on first use.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._pending: set[str] = set()
        if "\n#" in text or text.startswith("#"):
            for match in _DEFINITION.finditer(text):
                self._starts.setdefault(match[1], match.end())

    def is_definition(self, name: str, position: int) -> bool:
        """Returns whether a location at a position defines an alias."""
        return self._starts.get(name) == position

    def end(self, name: str) -> int:
        """Returns where the definition of an alias ends, which was read."""
        return self._ends[name]

    def find(self, name: str, parser: AttributeParser) -> Location | None:
        """Returns the location that an alias represents, `None` if the text defines no such alias.

        Args:
            name: The alias.
            parser: The parser of the text, whose position is restored.
        """
        if name not in self._starts:
            return None
        if name in self._pending:
            parser.raise_error(f"the location alias '#{name}' refers to itself")
        position = parser.pos
        # A stack instead of recursion: a file decides how long a chain of aliases is.
        stack = [name]
        while stack:
            top = stack[-1]
            if top in self._ends:
                stack.pop()
            elif top in self._pending:
                self._define(top, parser)
                stack.pop()
            else:
                self._pending.add(top)
                stack += [other for other in self._references(top) if other not in self._pending]
        parser.resume_at(position)
        location = parser.attribute_aliases[name]
        assert isinstance(location, Location)
        return location

    def _references(self, name: str) -> Iterator[str]:
        """Yields the aliases in the line of a definition that are not read yet."""
        start = self._starts[name]
        end = self._text.find("\n", start)
        for match in _REFERENCE.finditer(self._text, start, len(self._text) if end < 0 else end):
            other = match[1]
            if other in self._starts and other not in self._ends:
                yield other

    def _define(self, name: str, parser: AttributeParser) -> None:
        parser.resume_at(self._starts[name])
        if name in parser.attribute_aliases:
            parser.raise_error(f"re-declaration of alias '#{name}'")
        location = parser.parse_location()
        parser.attribute_aliases[name] = location
        self._ends[name] = parser.pos
        self._pending.discard(name)
