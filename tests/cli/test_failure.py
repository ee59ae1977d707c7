"""The output of a command on an internal error: a traceback only with `--debug`."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tfconvert
from tfconvert import conversion
from tfconvert.cli.failure import BUG, INTERRUPTED
from tfconvert.cli.main import main
from tfconvert.converter.targets.litert.passes.legalize import Legalize


def _broken(problem: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise problem

    monkeypatch.setattr(Legalize, "apply", fail)


def _convert(model: Path, folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, [str(model), "-o", str(folder / "model.tflite"), *options])


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (KeyError("gone"), "stage legalize: KeyError: 'gone'"),
        (ZeroDivisionError(), "stage legalize: ZeroDivisionError [internal-error]"),
    ],
)
def test_a_mistake_is_a_message_that_asks_for_a_report(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, told: str
) -> None:
    _broken(problem, monkeypatch)
    result = _convert(digits_model, tmp_path)
    assert result.exit_code == BUG
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert f"(tfconvert {version('tfconvert')}, Python" in result.stderr
    assert "report it" in result.stderr
    assert result.stderr.endswith("For details, run: tfconvert explain internal-error\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["model", "--frobnicate"], ["diff", "one"], ["model", "-q", "-v"]], ids=str)
def test_errors_of_the_command_line_are_documents_too(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert result.exit_code == 2
    (found,) = json.loads(result.stdout)["errors"]
    assert found["code"] == "wrong-option"
    assert found["message"] in result.stderr


def test_a_word_after_verify_is_a_runtime_or_a_path(digits_model: Path, tmp_path: Path) -> None:
    result = _convert(digits_model, tmp_path, "--verify", "tpu")
    assert result.exit_code == 2
    assert "'tpu' is neither a runtime for --verify (compiled, gpu, micro) nor a path" in result.stderr


def test_the_page_of_a_failure_is_mentioned(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    result = _convert(digits_model, tmp_path, "--report", str(page), "--output", "nothing")
    assert result.exit_code
    assert f"note: {page} shows what failed" in result.stderr
    assert page.exists()


def test_too_little_memory_is_not_the_converter_s_mistake(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _broken(MemoryError(), monkeypatch)
    result = _convert(digits_model, tmp_path)
    assert result.exit_code == 1
    assert "not enough memory [out-of-memory]" in result.stderr
    assert "report it" not in result.stderr


@pytest.mark.parametrize("position", [0, 3])
def test_the_traceback_comes_when_it_is_asked_for(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
    _broken(KeyError("gone"), monkeypatch)
    arguments = [str(digits_model), "-o", str(tmp_path / "model.tflite")]
    result = CliRunner().invoke(main, [*arguments[:position], "--debug", *arguments[position:]])
    assert isinstance(result.exception, KeyError)
    assert result.exception.__notes__ == ["stage legalize"]


def test_a_verb_has_no_traceback_either(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _broken(KeyError("gone"), monkeypatch)
    result = CliRunner().invoke(main, ["opt", str(digits_model), "--pipeline", "tflite"])
    assert (result.exit_code, "internal-error" in result.stderr) == (BUG, True)


@pytest.mark.parametrize(
    ("arguments", "in_file"), [([], True), (["-o", "-"], False), (["inspect"], None), (["--debug"], True)]
)
def test_programs_are_told_too(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], in_file: bool | None
) -> None:
    _broken(KeyError("gone"), monkeypatch)
    where = ["-o", str(tmp_path / "model.tflite")] if in_file else []
    result = CliRunner().invoke(main, [*arguments, str(digits_model), "--json", *where])
    text = result.stdout if in_file is not False else result.stderr.partition("\n}")[0] + "\n}"
    (told,) = json.loads(text)["errors"]
    assert (told["code"], told["message"]) == ("internal-error", "stage legalize: KeyError: 'gone'")
    if "--debug" not in arguments:
        assert result.exit_code == BUG
        assert "For details, run: tfconvert explain internal-error\n" in result.stderr


def test_python_gets_the_exception_as_it_is(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = KeyError("gone")
    _broken(problem, monkeypatch)
    with pytest.raises(KeyError) as caught:
        tfconvert.convert(digits_model)
    assert caught.value is problem


def test_a_stage_before_the_passes_is_named(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(settings: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(conversion, "load_target", fail)
    assert "stage load: KeyError" in _convert(digits_model, tmp_path).stderr


def test_a_failure_names_its_code_in_the_last_line(tmp_path: Path) -> None:
    result = _convert(tmp_path / "nothing", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "For details, run: tfconvert explain model-not-found"


@pytest.mark.parametrize("options", [[], ["--debug"]])
def test_an_interrupt_has_the_status_of_shells(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    _broken(KeyboardInterrupt(), monkeypatch)
    result = _convert(digits_model, tmp_path, *options)
    assert (result.exit_code, "Traceback" in result.stderr) == (INTERRUPTED, False)
