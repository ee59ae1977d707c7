"""Definitions: dialects, the formats of TensorFlow and LiteRT, and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def rows_of(table: Path) -> Iterator[list[str]]:
    """Yields the fields of each row of a table; lines that begin with `#` are comments."""
    for line in table.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")
