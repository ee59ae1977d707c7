"""Each family of ops has a test file of its name, and each op with a kernel a case there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfconvert.ops.index import MODULES
from tfconvert.ops.registry import kernel


def _patterns(tree: ast.Module) -> Iterator[str]:
    """Yields patterns of the names in a file: strings, attributes, and f-strings that begin with letters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            yield "".join(
                re.escape(str(each.value)) if isinstance(each, ast.Constant) else r"\w*" for each in node.values
            )


@pytest.mark.parametrize("family", MODULES)
def test_a_family_has_a_test_file_with_a_case_for_each_kernel(family: str, root: Path) -> None:
    tree = ast.parse((root / "tests" / "ops" / f"test_{family}.py").read_text("utf-8"))
    tested = re.compile("|".join(sorted(set(_patterns(tree)) - {""})))
    assert not [name for name in MODULES[family].split() if kernel(name) is not None and not tested.fullmatch(name)]
