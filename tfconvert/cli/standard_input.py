"""A model from standard input, as a file with the extension of its format."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "standard input"
"""The name of such a model in reports."""

# How files begin, after so many bytes, and the extensions by which they are opened; others are frozen graphs.
_SIGNATURES = ((4, b"TFL3", ".tflite"), (0, b"ML\xefR", ".mlirbc"), (0, b"PK", ".keras"), (0, b"\x89HDF", ".h5"))
_TEXT = frozenset(b"\t\n\r" + bytes(range(32, 127)))
_HEAD = 256


@contextmanager
def model_file(model: str) -> Iterator[str]:
    """Yields the path of a model: for `-` that of a temporary file with the contents of standard input.

    Args:
        model: The model as the user names it.
    """
    if model != "-":
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        stream = sys.stdin.buffer
        head = stream.read(_HEAD)
        path = Path(folder, f"{NAME}{_extension(head)}")
        with path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(stream, file)
        yield str(path)


def _extension(head: bytes) -> str:
    for start, mark, extension in _SIGNATURES:
        if head[start:].startswith(mark):
            return extension
    is_text = bool(head) and _TEXT.issuperset(head)
    if not is_text:
        return ".pb"
    return ".pbtxt" if head.lstrip().startswith((b"node", b"versions", b"library", b"#")) else ".mlir"
