"""Programs of IREE as a target: converted, run and verified as a new user would, and what can go wrong."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.support.running_service import RunningService
from tfconvert.cli.main import main
from tfconvert.converter.targets.iree import compiler
from tfconvert.converter.targets.iree.runtime import IreeProgram

pytest.importorskip("iree.runtime")

SIZES = (1, 2, 5)


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    """Returns the model's weights."""
    return np.random.default_rng(1).normal(size=(16, 40)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tf: Any, weights: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a model with an open batch and two results."""
    module = tf.Module()
    module.weights = tf.Variable(weights)

    def serve(x: Any) -> dict[str, Any]:
        return {"scores": tf.nn.softmax(tf.matmul(x, module.weights)), "total": tf.reduce_sum(x)}

    folder = tmp_path_factory.mktemp("model")
    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([None, 16], tf.float32, name="x")])
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    return folder


@pytest.fixture(scope="module")
def program(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the program of the model, made by the command and verified."""
    path = tmp_path_factory.mktemp("program") / "model.vmfb"
    done = CliRunner().invoke(
        main, [str(model), "-o", str(path), "--target", "iree", "--verify", "--keep-mlir", "--json"]
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert {each["output"] for each in report["verification"]} == {"scores", "total"}
    assert max(each["max_relative"] for each in report["verification"]) < 1e-5
    assert report["rewrites"]["compile"]["dispatches"] >= 1
    assert "compile" in [each["name"] for each in report["stages"]]
    return path


@pytest.mark.parametrize("flags", [[], ["--iree-backend", "vmvx"]])
def test_the_printed_command_runs_the_program(model: Path, tmp_path: Path, flags: list[str]) -> None:
    path = tmp_path / "my model.vmfb"
    done = CliRunner().invoke(main, [str(model), "-o", str(path), *flags])
    assert done.exit_code == 0, done.output
    first, *_, last = done.stdout.splitlines()
    assert first.endswith(f"-> {path}, {path.with_suffix('.safetensors')}")
    name, *arguments = shlex.split(last.removeprefix("  run it: "))
    assert name == "iree-run-module"
    ran = subprocess.run([Path(sys.executable).parent / name, *arguments], capture_output=True, text=True, check=True)
    assert "1x40xf32=[0.025" in ran.stdout


def _softmax(x: np.ndarray) -> np.ndarray:
    exponents = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=-1, keepdims=True))


def test_the_program_runs_at_any_size(program: Path, weights: np.ndarray) -> None:
    loaded = tfconvert.load(program)
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=(size, 16)).astype(np.float32)
        found = loaded(x=x)
        assert list(found) == [each.name for each in loaded.interfaces[0].outputs]
        np.testing.assert_allclose(found["scores"], _softmax(x @ weights), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["total"], x.sum(), rtol=1e-4, atol=1e-5)


def test_the_weights_are_beside_the_program(program: Path, weights: np.ndarray) -> None:
    content = program.with_suffix(".safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    ((name, entry),) = json.loads(content[8 : 8 + length]).items()
    assert entry == {"dtype": "F32", "shape": [16, 40], "data_offsets": [0, weights.nbytes]}
    assert content[8 + length :] == weights.tobytes()
    text = program.with_suffix(".mlir").read_text()
    assert f'#flow.parameter.named<"model"::"{name}">' in text
    assert sorted(path.name for path in program.parent.iterdir()) == ["model.mlir", "model.safetensors", "model.vmfb"]


@pytest.mark.parametrize("backend", ["llvm-cpu", "vmvx"])
def test_weights_can_be_in_the_program(model: Path, weights: np.ndarray, tmp_path: Path, backend: Any) -> None:
    settings = tfconvert.Iree(backend=backend, embed_weights=True)
    converted = tfconvert.convert(model, target=settings)
    (tmp_path / "a.vmfb").write_bytes(bytes(converted))
    x = np.ones((2, 16), np.float32)
    found = tfconvert.load(tmp_path / "a.vmfb").run([x])
    np.testing.assert_allclose(found["scores"], _softmax(x @ weights), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"x": np.ones((3, 15), np.float32)}, "shape"),
        ({"x": np.ones((3, 16), np.complex64)}, "complex64"),
        ({"y": np.ones((3, 16), np.float32)}, "these are taken: x"),
        ([], "0 inputs"),
    ],
)
def test_wrong_inputs_are_reported_by_name(program: Path, inputs: Any, told: str) -> None:
    with pytest.raises(tfconvert.ConversionError, match=told) as refused:
        tfconvert.load(program).run(inputs)
    assert refused.value.code == "wrong-sample"


def test_results_that_cannot_be_fetched_are_reported(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unready:
        def to_host(self) -> None:
            raise RuntimeError("transient buffer has not been committed")

    loaded = IreeProgram(program)
    monkeypatch.setitem(loaded._calls, "main", lambda *inputs: [Unready(), Unready()])
    with pytest.raises(tfconvert.ConversionError, match="not been committed") as failed:
        loaded.run([np.ones((3, 16), np.float32)])
    assert failed.value.code == "runtime-error"


def test_programs_have_the_calls_of_every_model(program: Path, model: Path) -> None:
    loaded = tfconvert.load(program)
    x = np.random.default_rng(0).normal(size=(5, 16))
    scores, total = loaded(x)
    assert [each.name for each in loaded.inputs] == ["x"]
    assert list(loaded(x=x)) == [each.name for each in loaded.outputs]
    for one, other in zip(tfconvert.convert(model, target="iree")(x), (scores, total), strict=True):
        np.testing.assert_array_equal(one, other)
    # The sum has no batch, so each sample is a run.
    each_scores, each_total = loaded.predict(x)
    np.testing.assert_allclose(each_scores[:, 0], scores, rtol=1e-5)
    np.testing.assert_allclose(each_total.sum(), total, rtol=1e-4)


def test_a_missing_signature_is_reported(program: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match="serving_default"):
        tfconvert.load(program).run({}, "train")


def test_damaged_programs_are_refused(program: Path, tmp_path: Path) -> None:
    content = program.read_bytes()
    for name, damaged in (("half", content[: len(content) // 2]), ("text", b"module {}"), ("empty", b"")):
        path = tmp_path / f"{name}.vmfb"
        path.write_bytes(damaged)
        with pytest.raises(tfconvert.ConversionError) as refused:
            tfconvert.load(path)
        assert refused.value.code == "bad-program", name
    with pytest.raises(tfconvert.ConversionError, match="doesn't exist"):
        tfconvert.load(tmp_path / "none.vmfb")


def test_programs_without_their_weights_are_refused(program: Path, tmp_path: Path) -> None:
    (tmp_path / "alone.vmfb").write_bytes(program.read_bytes())
    with pytest.raises(tfconvert.ConversionError, match=r"alone\.safetensors") as refused:
        tfconvert.load(tmp_path / "alone.vmfb")
    assert refused.value.code == "bad-program"
    (tmp_path / "alone.safetensors").write_bytes(program.with_suffix(".safetensors").read_bytes()[:100])
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.load(tmp_path / "alone.vmfb")
    assert refused.value.code == "bad-program"


def test_messages_of_the_compiler_are_reported(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.vmfb"
    command = [str(model), "-o", str(path), "--target", "iree", "--iree-flag", "--no-such-flag"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    assert "iree-compile-failed" in done.stderr
    assert "no-such-flag" in done.stderr
    assert list(tmp_path.iterdir()) == []
    done = CliRunner().invoke(main, [*command, "--keep-mlir"])
    assert done.exit_code == 1
    assert "its text is in the .mlir beside it" in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.mlir", "model.safetensors"]


def test_batches_and_servers_make_programs_with_their_weights(
    program: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["batch", str(model), "-o", "batch.vmfb"])
    assert done.exit_code == 0, done.output
    with RunningService(tmp_path / "server") as server:
        done = CliRunner().invoke(main, [str(model), "-o", "remote.vmfb", "--server", server.url, "--keep-mlir"])
    assert done.exit_code == 0, done.output
    assert Path("remote.mlir").read_bytes() == program.with_suffix(".mlir").read_bytes()
    x = np.ones((2, 16), np.float32)
    expected = tfconvert.load(program)(x=x)["scores"]
    for name in ("batch", "remote"):
        assert Path(f"{name}.safetensors").read_bytes() == program.with_suffix(".safetensors").read_bytes()
        np.testing.assert_array_equal(tfconvert.load(f"{name}.vmfb")(x=x)["scores"], expected)


def test_a_compiler_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "compiler"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setattr(compiler, "find", lambda: str(script))
    with pytest.raises(tfconvert.ConversionError) as refused:
        compiler.compile_text(lambda stream: None, tfconvert.Iree(), 0.2)
    assert refused.value.code == "iree-timeout"


def test_a_missing_directory_is_reported(model: Path, tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(model, target="iree").save(tmp_path / "none" / "model.vmfb")
    assert refused.value.code == "output-not-writable"
