"""Patterns, fusions and functions of the user's: from Python files, modules, and entry points of installed packages."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from importlib.machinery import all_suffixes
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from tfconvert.converter.process.guard import Guard
from tfconvert.schema.diagnostics import ConversionError, error

PATTERNS, COMPOSITES = "tfconvert.patterns", "tfconvert.composites"
"""The groups of entry points; each point names an object or a sequence of objects."""

_MODULES = tuple(all_suffixes())


def is_name(given: Any) -> bool:
    """Returns whether this is the name of a file or an entry point."""
    return isinstance(given, str | os.PathLike)


def plugin_files(given: Iterable[str]) -> Iterator[Path]:
    """Yields the Python files among names, and the modules and packages beside them, which they may import."""
    for name in given:
        if name.endswith(".py"):
            yield Path(name)
            for beside in sorted(Path(name).absolute().parent.glob("*")):
                if beside.name.endswith(_MODULES) or any(beside.glob("*.py")) or beside.name == "__pycache__":
                    yield beside


def resolved(given: Sequence[Any], group: str, kind: type, what: str) -> tuple[Any, ...]:
    """Returns a sequence with its names replaced by the objects that they refer to.

    Args:
        given: Objects; paths of Python files, which end in `.py`; and names of entry points, or patterns of such names.
        group: The group of entry points.
        kind: The class of the objects.
        what: Plural noun for them in messages.
    """
    found: dict[int, Any] = {}
    for item in given:
        items = _loaded(os.fspath(item), group, kind, what) if is_name(item) else (item,)
        # The same object may be in a file under two names.
        found.update((id(each), each) for each in items)
    return tuple(found.values())


def named_object(name: str) -> Any:
    """Returns what `module:name` stands for; the module may be in the working directory."""
    sys.path.insert(0, folder := str(Path.cwd()))
    try:
        return EntryPoint("", name, "").load()
    finally:
        sys.path.remove(folder)


def _loaded(name: str, group: str, kind: type, what: str) -> Sequence[Any]:
    is_file = name.endswith(".py")
    found = list(_of_file(Path(name), kind, what) if is_file else _of_packages(name, group, kind, what))
    if not found:
        place = name if is_file else f"the entry point {name!r} of {group}"
        raise error(
            "wrong-option",
            f"there are no {what} in {place}",
            hint=f"put objects of the class {kind.__name__} there, or lists of them",
        )
    return found


def _of_file(path: Path, kind: type, what: str) -> Iterator[Any]:
    if not path.is_file():
        raise error("wrong-option", f"there is no file {path} with {what}")
    with Guard(partial(_mistake, str(path))):
        scope = runpy.run_path(str(path), run_name=path.stem)
    # Names that begin with an underscore are the file's own.
    yield from _of_kind((value for name, value in scope.items() if not name.startswith("_")), kind)


def _of_packages(name: str, group: str, kind: type, what: str) -> Iterator[Any]:
    points = entry_points(group=group)
    chosen = [point for point in points if fnmatchcase(point.name, name)]
    if not chosen:
        known = ", ".join(sorted(point.name for point in points)) or "none"
        raise error(
            "wrong-option",
            f"no installed package declares {what} named {name!r}",
            hint=f"there are: {known}; the path of a file ends in .py",
        )
    for point in chosen:
        with Guard(partial(_mistake, f"the entry point {point.name!r} of {group}, {point.value},")):
            loaded = point.load()
        yield from _of_kind([loaded], kind)


def _of_kind(values: Iterable[Any], kind: type) -> Iterator[Any]:
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value):
            yield from value


def _mistake(where: str, problem: str) -> ConversionError:
    return error("bad-plugin", f"{where} {problem}", hint="correct it, or leave it out")
