"""IREE's compiler and runtime, as a judge of our programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfconvert.converter.iree.passes.stablehlo_to_iree_input import StablehloToIreeInput
from tfconvert.exporters.stablehlo import StableHLOText
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.verification import verify

FLAGS = (
    "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic", "--iree-input-demote-f64-to-f32=false",
)  # fmt: skip


def flavoured(text: str) -> bytes:
    """Returns a text of StableHLO as IREE takes it."""
    module = IRParser(text).parse_module()
    StablehloToIreeInput().apply(module)
    verify(module)
    return StableHLOText(module, inline=True).to_bytes()


def compiled(text: bytes, folder: Path) -> bytes:
    """Returns what IREE's compiler makes of a text."""
    source, program = folder / "program.mlir", folder / "program.vmfb"
    source.write_bytes(text)
    command = [str(Path(sys.executable).parent / "iree-compile"), str(source), "-o", str(program), *FLAGS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[:4000]}"
    return program.read_bytes()


class Program:
    """A program that is ready to run.

    Args:
        text: A text of StableHLO.
        folder: Where files may be put.
    """

    def __init__(self, text: str, folder: Path) -> None:
        from iree import runtime

        self.text = flavoured(text)
        config = runtime.Config("local-task")
        module = runtime.VmModule.copy_buffer(config.vm_instance, compiled(self.text, folder))
        context = runtime.SystemContext(config=config)
        context.add_vm_module(module)
        self._main = context.modules[module.name]["main"]

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the results of `main`."""
        found = self._main(*inputs)
        results = found if isinstance(found, list | tuple) else [found]
        return [each.to_host() for each in results]
