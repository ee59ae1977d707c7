"""Passes with options as text, for `tfconvert opt -p`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tfconvert.converter.pipeline.pass_registry import pass_class, pass_names
from tfconvert.converter.pipeline.stage import Pass
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


@dataclass(frozen=True, slots=True)
class PassText:
    """One pass of the text.

    Attributes:
        name: Its name.
        options: The values of each option; an option without `=` has no values.
    """

    name: str
    options: dict[str, tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class _Token:
    """A token; its kind is `name`, `number`, `string`, `space`, `end`, or the punctuation itself."""

    kind: str
    text: str
    column: int


def parse_pass_text(text: str) -> list[PassText]:
    return list(_Parser(text).passes())


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def passes(self) -> Iterator[PassText]:
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
            raise self._wrong("a value (put other text in double quotes)")
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


REQUIRED = Parameter.empty
"""The default value of an option that has none."""

_WRITABLE: Mapping[Any, str] = {bool: "true|false", int: "int", float: "float", str: "string"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a pass.

    Attributes:
        name: The parameter's name.
        hint: Its type.
        default: Its default value; `REQUIRED` if it has none.
    """

    name: str
    hint: Any
    default: Any

    @property
    def kind(self) -> str:
        """The type as shown in help and messages."""
        several = ",..." if any(get_origin(part) is tuple for part in _parts(self.hint)) else ""
        kinds = [kind if isinstance(kind, str) else _WRITABLE[kind] for kind in _kinds(self.hint)]
        return "|".join(kinds) + several

    def value(self, written: tuple[Value, ...]) -> Any:
        """Returns the parsed values as the option's value.

        Raises:
            ValueError: The type is wrong.
        """
        if not written and _fits(True, self.hint):
            return True  # An option without a value is a switch.
        single = written[0] if len(written) == 1 else written
        if float in _kinds(self.hint) and type(single) is int:
            single = float(single)
        for candidate in (single, written):
            if _fits(candidate, self.hint):
                return candidate
        raise ValueError(f"{','.join(map(str, written)) or 'nothing'} is not {self.kind}")


def options_of(pass_type: type[Pass]) -> list[Option]:
    """Returns a pass's options: its parameters, except those that can't be written as text (patterns, functions)."""
    hints = get_type_hints(pass_type.__init__)
    parameters = signature(pass_type).parameters
    return [Option(name, hints[name], each.default) for name, each in parameters.items() if _kinds(hints[name])]


def summary_of(pass_type: type[Pass]) -> str:
    """Returns a pass's one-line summary."""
    return (pass_type.__doc__ or "").strip().partition("\n")[0]


def parse_passes(text: str) -> list[Pass]:
    """Returns the passes that a text names, in order.

    Raises:
        ConversionError: The syntax is wrong (`malformed-pipeline`), or a pass (`unknown-pass`) or an option
            (`unknown-option`, `wrong-option`) doesn't exist; one error for all.
    """
    passes: list[Pass] = []
    problems: list[ConversionError] = []
    for written in parse_pass_text(text):
        try:
            passes.append(_create(written))
        except ConversionError as problem:
            problems.append(problem)
    if problems:
        raise ConversionError(diagnostic for problem in problems for diagnostic in problem.diagnostics)
    return passes


def find(name: str, known: Iterable[str], code: str, what: str) -> str:
    """Returns a name if it is known.

    Raises:
        ConversionError: It is unknown; the hint lists similar names.
    """
    names = sorted(set(known))
    if name not in names:
        similar = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(similar)}?" if similar else f"there are: {', '.join(names) or 'none'}"
        raise error(code, f"there is no {what} {name!r}", hint=hint)
    return name


def _create(written: PassText) -> Pass:
    pass_type = pass_class(find(written.name, pass_names(), "unknown-pass", "pass"))
    options = {option.name: option for option in options_of(pass_type)}
    values = {}
    for key, text in written.options.items():
        name = find(key.replace("-", "_"), options, "unknown-option", f"option of {written.name} called")
        try:
            values[name] = options[name].value(text)
        except ValueError as problem:
            raise error("wrong-option", f"option {name} of {written.name}: {problem}") from problem
    missing = [option.name for option in options.values() if option.default is REQUIRED and option.name not in values]
    if missing:
        raise error("wrong-option", f"{written.name} needs its option {', '.join(missing)}")
    return pass_type(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Returns whether a value has an option's type: one that text can express, a tuple or a union of such types."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    return type(value) is hint


def _parts(hint: Any) -> tuple[Any, ...]:
    return (hint, *get_args(hint))


def _kinds(hint: Any) -> list[type | str]:
    """Returns the types and literal values that a type accepts; empty if some can't be written as text."""
    kinds: list[type | str] = []
    pending = [hint]
    while pending:
        part = pending.pop(0)
        if part in _WRITABLE:
            kinds.append(part)
        elif get_origin(part) is Literal:
            kinds += get_args(part)
        elif get_origin(part) in (tuple, Union, UnionType):
            pending += get_args(part)
        elif part is not Ellipsis and part is not NoneType:
            return []
    return kinds
