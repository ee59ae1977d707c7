"""Cuts MLIR's text into tokens, one at a time and in linear time whatever the text is."""

from __future__ import annotations

import re

from tfconvert.schema.ir.errors import ParseError

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
    """The tokens of a text.

    Attributes:
        text: The text.
        filename: The name that errors show.
    """

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
