"""Programs on buffers are MLIR's: its own parser and verifier, as IREE's tool has them, take what we print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.converter.targets.stablehlo.random_modules import module_text
from tests.converter.targets.stablehlo.test_rfc_buffers import TEXT
from tfconvert.converter.targets.stablehlo.passes.legalize_to_buffers import LegalizeToBuffers
from tfconvert.converter.targets.stablehlo.passes.lower_to_library_calls import LowerToLibraryCalls
from tfconvert.schema.dialects.parsing import IRParser

pytest.importorskip("iree.compiler")

COUNT = 100


def test_mlir_takes_them(tmp_path: Path) -> None:
    programs = []
    for number, text in enumerate([TEXT, *map(module_text, range(COUNT))]):
        module = IRParser(text).parse_module()
        LegalizeToBuffers().apply(module)
        if number % 2 == 0:
            LowerToLibraryCalls().apply(module)
        programs.append(str(module))
    assert all("memref.alloc" in program for program in programs)
    source = tmp_path / "programs.mlir"
    source.write_text("\n// -----\n".join(programs))
    command = [str(Path(sys.executable).parent / "iree-opt"), str(source), "--split-input-file"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    assert done.stdout.count("func.func @main") == len(programs)
    # What it would not take is told.
    source.write_text(programs[0].replace("memref.dealloc", "memref.deallocate"))
    assert subprocess.run(command, capture_output=True, check=False).returncode
