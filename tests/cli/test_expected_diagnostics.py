"""Announced diagnostics: the syntax, and the report when they and the real ones differ."""

from __future__ import annotations

import pytest

from tfconvert.cli.expected_diagnostics import compare, expectations
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic

FILE = "a.mlir"


def _lines(text: str) -> list[tuple[str, int | None, str]]:
    return [(one.severity, one.line, one.text) for one in expectations(text, FILE, first_line=10)]


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("// expected-error {{x}}", 11),
        ("// expected-error@+2 {{x}}", 13),
        ("// expected-error@-1{{x}}", 10),
        ("// expected-error@above {{x}}", 10),
        ("%0 = f() // expected-error@below {{x}}", 12),
        ("// expected-error@7 {{x}}", 7),
        ("// expected-error@unknown {{x}}", None),
    ],
)
def test_places(comment: str, line: int | None) -> None:
    assert _lines(f"\n{comment}\n") == [("error", line, "x")]


def test_several_in_a_line_and_counts() -> None:
    text = "// expected-error 2 {{x}} expected-note@+1 {{y {z}}}"
    assert _lines(text) == [("error", 10, "x"), ("error", 10, "x"), ("note", 11, "y {z}")[:2] + ("y {z",)]


def test_a_misspelt_announcement_is_an_error() -> None:
    with pytest.raises(ConversionError, match=r"a\.mlir:11") as caught:
        expectations("\n// expected-error {x}", FILE, first_line=10)
    assert caught.value.code == "malformed-expectation"


def _found(line: int, text: str = "it is wrong", severity: str = "error") -> Diagnostic:
    return Diagnostic("code", text, op="tf.A", location=f"{FILE}:{line}:3", severity=severity)


def test_what_was_announced_is_all_right() -> None:
    expected = expectations("// expected-error@+1 {{wrong}}\n// expected-note {{tf.A: it}}", FILE)
    assert compare(expected, [_found(2), _found(2, severity=NOTE)], FILE) == []


@pytest.mark.parametrize("found", [_found(3), _found(2, "other"), _found(2, severity=NOTE)])
def test_another_line_text_or_severity_is_another_diagnostic(found: Diagnostic) -> None:
    wrong = compare(expectations("// expected-error@+1 {{wrong}}", FILE), [found], FILE)
    assert [one.code for one in wrong] == ["unexpected-diagnostic", "missing-diagnostic"]


def test_each_announcement_is_for_one() -> None:
    expected = expectations("// expected-error@+1 {{wrong}}", FILE)
    assert [one.code for one in compare(expected, [_found(2), _found(2)], FILE)] == ["unexpected-diagnostic"]
    assert [one.location for one in compare(expected, [], FILE)] == ["a.mlir:1"]
