"""Completion in shells, and `--version`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

import tfconvert
from tfconvert.cli.main import main
from tfconvert.schema.versions import version_of, versions

QUESTION = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
compopt() {{ echo "files"; }}
_tfconvert_completion tfconvert
echo "${{COMPREPLY[*]}}"
"""


def script(shell: str) -> str:
    """Returns the script for a shell."""
    result = CliRunner().invoke(main, ["completion", shell], prog_name="tfconvert")
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """Returns a folder with the script for bash, a command `tfconvert` and two models."""
    (tmp_path / "script").write_text(script("bash"))
    command = tmp_path / "bin" / "tfconvert"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m tfconvert "$@"\n')
    command.chmod(0o755)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "model.pb").write_bytes(b"")
    (tmp_path / "here" / "inspected").mkdir()
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("tfconvert insp", "inspect inspected/"),
        ("tfconvert mod", "files"),
        ("tfconvert ops --mark", "--markdown"),
        ("tfconvert model.pb --recurrent l", "loop"),
        ("tfconvert model.pb -o mo", "files"),
        ("tfconvert inspect mo", "files"),
        ("tfconvert opt model.pb -p cse,graph-p", "cse,graph-pruning"),
        ("tfconvert opt model.pb --until canon", "canonicalize"),
        ("tfconvert completion b", "bash"),
        ("tfconvert model.pb --quantize d", "dynamic"),
    ],
)
def test_bash_completes(folder: Path, words: str, completed: str) -> None:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", QUESTION.format(script=folder / "script", words=words)],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder / "here",
        timeout=60,
        env={**os.environ, "PATH": path},
    )
    assert done.stdout.split() == completed.split(), done.stderr


@pytest.mark.parametrize(
    ("shell", "variable", "file"),
    [
        ("bash", "XDG_DATA_HOME", "bash-completion/completions/tfconvert"),
        ("fish", "XDG_CONFIG_HOME", "fish/completions/tfconvert.fish"),
    ],
)
def test_it_is_installed_where_the_shell_looks(
    shell: str, variable: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    result = CliRunner().invoke(main, ["completion", shell, "--install"], prog_name="tfconvert")
    assert (result.exit_code, result.output) == (0, f"written to {tmp_path / file}\n")
    assert (tmp_path / file).read_text() == script(shell).removesuffix("\n")


def test_there_is_no_directory_for_zsh() -> None:
    assert CliRunner().invoke(main, ["completion", "zsh", "--install"]).exit_code == 2


@pytest.mark.skipif(get_completion_class("powershell") is None, reason="this version of click has no PowerShell")
def test_powershell_has_a_script() -> None:
    assert "Register-ArgumentCompleter -Native -CommandName tfconvert" in script("powershell")


def test_a_shell_that_click_does_not_know_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.shell_completion.get_completion_class", lambda shell: None)
    result = CliRunner().invoke(main, ["completion", "powershell"])
    assert result.exit_code == 2
    assert "a newer version of click" in result.stderr


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "#compdef tfconvert"), ("fish", "complete --no-files --command")])
def test_other_shells_have_theirs(shell: str, mark: str, tmp_path: Path) -> None:
    assert mark in script(shell)
    assert "_TFCONVERT_COMPLETE" in script(shell)
    if shutil.which(shell) is not None:
        file = tmp_path / "script"
        file.write_text(script(shell))
        subprocess.run([shell, "-n", str(file)], check=True, timeout=60)


def test_completing_needs_little() -> None:
    code = "import sys; from tfconvert.__main__ import main\ntry: main()\nfinally: print('numpy' in sys.modules)"
    question = {"_TFCONVERT_COMPLETE": "bash_complete", "COMP_WORDS": "tfconvert opt --pr", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **question},
    )
    assert done.stdout.splitlines() == [
        "plain,--print-ir-before",
        "plain,--print-ir-after",
        "plain,--print-ir-after-all",
        "False",
    ]


def test_versions_are_those_of_what_results_depend_on() -> None:
    result = CliRunner().invoke(main, ["--version"], prog_name="tfconvert")
    first, *others = result.stdout.splitlines()
    assert (result.exit_code, first) == (0, f"tfconvert {tfconvert.__version__}")
    assert [line.split()[0] for line in others] == ["python", "numpy", "ai-edge-litert"]
    assert others[0].split()[1] == sys.version.split()[0]
    assert dict(line.split() for line in others) == versions()
    assert version_of("no-such-distribution-at-all") == ""
