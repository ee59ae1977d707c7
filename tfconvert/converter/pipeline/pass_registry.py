"""Passes by name: `fold-it` is the class named so in `fold_it.py`, which is imported when it is needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeGuard

from tfconvert.converter.pipeline.stage import Pass
from tfconvert.schema.diagnostics import error

PACKAGES = (
    "tfconvert.converter.passes",
    "tfconvert.converter.targets.litert.passes",
    "tfconvert.converter.targets.stablehlo.passes",
    "tfconvert.converter.targets.iree.passes",
)
"""The packages of passes: the shared ones, and those of each target."""


@cache
def pass_names() -> tuple[str, ...]:
    """Returns the names of all passes, sorted, without importing them."""
    folders = [Path(folder) for package in PACKAGES for folder in import_module(package).__path__]
    files = {file.stem for folder in folders for file in folder.glob("*.py")} - {"__init__"}
    return tuple(sorted(file.replace("_", "-") for file in files))


@cache
def pass_class(name: str) -> type[Pass]:
    """Imports a pass by its name.

    Raises:
        ConversionError: There is no such pass (`unknown-pass`).
    """
    file = name.replace("-", "_")
    paths = [f"{package}.{file}" for package in PACKAGES] if file.isidentifier() else []
    found = (path for path in paths if find_spec(path) is not None)
    passes = (each for path in found for each in vars(import_module(path)).values() if _is_pass(each, path, name))
    first = next(passes, None)
    if first is None:
        raise error("unknown-pass", f"there is no pass {name!r}")
    return first


def _is_pass(each: object, path: str, name: str) -> TypeGuard[type[Pass]]:
    return isinstance(each, type) and each.__module__ == path and getattr(each, "name", "") == name
