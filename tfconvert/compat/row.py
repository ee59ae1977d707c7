"""A row of the table of attributes: an attribute of the official converter, and what it does here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from tfconvert.compat.errors import ConverterError
from tfconvert.schema.diagnostics import Diagnostic

Effect = Literal["maps", "no effect", "refused"]

Values = Mapping[str, Any]
"""The values of all attributes by name; those of the target have the prefix `target_spec.`."""


class Mapped(NamedTuple):
    """The meaning of attributes.

    Attributes:
        arguments: Settings of LiteRT.
        notes: What else the user should know.
    """

    arguments: Mapping[str, Any] = {}
    notes: tuple[Diagnostic, ...] = ()


class Row(NamedTuple):
    """An attribute of the official converter.

    Attributes:
        name: Its name.
        default: Its value unless the user sets another; the official converter's.
        effect: Whether it maps to settings of LiteRT, has no effect (a note says so if it was set), or is refused.
        text: What it does here, or why it does nothing.
        hint: What to do instead, if it is refused.
        maps: Turns attributes into settings. Rows that belong together have the same function.
    """

    name: str
    default: Any
    effect: Effect
    text: str
    hint: str = ""
    maps: Callable[[Values], Mapped] | None = None


def refusal(name: str, message: str, hint: str) -> ConverterError:
    """Returns the error of an attribute that has a value which can't be honoured."""
    return ConverterError([Diagnostic("wrong-option", f"{name}: {message}", hint=hint)])
