"""The base of all parsers of MLIR's text: tokens, numbers, strings and lists.

Lexing takes linear time whatever the text is. Methods named `parse_optional_...` return `None` and consume nothing if
something else follows; all others raise a `ParseError` then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import Generic, NoReturn, TypeVar

from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.ir.types import DYNAMIC

Token = tuple[str, int, int, int]
"""The kind of a token, where it begins, where it ends, and where the one before it ends.

The kind of punctuation is its text.
"""

BARE = "bare"
"""A name without a sigil, as `tensor` and `func.func`."""
PERCENT = "%"
"""The name of a value, `%x`."""
CARET = "^"
"""The name of a block, `^bb0`."""
AT = "@"
"""The name of a symbol, `@main` or `@"main"`."""
HASH = "#"
"""An attribute of a dialect, or an alias of an attribute."""
EXCLAMATION = "!"
"""A type of a dialect, or an alias of a type."""
INTEGER = "integer"
FLOAT = "float"
STRING = "string"
END = "end"
"""The end of the text."""

_PUNCTUATION = "punctuation"
_BAD = "bad"

# All repetition is possessive: there is no backtracking.
_SKIPPED = r"(?:[ \t\r\n\f\v]++|//[^\n]*+)*+"
_SUFFIX = r"(?:[0-9]++|[\w$.-]++)"
_WORD = r"[^\W0-9][\w$.]*+"
_STRING = r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'
_FORMS = (
    (PERCENT, f"%{_SUFFIX}"),
    (_PUNCTUATION, r"\{-\#|\#-\}|->|::|\.\.\.|[(){}\[\]<>,:=?*+/|-]"),
    (BARE, _WORD),
    (STRING, _STRING),
    (FLOAT, r"[0-9]++\.[0-9]*+(?:[eE][-+]?+[0-9]++)?+"),
    (INTEGER, r"0x[0-9a-fA-F]++|[0-9]++"),
    (EXCLAMATION, f"!{_SUFFIX}"),
    (HASH, f"\\#{_SUFFIX}"),
    (AT, f"@(?:{_WORD}|{_STRING})"),
    (CARET, f"\\^{_SUFFIX}"),
    (END, r"\Z"),
    (_BAD, r"[\s\S]"),
)
_TOKEN = re.compile(f"{_SKIPPED}(?:{'|'.join(f'({form})' for _, form in _FORMS)})")
_KINDS = ("", *(kind for kind, _ in _FORMS))
_PUNCTUATION_GROUP = _KINDS.index(_PUNCTUATION)
_BAD_GROUP = _KINDS.index(_BAD)

_ESCAPE = re.compile(rb'\\(?:([0-9A-Fa-f]{2})|(["nt\\]))')
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"\\": b"\\", b'"': b'"'}


class Lexer:
    """Splits a text into tokens."""

    __slots__ = ("filename", "text")

    def __init__(self, text: str, filename: str = "<unknown>") -> None:
        self.text = text
        self.filename = filename

    def token(self, position: int) -> Token:
        """Returns the first token at a position, the end of the one before, or after it; comments are not tokens.

        Raises:
            ParseError: No token begins there.
        """
        match = _TOKEN.match(self.text, position)
        assert match is not None
        group = match.lastindex
        assert group is not None
        start, end = match.span(group)
        if group == _PUNCTUATION_GROUP:
            return self.text[start:end], start, end, position
        if group == _BAD_GROUP:
            raise ParseError(start, self._complaint(start), self.text, self.filename)
        return _KINDS[group], start, end, position

    def _complaint(self, position: int) -> str:
        character = self.text[position]
        if self.text.startswith(('"', '@"'), position):
            return r"expected a string that ends on its line; escapes are \n, \t, \\, \" and two hexadecimal digits"
        if character in "%^@#!":
            return f"expected a name after '{character}'"
        return f"unexpected character {character!r}"


def string_bytes(literal: str) -> bytes:
    """Returns the value of a string literal, which is passed with its quotes."""
    data = literal[1:-1].encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(_unescaped, data) if b"\\" in data else data


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits, letter = match.groups()
    return bytes.fromhex(digits.decode()) if digits is not None else _ESCAPED[letter]


# Brackets, and other tokens that contain their characters.
_BRACKET = re.compile(rf"{_STRING}|->|([<>()\[\]{{}}])")
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}

T = TypeVar("T")

MAX_DIGITS = 4300
"""Decimal digits that an integer may have: more take Python too long to read or to print."""

_MAX_BITS = 14_000
_MAX_DIMENSION = (1 << 63) - 1
_DIMENSION = re.compile(r"[ \t\r\n]*+(\?|[0-9]++)[ \t\r\n]*+")


class TokenParser:
    """Reads a text token by token.

    Attributes:
        text: The text.
        filename: The name that errors show.
        token: The next token.
    """

    class Delimiter(Enum):
        """The delimiters of a list."""

        NONE = ("", "")
        PAREN = ("(", ")")
        ANGLE = ("<", ">")
        SQUARE = ("[", "]")
        BRACES = ("{", "}")
        METADATA = ("{-#", "#-}")

    def __init__(self, text: str, filename: str = "<unknown>") -> None:
        self.text = text
        self.filename = filename
        self._lex: Callable[[int], Token] = Lexer(text, filename).token
        self.token = self._lex(0)

    # Where the parser is.

    @property
    def pos(self) -> int:
        """The position of the next token."""
        return self.token[1]

    def advance(self) -> None:
        """Advances to the next token."""
        self.token = self._lex(self.token[2])

    def resume_at(self, position: int) -> None:
        """Moves to the first token at a position, which may be within the next one, or after it."""
        self.token = self._lex(position)

    def token_text(self) -> str:
        """Returns the text of the next token."""
        return self.text[self.token[1] : self.token[2]]

    def raise_error(self, message: str, position: int | None = None) -> NoReturn:
        """Raises an error at a position, by default at the next token.

        Raises:
            ParseError: Always.
        """
        raise ParseError(self.token[1] if position is None else position, message, self.text, self.filename)

    def expect(self, parse_optional: Callable[[], T | None], message: str) -> T:
        """Returns the result of a parse function; if it is `None`, the message is raised as an error."""
        parsed = parse_optional()
        if parsed is None:
            self.raise_error(message)
        return parsed

    # Punctuation and words.

    def parse_optional_punctuation(self, punctuation: str) -> str | None:
        """Parses punctuation, if it is there; returns it."""
        if self.token[0] != punctuation:
            return None
        self.token = self._lex(self.token[2])
        return punctuation

    def parse_punctuation(self, punctuation: str, context: str = "") -> str:
        """Parses punctuation.

        Args:
            punctuation: The text of the token.
            context: The end of error messages, with a space in front.
        """
        if self.token[0] != punctuation:
            self.raise_error(f"Expected '{punctuation}'{context}")
        self.token = self._lex(self.token[2])
        return punctuation

    def parse_optional_keyword(self, keyword: str) -> str | None:
        """Parses a word, if it is there; returns it."""
        kind, start, end, _ = self.token
        if kind != BARE or self.text[start:end] != keyword:
            return None
        self.token = self._lex(end)
        return keyword

    def parse_keyword(self, keyword: str, context: str = "") -> str:
        """Parses a word."""
        if self.parse_optional_keyword(keyword) is None:
            self.raise_error(f"Expected '{keyword}'{context}")
        return keyword

    def parse_optional_identifier(self) -> str | None:
        """Parses any word, if there is one; returns it."""
        kind, start, end, _ = self.token
        if kind != BARE:
            return None
        self.token = self._lex(end)
        return self.text[start:end]

    def parse_identifier(self, context: str = "") -> str:
        """Parses any word; returns it."""
        return self.expect(self.parse_optional_identifier, f"identifier expected{context}")

    # Strings.

    def parse_optional_bytes_literal(self) -> bytes | None:
        """Parses a string, if there is one; returns its bytes, which need not be UTF-8."""
        kind, start, end, _ = self.token
        if kind != STRING:
            return None
        self.token = self._lex(end)
        return string_bytes(self.text[start:end])

    def parse_optional_str_literal(self) -> str | None:
        """Parses a string, if there is one; returns its text, for which escapes may spell UTF-8."""
        kind, start, end, _ = self.token
        if kind != STRING:
            return None
        text = self.decoded(start, end)
        self.token = self._lex(end)
        return text

    def parse_str_literal(self, context: str = "") -> str:
        """Parses a string; returns its text."""
        return self.expect(self.parse_optional_str_literal, f"string literal expected{context}")

    def decoded(self, start: int, end: int) -> str:
        """Returns the value of the string literal between two positions."""
        literal = self.text[start:end]
        if "\\" not in literal:
            return literal[1:-1]
        try:
            return string_bytes(literal).decode("utf-8")
        except UnicodeDecodeError:
            self.raise_error("expected a string of UTF-8 text", start)

    # Numbers.

    def parse_optional_boolean(self) -> bool | None:
        """Parses `true` or `false`, if it is there."""
        kind, start, end, _ = self.token
        if kind != BARE:
            return None
        word = self.text[start:end]
        if word not in ("true", "false"):
            return None
        self.token = self._lex(end)
        return word == "true"

    def parse_optional_integer(self, allow_boolean: bool = True, allow_negative: bool = True) -> int | None:
        """Parses an integer, if there is one; returns it.

        Args:
            allow_boolean: Whether `true` and `false` are 1 and 0.
            allow_negative: Whether there may be a minus.
        """
        if allow_boolean and (truth := self.parse_optional_boolean()) is not None:
            return int(truth)
        is_negative = allow_negative and self.parse_optional_punctuation("-") is not None
        if self.token[0] != INTEGER:
            if is_negative:
                self.raise_error("Expected integer literal after '-'")
            return None
        value = self._unsigned()
        return -value if is_negative else value

    def parse_integer(self, allow_boolean: bool = True, allow_negative: bool = True, context: str = "") -> int:
        """Parses an integer; the arguments are those of `parse_optional_integer`."""
        value = self.parse_optional_integer(allow_boolean, allow_negative)
        if value is None:
            self.raise_error(f"Expected integer literal{context}")
        return value

    def parse_optional_number(self, *, allow_boolean: bool = False) -> int | float | None:
        """Parses an integer or a float, if there is one; `true` and `false` are 1 and 0 where they are allowed."""
        if allow_boolean and (truth := self.parse_optional_boolean()) is not None:
            return int(truth)
        is_negative = self.parse_optional_punctuation("-") is not None
        kind, start, end, _ = self.token
        value: int | float
        if kind == INTEGER:
            value = self._unsigned()
        elif kind == FLOAT:
            value = float(self.text[start:end])
            self.token = self._lex(end)
        elif is_negative:
            self.raise_error("Expected integer or float literal after '-'")
        else:
            return None
        return -value if is_negative else value

    def parse_number(self, allow_boolean: bool = False, context: str = "") -> int | float:
        """Parses an integer or a float."""
        value = self.parse_optional_number(allow_boolean=allow_boolean)
        if value is None:
            self.raise_error(f"integer{', boolean,' if allow_boolean else ''} or float literal expected{context}")
        return value

    def _unsigned(self) -> int:
        """Parses the integer that is the next token."""
        _, start, end, _ = self.token
        digits = self.text[start:end]
        if digits.startswith("0x"):
            # Powers of two are read in linear time.
            value = int(digits, 16)
            is_long = value.bit_length() > _MAX_BITS
        else:
            is_long = len(digits) > MAX_DIGITS
            value = 0 if is_long else int(digits)
        if is_long:
            self.raise_error(f"expected an integer of at most {MAX_DIGITS} digits")
        self.token = self._lex(end)
        return value

    # Dimensions.

    def parse_dimension_list(self) -> list[int]:
        """Parses `2x?x3`, `DYNAMIC` where unknown; there may be no dimensions."""
        dims: list[int] = []
        position = self.pos
        while (match := _DIMENSION.match(self.text, position)) is not None:
            dims.append(self._dimension(match))
            position = match.end()
            if not self.text.startswith("x", position):
                break
            position += 1
        if dims and self.text.startswith("x", position - 1):
            self.raise_error("expected a dimension after 'x'", position)
        self.resume_at(position)
        return dims

    def parse_leading_dimensions(self) -> tuple[int, ...]:
        """Parses `2x?x`: the dimensions before an element type."""
        dims: list[int] = []
        position = self.pos
        while (match := _DIMENSION.match(self.text, position)) is not None:
            position = match.end()
            if not self.text.startswith("x", position):
                self.raise_error("expected 'x' and a type after the dimension", position)
            dims.append(self._dimension(match))
            position += 1
        self.resume_at(position)
        return tuple(dims)

    def _dimension(self, match: re.Match[str]) -> int:
        digits = match[1]
        if digits == "?":
            return DYNAMIC
        # No number of 64 bits has more digits.
        if len(digits) > 19 or int(digits) > _MAX_DIMENSION:
            self.raise_error("expected a dimension that fits into 64 bits", match.start(1))
        return int(digits)

    # Lists.

    def parse_comma_separated_list(self, delimiter: Delimiter, parse: Callable[[], T], context: str = "") -> list[T]:
        """Parses a list; without delimiters it has at least one element.

        Args:
            delimiter: The delimiters of the list.
            parse: Parses one element.
            context: The end of error messages about the list, with a space in front.
        """
        opening, closing = delimiter.value
        if opening:
            self._parse_delimiter(opening, context)
            if self.token[0] == closing:
                self.token = self._lex(self.token[2])
                return []
        elements = [parse()]
        while self.token[0] == ",":
            self.token = self._lex(self.token[2])
            elements.append(parse())
        if closing:
            self._parse_delimiter(closing, context)
        return elements

    def parse_optional_comma_separated_list(
        self, delimiter: Delimiter, parse: Callable[[], T], context: str = ""
    ) -> list[T] | None:
        """Parses a list, if the delimiter that opens it is there."""
        if self.token[0] != delimiter.value[0]:
            return None
        return self.parse_comma_separated_list(delimiter, parse, context)

    def _parse_delimiter(self, delimiter: str, context: str) -> None:
        if self.token[0] != delimiter:
            self.raise_error(f"'{delimiter}' expected{context}")
        self.token = self._lex(self.token[2])

    def parse_optional_balanced(self) -> str:
        """Parses `<...>` without reading what is inside; returns it with the brackets, empty if it is not there."""
        start = self.pos
        if self.token[0] != "<":
            return ""
        expected: list[str] = []
        for match in _BRACKET.finditer(self.text, start):
            bracket = match[1]
            if bracket in _CLOSING:
                expected.append(_CLOSING[bracket])
            elif bracket is not None and bracket != expected.pop():
                break
            if not expected:
                self.resume_at(match.end())
                return self.text[start : match.end()]
        return self.raise_error("'<' has no '>' that closes it", start)

    @contextmanager
    def delimited(self, delimiter: Delimiter) -> Iterator[None]:
        """Parses the opening delimiter before the body of a `with`, and the closing one after it."""
        opening, closing = delimiter.value
        self._parse_delimiter(opening, "")
        yield
        self._parse_delimiter(closing, "")

    def in_angle_brackets(self) -> AbstractContextManager[None]:
        """Parses `<` before the body of a `with`, and `>` after it."""
        return self.delimited(self.Delimiter.ANGLE)

    def in_square_brackets(self) -> AbstractContextManager[None]:
        """Parses `[` before the body of a `with`, and `]` after it."""
        return self.delimited(self.Delimiter.SQUARE)

    def in_parens(self) -> AbstractContextManager[None]:
        """Parses `(` before the body of a `with`, and `)` after it."""
        return self.delimited(self.Delimiter.PAREN)


# Characters of the longest text that is remembered.
_MAX_KEPT = 200

_TENSOR_FORM = r"tensor<(?:[^<>]++|<(?:[^<>]++|<[^<>]*+>)*+>)*+>"
_LIST_FORM = rf"\([^()]{{0,{_MAX_KEPT}}}+\)"

TENSOR = re.compile(_TENSOR_FORM)
"""A tensor type, unless it is nested deeply; or other text, which is never found."""
SIGNATURE = re.compile(f"{_LIST_FORM} -> (?:{_LIST_FORM}|{_TENSOR_FORM})")
"""A function type without others in it, with results that end with a token of their own."""
DICTIONARY = re.compile(rf"\{{[^{{}}]{{0,{_MAX_KEPT}}}+\}}")
"""A dictionary without others in it."""


class TextMemory(Generic[T]):
    """A cache of parsed objects by their text: most ops of a file have one of a few types.

    The meaning of a text does not depend on its context if it ends with a token that ends the construct.

    Args:
        pattern: The form of texts that are cached.
    """

    __slots__ = ("_known", "_match")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._match = pattern.match
        self._known: dict[str, T] = {}

    def recall(self, parser: TokenParser) -> T | None:
        """Returns the object of the text at the parser's position and skips it, if it was parsed before."""
        match = self._match(parser.text, parser.token[1])
        known = self._known.get(match[0]) if match is not None else None
        if match is not None and known is not None:
            parser.resume_at(match.end())
        return known

    def keep(self, parser: TokenParser, start: int, read: T) -> None:
        """Caches the object that a parser read last, from a position on."""
        end = parser.token[3]
        if end - start <= _MAX_KEPT:
            self._known[parser.text[start:end]] = read
