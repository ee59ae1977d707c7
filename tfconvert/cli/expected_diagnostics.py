"""Checks the diagnostics that comments in a text announce against the reported ones.

    // expected-error@+1 {{is never defined}}
    %0 = "tf.Relu"(%x) : (tensor<f32>) -> tensor<f32>

The syntax is that of MLIR's tools: `@+N` and `@-N` count lines from the comment's, `@above` and `@below` are its
neighbours, `@N` is a line of the file, `@unknown` means no location at all; without an `@` it is the comment's own
line. A number before the braces says how often. The text in the braces has to be a part of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tfconvert.schema.diagnostics import ConversionError, Diagnostic

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|warning|note)"
    r"(?:@(?P<where>[+-]\d{1,9}|\d{1,9}|above|below|unknown))?[ ]*(?P<count>\d{1,4})?[ ]*\{\{(?P<text>.*?)\}\}"
)
_ATTEMPT = re.compile(r"//.*expected-(?:error|warning|note|remark)")
_NEIGHBOURS = {"above": -1, "below": 1}


@dataclass(frozen=True, slots=True)
class Expected:
    """One announced diagnostic."""

    severity: str  # `error`, `warning` or `note`.
    line: int | None  # The line that it must name; `None` if it names none.
    text: str  # A part of its message.
    location: str  # The location of the announcement.

    def matches(self, diagnostic: Diagnostic, filename: str) -> bool:
        """Returns whether a diagnostic is the announced one."""
        return (
            diagnostic.severity == self.severity
            and line_of(diagnostic, filename) == self.line
            and self.text in f"{diagnostic.op}: {diagnostic.message}"
        )


def line_of(diagnostic: Diagnostic, filename: str) -> int | None:
    """Returns the line of a file that a diagnostic names, `None` if it names none."""
    found = re.match(re.escape(filename) + r":(\d+)", diagnostic.location)
    return int(found[1]) if found else None


def expectations(text: str, filename: str, first_line: int = 1) -> list[Expected]:
    """Returns the diagnostics that a text's comments announce.

    Raises:
        ConversionError: An announcement is misspelt (`malformed-expectation`).
    """
    found: list[Expected] = []
    wrong: list[Diagnostic] = []
    for number, line in enumerate(text.split("\n"), start=first_line):
        if not _ATTEMPT.search(line):
            continue
        location = f"{filename}:{number}"
        announced = list(_EXPECTED.finditer(line))
        for match in announced:
            one = Expected(match["severity"], _line(match["where"], number), match["text"], location)
            found += [one] * int(match["count"] or 1)
        if not announced:
            wrong.append(
                Diagnostic(
                    "malformed-expectation",
                    "this announces no diagnostic",
                    location=location,
                    hint="write it as // expected-error@+1 {{text}}",
                )
            )
    if wrong:
        raise ConversionError(wrong)
    return found


def compare(expected: Sequence[Expected], found: Iterable[Diagnostic], filename: str) -> list[Diagnostic]:
    """Returns the mismatches: diagnostics that no comment announces, and announced ones that were not reported."""
    missing = list(expected)
    wrong = []
    for diagnostic in found:
        match = next((one for one in missing if one.matches(diagnostic, filename)), None)
        if match is None:
            wrong.append(
                Diagnostic(
                    "unexpected-diagnostic",
                    f"unexpected {diagnostic.severity}: {diagnostic.message}",
                    diagnostic.op,
                    diagnostic.node,
                    diagnostic.location,
                )
            )
        else:
            missing.remove(match)
    for one in missing:
        place = "no place" if one.line is None else f"line {one.line}"
        message = f'the expected {one.severity} "{one.text}" at {place} did not come'
        wrong.append(Diagnostic("missing-diagnostic", message, location=one.location))
    return wrong


def _line(where: str | None, number: int) -> int | None:
    if where is None:
        return number
    if where == "unknown":
        return None
    if where in _NEIGHBOURS:
        return number + _NEIGHBOURS[where]
    return number + int(where) if where[0] in "+-" else int(where)
