"""The table of codes: it has every code that the source uses, and no other; the page of docs is made of it."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from click.testing import CliRunner

from tests.support.sources import SourceFile
from tfconvert.cli.explain import COMMON
from tfconvert.cli.main import main
from tfconvert.schema.error_codes import all_codes

_CODE = re.compile(r"[a-z]+(-[a-z0-9]+)+")
# What is called with a code as one of its arguments; and what constants with a code are named.
_CALLED = {
    "Diagnostic",
    "MalformedError",
    "bad",
    "diagnostic",
    "error",
    "error_at",
    "explained",
    "find",
    "found_at",
    "problem",
    "_diagnostic",
    "_finding",
    "_replace",
}
_NAMED = {"CODE", "INEXACT", "KEPT", "OUTSIDE"}


def _literals(nodes: Sequence[ast.expr], constants: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in constants:
            yield constants[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.fullmatch(node.value):
            yield node.value


def _constants(file: SourceFile) -> dict[str, str]:
    """Returns the module's constants that may be codes, by name."""
    assigned = [node for node in file.nodes if isinstance(node, ast.Assign) and len(node.targets) == 1]
    return {ast.unparse(node.targets[0]): code for node in assigned for code in _literals([node.value])}


def _codes(file: SourceFile) -> Iterator[str]:
    constants = _constants(file)
    for call, called in file.calls:
        if called.rpartition(".")[2] in _CALLED:
            named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
            yield from _literals([*call.args, *named], constants)
    for node in file.nodes:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) in _NAMED for target in node.targets):
            yield from _literals([node.value])


def test_every_code_in_the_source_is_explained(source_files: Sequence[SourceFile]) -> None:
    used = {(code, str(file.path)) for file in source_files for code in _codes(file)}
    assert len(used) > 100
    assert not sorted((code, path) for code, path in used if code not in all_codes())


def test_every_explained_code_is_in_the_source(source_files: Sequence[SourceFile]) -> None:
    strings = {
        node.value
        for file in source_files
        for node in file.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not all_codes().keys() - strings


def test_every_explanation_is_whole() -> None:
    assert list(all_codes()) == sorted(all_codes())
    for code in all_codes().values():
        assert _CODE.fullmatch(code.name)
        assert all(text.strip() == text and text for text in code), code.name
        # A command or an example may stand for a sentence.
        assert code.means.endswith(".")
        assert code.why.endswith(".")


def test_the_pages_are_current(root: Path) -> None:
    writer = runpy.run_path(str(root / "docs" / "write_errors.py"))
    assert writer["pages"]() == writer["written"](), "run: python docs/write_errors.py"


@pytest.mark.parametrize("code", ["missing-shard", "[missing-shard]"])
def test_explain_prints_the_section(code: str) -> None:
    result = CliRunner().invoke(main, ["explain", code])
    assert result.exit_code == 0
    assert result.stdout.startswith("missing-shard\n")
    for title in ("Why: ", "What to do: ", "Example:"):
        assert title in result.stdout


def test_explain_lists_all_codes() -> None:
    lines = CliRunner().invoke(main, ["explain"]).stdout.splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(names) == list(all_codes())
    assert tuple(names[: len(COMMON)]) == COMMON
    assert [each for each in lines if not each.startswith("  ")] == ["The most frequent codes:", "All others:"]


def test_a_misspelt_code_is_guessed() -> None:
    result = CliRunner().invoke(main, ["explain", "unsuported-op"])
    assert result.exit_code == 2
    assert "did you mean unsupported-op" in result.stderr
    assert "lists all codes" in CliRunner().invoke(main, ["explain", "?"]).stderr
