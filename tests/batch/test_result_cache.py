"""The cache of results: equal conversions are copies, all others are not, and damage is noticed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.test_target import MODEL
from tfconvert.batch import result_cache as cache
from tfconvert.cli.convert_job import ConvertCommand
from tfconvert.cli.output_options import Output
from tfconvert.converter.targets.iree import compiler
from tfconvert.importers.source import Source
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import Iree, LiteRT, StableHLO

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def model(digits_model: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(digits_model, folder)
    return folder


@pytest.fixture
def convert(model: Path, tmp_path: Path) -> Run:
    """Returns a function that converts with the cache, and returns the report as data."""

    def convert(output: str = "out.tflite", source: Source | None = None, **options: Any) -> dict[str, Any]:
        where = Output(str(tmp_path / output), cache_dir=str(tmp_path / "cache"))
        return ConvertCommand(source or Source(str(model)), where, Options(**options)).run().to_dict()

    return convert


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("*.tflite"))


def test_the_same_again_is_a_copy(convert: Run, model: Path, tmp_path: Path) -> None:
    first = convert()
    assert "cached" not in first
    assert "cache-not-used" not in [note["code"] for note in first["notes"]]
    elsewhere = tmp_path / "elsewhere"
    model.rename(elsewhere)
    again = convert("again.tflite", Source(str(elsewhere)))
    assert again["cached"] is True
    assert again["source"] == str(elsewhere)
    assert {**again, "source": first["source"]} == {**first, "cached": True}
    assert (tmp_path / "again.tflite").read_bytes() == (tmp_path / "out.tflite").read_bytes()
    assert (tmp_path / "again.tflite").stat().st_mode == (tmp_path / "out.tflite").stat().st_mode


def test_a_result_can_be_changed_without_changing_the_cache(convert: Run, tmp_path: Path) -> None:
    convert()
    with (tmp_path / "out.tflite").open("r+b") as file:
        file.write(b"changed")
    assert convert()["cached"] is True
    assert (tmp_path / "out.tflite").read_bytes()[:7] != b"changed"


@pytest.mark.parametrize(
    "options",
    [
        {"target": LiteRT(allow_custom_ops=True)},
        {"target": LiteRT(recurrent="loop")},
        {"target": LiteRT(target_runtime="2.14")},
        {"target": LiteRT(quantize=Quantize("dynamic"))},
        {"target": LiteRT(quantize=Quantize("dynamic", exclude=["x"]))},
        {"target": LiteRT(metadata={"name": "model"})},
    ],
)
def test_other_settings_are_another_result(convert: Run, tmp_path: Path, options: dict[str, Any]) -> None:
    convert()
    assert "cached" not in convert(**options)
    assert convert(**options)["cached"] is True
    assert len(entries(tmp_path)) == 2


def test_another_part_of_the_model_is_another_result(convert: Run, model: Path) -> None:
    convert()
    for source in (Source(str(model), signatures=("serve",)), Source(str(model), input_shapes={"pixels": [2]})):
        assert "cached" not in _report(convert, source)
    named = [
        cache.entry("x", Source(str(model), input_shapes={name: [1]}), Options(), [model / "saved_model.pb"])
        for name in ("model", "progress", "temporary")
    ]
    assert len(set(named)) == 3


def _report(convert: Run, source: Source) -> dict[str, Any]:
    try:
        return convert(source=source)
    except tfconvert.ConversionError as problem:
        return {"error": problem.code}


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_other_contents_are_another_key(model: Path, name: str) -> None:
    files = Source(str(model)).files()
    before = cache.entry("x", Source(str(model)), Options(), files)
    with (model / name).open("ab") as file:
        file.write(b"\0")
    assert cache.entry("x", Source(str(model)), Options(), files) != before


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"[1]", b"\xff", b'{"form": 1, "sha256": "0", "report": {}, "texts": []}']
)
@pytest.mark.parametrize("kind", ["tflite", "json"])
def test_damaged_entries_are_made_again(convert: Run, tmp_path: Path, kind: str, damage: bytes) -> None:
    convert()
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    entry.with_suffix(f".{kind}").write_bytes(damage)
    assert "cached" not in convert()
    assert (tmp_path / "out.tflite").read_bytes() == entry.read_bytes() == whole
    assert convert()["cached"] is True


def test_an_entry_with_a_flipped_bit_is_made_again(convert: Run, tmp_path: Path) -> None:
    convert()
    (entry,) = entries(tmp_path)
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(bytes(content))
    assert "cached" not in convert()


@pytest.fixture
def text(tmp_path: Path) -> Source:
    """Returns a model with a weight, as a text."""
    path = tmp_path / "model.mlir"
    path.write_text(MODEL.replace("WEIGHTS", np.arange(512, dtype=np.float32).tobytes().hex()))
    return Source(str(path))


def _files(folder: Path, stem: str) -> dict[str, bytes]:
    return {path.suffix: path.read_bytes() for path in folder.glob(f"{stem}.*")}


@pytest.mark.parametrize("target", [StableHLO(weights="arguments"), StableHLO(weights="inline")])
def test_texts_and_what_is_beside_them_are_kept(convert: Run, text: Source, tmp_path: Path, target: StableHLO) -> None:
    first = convert("out.mlir", text, target=target)
    assert "cache-not-used" not in [note["code"] for note in first["notes"]]
    assert convert("again.mlir", text, target=target)["cached"] is True
    expected = _files(tmp_path, "out")
    assert set(expected) == ({".mlir", ".safetensors"} if target.weights == "arguments" else {".mlir"})
    assert _files(tmp_path, "again") == expected
    for damaged in (tmp_path / "cache").glob("*.safetensors"):
        damaged.write_bytes(b"")
        assert "cached" not in convert("again.mlir", text, target=target)
        assert _files(tmp_path, "again") == expected


def test_programs_are_kept_for_the_compiler_that_made_them(
    convert: Run, text: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "iree-compile"
    program.write_text("first")
    monkeypatch.setattr(compiler, "find", lambda: str(program))
    monkeypatch.setattr(compiler, "compile_text", lambda *_: compiler.Compiled(b"program", Counter(kernels=1)))
    kept = Iree(keep_mlir=True)
    assert "cached" not in convert("out.vmfb", text, target=kept)
    assert convert("again.vmfb", text, target=kept)["cached"] is True
    assert set(_files(tmp_path, "again")) == {".mlir", ".safetensors", ".vmfb"}
    assert _files(tmp_path, "again") == _files(tmp_path, "out")
    program.write_text("another")
    assert "cached" not in convert("again.vmfb", text, target=kept)
    for depends, name in ((Iree(cpu="host"), "--iree-target-cpu"), (Iree(flags=["--x=file"]), "--iree-flag")):
        assert cache.uncached(text, Options(target=depends), [Path(text.name)]).startswith(f"{name}: ")


def test_files_beside_a_kept_result_replace_none_that_are_read(convert: Run, text: Source, tmp_path: Path) -> None:
    convert("out.mlir", text, target=StableHLO(weights="arguments"))
    model = Path(text.name).read_text()
    (tmp_path / "net.safetensors").write_text(model)
    net = Source(str(tmp_path / "net.mlir"))
    (tmp_path / "net.mlir").symlink_to(tmp_path / "net.safetensors")
    with pytest.raises(tfconvert.ConversionError) as refused:
        convert("net.x", net, target=StableHLO(weights="arguments"))
    assert refused.value.code == "output-over-input"
    assert (tmp_path / "net.safetensors").read_text() == model


def test_what_is_code_is_not_kept(convert: Run, tmp_path: Path, model: Path) -> None:
    assert (
        cache.uncached(Source(str(model)), Options(patterns=[object()]), [model]) == "--patterns: it runs code of yours"
    )
    assert cache.uncached(Source(object()), Options(), []) == "the model is not in files"
    assert cache.uncached(Source(str(model)), Options(), [model]) == ""
    ranges = Quantize("int8", samples=["s.npz"], calibration=str(tmp_path / "ranges.json"))
    options = Options(target=LiteRT(quantize=ranges))
    assert cache.uncached(Source(str(model)), options, [model / "saved_model.pb"]).startswith("--calibration: ")


def test_results_with_pages_are_not_kept(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    output = Output(str(tmp_path / "out.tflite"), cache_dir=str(tmp_path / "cache"), page=str(page))
    report = ConvertCommand(Source(str(model)), output, Options(keep_graphs=True)).run().to_dict()
    (note,) = (note for note in report["notes"] if note["code"] == "cache-not-used")
    assert "it keeps no graphs for pages" in note["message"]
    assert not entries(tmp_path)
    assert page.read_text("utf-8").startswith("<!doctype")


def test_a_folder_that_cannot_be_used_is_a_warning(convert: Run, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", "utf-8")
    (note,) = (note for note in convert()["notes"] if note["code"] not in ("same-signature", "open-sizes"))
    assert (note["code"], note["severity"]) == ("cache-not-used", "warning")
    assert (tmp_path / "out.tflite").stat().st_size > 10_000


def test_a_model_that_changes_meanwhile_is_not_kept(
    convert: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = tfconvert.Model.save

    def saved(self: tfconvert.Model, *arguments: Any, **settings: Any) -> None:
        save(self, *arguments, **settings)
        os.utime(model / "saved_model.pb", (1, 1))

    monkeypatch.setattr(tfconvert.Model, "save", saved)
    convert()
    assert entries(tmp_path) == []


def test_arrays_and_pipes_come_from_the_cache_too(model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", str(model), "--cache-dir", "cache", "--json", "-o"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    contents, cached = set(), []
    for output in ("first.cc", "second/first.cc", "-", "file.tflite"):
        (tmp_path / output).parent.mkdir(exist_ok=True)
        run = subprocess.run(
            [*command, output], cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=120
        )
        cached.append(json.loads(run.stderr if output == "-" else run.stdout).get("cached", False))
        contents.add(run.stdout if output == "-" else (tmp_path / output).read_bytes())
    assert cached == [False, True, True, True]
    assert len(contents) == 2
    text = subprocess.run(
        [*command[:-2], "-o", "x.tflite"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert text.startswith(f"{model} -> x.tflite\n  from the cache; the conversion that made it:\n  ")
    assert "operators" in text


def test_many_processes_fill_one_folder(model: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(tfconvert.__file__).parents[1])}
    command = [sys.executable, "-m", "tfconvert", str(model), "-q", "--cache-dir", "cache", "-o"]
    runs = [subprocess.Popen([*command, f"{number}.tflite"], cwd=tmp_path, env=environment) for number in range(4)]
    assert [run.wait(120) for run in runs] == [0] * 4
    assert len({(tmp_path / f"{number}.tflite").read_bytes() for number in range(4)}) == 1
    assert len(list((tmp_path / "cache").iterdir())) == 2
