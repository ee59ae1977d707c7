"""Where the command's result goes: standard output, pipes, never over what is read."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tfconvert

TFCONVERT = f"{sys.executable} -m tfconvert"


def shell(script: str, folder: Path, **places: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a line of shell in a folder; `$tfconvert` is the command, other names are paths."""
    environment = {**os.environ, "tfconvert": TFCONVERT, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    environment |= {name: str(path) for name, path in places.items()}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, check=False, timeout=120, cwd=folder, env=environment
    )


@pytest.fixture(scope="module")
def expected(digits_model: Path) -> bytes:
    """Returns the contents of the file."""
    return bytes(tfconvert.convert(digits_model))


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_takes_the_model_and_the_error_stream_the_report(
    digits_model: Path, tmp_path: Path, expected: bytes, output: str
) -> None:
    run = shell(f"$tfconvert $model -o {output} | cat", tmp_path, model=digits_model)
    assert run.stdout == expected
    assert b"operators" in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
def test_what_was_written_to_a_file_before_stays(
    digits_model: Path, tmp_path: Path, expected: bytes, output: str
) -> None:
    shell(f"(echo begin; $tfconvert $model -q -o {output}; echo end) > all", tmp_path, model=digits_model)
    assert (tmp_path / "all").read_bytes() == b"begin\n" + expected + b"end\n"


def test_json_goes_to_the_error_stream_as_well(digits_model: Path, tmp_path: Path, expected: bytes) -> None:
    run = shell("$tfconvert $model --json -o -", tmp_path, model=digits_model)
    assert run.stdout == expected
    assert json.loads(run.stderr)["size"] == len(expected)
    failed = shell("$tfconvert $model --json -o - --signature nope 2>/dev/null", tmp_path, model=digits_model)
    assert (failed.returncode, failed.stdout) == (1, b"")


def test_other_descriptors_and_named_pipes(digits_model: Path, tmp_path: Path, expected: bytes) -> None:
    run = shell(
        "$tfconvert $model -q -o >(cat > substituted); $tfconvert $model -q -o /dev/fd/7 7> seventh; wait; sleep 0.2",
        tmp_path,
        model=digits_model,
    )
    assert run.stderr == b""
    assert (tmp_path / "seventh").read_bytes() == expected
    assert (tmp_path / "substituted").read_bytes() == expected
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    shell("$tfconvert $model -q -o pipe", tmp_path, model=digits_model)
    reader.join(60)
    assert found == [expected]


def test_a_terminal_gets_no_model(digits_model: Path, tmp_path: Path) -> None:
    parent, child = pty.openpty()
    run = subprocess.run(
        [sys.executable, "-m", "tfconvert", str(digits_model), "-o", "-"],
        stdout=child,
        check=False,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    os.close(child)
    os.close(parent)
    assert run.returncode == 1
    assert b"won't write a model to a terminal (standard output)" in run.stderr


def test_a_reader_who_leaves_early_makes_a_failure_of_the_model_only(digits_model: Path, tmp_path: Path) -> None:
    cut = shell(
        "$tfconvert $model -q -o - | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}", tmp_path, model=digits_model
    )
    assert cut.returncode in (0, 1)  # A pipe holds more than this model, unless its reader is fast.
    assert b"Traceback" not in cut.stderr
    assert b"Exception" not in cut.stderr


@pytest.mark.parametrize("flags", ["", "-v", "--json"])
@pytest.mark.parametrize("sink", ["> >(exec true)", "| true", "> /dev/full", ">&-"])
def test_a_report_that_nobody_reads_is_no_failure(
    digits_model: Path, tmp_path: Path, expected: bytes, sink: str, flags: str
) -> None:
    run = shell(
        f"$tfconvert $model {flags} -o out.tflite {sink}; exit ${{PIPESTATUS[0]}}", tmp_path, model=digits_model
    )
    assert run.returncode == 0, run.stderr
    assert b"Traceback" not in run.stderr
    assert b"Exception" not in run.stderr
    assert (tmp_path / "out.tflite").read_bytes() == expected


@pytest.mark.parametrize(
    "output",
    [
        "model/saved_model.pb",
        "model/variables/variables.index",
        "model/variables/variables.data-00000-of-00001",
        "link",
    ],
)
def test_nothing_is_written_over_the_model(digits_model: Path, tmp_path: Path, output: str) -> None:
    shutil.copytree(digits_model, tmp_path / "model")
    (tmp_path / "link").symlink_to(tmp_path / "model" / "saved_model.pb")
    before = (tmp_path / output).read_bytes()
    run = shell(f"$tfconvert model -o {output}", tmp_path)
    assert run.returncode == 1
    assert b"output-over-input" in run.stderr
    model = tfconvert.convert(tmp_path / "model")
    with pytest.raises(tfconvert.ConversionError, match="which is read"):
        model.save(tmp_path / output)
    assert (tmp_path / output).read_bytes() == before
    model.save(tmp_path / "model" / "model.tflite")


def test_nothing_is_written_over_samples(digits_model: Path, root: Path, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.mkdir()
    shutil.copy(root / "examples" / "digits" / "held_out.npz", samples / "a.npz")
    run = shell(
        "$tfconvert $model -o samples/a.npz --target litert --quantize int8 --samples samples",
        tmp_path,
        model=digits_model,
    )
    assert b"output-over-input" in run.stderr
