"""LiteRT's file format, its operators and their versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
"""The folder with the tables that modules beside this file read; a compiled module doesn't know where it is."""


def rows_of(table: Path) -> Iterator[list[str]]:
    """Yields the fields of each row of a table; lines that begin with `#` are comments."""
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")
