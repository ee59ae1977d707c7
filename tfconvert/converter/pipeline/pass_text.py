"""The text by which a command line names passes and their options.

Text:
    text    ::= pass (`,` pass)* `,`?
    pass    ::= name (`{` (option (space option)* space?)? `}`)?
    option  ::= name (`=` value (`,` value)*)?
    value   ::= number | `true` | `false` | name | string in double quotes

Example:
    inline,legalize{allow_custom_ops=true},cse
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tfconvert.schema.diagnostics import ConversionError, error

Value = str | int | float | bool

_TOKEN = re.compile(
    r"""
    (?P<name>[0-9]+[A-Za-z_-][A-Za-z0-9_-]*)  # names may begin with digits: 2d-slice
    | (?P<number>[-+]?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?)?)
    | (?P<word>[A-Za-z0-9_-]+)
    | (?P<string>"(?:\\[ntr"\\]|[^"\\\n\r])*")
    | (?P<space>\s+)
    | (?P<mark>[{}=,])
    """,
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_END = "end"


class PassText(NamedTuple):
    """One pass as it is written.

    Attributes:
        name: Its name.
        options: The values of each option; none for an option without `=`.
    """

    name: str
    options: dict[str, tuple[Value, ...]]


class _Token(NamedTuple):
    """A piece of the text: `name`, `number`, `string`, `space`, `end`, or the mark that it is."""

    kind: str
    text: str
    column: int


def parse_pass_text(text: str) -> list[PassText]:
    """Returns the passes that a text names, in order."""
    return list(_Parser(text).passes())


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def passes(self) -> Iterator[PassText]:
        """Yields the passes."""
        while self._peek().kind != _END:
            name = self._expect("name", "a pass's name").text
            yield PassText(name, self._options() if self._accept("{") else {})
            if self._peek().kind != _END:
                self._expect(",", "a comma, or options in braces")

    def _options(self) -> dict[str, tuple[Value, ...]]:
        options: dict[str, tuple[Value, ...]] = {}
        while not self._accept("}"):
            name = self._expect("name", "an option's name").text
            options[name] = tuple(self._values()) if self._accept("=") else ()
            if not self._accept("space") and self._peek().kind != "}":
                raise self._wrong("a space or a closing brace")
        return options

    def _values(self) -> Iterator[Value]:
        yield self._value()
        while self._accept(","):
            yield self._value()

    def _value(self) -> Value:
        token = self._peek()
        if token.kind not in ("number", "name", "string"):
            raise self._wrong("a value (other text stands in double quotes)")
        self._next += 1
        if token.kind == "number":
            return float(token.text) if "." in token.text else int(token.text)
        if token.kind == "string":
            return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token.text[1:-1])
        return token.text == "true" if token.text in ("true", "false") else token.text

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _accept(self, kind: str) -> bool:
        if self._peek().kind != kind:
            return False
        self._next += 1
        return True

    def _expect(self, kind: str, what: str) -> _Token:
        token = self._peek()
        if token.kind != kind:
            raise self._wrong(what)
        self._next += 1
        return token

    def _wrong(self, what: str) -> ConversionError:
        return self._error(f"expected {what}", self._peek().column)

    def _error(self, what: str, column: int) -> ConversionError:
        message = f"{what} at column {column + 1} of {self._text!r}"
        return error("malformed-pipeline", message, hint='write it as "pass{option=value},pass2"')

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._error(f"unexpected {self._text[at]!r}", at)
            kind = {"word": "name", "mark": match[0]}.get(match.lastgroup or "", match.lastgroup or "")
            yield _Token(kind, match[0], at)
            at = match.end()
        yield _Token(_END, "", at)
