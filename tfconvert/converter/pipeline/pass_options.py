"""Passes with their options, read from text: the parameters of a pass's constructor that text can give."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tfconvert.converter.pipeline.pass_text import PassText, Value, parse_pass_text
from tfconvert.converter.pipeline.registry import pass_class, pass_names
from tfconvert.converter.pipeline.stage import Pass
from tfconvert.schema.diagnostics import ConversionError, error

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
        """The type as help and messages spell it."""
        several = ",..." if any(get_origin(part) is tuple for part in _parts(self.hint)) else ""
        kinds = [kind if isinstance(kind, str) else _WRITABLE[kind] for kind in _kinds(self.hint)]
        return "|".join(kinds) + several

    def value(self, written: tuple[Value, ...]) -> Any:
        """Returns the written value as the field's value.

        Raises:
            ValueError: It is of another type.
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
    """Returns a pass's options; parameters that no text can give (patterns, functions) are none."""
    hints = get_type_hints(pass_type.__init__)
    parameters = signature(pass_type).parameters
    return [Option(name, hints[name], each.default) for name, each in parameters.items() if _kinds(hints[name])]


def summary_of(pass_type: type[Pass]) -> str:
    """Returns a pass's summary, in a line."""
    return (pass_type.__doc__ or "").strip().partition("\n")[0]


def parse_passes(text: str) -> list[Pass]:
    """Returns the passes that a text names, in its order.

    Raises:
        ConversionError: The syntax is wrong (`malformed-pipeline`), or a pass (`unknown-pass`) or an option
            (`unknown-option`, `wrong-option`) doesn't exist; all mistakes in one error.
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
        ConversionError: It is not; the hint lists similar ones.
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
    """Returns whether a value is of a type that options have: one that text can give, a tuple or a choice of them."""
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
    """Returns what a type takes as text: types of values, and values themselves; none if text can't give them all."""
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
