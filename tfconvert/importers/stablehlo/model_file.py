"""Files of StableHLO: portable artifacts, and those of `jax.export`, which contain one."""

from __future__ import annotations

import struct
from pathlib import Path

from tfconvert.importers.stablehlo.artifact import import_artifact, is_artifact
from tfconvert.importers.stablehlo.interface import export_main
from tfconvert.importers.stablehlo.jax_export import is_export, read_export
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.sources import bytes_of
from tfconvert.schema.files import LARGEST, InputFile
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.selection import Selection

# The largest file that is kept in memory with its module.
_KEPT = 1 << 20

# The first bytes that are read of a file to find out what it is.
_HEAD = 4


def is_stablehlo_file(path: Path) -> bool:
    """Returns whether a file is MLIR bytecode or was written by `jax.export`; `False` if it can't be read."""
    try:
        file = InputFile(path)
    except OSError:
        return False
    try:
        if file.size < 2 * _HEAD or file.size > LARGEST:
            return False
        head = bytes_of(file, 0, _HEAD).tobytes()
        if is_artifact(head):
            return True
        # The position of the only table, which is aligned.
        (root,) = struct.unpack("<I", head)
        return 0 < root < file.size and root % 4 == 0 and is_export(bytes_of(file, 0, file.size).data)
    finally:
        file.close()


def import_stablehlo(path: Path, selection: Selection) -> ModuleOp:
    """Returns the module of a file, with a signature for its function `main`.

    Args:
        path: A file that `is_stablehlo_file` accepts.
        selection: The shapes, the batch and the names that the user wants.

    Raises:
        ConversionError: The file can't be read (`unreadable-file`), or its contents can't be imported.
    """
    try:
        file = InputFile(path)
        data = bytes_of(file, 0, file.size).data
    except OSError as problem:
        raise error("unreadable-file", f"can't read {path}: {problem.strerror}") from problem
    if is_artifact(data):
        place = (file, 0) if file.size > _KEPT else None
        return export_main(import_artifact(data, str(path), place), selection)
    exported = read_export(data, str(path))
    module = import_artifact(exported.module, str(path))
    return export_main(module, selection, exported.platforms, exported.arguments, exported.results)
