"""Tests of the counts of instructions: what is compared with what, and what counts as a difference."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import instructions
from benchmarks.instructions import Recorded, Verdict


def test_committed_table_has_the_conversions(tmp_path: Path) -> None:
    text = instructions.TABLE.read_text()
    table = instructions.read_table(text)
    assert list(table.numbers) == list(instructions.write_models(tmp_path))
    assert table.environment
    assert instructions.table_text(table) == text


@pytest.mark.parametrize(
    ("count", "expected", "kept"),
    [
        (1000, 1000, True),
        (1030, 1000, True),
        (1031, 1000, False),
        (970, 1000, True),
        (969, 1000, False),
        (1, None, False),
    ],
)
def test_tolerance(count: int, expected: int | None, kept: bool) -> None:
    verdict = Verdict("deep", count, expected)
    assert verdict.is_kept is kept
    assert verdict.row().endswith("(!) |") is not kept


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose table was recorded by its first commit, with `tfconvert/cost` 100; it is 200 by now."""
    table = tmp_path / "benchmarks" / "instructions.tsv"
    cost = tmp_path / "tfconvert" / "cost"
    for each in (table, cost):
        each.parent.mkdir()
    monkeypatch.setattr(instructions, "REPOSITORY", tmp_path)
    monkeypatch.setattr(instructions, "TABLE", table)
    monkeypatch.setattr(instructions, "counts", lambda tree: {"deep": int((tree / "tfconvert" / "cost").read_text())})
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "--quiet"], cwd=tmp_path, check=True)
    table.write_text(instructions.table_text(Recorded("another machine", {"deep": 150})))
    for text in ("100", "200"):
        cost.write_text(text)
        subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", text], cwd=tmp_path, check=True)
    return tmp_path


def expected(monkeypatch: pytest.MonkeyPatch, environment: str) -> dict[str, int]:
    monkeypatch.setattr(instructions, "environment", lambda: environment)
    return dict(instructions.expected_counts(instructions.read_table(instructions.TABLE.read_text())))


def test_same_environment_is_compared_with_the_table(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert expected(monkeypatch, "another machine") == {"deep": 150}


def test_other_environment_is_compared_with_the_code_that_was_recorded(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert expected(monkeypatch, "this machine") == {"deep": 100}


def test_other_environment_without_the_history_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "REPOSITORY", tmp_path)
    monkeypatch.setattr(instructions, "TABLE", tmp_path / "instructions.tsv")
    with pytest.raises(RuntimeError, match="--write"):
        instructions.recorded_commit()
