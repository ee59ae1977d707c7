"""The target IREE as far as it needs no compiler: its settings, its text and weights, and the error without it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.converter.targets.stablehlo.test_target import MODEL
from tfconvert.cli.main import main
from tfconvert.converter.targets.iree import compiler
from tfconvert.converter.targets.iree.description import description_in
from tfconvert.converter.targets.iree.passes.weights_to_parameters import WeightsToParameters, weights_of
from tfconvert.exporters.output_file import write_whole
from tfconvert.exporters.safetensors import Safetensors
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import error


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Returns the file of a model with weights."""
    path = tmp_path / "model.mlir"
    path.write_text(MODEL.replace("WEIGHTS", np.arange(512, dtype=np.float32).tobytes().hex()))
    return path


@pytest.fixture
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise error("iree-missing", "not installed", hint="pip install 'tfconvert[iree]'")

    monkeypatch.setattr(compiler, "find", missing)


@pytest.mark.usefixtures("_no_compiler")
def test_without_the_compiler_no_model_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    text = tmp_path / "program.mlir"
    text.write_text("precious")
    done = CliRunner().invoke(main, ["no-such-model", "-o", str(text.with_suffix(".vmfb")), "--target", "iree"])
    assert done.exit_code == 1
    assert "iree-missing" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == [text.name]
    assert text.read_text() == "precious"


@pytest.mark.usefixtures("_no_compiler")
def test_without_the_compiler_the_text_is_written_if_it_is_to_be_kept(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "out" / "program.vmfb"
    path.parent.mkdir()
    done = CliRunner().invoke(main, [str(model), "-o", str(path), "--target", "iree", "--keep-mlir"])
    assert done.exit_code == 1
    assert "iree-missing" in done.stderr
    assert "its text is in the .mlir beside it" in done.stderr
    assert re.search(r"pip install .*\[iree\]'", done.stderr)
    assert sorted(each.name for each in path.parent.iterdir()) == ["program.mlir", "program.safetensors"]
    text = path.with_suffix(".mlir").read_text()
    assert '#flow.parameter.named<"model"::"w0"> : tensor<16x32xf32>' in text
    assert "tf.weight" not in text
    assert "dense_resource" not in text


@pytest.mark.parametrize(
    ("script", "told", "hint"),
    [
        ("kill -SEGV $$", "has crashed (signal 11)", "fix dynamic sizes (--batch"),
        ("echo 'x.mlir:1:2: error: no type' >&2; kill -ABRT $$", "(signal 6):\n  x.mlir:1:2: error", "--keep-mlir"),
        ("echo 'x.mlir:1:2: error: no such type' >&2; exit 1", "has failed with status 1:", "--keep-mlir"),
        ("echo 'iree-compile: for the --opt option' >&2; exit 1", "for the --opt option", "correct the flag"),
    ],
)
def test_failures_of_the_compiler_are_reported(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str, hint: str
) -> None:
    backtrace = "echo 'Please report issues to ... and include the crash backtrace.\nStack dump:\n #0 0x07f error' >&2"
    program = tmp_path / "compiler"
    command, _, end = script.rpartition("; ")
    program.write_text("\n".join(["#!/bin/sh", command, backtrace if "kill" in end else "", end]))
    program.chmod(0o755)
    monkeypatch.setattr(compiler, "find", lambda: str(program))
    path = tmp_path / "out" / "program.vmfb"
    path.parent.mkdir()
    done = CliRunner().invoke(main, [str(model), "-o", str(path), "--target", "iree"])
    assert done.exit_code == 1
    assert "iree-compile-failed" in done.stderr
    assert told in done.stderr
    assert hint in done.stderr
    assert "Stack dump" not in done.stderr
    assert not list(path.parent.iterdir())


@pytest.mark.usefixtures("_no_compiler")
def test_the_text_never_replaces_the_model(model: Path) -> None:
    before = model.read_bytes()
    kept = tfconvert.Iree(keep_mlir=True)
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(model, target=kept).save(model.with_suffix(".vmfb"))
    assert refused.value.code == "output-over-input"
    assert model.read_bytes() == before


def test_weights_become_parameters(model: Path) -> None:
    module = weighty_module(model)
    result = WeightsToParameters().apply(module)
    assert result.counts == {"parameters": 2, "uses": 2}
    names = [op.name for op in module.walk()]
    assert names.count("util.global") == 2
    assert names.count("util.global.load") == 2
    assert names.count("stablehlo.constant") == 1
    weight, other = weights_of(module).values()
    assert other.array().tobytes() == weight.array().tobytes()
    assert weight.array().tobytes() == np.arange(512, dtype=np.float32).tobytes()


def weighty_module(path: Path) -> Any:
    """Returns a module that uses two weights and has a small constant."""
    data = np.arange(512, dtype=np.float32).tobytes().hex().upper()
    path.write_text(f"""
    func.func @main() -> (tensor<512xf32>, tensor<512xf32>, tensor<2xf32>) {{
      %0 = stablehlo.constant dense<"0x{data}"> : tensor<512xf32>
      %1 = stablehlo.constant dense<"0x{data}"> : tensor<512xf32>
      %2 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      func.return %0, %1, %2 : tensor<512xf32>, tensor<512xf32>, tensor<2xf32>
    }}""")
    return Source(str(path)).open()


def test_weights_with_odd_sizes_have_no_gaps_between_them(model: Path, tmp_path: Path) -> None:
    module = weighty_module(model)
    WeightsToParameters().apply(module)
    weight, _ = weights_of(module).values()
    file = Safetensors({"a": weight, "b": weight})
    write_whole(tmp_path / "w.safetensors", file.write)
    content = (tmp_path / "w.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert (8 + length) % 64 == 0
    entries = json.loads(content[8 : 8 + length])
    assert [each["data_offsets"] for each in entries.values()] == [[0, 2048], [2048, 4096]]
    assert len(content) == file.size == 8 + length + 4096


@pytest.mark.parametrize(
    "settings",
    [
        {"target": "iree", "quantize": "dynamic"},
        {"target": tfconvert.Iree(), "quantize": tfconvert.Quantize("dynamic")},
        {"target": tfconvert.Iree},
        {"target": "Iree"},
        {"target": "iree", "verify": tfconvert.Verify(compare_layers=True)},
        {"target": tfconvert.Iree(backend="tpu")},  # type: ignore[arg-type]
        {"target": tfconvert.Iree(backend="vmvx", cpu="host")},
        {"target": tfconvert.Iree(cpu="-x")},
        {"target": tfconvert.Iree(flags=["-o", "x"])},
        {"target": tfconvert.Iree(flags=["--iree-hal-target-device=cuda"])},
        {"target": tfconvert.Iree(flags="--x")},
    ],
)
def test_invalid_settings_are_rejected(model: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(tfconvert.ConversionError) as refused:
        tfconvert.convert(model, **settings)
    assert refused.value.code == "wrong-option"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"inputs": [{"shape": null}]}', "[" * 100_000, '{"inputs": 1}'])
def test_invalid_descriptions_are_ignored(text: str) -> None:
    assert description_in({"tfconvert.interface": text}) is None


def test_every_backend_has_flags() -> None:
    assert compiler.flags_of(tfconvert.Iree(backend="cuda"))[0] == "--iree-hal-target-device=cuda"
    flags = compiler.flags_of(tfconvert.Iree(cpu="host", flags=["--x"]))
    assert "--iree-llvmcpu-target-cpu=host" in flags
    assert flags[-1] == "--x"
