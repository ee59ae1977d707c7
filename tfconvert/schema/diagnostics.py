"""The error tree: what went wrong or was decided, where, and what to do about it.

Every failure that a user can meet is a `ConversionError` that holds one or more `Diagnostic`s; a stage
gathers all its problems and raises once. Warnings and decisions of the converter are
`Diagnostic`s too, collected in the report instead of raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

ERROR = "error"
WARNING = "warning"
NOTE = "note"

INEXACT = "unchecked-or-inexact"
"""Code of the warning that something was dropped or changed so that it may show in the results."""


class Diagnostic(NamedTuple):
    """One finding.

    Attributes:
        code: Stable kebab-case identifier, for machines (`unsupported-op`, `bad-checksum`, ...).
        message: One sentence for a person, without the location.
        op: Operation name as its framework has it, e.g. `tf.Conv2D`; empty if no op is concerned.
        node: Name of the graph node; empty if unknown.
        location: Source location, `file:line` or a call chain; empty if unknown.
        hint: What the user can do; empty if there is nothing.
        severity: `error`, `warning` or `note`.
    """

    code: str
    message: str
    op: str = ""
    node: str = ""
    location: str = ""
    hint: str = ""
    severity: str = ERROR

    def to_dict(self) -> dict[str, str]:
        """Returns the non-empty fields, for JSON."""
        return {key: value for key, value in self._asdict().items() if value}

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.op, f'node "{self.node}"' if self.node else "", self.location) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class ConversionError(Exception):
    """A conversion that can't go on, with everything that is known about why.

    Attributes:
        diagnostics: The findings, at least one, in the order in which they were met.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))

    @property
    def code(self) -> str:
        """The first diagnostic's stable code."""
        return self.diagnostics[0].code

    def to_dict(self) -> dict[str, list[dict[str, str]]]:
        """Returns `{"errors": [...]}` for JSON and HTTP."""
        return {"errors": [diagnostic.to_dict() for diagnostic in self.diagnostics]}


def error(
    code: str, message: str, *, op: str = "", node: str = "", location: str = "", hint: str = ""
) -> ConversionError:
    """Returns a `ConversionError` of a single diagnostic, ready to be raised."""
    return ConversionError([Diagnostic(code, message, op, node, location, hint)])
