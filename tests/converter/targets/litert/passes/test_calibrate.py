"""The pass `calibrate`, with samples and with a calibration file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.calibrate import Calibrate
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Quantize

TEXT = """
    func.func @main(%x: tensor<4xf32>, %n: tensor<2xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = "tfl.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "tfl.softmax"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = "tfl.relu"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = "tfl.sin"(%2) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %2, %3 : tensor<4xf32>, tensor<4xf32>
    }
"""
SAMPLES = [
    [np.array([-1, 0, 1, 2], np.float32), np.zeros(2, np.int32)],
    [np.array([-3, 0, 0, 0], np.float32), np.zeros(2, np.int32)],
]


def _seen(module: ModuleOp) -> list[Range | None]:
    """Returns the ranges of the arguments and of each op's result."""
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    values = [*function.body.block.args, *(result for op in function.body.block.ops for result in op.results)]
    return [range_of(value) for value in values]


def _apply(**settings: Any) -> list[Range | None]:
    module = parse(TEXT)
    Calibrate(Quantize("int8", **settings)).apply(module)
    return _seen(module)


def test_what_is_needed_is_seen() -> None:
    # The sine stays float, and integers are integers.
    found = _apply(samples=SAMPLES)
    assert found[:3] == [Range(-3.0, 2.0), None, Range(0.0, 3.0)]
    assert found[3] == found[4]
    assert found[3] is not None
    assert found[5] is None


def test_inputs_and_outputs_are_seen_if_they_are_to_be_integers() -> None:
    found = _apply(samples=SAMPLES, io="int8", exclude=["*"])
    assert [each is not None for each in found] == [True, False, False, False, True, True]


def test_a_file_keeps_the_ranges(tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    first = _apply(samples=iter(SAMPLES), calibration=path)
    content = path.read_bytes()
    # It is read if it is there: these samples would fail.
    assert _apply(samples=[[1, 2, 3]], calibration=path) == first
    assert _apply(calibration=str(path)) == first
    assert path.read_bytes() == content
    with pytest.raises(ConversionError, match="holds ranges of 'minmax', of version 1, not 'mse'"):
        _apply(calibration=path, ranges="mse")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\xff",
        "[]",
        "{}",
        "[" * 100_000,
        '{"version": 1, "method": "minmax", "ranges": []}',
        '{"version": 1, "method": "minmax", "ranges": {"a": 1}}',
        '{"version": 1, "method": "minmax", "ranges": {"a": [1]}}',
        '{"version": 1, "method": "minmax", "ranges": {"a": [0, "x"]}}',
        '{"version": 1, "ranges": {}}',
        '{"version": 1, "method": "minmax", "ranges": {"a": [0, ' + "9" * 400 + "]}}",
        '{"version": 2, "method": "minmax", "ranges": {}}',
        '{"version": 1, "method": "minmax", "ranges": {"another": [0, 1]}}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ranges.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConversionError) as caught:
        _apply(calibration=path, samples=SAMPLES)
    assert caught.value.code == "bad-calibration"


def test_numbers_that_are_not_finite_are_kept_and_unused(tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    _apply(samples=SAMPLES, calibration=path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["ranges"] = {name: [float("nan"), float("inf")] for name in content["ranges"]}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not any(_apply(calibration=path))


def test_there_must_be_samples(tmp_path: Path) -> None:
    spent = iter(SAMPLES)
    list(spent)
    wrong: list[dict[str, Any]] = [{}, {"calibration": tmp_path / "none.json"}, {"samples": []}, {"samples": spent}]
    for settings in wrong:
        with pytest.raises(ConversionError) as caught:
            _apply(**settings)
        assert caught.value.code == "no-samples"
        is_spent = settings.get("samples") is spent
        assert ("an iterator gives" in caught.value.diagnostics[0].hint) == is_spent


def test_the_file_must_be_writable(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "ranges.json"):
        with pytest.raises(ConversionError) as caught:
            _apply(samples=SAMPLES, calibration=path)
        assert caught.value.code == "output-not-writable"


def test_a_model_without_inputs_runs() -> None:
    module = parse("""
    func.func @main() -> tensor<4xf32> {
      %0 = "tfl.pseudo_const"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
      %1 = "tfl.pseudo_const"() <{value = dense<-3.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "tfl.abs"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %2 : tensor<4xf32>
    }
    """)
    Calibrate(Quantize("int8", samples=[[]])).apply(module)
    assert _seen(module)[-1] == Range(3.0, 3.0)
