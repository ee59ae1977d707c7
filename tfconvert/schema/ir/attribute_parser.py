"""Reads attributes, types and locations from MLIR's text.

Words and dialects are looked up in the registry; the parser found there continues after the name, and returns
the attribute or the type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attributes import (
    FALSE,
    TRUE,
    UNIT,
    ArrayAttr,
    BytesAttr,
    DictionaryAttr,
    StringAttr,
    SymbolRefAttr,
)
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.lexer import AT, BARE, EXCLAMATION, FLOAT, HASH, INTEGER, STRING, string_bytes
from tfconvert.schema.ir.location_syntax import LocationAliases, parse_location_body
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.number_syntax import parse_dense_array, parse_number_attribute
from tfconvert.schema.ir.text_memory import DICTIONARY, SIGNATURE, TENSOR, TextMemory
from tfconvert.schema.ir.token_parser import TokenParser
from tfconvert.schema.ir.type_syntax import PLAIN_TYPES, TYPES, integer_type, parse_dimensions
from tfconvert.schema.ir.types import FunctionType

if TYPE_CHECKING:
    from tfconvert.schema.ir.dialect import DialectRegistry, Syntax

# Words of MLIR's builtin attributes that are not read, unless the registry has them.
_UNSUPPORTED = frozenset({"affine_map", "affine_set", "dense_resource", "distinct", "opaque", "sparse", "strided"})


class UntypedAttr(Attribute):
    """An attribute whose syntax ends before its type: `#dialect<name ...> : type`.

    Attributes:
        complete: Returns the attribute with a type; may raise a `VerifyError`.
    """

    __slots__ = ("complete",)

    complete: Callable[[Type], Attribute]

    @classmethod
    def get(cls, complete: Callable[[Type], Attribute]) -> UntypedAttr:
        """Returns an attribute that gets its type from the parser."""
        return cls.intern(complete)


class AttributeParser(TokenParser):
    """Reads attributes, types and locations.

    Args:
        registry: Where names are looked up.
        text: The text.
        filename: The name that errors show.

    Attributes:
        registry: Where names are looked up.
        attribute_aliases: The attribute of each `#name`, by the name without `#`.
        type_aliases: The type of each `!name`, by the name without `!`.
    """

    def __init__(self, registry: DialectRegistry, text: str, filename: str = "<unknown>") -> None:
        super().__init__(text, filename)
        self.registry = registry
        self.attribute_aliases: dict[str, Attribute] = {}
        self.type_aliases: dict[str, Type] = {}
        self.location_aliases = LocationAliases(text)
        self._tensors = TextMemory[Type](TENSOR)
        self._dictionaries = TextMemory[dict[str, Attribute]](DICTIONARY)
        self._signatures = TextMemory[tuple[Sequence[Type], Sequence[Type]]](SIGNATURE)

    # Types.

    def parse_type(self) -> Type:
        """Parses a type."""
        parsed = self.parse_optional_type()
        if parsed is None:
            self.raise_error("type expected")
        return parsed

    def parse_optional_type(self) -> Type | None:
        """Parses a type, if there is one."""
        kind, start, end, _ = self.token
        if kind == EXCLAMATION:
            return self._extended_type()
        if kind == "(":
            return self.parse_function_type()
        if kind != BARE:
            return None
        word = self.text[start:end]
        if word == "tensor":
            return self._tensor()
        plain = PLAIN_TYPES.get(word) or integer_type(self, word)
        if plain is not None:
            self.token = self._lex(end)
            return plain
        syntax = TYPES.get(word)
        if syntax is None:
            return None
        self.token = self._lex(end)
        return syntax(self)

    def _tensor(self) -> Type:
        known = self._tensors.recall(self)
        if known is not None:
            return known
        start = self.token[1]
        self.advance()
        parsed = TYPES["tensor"](self)
        self._tensors.keep(self, start, parsed)
        return parsed

    def parse_function_type(self) -> FunctionType:
        """Parses `(i32) -> f32`."""
        return self.expect(self.parse_optional_function_type, "function type expected")

    def parse_optional_function_type(self) -> FunctionType | None:
        """Parses a function type, if an opening parenthesis is there."""
        if self.token[0] != "(":
            return None
        return FunctionType.get(*self.parse_signature())

    def parse_signature(self) -> tuple[Sequence[Type], Sequence[Type]]:
        """Parses `(i32) -> f32`; returns the types of operands and results."""
        known = self._signatures.recall(self)
        if known is not None:
            return known
        start = self.token[1]
        parsed = self._signature()
        self._signatures.keep(self, start, parsed)
        return parsed

    def _signature(self) -> tuple[Sequence[Type], Sequence[Type]]:
        inputs = self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_type, " in a function type")
        self.parse_punctuation("->", " in a function type")
        if self.token[0] != "(":
            return inputs, [self.parse_type()]
        return inputs, self.parse_comma_separated_list(self.Delimiter.PAREN, self.parse_type, " in a function type")

    def parse_dimension_list(self) -> list[int]:
        """Parses `2x?x3`, -1 where a dimension is not known; there may be no dimensions."""
        return parse_dimensions(self)

    def _extended_type(self) -> Type:
        """Parses `!dialect.name...`, `!dialect<name...>` or `!alias`."""
        position = self.pos
        name, is_opaque = self._extended_name()
        if not is_opaque and "." not in name:
            alias = self.type_aliases.get(name)
            if alias is None:
                self.raise_error(f"undefined symbol alias '!{name}'", position)
            return alias
        parsed = self._parameters(self.registry.type(name), f"!{name}", is_opaque, position)
        if not isinstance(parsed, Type):
            self.raise_error(f"'!{name}' is not a type", position)
        return parsed

    def _extended_name(self) -> tuple[str, bool]:
        """Parses the name after `#` or `!`; returns it, and whether `<` must be closed after the parameters."""
        name = self.token_text()[1:]
        self.advance()
        if "." in name or self.token[0] != "<":
            return name, False
        self.advance()
        return f"{name}.{self.parse_identifier(' of an attribute or a type')}", True

    def _parameters(self, syntax: Syntax | None, name: str, is_opaque: bool, position: int) -> Attribute:
        if syntax is None:
            self.raise_error(f"'{name}' is not registered", position)
        attribute = self._checked(syntax, position)
        if is_opaque:
            self.parse_punctuation(">", f" after '{name}'")
        if isinstance(attribute, UntypedAttr):
            self.parse_punctuation(":", f" after '{name}'")
            complete, after = attribute.complete, self.parse_type()
            return self._checked(lambda _: complete(after), position)
        return attribute

    def _checked(self, syntax: Syntax, position: int) -> Attribute:
        try:
            return syntax(self)
        except VerifyError as problem:
            self.raise_error(str(problem), position)

    # Attributes.

    def parse_attribute(self) -> Attribute:
        """Parses an attribute; types are attributes too."""
        attribute = self.parse_optional_attribute()
        if attribute is None:
            self.raise_error("attribute expected")
        return attribute

    def parse_optional_attribute(self) -> Attribute | None:
        """Parses an attribute, if there is one; types are attributes too."""
        parse = self._ATTRIBUTES.get(self.token[0])
        return parse(self) if parse is not None else None

    def _string(self) -> Attribute:
        _, start, end, _ = self.token
        self.token = self._lex(end)
        literal = self.text[start:end]
        if "\\" not in literal:
            return StringAttr.get(literal[1:-1])
        data = string_bytes(literal)
        try:
            return StringAttr.get(data.decode("utf-8"))
        except UnicodeDecodeError:
            return BytesAttr.get(data)

    def _array(self) -> Attribute:
        return ArrayAttr.get(self.parse_comma_separated_list(self.Delimiter.SQUARE, self.parse_attribute))

    def _dictionary(self) -> Attribute:
        return DictionaryAttr.get(self.parse_optional_attr_dict())

    def _symbol(self) -> Attribute:
        root = self.parse_symbol_name()
        nested: list[str] = []
        while self.parse_optional_punctuation("::") is not None:
            nested.append(self.parse_symbol_name())
        return SymbolRefAttr.get(root, nested)

    def _word(self) -> Attribute | None:
        """Parses an attribute or a type that begins with a keyword."""
        word = self.token_text()
        if word in ("true", "false"):
            self.advance()
            return TRUE if word == "true" else FALSE
        syntax = self.registry.keywords.get(word) or _WORDS.get(word)
        if syntax is not None:
            position = self.pos
            self.advance()
            return self._parameters(syntax, word, False, position)
        if word in _UNSUPPORTED:
            self.raise_error(f"'{word}' is not supported")
        return self.parse_optional_type()

    def _extended_attribute(self) -> Attribute:
        """Parses `#dialect.name...`, `#dialect<name...>` or `#alias`."""
        position = self.pos
        name, is_opaque = self._extended_name()
        if is_opaque or "." in name:
            return self._parameters(self.registry.attribute(name), f"#{name}", is_opaque, position)
        alias = self.attribute_aliases.get(name) or self.location_aliases.find(name, self)
        if alias is None:
            self.raise_error(f"undefined symbol alias '#{name}'", position)
        return alias

    _ATTRIBUTES: ClassVar[Mapping[str, Callable[[AttributeParser], Attribute | None]]] = {
        STRING: _string,
        INTEGER: parse_number_attribute,
        FLOAT: parse_number_attribute,
        "-": parse_number_attribute,
        "[": _array,
        "{": _dictionary,
        AT: _symbol,
        HASH: _extended_attribute,
        BARE: _word,
        EXCLAMATION: _extended_type,
        "(": parse_function_type,
    }
    """The parsers of attributes, by the kind of their first token."""

    # Dictionaries.

    def parse_optional_attr_dict(self) -> dict[str, Attribute]:
        """Parses `{a = 1 : i64, b}`, if it is there; returns an empty dictionary if it is not."""
        if self.token[0] != "{":
            return {}
        known = self._dictionaries.recall(self)
        if known is not None:
            return known.copy()
        start = self.token[1]
        attributes = self._entries()
        self._dictionaries.keep(self, start, attributes.copy())
        return attributes

    def _entries(self) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {}
        self.advance()
        if self.parse_optional_punctuation("}") is not None:
            return attributes
        self._entry(attributes)
        while self.parse_optional_punctuation(",") is not None:
            self._entry(attributes)
        if self.token[0] != "}":
            self.raise_error("'}' expected")
        self.advance()
        return attributes

    def _entry(self, attributes: dict[str, Attribute]) -> None:
        kind, start, end, _ = self.token
        if kind == BARE:
            name = self.text[start:end]
        elif kind == STRING:
            name = self.decoded(start, end)
        else:
            self.raise_error("expected the name of an attribute")
        if name in attributes:
            self.raise_error(f"duplicate key '{name}' in dictionary")
        self.token = self._lex(end)
        if self.token[0] == "=":
            self.token = self._lex(self.token[2])
            attributes[name] = self.parse_attribute()
        else:
            attributes[name] = UNIT

    def parse_optional_attr_dict_with_keyword(self) -> dict[str, Attribute]:
        """Parses `attributes {...}`, if it is there; returns an empty dictionary if it is not."""
        if self.parse_optional_keyword("attributes") is None:
            return {}
        if self.token[0] != "{":
            self.raise_error("'{' expected after 'attributes'")
        return self.parse_optional_attr_dict()

    def parse_optional_properties_dict(self) -> dict[str, Attribute]:
        """Parses `<{a = 1 : i64}>`, if it is there; returns an empty dictionary if it is not."""
        if self.token[0] != "<":
            return {}
        self.advance()
        if self.token[0] != "{":
            self.raise_error("'{' expected in properties")
        properties = self.parse_optional_attr_dict()
        self.parse_punctuation(">", " after the properties")
        return properties

    # Symbols and locations.

    def parse_optional_symbol_name(self) -> str | None:
        """Parses `@name` or `@"name"`, if it is there; returns the name."""
        kind, start, end, _ = self.token
        if kind != AT:
            return None
        is_quoted = self.text.startswith('"', start + 1)
        name = self.decoded(start + 1, end) if is_quoted else self.text[start + 1 : end]
        self.advance()
        return name

    def parse_symbol_name(self) -> str:
        """Parses `@name` or `@"name"`; returns the name."""
        return self.expect(self.parse_optional_symbol_name, "expect symbol name")

    def parse_optional_location(self) -> Location | None:
        """Parses `loc(...)`, if it is there."""
        if self.token[0] != BARE or self.parse_optional_keyword("loc") is None:
            return None
        with self.in_parens():
            return parse_location_body(self)

    def parse_location(self) -> Location:
        """Parses `loc(...)`."""
        return self.expect(self.parse_optional_location, "expected a location")


def _location(parser: AttributeParser) -> Attribute:
    with parser.in_parens():
        return parse_location_body(parser)


def _unit(parser: AttributeParser) -> Attribute:
    return UNIT


# The parsers of attributes, by and after the keyword that they begin with.
_WORDS: Mapping[str, Syntax] = {"array": parse_dense_array, "loc": _location, "unit": _unit}
