"""Artifacts that jaxlib wrote of `texts.py`, by name and version; `write_artifacts.py` writes them again."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "artifacts"

SEEDS = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.mlirbc"))}
