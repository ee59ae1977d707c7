"""The tools as functions: the same results as the command's, for paths and for converted models."""

from __future__ import annotations

import html
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tfconvert.cli.main import main
from tfconvert.schema.diagnostics import size_text


@pytest.fixture(scope="module")
def pair(digits_model: Path) -> tuple[tfconvert.Model, tfconvert.Model]:
    return tfconvert.convert(digits_model), tfconvert.convert(digits_model, quantize="dynamic")


@pytest.fixture
def paths(pair: tuple[tfconvert.Model, tfconvert.Model], tmp_path: Path) -> list[str]:
    """Returns both as files."""
    found = [str(tmp_path / name) for name in ("floats.tflite", "dynamic.tflite")]
    for path, model in zip(found, pair, strict=True):
        model.save(path)
    return found


def _printed(*arguments: object) -> str:
    return CliRunner().invoke(main, list(map(str, arguments))).stdout.rstrip("\n")


def test_inspect_prints_what_the_command_prints(digits_model: Path, pair: Any, paths: list[str]) -> None:
    for model in (digits_model, paths[0]):
        found = tfconvert.inspect(model)
        assert str(found) == repr(found) == _printed("inspect", model)
    found = tfconvert.inspect(pair[0])
    assert found.litert is not None
    assert found.litert.size == pair[0].size
    assert str(found).startswith(f"{digits_model} ({size_text(pair[0].size)}): LiteRT")
    accepted = tfconvert.inspect(pair[0], accelerator=["gpu"]).acceptances
    assert [each.accelerator for each in accepted] == ["gpu"]


def test_diff_prints_what_the_command_prints(pair: Any, paths: list[str]) -> None:
    found = tfconvert.diff(*paths)
    assert str(found) == repr(found) == _printed("diff", *paths)
    assert tfconvert.diff(*pair).to_dict() == found.to_dict()
    assert not found.is_same
    same = tfconvert.diff(pair[0], paths[0])
    assert same.is_same
    assert str(same).endswith("  the same")


def test_verify_prints_what_the_command_prints(digits_model: Path, pair: Any, paths: list[str]) -> None:
    for path, model in zip(paths, pair, strict=True):
        found = tfconvert.verify(path, digits_model)
        assert found.agrees
        assert found.to_text() == _printed("verify", path, "--against", digits_model)
        assert tfconvert.verify(model, digits_model) == found
        assert repr(found) == str(found)
    strict = tfconvert.verify(pair[1], digits_model, min_snr=150)
    assert not strict.agrees
    assert "error: the quantized model differs too much" in str(strict)


def test_bench_prints_its_measurements(digits_model: Path, pair: Any, paths: list[str]) -> None:
    found = tfconvert.bench(pair[0], runs=2)
    text = str(found)
    assert text == repr(found)
    assert text.startswith(
        f"{digits_model} ({size_text(pair[0].size)}): {pair[0].size} bytes, 1 thread, 2 runs on pixels float32[1,8,8,1]"
    )
    assert {each.operator for each in found.operators} >= {"CONV_2D", "FULLY_CONNECTED"}
    assert "each measured alone" in text
    whole = tfconvert.bench(paths[0], runs=2, threads=2, input_shapes={"pixels": (3, 8, 8, 1)}, by_operator=False)
    assert whole.inputs == ("pixels float32[3,8,8,1]",)
    assert not whole.operators


@pytest.mark.parametrize(
    "call",
    [
        lambda: tfconvert.bench(3),
        lambda: tfconvert.diff(np.zeros((1000, 1000)), "a.tflite"),
        lambda: tfconvert.verify(None, "model"),
        lambda: tfconvert.bench(tfconvert.convert("examples/digits/saved_model", target="stablehlo")),
    ],
)
def test_other_things_are_refused(call: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with pytest.raises(tfconvert.ConversionError) as refused:
        call()
    assert refused.value.code == "wrong-option"
    assert refused.value.diagnostics[0].hint
    assert len(str(refused.value)) < 300


def test_models_and_reports_have_a_summary(pair: Any) -> None:
    summary = pair[1]._repr_html_()
    assert summary == pair[1].report._repr_html_()
    for expected in ("pixels", "output_0", "CONV_2D", "runs in TensorFlow Lite"):
        assert expected in summary
    for forbidden in ("<script", "http", "src=", "<style"):
        assert forbidden not in summary
    assert len(summary) < 20_000
    assert repr(pair[1].report) == str(pair[1].report)


def test_help_is_short() -> None:
    signature = inspect.signature(tfconvert.convert)
    assert list(signature.parameters)[:4] == ["model", "quantize", "samples", "verify"]
    assert len(str(signature)) < 1000
    assert "Limits(" not in str(signature)
    assert len(inspect.getdoc(tfconvert.convert) or "") < 3500


def test_samples_go_with_the_mode(digits_model: Path) -> None:
    pixels = np.random.default_rng(0).uniform(size=(8, 8, 8, 1)).astype(np.float32)
    expected = bytes(tfconvert.convert(digits_model, quantize=tfconvert.Quantize("int8", samples=list(pixels))))
    for given in (
        {"quantize": "int8", "samples": pixels},
        {"quantize": "INT8", "samples": pixels[:, None]},
        {"quantize": tfconvert.Quantize("int8"), "samples": {"pixels": pixels}},
        {"target": tfconvert.LiteRT(quantize=tfconvert.Quantize("int8")), "samples": pixels},
    ):
        assert bytes(tfconvert.convert(digits_model, **given)) == expected
    for wrong, message in (
        ({"samples": pixels}, 'add quantize="int8"'),
        ({"quantize": "dynamic", "samples": pixels}, "takes no samples"),
        ({"quantize": tfconvert.Quantize("int8", samples=pixels), "samples": pixels}, "samples are given twice"),
        ({"target": "stablehlo", "samples": pixels}, "samples is a setting of LiteRT"),
        ({"quantize": {"mode": "int8", "samples": pixels}}, "<ndarray of float32 \\[8, 8, 8, 1\\]>"),
    ):
        with pytest.raises(tfconvert.ConversionError, match=message) as refused:
            tfconvert.convert(digits_model, **wrong)
        assert refused.value.code == "wrong-option"


def test_the_command_reads_samples_alike(digits_model: Path, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).uniform(size=(8, 8, 8, 1)).astype(np.float32)
    np.savez(tmp_path / "photos.npz", photos=pixels)
    output = tmp_path / "model.tflite"
    options = ["--quantize", "INT8", "--samples", tmp_path / "photos.npz"]
    text = _printed(digits_model, "-o", output, *options)
    assert "note: 'photos' of the samples is used for the input 'pixels'" in text
    assert output.read_bytes() == bytes(tfconvert.convert(digits_model, quantize="int8", samples=pixels))


def test_limits_are_limits(digits_model: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match=r"limits can't be \{'constant_bytes': 3\}") as refused:
        tfconvert.convert(digits_model, limits={"constant_bytes": 3})  # type: ignore[arg-type]
    assert "tfconvert.Limits(constant_bytes=1 << 33)" in refused.value.diagnostics[0].hint


def test_view_returns_a_page(digits_model: Path, pair: Any, paths: list[str], tmp_path: Path) -> None:
    for model in (pair[0], paths[0], digits_model):
        page = tfconvert.view(model)
        page.save(tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text("utf-8")
        assert text == page.to_html()
        assert "pixels" in text
        assert len(repr(page)) < 300
    assert {tfconvert.view(pair[0]).kind, page.kind, tfconvert.view(*pair).kind} == {"file", "conversion", "comparison"}
    assert html.unescape(page._repr_html_().partition('srcdoc="')[2].partition('" style')[0]) == text
    assert tfconvert.view(digits_model, outputs=["nothing"]).failure is not None
