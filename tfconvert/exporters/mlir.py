"""IR to MLIR text."""

from __future__ import annotations

import io
import os
from typing import BinaryIO, TextIO

from tfconvert.exporters.output_file import write_whole
from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.ir.builtin import ModuleOp


def write_mlir(module: ModuleOp, stream: TextIO, *, elide: int | None = None, locations: bool = False) -> None:
    """Prints a module.

    Args:
        module: The module.
        stream: Where to.
        elide: Constants of more elements than this are left out of the text, which can then be read by people but no
            longer by tools; `None` prints everything.
        locations: Whether to print the locations of ops.
    """
    print_module(module, stream, elide=elide, locations=locations)


def save_mlir(
    modules: list[ModuleOp], path: str | os.PathLike[str], *, elide: int | None = None, locations: bool = False
) -> None:
    """Writes modules, one after the other with `// -----` between, to a file that appears whole or not at all."""

    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", write_through=True)
        write_modules(modules, text, elide=elide, locations=locations)
        text.detach()

    write_whole(path, write)


def write_modules(
    modules: list[ModuleOp], stream: TextIO, *, elide: int | None = None, locations: bool = False
) -> None:
    """Prints modules with `// -----` between them; see `write_mlir`."""
    for number, module in enumerate(modules):
        if number:
            stream.write("// -----\n")
        write_mlir(module, stream, elide=elide, locations=locations)
