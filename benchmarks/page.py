"""Writes docs/benchmarks.md, the page with all figures, by running the programs that measure them.

    python -m benchmarks.page                     # everything; the networks of the zoo must have been exported
    python -m benchmarks.page --only growth       # one section; the others stay as they are

A section has what its program prints, tables as they are, and is replaced only if the program succeeds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import REPOSITORY, parser_of
from benchmarks.comparison import conditions

PAGE = REPOSITORY / "docs" / "benchmarks.md"

_HEAD = """# Benchmarks

Every figure about speed in these pages comes from here. `make bench` measures again and writes this page; each section
names its command. Both converters run in turn in one go, on the same machine, so that other load slows both: ratios are
more reliable than times.
"""


class Part(NamedTuple):
    """A section of the page."""

    name: str  # The section's name on the command line.
    title: str  # Its title.
    text: str  # What is measured.
    commands: tuple[tuple[str, ...], ...]  # The programs, and their arguments.


PARTS = (
    Part(
        "conversion",
        "Conversion",
        "Networks of keras.applications, as Keras 3 exports them, converted by tfconvert and `tf.lite.TFLiteConverter`."
        " Most of our time for small networks is fixed: about 0.2 s for loading Python and the libraries.\n\n"
        "![Time and memory of conversions, against TensorFlow's converter](benchmark.png)",
        (("benchmarks.compare", "--runs", "1", "--seconds", "2", "--output", "out/benchmark.md"),),
    ),
    Part(
        "memory",
        "Models in memory",
        "Keras models that are already loaded, in one process: `tfconvert.convert(model)` and"
        " `TFLiteConverter.from_keras_model(model)`. Most of our time is TensorFlow tracing the model.",
        (("benchmarks.in_memory", "--runs", "2"),),
    ),
    Part(
        "growth",
        "Large graphs",
        "Synthetic graphs without weights: whole processes by the number of nodes.",
        (("benchmarks.scaling", "--official", "--nodes", "10000,100000", "--runs", "1"),),
    ),
    Part(
        "latency",
        "Speed of the files",
        "Our files and the official converter's in LiteRT with XNNPACK, in turns, in several processes:"
        " minima in milliseconds, their ratio, that of the lower quartiles, operators, and the pieces that XNNPACK runs"
        " with the operators beside them. The forms that make the difference were found with these models. First float"
        " files, with one thread and with two, then `--quantize dynamic` and `--quantize int8`, whose last column is"
        " the time by that of our float file.",
        (
            ("benchmarks.latency",),
            ("benchmarks.latency", "--threads", "2", "--processes", "3"),
            ("benchmarks.latency", "--mode", "dynamic", "--processes", "2"),
            ("benchmarks.latency", "--mode", "int8", "--processes", "2"),
        ),
    ),
    Part(
        "keras",
        "Keras on JAX",
        "The same networks, with the same weights and a dynamic batch, as Keras on JAX and Keras on TensorFlow export"
        " them: networks of keras.applications, transformers, recurrent layers, and convolutions in one dimension."
        " Times of conversions are minima of whole processes in turns; the processor's instructions for one of them"
        " don't depend on what else the machine does. Inference is the minimum of runs in turns. The difference is the"
        " largest one between the outputs of both files, relative to the largest number.",
        (("benchmarks.keras_backends", "--runs", "3"),),
    ),
    Part(
        "accelerators",
        "Accelerators",
        "Verdicts by the tables, for files with a batch of 1.",
        (("benchmarks.verdicts",),),
    ),
    Part(
        "service",
        "The service",
        "Fifty clients that send models to one server, and a process for each model.",
        (("benchmarks.load", "--seconds", "20", "--baseline-seconds", "20"),),
    ),
)


def section(part: Part) -> str:
    """Measures, and returns the section.

    Raises:
        RuntimeError: A program failed.
    """
    return "\n\n".join((f"## {part.title}", part.text, *map(_measured, part.commands))) + "\n"


def _measured(command: tuple[str, ...]) -> str:
    """Returns a program's command line and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}")
    printed = done.stdout.strip()
    shown = printed if "| ---" in printed else f"```text\n{printed}\n```"
    return f"```sh\npython -m {' '.join(command)}\n```\n\n{shown}"


def sections(text: str) -> dict[str, str]:
    """Returns the sections of a page by their titles."""
    return {each.partition("\n")[0][3:]: each.rstrip() + "\n" for each in re.split(r"^(?=## )", text, flags=re.M)[1:]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("page", __doc__)
    parser.add_argument("--only", choices=[part.name for part in PARTS], action="append", help="repeatable")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE.md", help="default: docs/benchmarks.md")
    options = parser.parse_args(arguments)
    known = sections(options.page.read_text("utf-8")) if options.page.exists() else {}
    failed = 0
    for part in PARTS:
        if options.only is None or part.name in options.only:
            try:
                known[part.title] = section(part)
            except RuntimeError as problem:
                print(f"{part.name}: {problem}", file=sys.stderr)
                failed = 1
        setup = conditions(0)
        versions = ", ".join(f"{name} {value}" for name, value in setup.items() if name not in ("runs", "cores"))
        machine = f"Measured on {setup['cores']} cores: {versions}.\n".replace("processor ", "")
        kept = [known[each.title] for each in PARTS if each.title in known]
        options.page.write_text("\n".join((_HEAD, machine, *kept)), "utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
