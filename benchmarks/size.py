"""Counts the size of the package and how often it says the same thing.

    python -m benchmarks.size           totals, and the folders
    python -m benchmarks.size --ops 20  the ops that stand in the most files, too

Tokens are counted without comments and docstrings, and generated code isn't counted. An op stands in a file if the file
has its name in a string; ops that TensorFlow's registry doesn't know aren't counted. An op is lowered twice if LiteRT
has no operator for it, and yet both LiteRT and StableHLO have a lowering of their own instead of one decomposition.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tfconvert
from benchmarks.zoo import REPOSITORY
from tfconvert.converter.targets.litert.legalize import legalizations
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow
from tfconvert.converter.targets.stablehlo.legalize.lowerings import LOWERINGS
from tfconvert.ops import generate
from tfconvert.schema.tensorflow import op_defs

_PACKAGE = REPOSITORY / "tfconvert"
_NOT_COUNTED = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    )
)
_NAME = re.compile(r"[A-Z][A-Za-z0-9]+")


class Size(NamedTuple):
    """The size of some files.

    Attributes:
        files: How many there are.
        lines: Their lines.
        tokens: Their tokens, without comments and docstrings.
    """

    files: int = 0
    lines: int = 0
    tokens: int = 0

    def plus(self, other: Size) -> Size:
        """Returns the sum of both."""
        return Size(*(one + two for one, two in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.files:5} files {self.lines:8,} lines {self.tokens:9,} tokens"


def sources(folder: Path) -> Iterator[Path]:
    """Yields the hand-written modules of a folder."""
    for path in sorted(folder.rglob("*.py")):
        if "generated" not in path.parts and path != generate.INDEX:
            yield path


def size_of(text: str) -> Size:
    """Returns the size of a module."""
    docstrings = sum(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for node in ast.walk(ast.parse(text))
    )
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    counted = sum(token.type not in _NOT_COUNTED for token in tokens)
    return Size(1, text.count("\n"), counted - docstrings)


def ops_in(text: str) -> set[str]:
    """Returns the ops of TensorFlow's registry that a module names in strings, docstrings aside."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    names = {name for node in strings if id(node) not in docstrings for name in _NAME.findall(str(node.value))}
    return {name for name in names if op_defs.lookup(name) is not None}


def lowered_twice() -> set[str]:
    """Returns the ops without an operator of LiteRT that both targets lower by themselves."""
    table = legalizations.TABLE
    entries = [entry for file in table.load(frozenset(table.modules)) for entry in getattr(file, "ENTRIES", ())]
    rows = {entry.op for entry in entries if isinstance(entry, BuiltinRow)}
    own = {entry.op for entry in entries} - rows
    return own & {name.removeprefix("tf.") for name in LOWERINGS}


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=0, help="how many of the ops that stand in the most files to list")
    arguments = parser.parse_args()
    by_folder: dict[str, Size] = {}
    places: Counter[str] = Counter()
    for path in sources(_PACKAGE):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(_PACKAGE).parts[:-1][:2]
        folder = "/".join(("tfconvert", *parts))
        by_folder[folder] = by_folder.get(folder, Size()).plus(size_of(text))
        places.update(ops_in(text))
    for folder, size in sorted(by_folder.items()):
        print(f"{folder:36} {size}")
    total = Size()
    for size in by_folder.values():
        total = total.plus(size)
    print(f"{'all':36} {total}")
    print(f"parameters of convert: {len(inspect.signature(tfconvert.convert).parameters)}")
    print(f"loose modules in converter/: {len(list((_PACKAGE / 'converter').glob('[!_]*.py')))}")
    print(f"ops lowered twice: {len(lowered_twice())}")
    spread = Counter(min(count, 6) for count in places.values())
    print(
        "ops by the files that they stand in:",
        ", ".join(f"{'6 or more' if count == 6 else count}: {number}" for count, number in sorted(spread.items())),
    )
    for name, count in places.most_common(arguments.ops):
        print(f"  {name}: {count}")


if __name__ == "__main__":
    main()
