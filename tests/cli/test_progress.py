"""Progress and colours: on terminals only, as their owner wants them, and nothing is left of a line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


def on_terminal(*arguments: str | Path, **environment: str) -> str:
    """Runs the command with a terminal as its error stream, and returns what came there."""
    parent, child = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "CI", "FORCE_COLOR")}
    command = [sys.executable, "-m", "tfconvert", *map(str, arguments)]
    with subprocess.Popen(
        command, stderr=child, stdout=subprocess.DEVNULL, env={**plain, "TERM": "xterm", **environment}
    ) as process:
        os.close(child)
        found = b""
        while True:
            try:
                block = os.read(parent, 10_000)
            except OSError:  # That is how Linux tells that the other end is closed.
                break
            found += block
        process.wait(120)
    os.close(parent)
    return found.decode()


def test_a_terminal_shows_one_line_that_is_gone_at_the_end(digits_model: Path, tmp_path: Path) -> None:
    shown = on_terminal(digits_model, "-o", tmp_path / "m.tflite")
    stages = re.findall(r"\r\033\[Ktfconvert: ([\w -]+)", shown)
    assert stages[:3] == ["open", "load", "import"]
    assert stages[-2:] == ["export", "write"]
    assert "legalize" in stages
    assert shown.endswith("\r\033[K")
    assert "\n" not in shown


def test_an_error_is_not_written_into_the_line(digits_model: Path, tmp_path: Path) -> None:
    shown = on_terminal(digits_model, "-o", tmp_path / "m.tflite", "--signature", "nope")
    assert re.search(r"\r\033\[K(\033\[\d+m)+tfconvert: error:", shown)


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"CI": "true"}])
def test_other_terminals_show_nothing_by_themselves(
    digits_model: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    assert on_terminal(digits_model, "-o", tmp_path / "m.tflite", **environment) == ""
    lines = on_terminal(digits_model, "-v", "-o", tmp_path / "m.tflite", **environment).splitlines()
    assert lines[:3] == ["tfconvert: open", "tfconvert: load", "tfconvert: import"]
    assert not [line for line in lines if "\033" in line]


def test_quiet_is_quiet(digits_model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", pixels=np.zeros((2, 8, 8, 1), np.float32))
    quantized = ["--quantize", "int8", "--samples", str(tmp_path / "samples.npz")]
    for flags in ([], quantized):
        shown = on_terminal(digits_model, "-q", "-o", tmp_path / "m.tflite", *flags)
        assert "tfconvert" not in shown
        assert "\033" not in shown


def test_a_log_gets_lines_if_asked(digits_model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", str(digits_model), "-o", str(tmp_path / "m.tflite")]
    silent = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert silent.stderr == ""
    told = subprocess.run([*command, "-v"], check=True, capture_output=True, text=True, timeout=120)
    assert told.stderr.splitlines()[-1] == "tfconvert: write"


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_where_they_are_wanted(tmp_path: Path, environment: dict[str, str], coloured: bool) -> None:
    shown = on_terminal(tmp_path / "nothing", "-q", "-o", tmp_path / "m.tflite", **environment)
    assert "tfconvert: error:" in shown
    assert ("\033[31m" in shown) is coloured


@pytest.mark.parametrize("verb", [["MODEL", "-o", "x.tflite"], ["build"]])
def test_quiet_and_verbose_contradict_each_other(verb: list[str]) -> None:
    command = [sys.executable, "-m", "tfconvert", *verb, "-q", "-v"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert "-q and -v contradict each other" in run.stderr
