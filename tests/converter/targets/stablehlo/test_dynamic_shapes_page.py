"""The page about dynamic sizes is up to date."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_page_is_current(root: Path) -> None:
    made = runpy.run_path(str(root / "docs" / "write_dynamic_shapes.py"))["page"]()
    written = (root / "docs" / "dynamic_shapes.md").read_text("utf-8")
    assert written == made, "write it again: python docs/write_dynamic_shapes.py"
