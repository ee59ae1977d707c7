"""Python files of the user's, which define patterns or fusions: `--patterns FILE.py`, `--composites FILE.py`.

This is the only place where code is run that is not the converter's. A mistake in it is told with its line.
"""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tfconvert.converter.composites.fusion import Fusion
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.schema.diagnostics import error

_MODULE = "tfconvert_user_file"
"""The file's `__name__`."""

Kind = TypeVar("Kind")


def patterns_in(paths: Iterable[str]) -> tuple[Pattern[Any], ...]:
    """Returns the patterns that files define, in their order: at the top level, or in lists and tuples there.

    Names that begin with `_` are the file's own.

    Raises:
        ConversionError: A file can't be read, fails (`user-file`), or defines none (`wrong-option`).
    """
    return tuple(each for path in paths for each in _defined(path, Pattern, "pattern", "tfconvert.patterns.rule"))


def fusions_in(paths: Iterable[str]) -> tuple[Fusion, ...]:
    """Returns the fusions that files define; see `patterns_in`.

    Raises:
        ConversionError: A file can't be read, fails (`user-file`), or defines none (`wrong-option`).
    """
    return tuple(each for path in paths for each in _defined(path, Fusion, "fusion", "tfconvert.composites"))


def _defined(path: str, kind: type[Kind], what: str, maker: str) -> list[Kind]:
    if not Path(path).is_file():
        raise error("user-file", f"there is no file {path}")
    with _Explained(path):
        names = runpy.run_path(path, run_name=_MODULE)
    public = (value for name, value in names.items() if not name.startswith("_"))
    found = list({id(each): each for value in public for each in _of_kind(value, kind)}.values())
    if not found:
        raise error("wrong-option", f"{path} defines no {what}", hint=f"make one with {maker}, and give it a name")
    return found


def _of_kind(value: object, kind: type[Kind]) -> Iterator[Kind]:
    items = value if isinstance(value, list | tuple) and not isinstance(value, kind) else (value,)
    return (item for item in items if isinstance(item, kind))


class _Explained:
    """Turns whatever goes wrong while a file runs into a `ConversionError` that names the file and the line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(problem, Exception):
            lines = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == self._path]
            line = problem.lineno if isinstance(problem, SyntaxError) else next(reversed(lines), None)
            place = self._path if line is None else f"{self._path}:{line}"
            text = problem.msg if isinstance(problem, SyntaxError) else str(problem)
            raise error("user-file", f"{type(problem).__name__}: {text}", location=place) from problem
