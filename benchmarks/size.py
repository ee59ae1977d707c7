"""Counts the size of the package and how often it says the same thing.

    python -m benchmarks.size           totals, and the folders
    python -m benchmarks.size --ops 20  the ops that stand in the most files, too

Tokens are counted without comments and docstrings, and generated code isn't counted. An op stands in a file if the file
has its name in a string; ops that TensorFlow's registry doesn't know aren't counted. An op is lowered twice if LiteRT
has no operator for it, and yet both LiteRT and StableHLO have a lowering of their own instead of one decomposition. An
operator of LiteRT stands in a file if a string is its name, in the tfl dialect or in files. A table is a literal, or a
string, with the names of six or more of them, outside of tfconvert/ops.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import tfconvert
from benchmarks.commands import REPOSITORY, parser_of
from tfconvert.converter.targets.litert.legalize import legalizations
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow
from tfconvert.converter.targets.stablehlo.legalize.lowerings import LOWERINGS
from tfconvert.ops import generate
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tflite import operators

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
    """The size of some files."""

    files: int = 0  # How many there are.
    lines: int = 0  # Their lines.
    tokens: int = 0  # Their tokens, without comments and docstrings.

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


def ops_in(tree: ast.AST) -> set[str]:
    """Returns the ops of TensorFlow's registry that a module names in strings, docstrings aside."""
    names = {name for string in strings_in(tree) for name in _NAME.findall(string)}
    return {name for name in names if op_defs.lookup(name) is not None}


def strings_in(tree: ast.AST) -> Iterator[str]:
    """Yields the strings in a syntax tree, docstrings aside."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def operators_in(strings: Iterable[str]) -> set[str]:
    """Returns the operators of LiteRT that are named by strings."""
    return {text.removeprefix("tfl.").lower() for text in strings} & set(operators.names())


def tables_in(tree: ast.AST) -> int:
    """Returns how many literals and strings have the names of six or more operators of LiteRT."""
    count = sum(len(operators_in(text.split())) >= 6 for text in strings_in(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            elements = node.keys if isinstance(node, ast.Dict) else node.elts
            names = (each.value for each in elements if isinstance(each, ast.Constant) and isinstance(each.value, str))
            count += len(operators_in(names)) >= 6
    return count


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Yields the names of a module's public classes."""
    return (node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def lowered_twice() -> set[str]:
    """Returns the ops without an operator of LiteRT that both targets lower by themselves."""
    table = legalizations.TABLE
    entries = [entry for file in table.load(frozenset(table.modules)) for entry in getattr(file, "ENTRIES", ())]
    rows = {entry.op for entry in entries if isinstance(entry, BuiltinRow)}
    own = {entry.op for entry in entries} - rows
    return own & {name.removeprefix("tf.") for name in LOWERINGS}


def main() -> None:
    """Prints the figures."""
    parser = parser_of("size", __doc__)
    parser.add_argument("--ops", type=int, default=0, help="how many of the ops that stand in the most files to list")
    arguments = parser.parse_args()
    by_folder: dict[str, Size] = {}
    places: Counter[str] = Counter()
    homes: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    tables = 0
    for path in sources(_PACKAGE):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        parts = path.relative_to(_PACKAGE).parts[:-1][:2]
        folder = "/".join(("tfconvert", *parts))
        by_folder[folder] = by_folder.get(folder, Size()).plus(size_of(text))
        places.update(ops_in(tree))
        homes.update(operators_in(strings_in(tree)))
        classes.update(public_classes(tree))
        tables += tables_in(tree) if "ops" not in parts else 0
    for folder, size in sorted(by_folder.items()):
        print(f"{folder:36} {size}")
    total = Size()
    for size in by_folder.values():
        total = total.plus(size)
    print(f"{'all':36} {total}")
    print(f"parameters of convert: {len(inspect.signature(tfconvert.convert).parameters)}")
    print(f"loose modules in converter/: {len(list((_PACKAGE / 'converter').glob('[!_]*.py')))}")
    print(f"ops lowered twice: {len(lowered_twice())}")
    print(f"files that an operator of LiteRT stands in, on average: {homes.total() / len(homes):.1f}")
    print(f"tables of six or more operators of LiteRT: {tables}")
    print(f"names that several public classes have: {sum(count > 1 for count in classes.values())}")
    spread = Counter(min(count, 6) for count in places.values())
    print(
        "ops by the files that they stand in:",
        ", ".join(f"{'6 or more' if count == 6 else count}: {number}" for count, number in sorted(spread.items())),
    )
    for name, count in places.most_common(arguments.ops):
        print(f"  {name}: {count}")


if __name__ == "__main__":
    main()
