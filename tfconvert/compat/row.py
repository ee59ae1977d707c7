"""The rows of the table of attributes, and objects with such attributes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from tfconvert.compat.errors import ConverterError
from tfconvert.schema.diagnostics import WARNING, Diagnostic

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


class OfficialAttribute(NamedTuple):
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


class Settable:
    """Takes any attribute: scripts are written for many versions of the official converter.

    Args:
        rows: The attributes that are known; each starts with its default value.
    """

    _rows: Mapping[str, OfficialAttribute]
    _strangers: dict[str, Diagnostic]

    def __init__(self, rows: Iterable[OfficialAttribute]) -> None:
        set_plainly(self, "_rows", {row.name: row for row in rows})
        set_plainly(self, "_strangers", {})
        for name, row in self._rows.items():
            # A property has no value of its own.
            if not hasattr(type(self), name):
                set_plainly(self, name, copy.copy(row.default))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._rows and name not in self._strangers:
            note = _stranger(name, self._rows)
            self._strangers[name] = note
            warnings.warn(f"{note.message}; {note.hint}" if note.hint else note.message, stacklevel=2)
        set_plainly(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Only for type checkers, and what was never set: attributes that are there don't come here.
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def strangers(self) -> list[Diagnostic]:
        """Returns a warning for each attribute that was set and isn't known."""
        return list(self._strangers.values())


def set_plainly(target: object, name: str, value: Any) -> None:
    """Sets an attribute that is not the user's."""
    object.__setattr__(target, name, value)


def _stranger(name: str, rows: Iterable[str]) -> Diagnostic:
    near = get_close_matches(name, rows, n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    message = f"there is no attribute {name!r}, so setting it has no effect"
    return Diagnostic("unknown-attribute", message, hint=hint, severity=WARNING)
