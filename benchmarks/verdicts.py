"""Shows which networks of the zoo run whole on accelerators, by the tables, as converted with and without the option.

    python -m benchmarks.verdicts
    python -m benchmarks.verdicts --accelerators gpu,npu --only MobileNetV2

Nothing runs on the accelerators here; the tests in `tests/rings` compare the tables with the accelerators themselves.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tfconvert
from benchmarks.commands import parser_of
from benchmarks.comparison import table
from benchmarks.zoo import Entry, add_selection, selected
from tfconvert.settings.options import Options
from tfconvert.settings.targets import Accelerator
from tfconvert.tools.inspection import inspect


def verdict(path: Path, accelerator: Accelerator) -> str:
    """Returns what the tables say of a file."""
    options = Options(target=tfconvert.LiteRT(accelerator=(accelerator,)))
    (found,) = inspect(tfconvert.Source(path), options).acceptances
    return found.headline


def row(entry: Entry, accelerators: Sequence[Accelerator], folder: Path) -> list[str]:
    """Returns a network's line of the table."""
    cells = [entry.architecture.name]
    for accelerator in accelerators:
        for target in (tfconvert.LiteRT(), tfconvert.LiteRT(accelerator=(accelerator,))):
            path = folder / "model.tflite"
            tfconvert.convert(entry.saved_model, batch=1, target=target).save(path)
            cells.append(verdict(path, accelerator))
    return cells


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("verdicts", __doc__)
    add_selection(parser, which="bench", flavour="k3")
    parser.add_argument("--accelerators", default="gpu,npu", metavar="NAME,...", help="default: %(default)s")
    options = parser.parse_args(arguments)
    accelerators = options.accelerators.split(",")
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(entry, accelerators, Path(folder)) for entry in selected(parser, options) if entry.exists()]
    header = " | ".join(f"{each} | with --accelerator {each}" for each in accelerators)
    print("\n".join(table(f"model | {header}", rows)))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
