"""The page of StableHLO as input is up to date, and has every op."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_page_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "write_stablehlo_input.py"))
    assert script["missing"]() == set()
    made = script["page"]()
    page = (root / "docs" / "stablehlo_input.md").read_text("utf-8")
    assert page == made, "write it again: python docs/write_stablehlo_input.py"
