"""The page of settings is made from the classes that declare them."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_page_is_current(root: Path) -> None:
    made = runpy.run_path(str(root / "docs" / "write_settings.py"))["page"]()
    assert (root / "docs" / "settings.md").read_text("utf-8") == made, "write it again: python docs/write_settings.py"
