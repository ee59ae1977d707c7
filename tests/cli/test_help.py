"""The help of the main command, verbs with typing errors, and where a result goes by default."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tfconvert.cli.help_page import SECTIONS, Flag
from tfconvert.cli.main import main


def _output(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == status, result.output
    return result.output


def test_without_arguments_it_is_short() -> None:
    lines = _output(status=2).splitlines()
    assert len(lines) <= 12
    assert all(len(line) <= 120 for line in lines)
    assert "--help-all" in lines[-1]
    for name in main.commands:
        assert name in lines[-2]


def test_the_usual_options_are_in_sections_after_the_verbs() -> None:
    usual, whole = _output("-h"), _output("--help-all")
    assert len(usual.splitlines()) < len(whole.splitlines()) / 1.7
    for text in (usual, whole):
        places = [text.index(f"\n{title}:\n") for title in ("Commands", *SECTIONS) if f"\n{title}:\n" in text]
        assert places == sorted(places)
    assert "--quantize" in usual
    assert "--mlir-state" not in usual
    flags = [each for each in main.params if isinstance(each, click.Option)]
    for each in flags:
        assert each.opts[-1] in whole
    assert {each.section for each in flags if isinstance(each, Flag)} <= set(SECTIONS)
    assert _output("help") == usual


@pytest.mark.parametrize(("typed", "meant"), [("inspct", "inspect"), ("Verify", "verify"), ("halp", "help")])
def test_verbs_with_typing_errors_are_named(typed: str, meant: str) -> None:
    assert f"Did you mean {meant}?" in _output(typed, "model.tflite", status=2)


def test_a_path_is_no_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convert").mkdir()
    assert "convert is not a SavedModel" in _output("convert", status=2)
    assert "nothing doesn't exist" in _output("nothing", status=2)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["convert", "net", "-q"], "net.tflite"),
        (["net/", "-q"], "net.tflite"),
        (["net/saved_model.pb", "-q"], "net.tflite"),
        (["net", "-q", "--target", "stablehlo"], "net.mlir"),
        (["net", "other.mlir", "-q"], "other.mlir"),
        (["net", "-q", "other.tflite"], "other.tflite"),
    ],
)
def test_where_the_result_goes(
    arguments: list[str], written: str, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net").symlink_to(digits_model)
    _output(*arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"net", written}
