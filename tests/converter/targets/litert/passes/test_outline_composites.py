"""The pass `outline-composites`: its form, what it leaves alone, and the files that it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flat_settings import converted
from tfconvert.cli.main import main
from tfconvert.converter.targets.litert.passes.outline_composites import OutlineComposites
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects.parsing import IRParser

KIND = "tensor<1x4x8xf32>"
TEXT = f"""
func.func @main(%a: {KIND}, %b: {KIND}) -> {KIND} {{
  %0 = "tf.Sigmoid"(%a) : ({KIND}) -> {KIND}
  %1 = "tf.Mul"(%a, %0) : ({KIND}, {KIND}) -> {KIND}
  %2 = "tf.Mul"(%1, %b) : ({KIND}, {KIND}) -> {KIND}
  func.return %2 : {KIND}
}}
"""


def test_a_part_that_is_used_elsewhere_stays() -> None:
    text = f"""
      func.func @main(%a: {KIND}, %b: {KIND}) -> ({KIND}, {KIND}) {{
        %0 = "tfl.logistic"(%a) : ({KIND}) -> {KIND}
        %1 = "tfl.mul"(%a, %0) : ({KIND}, {KIND}) -> {KIND}
        %2 = "tfl.mul"(%1, %b) : ({KIND}, {KIND}) -> {KIND}
        func.return %2, %0 : {KIND}, {KIND}
      }}
    """
    module = IRParser(text).parse_module()
    before = str(module)
    assert not OutlineComposites().apply(module).counts
    assert str(module) == before


def test_files_with_composites_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    model = converted(path, composites=["odml"])
    content = bytes(model)
    module = import_tflite(content)
    text = str(module)
    assert str(import_tflite(export(module).to_bytes())) == text
    assert 'name = "odml.swiglu"' in text
    assert str(IRParser(text).parse_module()) == text


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    file = tmp_path / "model.tflite"
    with pytest.raises(SystemExit) as ended:
        main([str(path), "-o", str(file), "--composites", "odml"])
    assert not ended.value.code
    assert "gated linear units     1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["inspect", str(file), "--accelerator", "gpu"])
    text = capsys.readouterr().out
    assert "odml.swiglu      1" in text
    assert "crashes on the GPU" in text
