"""Times pairs of .tflite files in LiteRT on this device, and writes a table for `tfconvert --tune`.

    python measure_forms.py
    python measure_forms.py --benchmark-model "adb shell /data/local/tmp/benchmark_model" --remote /data/local/tmp

Without an argument it needs the package ai-edge-litert on the device. With --benchmark-model it runs LiteRT's program
of this name for each file, on a phone by adb, after the directory was pushed there.
"""

# This file is also copied to devices, so it imports nothing of the package.

from __future__ import annotations

import argparse
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

try:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter
except ImportError:  # `benchmark_model` needs neither.
    Interpreter = None

COLUMNS = ("pattern", "shape", "form", "usual", "fast")
"""The columns of a table; the times are in microseconds."""

DEVICE = "# device: "
"""Begins the line that says where a table was made."""

USUAL, FAST = ".usual.tflite", ".fast.tflite"
"""The ends of the names of a pair's files."""

# How long one file of a pair is run before it is the other's turn, in seconds, and the minimum number of turns of each.
_TURN = 0.003
_MIN_TURNS = 5

_AVERAGE = re.compile(r"Inference \(avg\): ([0-9.e+]+)")


def interpreter_of(content: bytes, threads: int = 1) -> Any:
    """Returns an interpreter with random inputs that has run once; integers of 32 bits and more are 0."""
    interpreter = Interpreter(model_content=content, num_threads=threads)
    interpreter.allocate_tensors()
    random = np.random.default_rng(1)
    for given in interpreter.get_input_details():
        kind, shape = np.dtype(given["dtype"]), given["shape"]
        value = np.zeros(shape, kind)
        if kind.kind not in "iuO" or kind.itemsize < 4:
            scale = 1 if kind.kind in "fb" else 40
            value = (random.normal(0, scale, shape) if kind.kind != "b" else random.integers(0, 2, shape)).astype(kind)
        interpreter.set_tensor(given["index"], value)
    interpreter.invoke()
    return interpreter


def microseconds_of(interpreters: Sequence[Any], seconds: float) -> list[float]:
    """Returns the minimum time of each, run in turns.

    Args:
        interpreters: What is run, on the inputs that are set.
        seconds: How long all of them are run, or longer if they are slow.
    """
    minima = [float("inf")] * len(interpreters)
    end, turns = time.perf_counter() + seconds, 0
    while turns < _MIN_TURNS or time.perf_counter() < end:
        turns += 1
        for index, interpreter in enumerate(interpreters):
            until = time.perf_counter() + _TURN
            while (start := time.perf_counter()) < until:
                interpreter.invoke()
                minima[index] = min(minima[index], time.perf_counter() - start)
    return [each * 1e6 for each in minima]


def microseconds_of_files(contents: Sequence[bytes], seconds: float, threads: int = 1) -> list[float]:
    """Returns the minimum time of each file on random inputs, run in turns."""
    return microseconds_of([interpreter_of(content, threads) for content in contents], seconds)


def device() -> str:
    """Returns the system, the processor and the release of LiteRT."""
    try:
        release = f"LiteRT {version('ai-edge-litert')}"
    except PackageNotFoundError:
        release = "LiteRT"
    return f"{platform.system()} {platform.machine()}, {release}"


def table(made_on: str, rows: Sequence[Sequence[str]]) -> str:
    """Returns the text of a table.

    Args:
        made_on: The device.
        rows: The fields of each row.
    """
    lines = ["\t".join(row) for row in (COLUMNS, *rows)]
    return "\n".join([f"{DEVICE}{' '.join(made_on.split())}", *lines, ""])


def pairs_in(directory: Path) -> list[tuple[Path, Path]]:
    """Returns the pairs of files in a directory, the usual form first."""
    usual = sorted(directory.glob(f"*{USUAL}"))
    return [(each, each.with_name(each.name[: -len(USUAL)] + FAST)) for each in usual]


def benchmarked(command: Sequence[str], path: str, threads: int) -> float:
    """Returns the average time of a file, in microseconds, from what LiteRT's `benchmark_model` prints."""
    call = [*command, f"--graph={path}", f"--num_threads={threads}", "--warmup_runs=5", "--use_xnnpack=true"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    found = _AVERAGE.search(done.stdout + done.stderr)
    if done.returncode or not found:
        raise RuntimeError(f"{shlex.join(call)} fails:\n{done.stdout}{done.stderr}")
    return float(found[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    here = Path(__file__).parent
    lines = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=lines[0])
    parser.add_argument("directory", nargs="?", type=Path, default=here, help="where the files are; default: here")
    parser.add_argument("-o", "--output", type=Path, help="default: table.tsv in the directory")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each pair is run; default: 0.5")
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    parser.add_argument("--benchmark-model", metavar="COMMAND", help="run this program instead of the Python package")
    parser.add_argument("--remote", metavar="DIR", help="where the program finds the files; default: the directory")
    given = parser.parse_args(arguments)
    command = shlex.split(given.benchmark_model or "")
    if not command and Interpreter is None:
        parser.error("LiteRT is missing: pip install ai-edge-litert, or use --benchmark-model")
    rows = []
    for pair in pairs_in(given.directory):
        if command:
            places = [f"{given.remote or given.directory}/{each.name}" for each in pair]
            times = [benchmarked(command, place, given.threads) for place in places]
        else:
            times = microseconds_of_files([each.read_bytes() for each in pair], given.seconds, given.threads)
        names = pair[0].name[: -len(USUAL)].split(".")
        rows.append([*names, *(f"{each:.2f}" for each in times)])
        print(*rows[-1], sep="\t", flush=True)
    output = given.output or given.directory / "table.tsv"
    output.write_text(table(given.benchmark_model or device(), rows), "utf-8")
    print(f"-> {output}: tfconvert MODEL -o FILE --tune {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
