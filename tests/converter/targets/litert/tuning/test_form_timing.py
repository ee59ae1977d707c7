"""The script that measures pairs of files on a device."""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.converter.targets.litert.optimize.graph import Graph
from tfconvert.converter.targets.litert.passes.fast_forms import FastForms
from tfconvert.converter.targets.litert.tuning import form_timing
from tfconvert.converter.targets.litert.tuning.tuner import SCRIPT, read_table

# Prints what LiteRT's `benchmark_model` does, and measures nothing but the size of the file.
_PROGRAM = """
import pathlib, sys
options = dict(each[2:].split("=") for each in sys.argv[1:])
size = pathlib.Path(options["graph"]).stat().st_size
print(f"INFO: Log parameter values verbosely: [0], threads {options['num_threads']}", file=sys.stderr)
print(f"INFO: Inference timings in us: Init: 4321, First inference: 99, Warmup (avg): 55.5, Inference (avg): {size}.5")
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns a directory with both forms of a softmax."""
    graph = Graph((1, 64, 64, 5))
    graph.returns(graph.op("softmax", graph.inputs[0], beta=1.0))
    FastForms(tune=f"{tmp_path}/").apply(graph.module)
    return tmp_path


def test_a_program_measures_the_files(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = directory / "benchmark_model.py"
    program.write_text(_PROGRAM)
    command = shlex.join([sys.executable, str(program)])
    arguments = [str(directory), "--benchmark-model", command, "--threads", "2", "-o", str(directory / "x.tsv")]
    assert form_timing.main(arguments) == 0
    device, rows = read_table(directory / "x.tsv")
    assert device == command
    ((name, times),) = rows.items()
    sizes = [(directory / f"{name}{end}").stat().st_size for end in (form_timing.USUAL, form_timing.FAST)]
    assert times == tuple(size + 0.5 for size in sizes)
    assert name.replace(".", "\t") in capsys.readouterr().out


def test_a_program_that_fails_is_reported(directory: Path) -> None:
    command = shlex.join([sys.executable, "-c", "raise SystemExit('no such device')"])
    with pytest.raises(RuntimeError, match="no such device"):
        form_timing.main([str(directory), "--benchmark-model", command])
    assert not (directory / "table.tsv").exists()


def test_files_may_have_another_place_for_the_program(directory: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; print('Inference (avg): 7', *sys.argv, file=open(sys.argv[0] + '.log', 'a'))")
    command = shlex.join([sys.executable, str(program)])
    with pytest.raises(RuntimeError):  # It prints nothing.
        form_timing.main([str(directory), "--benchmark-model", command, "--remote", "/data/forms"])
    assert "--graph=/data/forms/softmax-by-steps" in Path(f"{program}.log").read_text()


def test_the_script_needs_nothing_but_litert(directory: Path) -> None:
    """Without that, it says what to install."""
    blocked = "import sys; sys.modules['ai_edge_litert'] = None; sys.argv = ['x']; import runpy; runpy.run_path("
    command = [sys.executable, "-I", "-c", f"{blocked}{str(directory / SCRIPT)!r}, run_name='__main__')"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install ai-edge-litert" in done.stderr
    names = runpy.run_path(str(directory / SCRIPT))
    assert names["pairs_in"](directory)
    assert "tfconvert." not in "\n".join(
        line for line in (directory / SCRIPT).read_text().splitlines() if line.startswith(("import", "from"))
    )


def test_a_pair_is_measured_in_turns(directory: Path) -> None:
    (pair,) = form_timing.pairs_in(directory)
    usual, fast = form_timing.microseconds_of_files([path.read_bytes() for path in pair], 0.2)
    assert 0 < fast < usual
