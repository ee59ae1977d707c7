"""Writes `index.py`, which tells where each op is declared: `python -m tfconvert.ops.generate`."""

from __future__ import annotations

from pathlib import Path
from pkgutil import iter_modules
from textwrap import wrap

from tfconvert.ops.registry import family

_FOLDER = Path(__file__).parent
INDEX = _FOLDER / "index.py"

_START = '''"""The ops of each module, separated by spaces. Made by `python -m tfconvert.ops.generate`; don't edit."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
'''


def index() -> str:
    """Returns the contents of `index.py`."""
    lines = []
    decomposed: list[str] = []
    for name in sorted(found.name for found in iter_modules([str(_FOLDER)])):
        ops = sorted(op.name for op in family(name))
        decomposed += (op.name for op in family(name) if op.decompose)
        if ops:
            text = " ".join(ops)
            *rows, last = [text] if len(text) <= 110 else wrap(text, 109, break_on_hyphens=False)
            if len(name) + len(text) < 109:
                lines.append(f'    "{name}": "{text}",')
            else:
                lines += [f'    "{name}": (', *[f'        "{row} "' for row in rows], f'        "{last}"', "    ),"]
    *rows, last = wrap(" ".join(sorted(decomposed)), 112, break_on_hyphens=False)
    lines += ["}", "", "DECOMPOSED = (", *[f'    "{row} "' for row in rows], f'    "{last}"', ")", ""]
    return _START + "\n".join(lines)


if __name__ == "__main__":
    INDEX.write_text(index(), encoding="utf-8")
