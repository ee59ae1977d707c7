"""The command `build`: converts the models that a file lists."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tfconvert.batch.entries import to_entries
from tfconvert.batch.models_file import EXTRAS, read_models
from tfconvert.cli import batch, build
from tfconvert.cli.main import main

Run = subprocess.CompletedProcess[str]


def run_build(folder: Path, *arguments: str) -> Run:
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


TOML = """
[[models]]
model = "model"
output = "out/one.tflite"
settings = {input_shapes = {pixels = [2, 8, 8, 1]}, signatures = ["serve"]}
depfile = "out/one.d"

[[models]]
model = "model"
output = "out/two.cc"
array_name = "two"
[models.settings.quantize]
mode = "dynamic"
per_channel = false
"""
YAML = """
models:
  - model: model
    output: out/one.tflite
    settings: {input_shapes: {pixels: [2, 8, 8, 1]}, signatures: [serve]}
    depfile: out/one.d
  - model: model
    output: out/two.cc
    array_name: two
    settings: {quantize: {mode: dynamic, per_channel: false}}
"""


@pytest.mark.parametrize(("name", "text", "jobs"), [("tfconvert.toml", TOML, "1"), ("models.yaml", YAML, "2")])
def test_all_models_are_converted_as_the_settings_say(project: Path, name: str, text: str, jobs: str) -> None:
    (project / name).write_text(text, "utf-8")
    run = run_build(project, name, "-j", jobs)
    assert run.returncode == 0, run.stderr
    assert "model -> out/one.tflite" in run.stdout
    assert "serve: pixels f32[2,8,8,1]" in run.stdout
    assert run.stdout.splitlines()[-1] == "2 of 2 converted"
    expected = tfconvert.convert(project / "model", signatures="serve", input_shapes={"pixels": (2, 8, 8, 1)})
    assert (project / "out" / "one.tflite").read_bytes() == bytes(expected)
    assert (project / "out" / "one.d").read_text("utf-8").startswith("out/one.tflite:")
    assert "extern const unsigned char two[];" in (project / "out" / "two.h").read_text("utf-8")
    # From elsewhere the paths are still those beside the file.
    shutil.rmtree(project / "out")
    (project / "out").mkdir()
    assert run_build(project / "out", "-q", "-j", "1", f"../{name}").stdout == ""
    assert {path.name for path in (project / "out").iterdir()} == {"one.tflite", "one.d", "two.cc", "two.h"}


def test_both_commands_read_the_same_file(project: Path) -> None:
    text = TOML.replace('depfile = "out/one.d"', 'report = "out/{name}.html"')
    (project / "tfconvert.toml").write_text(text, "utf-8")
    assert run_build(project).returncode == 0
    built = {path.name: path.read_bytes() for path in (project / "out").iterdir() if path.suffix != ".html"}
    shutil.rmtree(project / "out")
    command = [sys.executable, "-m", "tfconvert", "batch", "--manifest", f"{project.name}/tfconvert.toml"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    subprocess.run(command, cwd=project.parent, env=environment, check=True, timeout=120)
    assert (project / "out" / "model.html").stat().st_size
    assert {path.name: path.read_bytes() for path in (project / "out").iterdir() if path.suffix != ".html"} == built


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_one_failure_does_not_keep_the_others(project: Path, jobs: str) -> None:
    tables = [f'[[models]]\nmodel = "{model}"\noutput = "new/{model}.tflite"\n' for model in ("nothing", "model")]
    (project / "models.toml").write_text("\n".join(tables), "utf-8")
    run = run_build(project, "models.toml", "-q", "-j", jobs)
    assert run.returncode == 2
    assert run.stderr.count("tfconvert: error") == 1
    assert "model-not-found" in run.stderr
    assert "models.toml:1: model 1 (nothing): " in run.stderr
    assert (project / "new" / "model.tflite").exists()


def test_the_summary_is_json_too_and_results_are_cached(project: Path) -> None:
    models = [{"model": "model", "output": f"{name}.tflite", "name": name} for name in ("a", "b")]
    (project / "models.json").write_text(json.dumps({"models": models}))
    for is_cached in (False, True):
        run = run_build(project, "models.json", "--json", "-j", "1", "--cache-dir", "cache")
        rows: list[dict[str, Any]] = json.loads(run.stdout)["models"]
        assert [row["name"] for row in rows] == ["a", "b"]
        assert {row["status"] for row in rows} == {"converted"}
        assert rows[0].get("cached", False) is is_cached
    assert "cached" in run_build(project, "models.json", "--cache-dir", "cache").stdout.splitlines()[-2]


ENTRY = '[[models]]\nmodel = "m"\noutput = "x"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lists no models"),
        ("model = 1", "'model' is not known"),
        ("[[models]", "(at line 1, column 9)"),
        ("[model]\n[[models]]", "'model' is not known"),
        ('[[models]]\noutput = "x"', "tfconvert.toml:1: model 1 has no string 'model'"),
        ('[[models]]\nmodel = "m"\noutput = 1', "tfconvert.toml:1: model 1 (m): 'output' can't be 1"),
        (f'{ENTRY}outputs = ["y"]', "put 'outputs' into 'settings'"),
        (f'{ENTRY}array-name = "y"', "did you mean 'array_name'?"),
        (f"{ENTRY}json = true", "'json' is not known"),
        (f'{ENTRY}settings.verify = "yes"', "'verify' can't be 'yes'"),
        (f'{ENTRY}settings.quantize = ["a", "b"]', "'quantize' can't be ['a', 'b']"),
        (f'\n{ENTRY}settings.quantize = "all"', "tfconvert.toml:2: model 1 (m): 'quantize' can't be 'all'"),
        (f'{ENTRY}settings.input_shapes = {{a = ["b"]}}', "'input_shapes' can't be {'a': ['b']}"),
        (f"{ENTRY}settings.tags = 2020-01-01", "'tags' can't be datetime.date"),
        (ENTRY * 2, "several results would be x"),
        ('[[models]]\nmodel = "s3://b/m"', "URLs are for tfconvert batch"),
        (f'{ENTRY}token_file = "t"', "--token-file goes with --server"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_converted(project: Path, text: str, message: str) -> None:
    (project / "tfconvert.toml").write_text(text, "utf-8")
    run = run_build(project)
    assert run.returncode == 2
    assert message in run.stderr
    assert "bad-config" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (project / "x").exists()


def test_settings_of_another_target_are_told_with_their_entry(project: Path) -> None:
    (project / "tfconvert.toml").write_text(f"{ENTRY}settings.mlir_weights = 'inline'\nsettings.iree.cpu = 'host'")
    run = run_build(project)
    assert run.returncode == 2
    assert "tfconvert.toml:1: model 1 (m): " in run.stderr
    assert "[wrong-option]" in run.stderr


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    run = run_build(tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "can't read tfconvert.toml: No such file" in run.stderr


def test_the_examples_of_the_help_are_valid(tmp_path: Path) -> None:
    lines = [line for line in build._EXAMPLES.splitlines() if line.startswith("  ")]
    (tmp_path / "tfconvert.toml").write_text(textwrap.dedent("\n".join(lines)), "utf-8")
    first, second = to_entries(read_models(str(tmp_path / "tfconvert.toml"), ""), None, {})
    assert (first.model, first.output) == ("saved_model", "model.tflite")
    assert first.settings == {"input_shapes": {"image": [1, 224, 224, 3]}, "verify": True}
    assert (second.model, second.output) == ("frozen.pb", "frozen.cc")
    assert second.settings == {"outputs": ["scores:0", "boxes:0"], "verify": True}
    (tmp_path / "models.yaml").write_text(textwrap.dedent(batch._EXAMPLES.partition("A manifest:\n")[2]), "utf-8")
    assert [entry.name for entry in to_entries(read_models(str(tmp_path / "models.yaml"), ""), None, {})] == [
        "first",
        "small",
    ]


def test_both_commands_know_all_keys() -> None:
    assert set(batch._OF_BUILD) < set(EXTRAS)
    flags = {
        name: {option for each in main.commands[name].params for option in each.opts} for name in ("build", "batch")
    }
    assert {"-j", "--jobs", "--json", "--cache-dir", "-q"} <= flags["build"] & flags["batch"]
