"""TensorFlow's own MLIR accepts the texts in the passes' tests and docstrings: none is nonsense."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mlir import oracle
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.errors import ParseError

FOLDERS = (
    "tests/converter/passes",
    "tests/converter/targets/litert/passes",
    "tfconvert/converter/passes",
    "tfconvert/converter/targets/litert/passes",
)

# The control text must be refused, or the oracle judges nothing.
WRONG = 'func.func @f(%x: tensor<2xf32>) { "tf.AddV2"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n func.return }'


def _literals(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the texts in a file, with their lines; of docstrings the examples. Parts of f-strings are not texts."""
    tree = ast.parse(path.read_text("utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            blocks = re.findall(r"^(?:Before|After):\n\n((?:    .*\n|\n)+)", node.value, re.MULTILINE)
            for text in blocks or [node.value]:
                yield node.lineno, textwrap.dedent(text)


def _parses(text: str) -> bool:
    """Returns whether a literal is a text, and one in TensorFlow's dialects; templates are not."""
    if "func.func" not in text or "tfl." in text:
        return False
    try:
        IRParser(text).parse_module()
    except ParseError:
        return False
    return True


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[str, str]:
    """Returns all texts by file and line."""
    paths = [path for folder in FOLDERS for path in sorted((root / folder).glob("*.py"))]
    return {
        f"{path.name}:{line}/{number}": text
        for path in paths
        for number, (line, text) in enumerate(_literals(path))
        if path.name != Path(__file__).name and _parses(text)
    }


def test_tensorflow_takes_the_texts(texts: dict[str, str]) -> None:
    assert len(texts) > 50
    problems = oracle.problems({"wrong": WRONG, **texts})
    assert problems.pop("wrong")
    refused = {name for name, text in texts.items() if "// TensorFlow refuses: " in text}
    assert {name: problem for name, problem in problems.items() if name not in refused} == {}
    assert refused <= set(problems)
