"""Shows what writing texts of StableHLO and programs of IREE costs, wherever their weights are.

    python -m benchmarks.mlir_weights
    python -m benchmarks.mlir_weights --megabytes 400 --runs 5

The model is that of `benchmarks.large_weights`. Memory is that of the process that converts: IREE's compiler runs in
another, and its processor time is counted where it runs. Exit status 1 if a conversion takes more memory or, of texts,
more processor time than it may. Without IREE's compiler its rows are left out.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import REPOSITORY, parser_of
from benchmarks.large_weights import shapes, write_model
from benchmarks.measure import measure
from tfconvert.settings.setting import settings_of
from tfconvert.settings.targets import StableHLO

FORMS = settings_of(StableHLO)["weights"].schema["enum"]
"""Where texts may have their weights."""

# Bytes of memory that writing a text may take.
TEXTS = 150e6

# Bytes of memory that our process may take while a program is made.
PROGRAMS = 200e6

# Maximum processor seconds for writing 100 MB of weights as text; the time grows with the weights.
SECONDS = 1.5

# Runs the command, whose last argument is the output, and writes the process's own peak beside it, in kilobytes.
#
# What the kernel tells a parent is the largest of the process and of those that it has awaited.
_CHILD = """
import sys
from pathlib import Path
from tfconvert import __main__
try:
    __main__.main()
finally:
    lines = Path("/proc/self/status").read_text().splitlines()
    Path(sys.argv[-1] + ".peak").write_text(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


class Cost(NamedTuple):
    """The cost of a conversion."""

    seconds: float  # Wall time.
    processor: float  # Seconds of all processors together.
    peak: int  # The largest memory of our process, in bytes.


def forms(has_compiler: bool) -> Mapping[str, Sequence[str]]:
    """Returns the command's flags, by the name of what is written.

    Args:
        has_compiler: Whether IREE's compiler is installed.
    """
    found = {f"text, {form}": ("--target", "stablehlo", "--mlir-weights", form) for form in FORMS}
    if not has_compiler:
        return found
    return {
        **found,
        "program, weights beside it": ("--target", "iree"),
        "program, weights in it": ("--target", "iree", "--iree-embed-weights"),
    }


def cost(model: Path, output: Path, flags: Sequence[str]) -> Cost:
    """Converts a model in a process of its own.

    Args:
        model: The folder of the model.
        output: The file to write.
        flags: What is written.
    """
    command = [sys.executable, "-c", _CHILD, str(model), "--quiet", *flags, "-o", str(output)]
    run = measure(command, REPOSITORY)
    peak = int(Path(f"{output}.peak").read_text()) * 1024
    return Cost(run.seconds, run.processor, peak)


def main(arguments: list[str] | None = None) -> int:
    """Prints a row a form; returns the exit status."""
    parser = parser_of("mlir_weights", __doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="size of all weights together")
    parser.add_argument("--runs", type=int, default=3, help="conversions, of which the median is told")
    parser.add_argument("--folder", type=Path, help="where the model is made, and removed in the end")
    options = parser.parse_args(arguments)
    too_much = False
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        model = Path(name, "model")
        write_model(model, shapes(options.megabytes // 4))
        for form, flags in forms(find_spec("iree") is not None).items():
            is_text = "stablehlo" in flags
            output = Path(name, "written", "model.mlir" if is_text else "model.vmfb")
            output.parent.mkdir(exist_ok=True)
            runs = [cost(model, output, flags) for _ in range(options.runs)]
            peak = max(run.peak for run in runs)
            seconds, processor = (statistics.median(each) for each in zip(*(run[:2] for run in runs), strict=True))
            print(f"{form}: {seconds:.2f} s, processor {processor:.2f} s, memory {peak / 1e6:.0f} MB")
            too_much |= peak > (TEXTS if is_text else PROGRAMS)
            too_much |= is_text and processor > SECONDS * options.megabytes / 100
    return int(too_much)


if __name__ == "__main__":
    sys.exit(main())
