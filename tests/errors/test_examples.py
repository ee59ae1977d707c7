"""The examples in the table of codes are what the command says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tfconvert.cli.main import main
from tfconvert.schema.error_codes import all_codes

_CONVERT = ["model", "-o", "x.tflite"]
_CONFIG = '[[models]]\nmodel = "model"\noutput = "x.tflite"\nsettings.quantise = "int8"\n'
_FILES: Mapping[str, bytes] = {
    "tfconvert.toml": _CONFIG.encode(),
    "patterns.py": b'\n\npattern("x")\n',
    "labels.txt": b"\xff\xfe\n",
    "frozen.pb": b"\xff\xff\xff",
    "model.txt": b"x",
    "returns.mlir": b"func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n  func.return %x : tensor<2xf32>\n}\n",
}


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("bad-config", ["build"]),
        ("bad-tuning-table", [*_CONVERT, "--tune", "table.tsv"]),
        ("bad-metadata", [*_CONVERT, "--metadata", "labels.txt"]),
        ("bad-plugin", [*_CONVERT, "--patterns", "patterns.py"]),
        ("invalid-ir", ["opt", "returns.mlir"]),
        ("malformed-pipeline", ["opt", "model", "-p", "inline,,fold"]),
        ("model-not-found", ["bench", "model.tflite"]),
        ("not-a-graph-def", ["frozen.pb", "-o", "x.tflite"]),
        ("output-not-writable", ["model", "-o", "out/model.tflite"]),
        ("unknown-format", ["model.txt", "-o", "x.tflite"]),
        ("unknown-option", ["opt", "model", "-p", "legalize{allow=true}"]),
        ("unknown-signature", [*_CONVERT, "--signature", "predict"]),
        ("unknown-tags", [*_CONVERT, "--tags", "train"]),
    ],
)
def test_examples_raise_the_documented_errors(
    code: str, arguments: Sequence[str], digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in _FILES.items():
        path = tmp_path / name
        path.write_bytes(content)
    (tmp_path / "model").symlink_to(digits_model)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code in (1, 2), result.output
    assert f"[{code}]" in result.output
    assert all_codes()[code].example in result.output
