"""MLIR text to IR, with errors that state the place and what was expected.

Ops without a location of their own get the place in the text, as in MLIR's own tools, so that a pass's diagnostic
names the line.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tfconvert.importers.containment import is_within
from tfconvert.ops.verification import first_broken
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.sdy import erase_shardings
from tfconvert.schema.dialects.tf_saved_model import AssetOp
from tfconvert.schema.files import read_input
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.limits import check_size

# Maximum number of characters of a line shown around an error.
_WINDOW = 100

_NOTHING = re.compile(r"(?:\s|//[^\n]*)*")


def import_mlir(
    text: str, filename: str = "<text>", *, first_line: int = 1, asset_root: str | os.PathLike[str] | None = None
) -> ModuleOp:
    """Returns the module that a text describes, verified.

    Args:
        text: MLIR in the project's dialects; top-level ops without a module get one.
        filename: The name of the text in errors.
        first_line: The number of the text's first line, if it is a part of a file.
        asset_root: The directory below which the text may name files to be read; by default it may not name any.

    Raises:
        ConversionError: It is too long (`too-large-text`), can't be parsed (`malformed-mlir`), breaks a rule of a
            dialect (`invalid-ir`), or names a file outside of the asset root (`bad-asset`).
    """
    check_size(len(text), "text_bytes")
    module = _parse(text, filename, first_line)
    if "sdy." in text:
        erase_shardings(module)
    broken = first_broken(module)
    if broken is not None:
        raise ConversionError([broken.diagnostic("invalid-ir")])
    for op in module.walk():
        if isinstance(op, AssetOp):
            _check_asset(op, asset_root)
    return module


def _check_asset(op: AssetOp, root: str | os.PathLike[str] | None) -> None:
    """Rejects files outside of the asset root, whose contents would end up in the converted model."""
    filename = op.properties.get("filename")
    name = filename.data if isinstance(filename, StringAttr) else ""
    if root is None or not name or not is_within(Path(name), Path(root)):
        where = "the text may not name files" if root is None else f"it is not in {os.fspath(root)}"
        raise error_at(
            op,
            "bad-asset",
            f"the asset {name!r} is not read: {where}",
            "name the directory of the text's assets with --asset-root, or asset_root in Python",
        )


def read_mlir(path: Path) -> str:
    """Returns the text of a file.

    Raises:
        ConversionError: It is not UTF-8 (`malformed-mlir`).
    """
    try:
        return read_input(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error(
            "malformed-mlir",
            f"byte {problem.start} is not UTF-8 text",
            location=str(path),
            hint="give MLIR text, or a portable StableHLO artifact",
        ) from problem


def _parse(text: str, filename: str, first_line: int) -> ModuleOp:
    if _NOTHING.fullmatch(text):
        return ModuleOp.of([])
    parser: IRParser | None = None
    try:
        parser = IRParser(text, filename, first_line, locate=True)
        return parser.parse_module()
    except ParseError as problem:
        raise _error(text, filename, first_line, problem.position, problem.message) from problem
    except RecursionError as problem:
        position = parser.pos if parser is not None else 0
        raise _error(text, filename, first_line, position, "nested too deeply") from problem


def _error(text: str, filename: str, first_line: int, position: int, message: str) -> ConversionError:
    """Returns an error at a position: the message, the source line, a caret."""
    position = min(position, len(text))
    line_start = text.rfind("\n", 0, position) + 1
    line, column = first_line + text.count("\n", 0, position), position - line_start + 1
    source = text[line_start:].partition("\n")[0].rstrip("\r")
    start = max(0, column - 1 - _WINDOW // 2)
    shown = source[start : start + _WINDOW]
    before = re.sub(r"[^\t]", " ", shown[: column - 1 - start])
    return error("malformed-mlir", f"{message}\n    {shown}\n    {before}^", location=f"{filename}:{line}:{column}")
