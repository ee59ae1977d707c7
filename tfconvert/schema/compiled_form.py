"""Which form of our modules runs: compiled by mypyc, or the Python sources.

Python prefers an extension module to a source of the same name. In an installed wheel both are of one make. In a
repository people edit sources, and a single module that is out of date makes all others wrong, since compiled modules
know the layout of each other's objects: `make native` records what it has compiled, and as soon as one of these files
has changed, Python is shown no extension modules of ours any more.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path

SWITCH = "TFCONVERT_COMPILED"
"""The environment variable that is `0` where compiled modules are not wanted."""

FOLDER = Path(__file__).parent.parent
RECORD = "native_sources.record"
"""The file with the sizes and times of the sources that were compiled; a wheel has none."""


class SourceFinder:
    """Finds the sources of our modules. As the first of Python's finders it hides our extension modules."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Returns where a module's source is; `None` for folders without one, and for what is not ours."""
        if not name.startswith("tfconvert."):
            return None
        for folder in path or ():
            found = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if found is not None and found.loader is not None:
                return found
        return None


def choose_form() -> None:
    """Hides our extension modules if the environment says so, or if they are out of date."""
    if os.environ.get(SWITCH) == "0" or is_out_of_date(FOLDER):
        sys.meta_path.insert(0, SourceFinder)


def is_out_of_date(folder: Path) -> bool:
    """Returns whether one of the files that a record in a folder lists has changed; without a record none has."""
    try:
        states: dict[str, list[int]] = json.loads((folder / RECORD).read_bytes())
    except FileNotFoundError:
        return False
    return any(state != state_of(folder / name) for name, state in states.items())


def state_of(path: Path) -> list[int]:
    """Returns a file's size, and when it was last written to; empty if there is no such file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return []
    return [found.st_size, found.st_mtime_ns]


def form() -> str:
    """Returns which form runs, in words that follow the version."""
    if SourceFinder in sys.meta_path:
        why = "as the environment says" if os.environ.get(SWITCH) == "0" else "the compiled modules are out of date"
        return f"not compiled, {why}"
    places = (FOLDER / "schema" / "ir" / f"values{suffix}" for suffix in EXTENSION_SUFFIXES)
    return "compiled" if any(place.exists() for place in places) else "not compiled"
