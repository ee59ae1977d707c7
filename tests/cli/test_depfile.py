"""Dependencies: Make and Ninja convert again when a file of the model has changed, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tfconvert.cli.convert_job import depfile_text
from tfconvert.schema.diagnostics import ConversionError

ODD = r"a model $(x) #1: b\c"
MAKE = """
.RECIPEPREFIX = >
model.cc: Makefile
>$(TFCONVERT) '$(MODEL)' -q -o $@ --depfile model.d
>@echo converted
-include model.d
"""
NINJA = """
rule convert
  command = $tfconvert '$model' -q -o $out --depfile $out.d && echo converted
  depfile = $out.d
  deps = gcc
build model.tflite: convert
"""
FILES = ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001")


def built(command: list[str], folder: Path) -> bool:
    """Builds, and returns whether that converted the model."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr
    return "\nconverted" in f"\n{done.stdout}"


@pytest.fixture
def model(digits_model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(digits_model, folder)
    for name in FILES:
        os.utime(folder / name, (0, 0))
    return folder


def check(command: list[str], model: Path, folder: Path) -> None:
    """Checks that a build system converts when, and only when, one of the files has changed."""
    assert built(command, folder)
    assert not built(command, folder)
    for name in FILES:
        (model / name).touch()
        assert built(command, folder), name
    assert not built(command, folder)
    # A missing file must not stop the command before it looks at the model.
    (model / FILES[2]).rename(model / "moved")
    with pytest.raises(AssertionError, match=r"variables\.data-00000-of-00001"):
        built(command, folder)


@pytest.mark.parametrize("name", ["model", ODD])
def test_make(model: Path, tmp_path: Path, name: str) -> None:
    model = model.rename(tmp_path / name)
    (tmp_path / "Makefile").write_text(MAKE, "utf-8")
    check(["make", f"TFCONVERT={sys.executable} -m tfconvert", "MODEL=" + name.replace("$", "$$")], model, tmp_path)


@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not installed")
@pytest.mark.parametrize("name", ["model", ODD])
def test_ninja(model: Path, tmp_path: Path, name: str) -> None:
    model = model.rename(tmp_path / name)
    variables = f"tfconvert = {sys.executable} -m tfconvert\nmodel = {name.replace('$', '$$')}\n"
    (tmp_path / "build.ninja").write_text(variables + NINJA, "utf-8")
    check(["ninja", "-v"], model, tmp_path)


def test_labels_samples_and_ranges_are_dependencies(model: Path, root: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("".join(f"{n}\n" for n in range(10)), "utf-8")
    (tmp_path / "samples").mkdir()
    with np.load(root / "examples" / "digits" / "held_out.npz") as held_out:
        np.savez(tmp_path / "samples" / "a.npz", pixels=held_out[held_out.files[0]][:8].reshape(-1, 8, 8, 1))
    command = [
        sys.executable,
        "-m",
        "tfconvert",
        "model",
        "-q",
        "-o",
        "m.tflite",
        "--depfile",
        "m.d",
        "--metadata",
        "labels.txt",
        "--quantize",
        "int8",
        "--samples",
        "samples",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    names = (tmp_path / "m.d").read_text("utf-8").partition("\n\n")[0].replace("\\\n", "").split()
    assert names[0] == "m.tflite:"
    assert {*names[1:]} == {*(f"model/{name}" for name in FILES), "labels.txt", "samples/a.npz"}


def test_what_has_no_name_has_no_dependencies(model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", str(model), "-o", "-", "--depfile", str(tmp_path / "d")]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--depfile names the output" in done.stderr


def test_names_are_escaped() -> None:
    assert depfile_text("a b.cc", ["x y", "x y", "#$:"]) == (
        "a\\ b.cc: \\\n  x\\ y \\\n  \\#$$\\:\n\nx\\ y:\n\n\\#$$\\::\n"
    )
    # With an empty rule a name with % would stand for many.
    assert depfile_text("a", ["50%"]) == "a: \\\n  50%\n"
    with pytest.raises(ConversionError, match="can't express"):
        depfile_text("a", ["b\nc"])
