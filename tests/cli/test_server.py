"""`tfconvert --server`: what the command prints and writes is what it does without a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.converter.targets.stablehlo.test_target import MODEL
from tests.support.running_service import RunningService
from tfconvert.cli.main import main
from tfconvert.client.client import Client
from tfconvert.client.remote_report import to_report
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.targets import Iree, StableHLO

TIMES = re.compile(r"[\d.]+ m?s\b|time: .*")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with RunningService(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TFCONVERT_TOKEN", raising=False)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-v", "--batch", "2", "--verify"],
        ["--quantize", "int8", "--samples", "samples.npz", "--verify"],
        ["--quantize", "int8", "--samples", "samples.npz", "--compare-layers", "--min-agreement", "10%", "-v"],
        ["--json", "--rename", "output_0=scores", "--limit", "constant-bytes=100000000"],
    ],
)
def test_all_is_as_without_a_server(server: RunningService, digits_model: Path, options: list[str]) -> None:
    np.savez("samples.npz", pixels=np.random.default_rng(0).random((4, 8, 8, 1), np.float32))
    there = run(digits_model, "-o", "model.tflite", "--server", server.url, *options)
    content = Path("model.tflite").read_bytes()
    here = run(digits_model, "-o", "model.tflite", *options)
    assert (there.exit_code, here.exit_code) == (0, 0), there.stderr
    assert content == Path("model.tflite").read_bytes()
    if "--json" in options:
        one, other = json.loads(there.stdout), json.loads(here.stdout)
        for each in (one, other):
            del each["seconds"], each["stages"]
        assert one == other
    else:
        texts = [re.sub(r"(?m)^ +(verify|write|open|save|load).*\n", "", each.stdout) for each in (there, here)]
        assert TIMES.sub("T", texts[0]) == TIMES.sub("T", texts[1])


@pytest.mark.parametrize(
    ("output", "options"),
    [
        ("there.mlir", ["--mlir-weights", "arguments", "--mlir-shape-function"]),
        ("there.mlir", ["--mlir-weights", "inline"]),
        ("there.mlirbc", ["--mlir-weights", "arguments"]),
    ],
)
def test_other_targets_have_all_their_files(server: RunningService, output: str, options: list[str]) -> None:
    if output.endswith("bc"):
        pytest.importorskip("jaxlib")
    Path("w.mlir").write_text(MODEL.replace("WEIGHTS", np.arange(512, dtype=np.float32).tobytes().hex()))
    there = run("w.mlir", "-o", output, "--server", server.url, *options)
    here = run("w.mlir", "-o", output.replace("there", "here"), *options)
    assert (there.exit_code, here.exit_code) == (0, 0), there.stderr
    files = sorted(path.suffix for path in Path().glob("there.*"))
    assert files == sorted([Path(output).suffix, *([".safetensors"] if "arguments" in options else [])])
    for ending in files:
        assert Path(f"there{ending}").read_bytes() == Path(f"here{ending}").read_bytes()


def test_results_of_clients_have_names_that_agree_with_them(server: RunningService) -> None:
    Path("w.mlir").write_text(MODEL.replace("WEIGHTS", bytes(2048).hex()))
    with Client(server.url) as client:
        job = client.convert("w.mlir", target=StableHLO(weights="arguments"))
        for path in ("x.tflite", "x.onnx"):
            with pytest.raises(ConversionError, match="won't write"):
                job.save(path)
        with pytest.raises(ConversionError, match="more than one file"):
            job.result()
        job.save("x.mlir")
        assert {"x.mlir", "x.safetensors"} <= {path.name for path in Path().iterdir()}
        with pytest.raises(ConversionError, match="C arrays"):
            client.convert("w.mlir").save("x.cc")
        with pytest.raises(ConversionError, match="'checkpoint' can't be set here"):
            client.submit("w.mlir", checkpoint="variables")
        with pytest.raises(ConversionError, match="'flags' names files"):
            client.submit("w.mlir", target=Iree(flags=["--x"]))


def test_pages_arrays_and_dependencies_are_written(server: RunningService, digits_model: Path) -> None:
    done = run(
        digits_model, "-o", "model.cc", "--server", server.url, "--report", "report.html", "--depfile", "deps", "-q"
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert "g_model" in Path("model.cc").read_text("utf-8")
    assert Path("report.html").read_text("utf-8").startswith("<!doctype html>")
    assert "saved_model.pb" in Path("deps").read_text("utf-8")


@pytest.mark.parametrize("as_json", [False, True])
def test_reasons_are_told_as_without_a_server(server: RunningService, digits_model: Path, as_json: bool) -> None:
    options = ["-o", "model.tflite", "--signature", "none", *(["--json"] if as_json else [])]
    there, here = run(digits_model, "--server", server.url, *options), run(digits_model, *options)
    assert (there.exit_code, there.stderr, there.stdout) == (here.exit_code, here.stderr, here.stdout)
    assert there.exit_code == 1
    assert not Path("model.tflite").exists()


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (["--patterns", "mine.py"], 2, "'patterns' names files"),
        (["--verify-data", "x.npz"], 2, "verify: 'data' names files"),
        (["--calibration", "r.json", "--quantize", "int8"], 2, "'calibration' names files"),
        (["-o", "m.vmfb", "--iree-flag", "--iree-x"], 2, "'flags' names files"),
        (["-o", "m.vmfb", "--iree-target-cpu", "host"], 2, "'cpu' can't be 'host' here"),
        (["-o", "m.mlir", "--target", "litert"], 2, "did you mean --target stablehlo?"),
        (["--cache-dir", "cache"], 2, "--cache-dir does not go with --server"),
        (["--model-explorer", "m.json"], 2, "--model-explorer does not go with --server"),
    ],
)
def test_what_can_not_be_sent_is_refused(
    server: RunningService, digits_model: Path, options: list[str], status: int, text: str
) -> None:
    count = len(server.jobs)
    done = run(digits_model, "-o", "model.tflite", "--server", server.url, *options)
    assert done.exit_code == status
    assert text in done.stderr
    assert len(server.jobs) == count


def test_tokens_come_from_a_file_or_the_environment(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunningService(Path("server"), require_token=True) as server:
        call = [digits_model, "-o", "model.tflite", "--server", server.url]
        done = run(*call)
        assert (done.exit_code, "[token-needed]" in done.stderr) == (1, True)
        token = server.token()
        Path("token").write_text(f"{token}\n")
        assert run(*call, "--token-file", "token").exit_code == 0
        monkeypatch.setenv("TFCONVERT_TOKEN", token)
        assert run(*call).exit_code == 0
        assert "[unreadable-file]" in run(*call, "--token-file", "missing").stderr
        assert run(*call[:3], "--token-file", "token").exit_code == 2


def test_an_interrupt_cancels_the_job(
    server: RunningService, digits_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfconvert.client.client import Job

    def interrupt(job: Job, on_stage: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "wait", interrupt)
    with server.held():
        assert run(digits_model, "-o", "model.tflite", "--server", server.url, "--batch", "9").exit_code == 130
        assert server.jobs[-1].state == "cancelled"


def test_nobody_there(digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tfconvert.client.connection.time.sleep")  # It fails at once.
    done = run(digits_model, "-o", "model.tflite", "--server", "http://127.0.0.1:9")
    assert done.exit_code == 1
    assert "[server-unreachable]" in done.stderr


@pytest.mark.parametrize("data", [{}, {"stages": 1}, {"stages": [{"name": "x"}]}])
def test_what_is_no_report_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ConversionError) as caught:
        to_report(data, "model")
    assert caught.value.code == "server-refused"
