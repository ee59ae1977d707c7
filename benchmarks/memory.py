"""Prints the arenas of our files beside those of other files of the same models.

    python -m benchmarks.memory DIRECTORY

The directory has models, each beside the file that another converter made of it: `NAME` and `NAME.tflite`. Exit status
1 if one of ours needs more.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tfconvert
from benchmarks.commands import parser_of
from tfconvert.tools.litert_file import read_file


def row(model: Path, other: Path) -> tuple[str, int | None, int | None]:
    """Returns a model's name, and the arenas of our file and of another."""
    return model.name, tfconvert.convert(model, batch=1).report.arena, read_file(str(other)).arena


def main() -> int:
    parser = parser_of("memory", __doc__)
    parser.add_argument("directory", type=Path)
    is_larger = False
    print("| model | ours | other | ratio |\n|---|---|---|---|")
    for other in sorted(parser.parse_args().directory.glob("*.tflite")):
        name, ours, theirs = row(other.with_suffix(""), other)
        is_larger |= bool(ours and theirs and ours > theirs)
        ratio = f"{ours / theirs:.3f}" if ours and theirs else ""
        print(f"| {name} | {ours} | {theirs} | {ratio} |", flush=True)
    return int(is_larger)


if __name__ == "__main__":
    sys.exit(main())
