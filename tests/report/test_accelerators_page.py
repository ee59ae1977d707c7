"""The page of accelerators is made from their tables."""

from __future__ import annotations

import runpy
from pathlib import Path

from tfconvert.schema.tflite.accelerators.acceptance import ACCELERATORS, table


def test_the_page_is_current(root: Path) -> None:
    script = root / "docs" / "write_accelerators.py"
    made = runpy.run_path(str(script))["page"]()
    assert (root / "docs" / "accelerators.md").read_text("utf-8") == made, f"write it again: python docs/{script.name}"


def test_each_operator_has_a_row(root: Path) -> None:
    lines = (root / "docs" / "accelerators.md").read_text("utf-8").splitlines()
    listed = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    tried = {operator for name in ACCELERATORS for operator in table(name).operators}
    assert tried <= set(listed)
    assert all(f"`{name}`: {table(name).release}" in "\n".join(lines) for name in ACCELERATORS)
