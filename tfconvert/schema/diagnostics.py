"""The error tree: what went wrong or was decided, where, and what to do about it.

Every failure that a user can encounter is a `ConversionError` that holds one or more `Diagnostic`s; a stage
gathers all its problems and raises once. Warnings and decisions of the converter are
`Diagnostic`s too, collected in the report instead of raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

ERROR = "error"
WARNING = "warning"
NOTE = "note"

SAME_SIGNATURE = "same-signature"
"""The code of the note on several signatures of one function. Texts have it with -v only: all exports of Keras do."""

TRAINING_MODE = "training-mode"
"""Code of the warning about a signature that computes as in training."""

INEXACT = "unchecked-or-inexact"
"""Code of the warning that something was dropped or changed in a way that may affect the results."""


class Diagnostic(NamedTuple):
    """One finding.

    Attributes:
        code: Stable kebab-case identifier, for machines (`unsupported-op`, `bad-checksum`, ...).
        message: One readable sentence, without the location.
        op: Operation name as its framework has it, e.g. `tf.Conv2D`; empty if no op is concerned.
        node: Name of the graph node; empty if unknown.
        location: Source location, `file:line` or a call chain; empty if unknown.
        hint: What the user can do; empty if there is nothing.
        severity: `error`, `warning` or `note`.
        signature: Types of the op's operands and results, and its attributes; empty if no op is concerned.
        layer: Path of the layer that the node is in; empty if unknown.
    """

    code: str
    message: str
    op: str = ""
    node: str = ""
    location: str = ""
    hint: str = ""
    severity: str = ERROR
    signature: str = ""
    layer: str = ""

    def to_dict(self) -> dict[str, str]:
        """Returns the non-empty fields, for JSON."""
        return {key: value for key, value in self._asdict().items() if value}

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, with_code: bool = False, with_hint: bool = True) -> str:
        """Returns the finding as text for a terminal.

        Args:
            with_code: Whether the code follows the message.
            with_hint: Whether the hint is part of it.
        """
        named = (self.op, f'node "{self.node}"' if self.node else "", self.location)
        where = ", ".join(_on_a_line(part) for part in named if part)
        message = printable(self.message)
        lines = [f"{where}: {message}" if where else message]
        if with_code:
            lines[0] += f" [{self.code}]"
        if self.signature:
            lines.append(f"  types: {_on_a_line(self.signature)}")
        # The node's name begins with the layer's path, unless the node is in a function that the layer calls.
        if self.layer and not self.node.startswith(f"{self.layer}/"):
            lines.append(f"  layer: {_on_a_line(self.layer)}")
        if self.hint and with_hint:
            lines.append(f"  hint: {printable(self.hint)}")
        return "\n".join(lines)


def printable(text: str) -> str:
    """Returns a text without anything that moves a terminal's cursor, forges a line, or can't be printed.

    It may contain untrusted names. Continuation lines are indented; other line breaks and invisible characters are
    escaped.
    """
    if text.isprintable():
        return text
    head, *rest = text.split("\n")
    lines = [_on_a_line(head)]
    for line in rest:
        if line.startswith("  "):
            lines.append("\t".join(map(_on_a_line, line.split("\t"))))
        else:
            lines[-1] += f"\\n{_on_a_line(line)}"
    return "\n".join(lines)


def _on_a_line(text: str) -> str:
    """Returns a text with invisible characters escaped."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return repr(character)[1:-1]


class ConversionError(Exception):
    """A failed conversion, with all its reasons.

    Attributes:
        diagnostics: The findings, at least one: causes first, then their consequences.
        advice: Sentences on what the user can do about several of them.
        report: The report up to the failure, a `tfconvert.report.report.Report`, if its graphs were to be kept.
    """

    report: Any = None

    def __init__(self, diagnostics: Iterable[Diagnostic], advice: Iterable[str] = ()) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.advice: tuple[str, ...] = tuple(advice)
        super().__init__(
            "\n".join((*texts_of(self.diagnostics), *(f"note: {printable(text)}" for text in self.advice)))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how to copy it to another process, to which the report does not go."""
        state = {name: value for name, value in self.__dict__.items() if name != "report"}
        return type(self), (self.diagnostics, self.advice), state

    @property
    def code(self) -> str:
        """The first diagnostic's stable code."""
        return self.diagnostics[0].code

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns `{"errors": [...]}` for JSON and HTTP; advice on several errors is a list of its own."""
        errors = [diagnostic.to_dict() for diagnostic in self.diagnostics]
        return {"errors": errors, "advice": list(self.advice)} if self.advice else {"errors": errors}


def texts_of(diagnostics: Sequence[Diagnostic], *, with_code: bool = False) -> Iterator[str]:
    """Yields the text of each finding; a hint that the next one repeats is only given there."""
    for diagnostic, following in zip_longest(diagnostics, diagnostics[1:]):
        is_last = following is None or following.hint != diagnostic.hint
        yield diagnostic.to_text(with_code=with_code, with_hint=is_last)


def error(
    code: str, message: str, *, op: str = "", node: str = "", location: str = "", hint: str = ""
) -> ConversionError:
    """Returns a `ConversionError` of a single diagnostic."""
    return ConversionError([Diagnostic(code, message, op, node, location, hint)])


def size_text(size: int) -> str:
    """Returns a number of bytes as text."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1e3:.1f} kB" if size < 1_000_000 else f"{size / 1e6:.2f} MB"
