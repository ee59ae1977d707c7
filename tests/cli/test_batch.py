"""`tfconvert batch` converts lists of models."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.batch.models import ENDLESS, UNKNOWN, write
from tests.converter.targets.stablehlo.test_target import MODEL
from tfconvert.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        write(tmp_path / "models", name)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["batch", *arguments])


def test_models_are_converted_and_listed(folder: Path) -> None:
    done = run("models/*.mlir", "-o", "out/{name}.tflite", "--reports")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["a", "b", "2"]
    assert "2 of 2 converted" in done.stdout
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "a.report.json",
        "a.tflite",
        "b.report.json",
        "b.tflite",
    ]


def test_a_failure_concerns_no_other(folder: Path) -> None:
    write(folder / "models", "aa", UNKNOWN)
    done = run("models/*.mlir", "-o", "out/{name}.tflite", "--json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["failed"] == 1
    assert [row["status"] for row in document["models"]] == ["converted", "failed", "converted"]
    assert document["models"][1]["errors"][0]["op"] == "tf.Nonsense"
    assert document["models"][0]["operators"] == 1
    shown = run("models/*.mlir", "-o", "out/{name}.tflite")
    assert "aa: LiteRT has no such operator" in shown.stderr
    assert "2 of 3 converted, 1 failed" in shown.stdout
    assert "[unsupported-op]" in run("models/aa.mlir", "-q").stderr


def test_an_output_without_an_extension_is_a_directory(folder: Path) -> None:
    done = run("models/a.mlir", "-o", "new/out")
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in (folder / "new" / "out").iterdir()] == ["a.tflite"]


def test_all_errors_of_a_model_are_counted(folder: Path) -> None:
    line = next(each for each in UNKNOWN.splitlines() if "Nonsense" in each)
    write(folder / "models", "aa", UNKNOWN.replace(line, f"{line}\n{line.replace('%0', '%1').replace('ense', 'ence')}"))
    shown = run("models/aa.mlir", "-o", "out/").stderr
    assert shown.startswith("tfconvert: error: tf.Nonsen")
    assert "(and 1 more; --json has all) [unsupported-op]" in shown


def test_parts_of_settings(folder: Path) -> None:
    np.save(folder / "x.npy", np.zeros((2, 2), np.float32))
    flags = ("--set", "quantize=int8", "--set", "quantize.samples=x.npy", "--set", "quantize.io=int8")
    done = run("models/a.mlir", "-o", "out/", *flags)
    assert done.exit_code == 0, done.stderr
    (wrong,) = [line for line in run("models/a.mlir", "--set", "samples=x.npy").stderr.splitlines() if "hint" in line]
    assert wrong == "  hint: it is a part of 'quantize': quantize.samples"


def test_the_next_run_skips_what_is_done(folder: Path) -> None:
    arguments = ("models/*.mlir", "-o", "out/{name}.tflite", "--state", "state.jsonl", "--json")
    assert {row["status"] for row in json.loads(run(*arguments).stdout)["models"]} == {"converted"}
    write(folder / "models", "c")
    os.utime(folder / "models" / "a.mlir", (1, 1))
    second = json.loads(run(*arguments).stdout)["models"]
    assert {row["name"]: row["status"] for row in second} == {"a": "converted", "b": "skipped", "c": "converted"}


def test_every_target_and_the_files_beside_its_results(folder: Path) -> None:
    text = MODEL.replace("WEIGHTS", np.arange(512, dtype=np.float32).tobytes().hex())
    (folder / "models" / "w.mlir").write_text(text)
    settings = ("--set", "target=stablehlo", "--set", "mlir_weights=arguments", "--state", "state", "--json")
    first = run("models/w.mlir", "models/a.mlir", "-o", "out/", *settings)
    assert first.exit_code == 0, first.output
    weighty, plain = json.loads(first.stdout)["models"]
    assert (weighty["beside"], "beside" in plain) == ([".safetensors"], False)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["a.mlir", "w.mlir", "w.safetensors"]
    assert "stablehlo.dot_general" in (folder / "out" / "w.mlir").read_text()
    (folder / "out" / "w.safetensors").unlink()
    again = json.loads(run("models/w.mlir", "models/a.mlir", "-o", "out", *settings).stdout)["models"]
    assert [row["status"] for row in again] == ["converted", "skipped"]


def test_the_ending_chooses_the_target_and_must_agree_with_it(folder: Path) -> None:
    assert run("models/a.mlir", "-o", "x.mlir").exit_code == 0
    assert "stablehlo.maximum" in (folder / "x.mlir").read_text()
    for output, setting in (("x.tflite", "target=stablehlo"), ("x.onnx", "batch=1"), ("x.mlir", "target=litert")):
        done = run("models/a.mlir", "-o", output, "--set", setting)
        assert (done.exit_code, "[wrong-option]" in done.stderr) == (2, True)
        assert f"won't write {output}" in done.stderr


def test_sizes_have_a_unit_that_shows_them(folder: Path) -> None:
    assert re.search(r"converted +\d{3} B ", run("models/a.mlir").stdout)


def test_settings_are_those_of_the_function(folder: Path) -> None:
    assert run("models/a.mlir", "--set", "target_runtime=2.14").exit_code == 0
    verified = run("models/a.mlir", "--set", "verify=true", "--reports")
    assert verified.exit_code == 0
    assert json.loads((folder / "a.report.json").read_text())["verification"]
    wrong = run("models/a.mlir", "--set", "batch=many")
    assert wrong.exit_code == 2
    assert "'batch' can't be 'many'" in wrong.stderr


def test_results_are_cached(folder: Path) -> None:
    for index in range(2):
        rows = json.loads(run("models/*.mlir", "-o", f"{index}/", "--cache-dir", "cache", "--json").stdout)["models"]
        assert [row.get("cached", False) for row in rows] == [index > 0] * 2
    assert (folder / "0" / "a.tflite").read_bytes() == (folder / "1" / "a.tflite").read_bytes()
    assert "cached" in run("models/a.mlir", "-o", "2/", "--cache-dir", "cache").stdout


def test_paths_in_settings_are_relative_to_the_file(folder: Path) -> None:
    np.save(folder / "models" / "x.npy", np.ones((4, 2), np.float32))
    text = "models: [{model: a.mlir, settings: {verify: {data: [x.npy]}}}]"
    (folder / "models" / "list.yaml").write_text(text)
    done = run("--manifest", "models/list.yaml", "-o", "out/")
    assert done.exit_code == 0, done.stderr
    assert (folder / "out" / "a.tflite").exists()


def test_errors_tell_the_place_in_the_file(folder: Path) -> None:
    text = "models:\n- a.mlir\n- {model: nothing, name: n}\n"
    (folder / "models" / "list.yaml").write_text(text)
    assert "models/list.yaml:3: model 2 (n): " in run("--manifest", "models/list.yaml").stderr
    (folder / "models" / "list.yaml").write_text("models: [{model: a.mlir, depfile: d}]")
    done = run("--manifest", "models/list.yaml")
    assert (done.exit_code, "model 1 (a.mlir): 'depfile' is for tfconvert build" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("models/*.pb",), "nothing fits 'models/*.pb'"),
        (("models/a.mlir", "--address", "auto"), "--address is for --engine ray"),
        (("models/a.mlir", "--set", "verify"), "is not NAME=VALUE"),
        (("--manifest", "none.yaml"), "can't read none.yaml"),
        (("models/a.mlir", "models/b.mlir", "-o", "x.tflite"), "several results would be x"),
    ],
)
def test_mistakes_end_with_status_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_time_limits_hold(folder: Path) -> None:
    (folder / "rules.py").write_text(ENDLESS)
    done = run("models/*.mlir", "--timeout", "2", "--set", 'patterns=["rules.py"]', "--json")
    assert done.exit_code == 1
    assert {row["errors"][0]["code"] for row in json.loads(done.stdout)["models"]} == {"job-timeout"}


_HEED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tfconvert.__main__ import main
main()
"""


def test_an_interrupt_ends_everything(folder: Path) -> None:
    (folder / "rules.py").write_text(ENDLESS)
    command = [sys.executable, "-c", _HEED, "batch", "models/*.mlir", "--set", 'patterns=["rules.py"]']
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    # A shell has commands in the background ignore interrupts, and so their children.
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 30
    while not (zygote := children.read_text().split()):
        assert time.monotonic() < end
        time.sleep(0.05)
    workers = Path(f"/proc/{zygote[0]}/task/{zygote[0]}/children")
    while not (jobs := workers.read_text().split()):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    while any(Path(f"/proc/{each}").exists() for each in (*zygote, *jobs)):
        assert time.monotonic() < end + 30
        time.sleep(0.05)
