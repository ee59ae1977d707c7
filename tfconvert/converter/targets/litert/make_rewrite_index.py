"""Writes `rewrite_index.py`: `python -m tfconvert.converter.targets.litert.make_rewrite_index`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from textwrap import wrap
from types import ModuleType

INDEX = Path(__file__).with_name("rewrite_index.py")

_START = '''"""The operators that need a module of rewrites, separated by spaces; empty if it is always needed.

Made by `python -m tfconvert.converter.targets.litert.make_rewrite_index`; don't edit.
"""

from __future__ import annotations

from collections.abc import Mapping
'''


def _modules(package: str) -> dict[str, ModuleType]:
    found = import_module(f"{__package__}.{package}")
    return {each.name: import_module(f"{found.__name__}.{each.name}") for each in iter_modules(found.__path__)}


def _roots(names: Iterable[str]) -> str:
    return " ".join(sorted({name.removeprefix("tfl.") for name in names}))


def _table(name: str, rows: Mapping[str, str], about: str) -> list[str]:
    lines = ["", f"{name}: Mapping[str, str] = {{"]
    for module, ops in rows.items():
        if len(module) + len(ops) < 109:
            lines.append(f'    "{module}": "{ops}",')
        else:
            *rest, last = wrap(ops, 109, break_on_hyphens=False)
            lines += [f'    "{module}": (', *[f'        "{row} "' for row in rest], f'        "{last}"', "    ),"]
    return [*lines, "}", f'"""{about}"""']


def index() -> str:
    """Returns the contents of `rewrite_index.py`."""
    forms, optimize = _modules("forms"), _modules("optimize")
    del forms["tables"]  # It reads the index.
    fast = {
        f"{name}.{title}": getattr(file, "NEEDS", _roots(each.root for each in getattr(file, title)))
        for name, file in forms.items()
        for title in dir(file)
        if title.startswith("FAST")
    }
    rows = {name: file.REWRITES for name, file in forms.items() if hasattr(file, "REWRITES")}
    made = {
        name: getattr(
            forms[name], "NEEDS_BY_DEFAULT", _roots(row.root for row in found if row.default and row.only_for != "gpu")
        )
        for name, found in rows.items()
    }
    patterns = {name: getattr(file, "NEEDS", "") for name, file in optimize.items() if hasattr(file, "PATTERNS")}
    lines = [
        *_table("OPTIMIZATIONS", patterns, "The modules of the optimizer."),
        *_table("FAST", fast, "The patterns of forms that are faster on a processor."),
        *_table("BY_DEFAULT", made, "The modules of forms that are made by default."),
        *_table("REWRITES", {name: _roots(row.root for row in found) for name, found in rows.items()}, "All of these."),
    ]
    return _START + "\n".join([*lines, ""])


if __name__ == "__main__":
    INDEX.write_text(index(), encoding="utf-8")
