"""The verb `build`: the keys of a file are the options of the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tfconvert
from tfconvert.cli.build import _EXAMPLES, _arguments, _options, _tables
from tfconvert.cli.main import main

Run = subprocess.CompletedProcess[str]


def build(folder: Path, *arguments: str) -> Run:
    environment = {**os.environ, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-m", "tfconvert", "build", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def project(digits_model: Path, tmp_path: Path) -> Path:
    """Returns a folder with a model."""
    shutil.copytree(digits_model, tmp_path / "model")
    return tmp_path


TWO = """
[[model]]
model = "model"
output-file = "out/one.tflite"
input-shape = {pixels = [2, 8, 8, 1]}
signature = ["serve"]
depfile = "out/one.d"

[[model]]
model = "model"
output-file = "out/two.cc"
array-name = "two"
quantize = "dynamic"
per-tensor = true
strict = false
"""


def test_all_models_are_converted_as_the_flags_say(project: Path, tmp_path: Path) -> None:
    (project / "out").mkdir()
    (project / "tfconvert.toml").write_text(TWO, "utf-8")
    run = build(project)
    assert run.returncode == 0, run.stderr
    assert "model -> out/one.tflite" in run.stdout
    assert "serve: pixels f32[2,8,8,1]" in run.stdout
    expected = tfconvert.convert(project / "model", signatures="serve", input_shapes={"pixels": (2, 8, 8, 1)})
    assert (project / "out" / "one.tflite").read_bytes() == bytes(expected)
    assert (project / "out" / "one.d").read_text("utf-8").startswith("out/one.tflite:")
    assert "extern const unsigned char two[];" in (project / "out" / "two.h").read_text("utf-8")
    # From elsewhere the paths are still those beside the file.
    shutil.rmtree(project / "out")
    (project / "out").mkdir()
    assert build(project / "out", "-q", "../tfconvert.toml").stdout == ""
    assert {path.name for path in (project / "out").iterdir()} == {"one.tflite", "one.d", "two.cc", "two.h"}


def test_one_failure_does_not_keep_the_others(project: Path) -> None:
    tables = [f'[[model]]\nmodel = "{model}"\noutput-file = "{model}.tflite"\n' for model in ("nothing", "model")]
    (project / "models.toml").write_text("\n".join(tables), "utf-8")
    run = build(project, "models.toml", "-q")
    assert run.returncode == 1
    assert run.stderr.count("tfconvert: error") == 1
    assert "not-a-saved-model" in run.stderr
    assert (project / "model.tflite").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lists no models"),
        ("model = 1", "lists no models"),
        ("[[model]", "(at line 1, column 8)"),
        ("[models]\n[[model]]", "'models' is not known"),
        ('[[model]]\noutput-file = "x"', "model 1 has no text 'model'"),
        ('[[model]]\nmodel = "m"', "model 1 has no text 'output-file'"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\noutputfile = "y"', "the key 'outputfile' is not known"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\njson = true', "the key 'json' is not known"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\nverify = "yes"', "'verify' must be true or false, not 'yes'"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\nquantize = ["a", "b"]', "'quantize' takes one value"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\nquantize = "all"', "'--quantize': 'all' is not one of"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\ninput-shape = {a = ["b"]}', "'--input-shape': 'a=b' is not"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\ntags = 2020-01-01', "'tags' can't be datetime.date"),
        ('[[model]]\nmodel = "m"\noutput-file = "x"\n' * 2, "two models have the output-file 'x'"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_converted(project: Path, text: str, message: str) -> None:
    (project / "tfconvert.toml").write_text(text, "utf-8")
    run = build(project)
    assert run.returncode == 2
    assert message in run.stderr
    assert "bad-config" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (project / "x").exists()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    run = build(tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "can't read tfconvert.toml: No such file" in run.stderr


def test_the_example_of_the_help_is_one(tmp_path: Path) -> None:
    lines = [line for line in _EXAMPLES.splitlines() if line.startswith("  ")]
    (tmp_path / "tfconvert.toml").write_text(textwrap.dedent("\n".join(lines)), "utf-8")
    first, second = (_arguments(table, main, "here") for _, table in _tables(tmp_path / "tfconvert.toml"))
    assert first == ["--output-file=model.tflite", "--input-shape=image=1,224,224,3", "--verify", "--", "saved_model"]
    assert second == ["--output-file=frozen.cc", "--output=scores:0", "--output=boxes:0", "--", "frozen.pb"]


def test_every_option_of_a_model_is_a_key() -> None:
    assert {"output-file", "input-shape", "quantize", "cache-dir", "metadata", "recurrent"} <= set(_options(main))
    assert json.dumps(sorted(_options(main))).count("-h") == 0
