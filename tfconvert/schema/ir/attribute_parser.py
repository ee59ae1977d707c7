"""Reads attributes, types and locations from MLIR's text.

Words and dialects are looked up in the registry; the parser found there continues after the name, and returns
the attribute or the type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attributes import (
    FALSE,
    TRUE,
    UNIT,
    ArrayAttr,
    BytesAttr,
    DenseArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    float_of_bits,
)
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, FusedLoc, Location, NameLoc
from tfconvert.schema.ir.token_parser import (
    AT,
    BARE,
    DICTIONARY,
    EXCLAMATION,
    FLOAT,
    HASH,
    INTEGER,
    SIGNATURE,
    STRING,
    TENSOR,
    TextMemory,
    TokenParser,
    string_bytes,
)
from tfconvert.schema.ir.types import (
    F64,
    I1,
    I64,
    PLAIN_TYPES,
    ComplexType,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    TupleType,
    UnrankedTensorType,
    VectorType,
)

if TYPE_CHECKING:
    from tfconvert.schema.ir.dialect import DialectRegistry, Syntax


_MAX_WIDTH = (1 << 24) - 1
_INTEGER_TYPE = re.compile(r"(s?i|ui)([0-9]+)")


def integer_type(parser: AttributeParser, word: str) -> IntegerType | None:
    """Returns the integer type that a word, the parser's next token, names; `None` if it names none."""
    match = _INTEGER_TYPE.fullmatch(word)
    if match is None:
        return None
    signedness, digits = match.groups()
    if len(digits) > 8 or int(digits) > _MAX_WIDTH:
        parser.raise_error(f"expected an integer type of at most {_MAX_WIDTH} bits")
    return IntegerType.get(int(digits), Signedness(signedness))


def _tensor(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        if parser.parse_optional_punctuation("*") is not None:
            return UnrankedTensorType.get(_unranked_element(parser))
        shape = parser.parse_leading_dimensions()
        element = parser.parse_type()
        encoding = parser.parse_attribute() if parser.parse_optional_punctuation(",") is not None else None
    return TensorType.get(element, shape, encoding)


def _unranked_element(parser: AttributeParser) -> Type:
    """Parses `xf32`, which is one token to the lexer."""
    position = parser.pos
    if not parser.text.startswith("x", position):
        parser.raise_error("expected 'x' and a type after '*'")
    parser.resume_at(position + 1)
    return parser.parse_type()


def _vector(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        position = parser.pos
        if parser.token[0] == "[":
            parser.raise_error("a scalable vector is not supported")
        shape = parser.parse_leading_dimensions()
        if any(dim < 1 for dim in shape):
            parser.raise_error("expected dimensions of a vector that are known and positive", position)
        element = parser.parse_type()
    return VectorType.get(element, shape)


def _memref(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        if parser.token[0] == "*":
            parser.raise_error("a memref of unknown rank is not supported")
        shape = parser.parse_leading_dimensions()
        element = parser.parse_type()
        if parser.token[0] == ",":
            parser.raise_error("a memref with a layout or a memory space is not supported")
    return MemRefType.get(element, shape)


def _tuple(parser: AttributeParser) -> Type:
    return TupleType.get(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))


def _complex(parser: AttributeParser) -> Type:
    with parser.in_angle_brackets():
        position = parser.pos
        element = parser.parse_type()
        if not isinstance(element, IntegerType | FloatType):
            parser.raise_error("expected a type of integers or floats in a complex type", position)
    return ComplexType.get(element)


TYPES: Mapping[str, Callable[[AttributeParser], Type]] = {
    "tensor": _tensor,
    "vector": _vector,
    "memref": _memref,
    "tuple": _tuple,
    "complex": _complex,
}
"""The parsers of builtin types, by and after the keyword that they begin with."""


_INDEX_WIDTH = 64


def parse_number_attribute(parser: AttributeParser) -> IntegerAttr | FloatAttr:
    """Parses `1`, `-1.5 : f32` or `0x7FC00000 : f32`; without a type, integers are `i64` and floats `f64`."""
    position = parser.pos
    is_bits = _is_bits(parser)
    value = parser.parse_number()
    if parser.parse_optional_punctuation(":") is None:
        if isinstance(value, float):
            return FloatAttr.get(value, F64)
        return IntegerAttr.get(_integer(parser, value, I64, position), I64)
    type_position = parser.pos
    of = parser.parse_type()
    if isinstance(of, FloatType):
        return FloatAttr.get(_float(parser, value, of, is_bits, position), of)
    if not isinstance(of, IntegerType | IndexType):
        parser.raise_error("expected a type of integers or floats after a number", type_position)
    if isinstance(value, float):
        parser.raise_error(f"expected an integer before the type {of}", position)
    return _integer_attribute(parser, value, of, position)


def parse_dense_array(parser: AttributeParser) -> Attribute:
    """Parses `<i64: 1, 2>`, which follows `array`."""
    with parser.in_angle_brackets():
        position = parser.pos
        element_type = parser.parse_type()
        if not isinstance(element_type, IntegerType | FloatType):
            parser.raise_error("expected a type of integers or floats in an array", position)
        values: list[int | float] = []
        if parser.parse_optional_punctuation(":") is not None:
            values = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, lambda: _element(parser, element_type), " in an array"
            )
    return DenseArrayAttr.get(element_type, values)


def _element(parser: AttributeParser, element_type: IntegerType | FloatType) -> int | float:
    position = parser.pos
    if isinstance(element_type, FloatType):
        is_bits = _is_bits(parser)
        value = _float(parser, parser.parse_number(), element_type, is_bits, position)
        return FloatAttr.get(value, element_type).value
    number = parser.parse_integer(allow_boolean=element_type is I1)
    return _integer_attribute(parser, number, element_type, position).value


def _is_bits(parser: AttributeParser) -> bool:
    """Returns whether the next token is a number by its bits."""
    return parser.token[0] == INTEGER and parser.text.startswith("0x", parser.pos)


def _float(parser: AttributeParser, value: int | float, type: FloatType, is_bits: bool, position: int) -> float:
    try:
        return float_of_bits(int(value), type) if is_bits else float(value)
    except OverflowError:
        parser.raise_error(f"expected a number that fits into {type}", position)
    except ValueError:
        parser.raise_error(f"the bits of a number of type {type} are not supported", position)


def _integer_attribute(
    parser: AttributeParser, value: int, type: IntegerType | IndexType, position: int
) -> IntegerAttr:
    if type is I1:
        return TRUE if _integer(parser, value, type, position) else FALSE
    return IntegerAttr.get(_integer(parser, value, type, position), type)


def _integer(parser: AttributeParser, value: int, type: IntegerType | IndexType, position: int) -> int:
    """Returns the value of a number in a type; signless ones may be written either way."""
    width = type.width if isinstance(type, IntegerType) else _INDEX_WIDTH
    signedness = type.signedness if isinstance(type, IntegerType) else Signedness.SIGNLESS
    # All bits but the sign's.
    bits = (value if value >= 0 else ~value).bit_length()
    fits = bits < width if signedness is not Signedness.UNSIGNED else value >= 0 and bits <= width
    if fits or value == 0:
        return value
    if signedness is not Signedness.SIGNLESS or value < 0 or bits > width:
        parser.raise_error(f"expected an integer that fits into {type}", position)
    return value - (1 << width)


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
        return NameLoc.get(name, _location(parser))
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
    "unknown": lambda _: UNKNOWN_LOC,
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


# Words of MLIR's builtin attributes that are not read, unless the registry has them.
_UNSUPPORTED = frozenset({"affine_map", "affine_set", "dense_resource", "distinct", "opaque", "sparse", "strided"})


class UntypedAttr(Attribute):
    """An attribute whose syntax ends before its type: `#dialect<name ...> : type`."""

    __slots__ = ("complete",)

    complete: Callable[[Type], Attribute]  # Returns the attribute with a type; may raise a `VerifyError`.


class AttributeParser(TokenParser):
    """Reads attributes, types and locations.

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
        return _location(self)

    def parse_location(self) -> Location:
        return self.expect(self.parse_optional_location, "expected a location")


def _location(parser: AttributeParser) -> Location:
    with parser.in_parens():
        return parse_location_body(parser)


# The parsers of attributes, by and after the keyword that they begin with.
_WORDS: Mapping[str, Syntax] = {"array": parse_dense_array, "loc": _location, "unit": lambda _: UNIT}
