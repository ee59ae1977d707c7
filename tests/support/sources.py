"""Our hand-written files as syntax trees, walked once for all tests that ask about them."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
# The packages inside `tfconvert`.
PACKAGES = (
    "schema",
    "settings",
    "ops",
    "importers",
    "exporters",
    "converter",
    "report",
    "tools",
    "compat",
    "batch",
    "service",
    "client",
    "cli",
)


class Import(NamedTuple):
    """An import statement.

    Attributes:
        statement: It.
        is_late: Whether it is in a function.
        is_for_types: Whether it is for type checkers only.
    """

    statement: ast.Import | ast.ImportFrom
    is_late: bool
    is_for_types: bool

    def targets(self, modules: set[str]) -> set[str]:
        """Returns what it names: `from a import b` is the module `a.b` if there is one, else `a`.

        Args:
            modules: The modules that there are.
        """
        if isinstance(self.statement, ast.Import):
            return {alias.name for alias in self.statement.names}
        base = self.statement.module or ""
        names = {f"{base}.{alias.name}" for alias in self.statement.names}
        return {name if name in modules else base for name in names}


class SourceFile:
    """A file of Python.

    Attributes:
        path: Where it is, relative to the repository's root.
        text: Its contents.
        tree: The same, parsed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(ROOT)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @property
    def package(self) -> str:
        """Which of `PACKAGES` it is in, `tfconvert` for the files beside them."""
        return self.path.parts[1] if self.path.parts[1] in PACKAGES else "tfconvert"

    @property
    def module(self) -> str:
        """Its dotted module name."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """Every node of its tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def calls(self) -> Sequence[tuple[ast.Call, str]]:
        """Every call, with what is called as text."""
        return tuple((node, ast.unparse(node.func)) for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def imports(self) -> Sequence[Import]:
        """Every import statement."""
        return tuple(_imports(self.tree))


def _imports(node: ast.AST, is_late: bool = False, is_for_types: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield Import(child, is_late, is_for_types)
        elif isinstance(child, ast.stmt):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            typing = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            yield from _imports(child, is_late or inside, is_for_types or typing)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _imports(child, is_late, is_for_types)


@cache
def source_files() -> tuple[SourceFile, ...]:
    """Returns the hand-written files of all our packages."""
    paths = sorted((ROOT / "tfconvert").rglob("*.py"))
    return tuple(SourceFile(path) for path in paths if "generated" not in path.parts)


def committed_files(root: Path) -> list[Path]:
    """Returns all files of the repository except those that `.gitignore` lists.

    It doesn't use git, so that the tests also run in an unpacked archive.
    """
    lines = (root / ".gitignore").read_text("utf-8").split()
    ignored = re.compile("|".join([r"\.git", *(fnmatch.translate(line.strip("/")) for line in lines)]))
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not ignored.fullmatch(name)]
        found += [Path(folder, name) for name in files if not ignored.fullmatch(name)]
    return sorted(found)
