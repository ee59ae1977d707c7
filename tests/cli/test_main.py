"""The command as a build pipeline calls it: exit statuses, output, no half-written files."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tfconvert.cli.main import with_runtimes

Run = subprocess.CompletedProcess[str]


def tfconvert(*arguments: str | Path, limit: int | None = None, **environment: str) -> Run:
    """Runs the command; `limit` is the largest file that it may write, in bytes."""

    def shrink_disk() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "tfconvert", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=shrink_disk,
        env={**os.environ, **environment},
    )


def clean_failure(run: Run, folder: Path, status: int = 1) -> str:
    """Checks that a run failed with one clear message and left nothing behind; returns the message."""
    assert run.returncode == status, run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""
    assert list(folder.glob("*.tflite*")) == []
    return run.stderr


def test_a_model_is_converted_and_reported(digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "digits.tflite"
    run = tfconvert(digits_model, "-o", output)
    assert run.returncode == 0, run.stderr
    assert output.stat().st_size > 10_000
    assert "operators" in run.stdout
    assert "CONV_2D" in run.stdout
    assert "TensorFlow ops, " in run.stdout
    assert "optimize" not in run.stdout
    assert "optimize:" in tfconvert(digits_model, "-o", output, "-v").stdout
    assert run.stderr == ""


def test_quiet_says_nothing(digits_model: Path, tmp_path: Path) -> None:
    run = tfconvert(digits_model, "-o", tmp_path / "digits.tflite", "-q")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_json_is_the_whole_report(digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "digits.tflite"
    report = json.loads(tfconvert(digits_model, "-o", output, "--json").stdout)
    assert report["size"] == output.stat().st_size
    (function,) = report["functions"]
    assert function["signatures"] == ["serving_default"]
    assert function["inputs"] == {"pixels": "f32[?,8,8,1]"}
    assert function["outputs"] == {"output_0": "f32[?,10]"}
    assert report["frozen_variables"] > 0
    assert {stage["name"] for stage in report["stages"]} >= {"import", "legalize", "optimize", "export"}


def test_verify_compares_with_the_reference(digits_model: Path, tmp_path: Path) -> None:
    run = tfconvert(digits_model, "-o", tmp_path / "digits.tflite", "--verify", "--json")
    (verified,) = json.loads(run.stdout)["verification"]
    assert verified["output"] == "output_0"
    assert 0 < verified["max_relative"] < 1e-4


def test_one_signature_can_be_chosen(digits_model: Path, tmp_path: Path) -> None:
    run = tfconvert(digits_model, "-o", tmp_path / "d.tflite", "--signature", "serving_default", "--json")
    (function,) = json.loads(run.stdout)["functions"]
    assert function["signatures"] == ["serving_default"]


def test_names_and_batch(digits_model: Path, tmp_path: Path) -> None:
    settings = ["--rename", "pixels=image", "--rename", "output_0=digit", "--batch", "3", "--order", "official"]
    run = tfconvert(digits_model, "-o", tmp_path / "d.tflite", *settings, "--json", "--verify")
    (function,) = json.loads(run.stdout)["functions"]
    assert function["inputs"] == {"image": "f32[3,8,8,1]"}
    assert function["outputs"] == {"digit": "f32[3,10]"}


def test_same_input_same_bytes_whatever_the_hash_seed(digits_model: Path, tmp_path: Path) -> None:
    contents = set()
    for seed in ("0", "1", "4711"):
        output = tmp_path / f"{seed}.tflite"
        assert tfconvert(digits_model, "-o", output, "-q", PYTHONHASHSEED=seed).returncode == 0
        contents.add(output.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["MODEL", "OUT", "-o", "OUT"],
        ["MODEL", "OUT", "MODEL"],
        ["-o", "OUT"],
        ["MODEL", "-o", "OUT", "--input-shape", "pixels"],
        ["MODEL", "-o", "OUT", "--input-shape", "pixels=a,b"],
        ["MODEL", "-o", "OUT", "--batch", "0"],
        ["MODEL", "-o", "OUT", "--rename", "pixels"],
        ["MODEL", "-o", "OUT", "--order", "sorted"],
        ["MODEL", "-o", "OUT", "--no-such-option"],
    ],
)
def test_a_wrong_call_has_status_2(digits_model: Path, tmp_path: Path, arguments: list[str]) -> None:
    places = {"MODEL": digits_model, "OUT": tmp_path / "out.tflite"}
    message = clean_failure(tfconvert(*(places.get(word, word) for word in arguments)), tmp_path, status=2)
    assert "Usage:" in message


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--signature", "nope"], "unknown-signature"),
        (["--tags", "train"], "unknown-tags"),
        (["--input-shape", "pixels=1,9,9,1"], "shape-mismatch"),
        (["--input-shape", "nope=1"], "unknown-input"),
        (["--input", "x"], "unknown-tensor"),
    ],
)
def test_a_failed_conversion_has_status_1(digits_model: Path, tmp_path: Path, arguments: list[str], code: str) -> None:
    run = tfconvert(digits_model, "-o", tmp_path / "out.tflite", *arguments)
    assert code in clean_failure(run, tmp_path)


def test_a_missing_model_is_reported(tmp_path: Path) -> None:
    run = tfconvert(tmp_path / "nothing", "-o", tmp_path / "out.tflite")
    assert "model-not-found" in clean_failure(run, tmp_path, status=2)


def test_a_file_that_is_not_a_model_is_reported(tmp_path: Path) -> None:
    (tmp_path / "model.h6").write_text("hello")
    run = tfconvert(tmp_path / "model.h6", "-o", tmp_path / "out.tflite")
    assert "unknown-format" in clean_failure(run, tmp_path, status=2)


def test_damaged_weights_leave_no_file(digits_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(digits_model, model)
    shard = model / "variables" / "variables.data-00000-of-00001"
    data = bytearray(shard.read_bytes())
    for position in range(0, len(data), 97):
        data[position] ^= 0xFF
    shard.write_bytes(bytes(data))
    assert "bad-checksum" in clean_failure(tfconvert(model, "-o", tmp_path / "out.tflite"), tmp_path)


def test_json_errors_are_json(digits_model: Path, tmp_path: Path) -> None:
    run = tfconvert(digits_model, "-o", tmp_path / "out.tflite", "--signature", "nope", "--json")
    assert run.returncode == 1
    (problem,) = json.loads(run.stdout)["errors"]
    assert problem["code"] == "unknown-signature"
    assert "serving_default" in problem["hint"]


def test_an_output_that_cant_be_written_is_reported(digits_model: Path, tmp_path: Path) -> None:
    for output in (tmp_path / "no" / "such" / "folder.tflite", tmp_path):
        assert "output-not-writable" in clean_failure(tfconvert(digits_model, "-o", output), tmp_path)


def test_a_full_disk_leaves_no_file(digits_model: Path, tmp_path: Path) -> None:
    run = tfconvert(digits_model, "-o", tmp_path / "out.tflite", limit=10_000)
    assert "output-not-writable" in clean_failure(run, tmp_path)


def test_an_older_result_survives_a_failure(digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tflite"
    output.write_bytes(b"older")
    assert tfconvert(digits_model, "-o", output, limit=10_000).returncode == 1
    assert output.read_bytes() == b"older"
    assert [path.name for path in tmp_path.iterdir()] == ["out.tflite"]


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        (["m", "--verify", "gpu", "-o", "x"], ["m", "--verify", "--verify-on", "gpu", "-o", "x"]),
        (["m", "--verify=gpu,micro"], ["m", "--verify-on", "gpu", "--verify-on", "micro"]),
        (["--verify", "m", "-o", "x"], ["--verify", "m", "-o", "x"]),
        (["--verify", "./gpu"], ["--verify", "./gpu"]),
        (["gpu", "--verify"], ["gpu", "--verify"]),
    ],
    ids=["gpu", "two", "plain", "path", "model"],
)
def test_runtimes_follow_verify(given: list[str], parsed: list[str]) -> None:
    assert with_runtimes(given) == parsed
