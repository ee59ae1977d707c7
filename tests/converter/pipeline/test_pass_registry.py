"""Passes are found by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfconvert.converter.pipeline import pass_registry
from tfconvert.converter.pipelines import PIPELINES
from tfconvert.schema.diagnostics import ConversionError


def test_every_pass_is_there(root: Path) -> None:
    folders = (root / "tfconvert" / "converter").rglob("passes")
    files = [path.stem for folder in folders for path in folder.glob("*.py") if path.stem != "__init__"]
    assert pass_registry.pass_names() == tuple(sorted(file.replace("_", "-") for file in files))
    assert {pass_registry.pass_class(name).name for name in pass_registry.pass_names()} == set(
        pass_registry.pass_names()
    )


@pytest.mark.parametrize("name", ["", "no-such-pass", "freeze_variables", "cse.x", "../cse", "--init--"])
def test_what_is_no_pass_is_told(name: str) -> None:
    with pytest.raises(ConversionError) as caught:
        pass_registry.pass_class(name)
    assert caught.value.code == "unknown-pass"


def test_every_pass_of_the_pipelines_is_there() -> None:
    assert {stage.run for stages in PIPELINES.values() for stage in stages} <= set(pass_registry.pass_names())


def test_a_pass_by_name_loads_no_other(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("func.func @main() { func.return }")
    script = (
        "import sys; from tfconvert.cli.main import main\n"
        "main(['opt', sys.argv[1], '-p', 'cse'], standalone_mode=False)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('tfconvert.')), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(model)], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = set(done.stdout.splitlines())
    passes = {name for name in loaded if ".passes." in name}
    assert passes == {"tfconvert.converter.passes.cse"}
    rooms = ("kernels", "shapes", "rewrite", "executor", "litert.legalize", "litert.optimize", "litert.fusions")
    assert not [name for name in loaded if name.startswith(tuple(f"tfconvert.converter.{room}" for room in rooms))]
    assert not [name for name in loaded if name.startswith(("tfconvert.exporters.tflite", "tfconvert.importers.graph"))]
