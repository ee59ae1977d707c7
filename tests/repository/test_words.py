"""No file uses the phrases that the section "Words" of docs/contributing/style.md replaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import committed_files

BANNED = (
    r"\bis none\b",
    r"\bare none\b",
    r"\bthat is none\b",
    r"\b(?:is|are) had\b",
    r"\bhas it end\b",
    r"\bit is (?:looked|asked|tried)\b",
    r"\b[Oo]f so many\b",
    r"\banew\b",
    r"\blikewise\b",
    r"\bseldom\b",
    r"\banybody's\b",
    r"\bfor ever\b",
    r"\ba text of\b",
    r"\bmistake of its own\b",
    r"\bat one blow\b",
    r"\bbeneath\b",
    r"\b_MOST_[A-Z]",
    r"\b(?:least|greatest)\(",
    r'"""What ',
    r'"""Tells ',
)
SUFFIXES = {".js", ".md", ".py", ".toml"}
# Python is checked in these directories, with all that they contain, and all other files everywhere.
CLEAN_PYTHON = (".ci", "benchmarks", "docs", "examples", "tests", "tfconvert")
GENERATED = {
    "docs/dynamic_shapes.md",
    "docs/errors.md",
    "docs/pypi.md",
    "docs/support.md",
    "docs/support_stablehlo.md",
    "docs/tflite_converter_tests.md",
}
# The changelog describes old versions in the words of their time. This file has the phrases themselves.
EXEMPT = GENERATED | {"CHANGELOG.md", "tests/repository/test_words.py"}
# Sections that list the phrases, or that are generated.
EXEMPT_SECTIONS = {"docs/contributing/style.md": "Words", "docs/architecture.md": "Packages"}

_PHRASES = re.compile("|".join(BANNED).replace(" ", r"\s+"))


def _is_checked(path: Path) -> bool:
    if path.suffix not in SUFFIXES or path.as_posix() in EXEMPT or "generated" in path.parts:
        return False
    return path.suffix != ".py" or any(path.is_relative_to(directory) for directory in CLEAN_PYTHON)


def _found(text: str, exempt: str = "") -> Iterator[tuple[int, str]]:
    """Yields the banned phrases in a text, with their lines.

    Args:
        text: The text.
        exempt: The title of a section of it that is not checked, if any.
    """
    section = re.search(rf"^## {exempt}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE) if exempt else None
    for match in _PHRASES.finditer(text):
        if section is None or not section.start() <= match.start() < section.end():
            yield text.count("\n", 0, match.start()) + 1, match[0]


def test_words_are_plain(root: Path) -> None:
    paths = [path for file in committed_files(root) if _is_checked(path := file.relative_to(root))]
    assert len(paths) > 50
    wrong = [
        f"{path}:{line}: {phrase!r}"
        for path in paths
        for line, phrase in _found((root / path).read_text("utf-8"), EXEMPT_SECTIONS.get(path.as_posix(), ""))
    ]
    assert not wrong, "\n".join(wrong)


def test_exempt_files_and_sections_exist(root: Path) -> None:
    assert [name for name in CLEAN_PYTHON if not (root / name).is_dir()] == []
    assert [name for name in EXEMPT if not (root / name).is_file()] == []
    assert [
        name for name, title in EXEMPT_SECTIONS.items() if f"\n## {title}\n" not in (root / name).read_text("utf-8")
    ] == []


@pytest.mark.parametrize(
    ("text", "exempt", "expected"),
    [
        ("a\nThere\nare none.", "", [(3, "are none")]),
        ("it is\nlooked up", "", [(1, "it is\nlooked")]),
        ("x is None", "", []),
        ("\n## Words\nanew\n## Names\nanew\n", "Words", [(5, "anew")]),
        ("least(2)", "", [(1, "least(")]),
        ("at least (2)", "", []),
    ],
)
def test_phrases_are_found(text: str, exempt: str, expected: list[tuple[int, str]]) -> None:
    assert list(_found(text, exempt)) == expected
