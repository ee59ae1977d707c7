"""Shows what IREE makes of the ops that are rewritten for it or refused, each in the form that is avoided.

    python -m benchmarks.iree_probe
    python -m benchmarks.iree_probe --write

The forms are programs in iree_probe.mlir. The installed IREE compiles and runs each in a separate process, and the
results are compared with the reference executor's. A form that IREE accepts and computes correctly no longer needs its
rewrite. `--write` rewrites the table iree_probe.tsv, with which tests compare.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.commands import parser_of
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.targets.iree import compiler
from tfconvert.converter.targets.iree.passes.stablehlo_to_iree_input import StablehloToIreeInput
from tfconvert.exporters.mlir import StableHLOText
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.settings.targets import Iree

FORMS = Path(__file__).with_suffix(".mlir")
TABLE = Path(__file__).with_suffix(".tsv")
# How long a program may be compiled, and how long it may run.
SECONDS = 60.0

# The outcome of a form that is compiled, and computes what it should.
TAKEN = "taken"

_DTYPES = {"f32": "float32", "i32": "int32"}
_INPUT = re.compile(r"(f32|i32)(?:\[([\d,]*)\]|=(\S+))")


class Form(NamedTuple):
    """A program to try."""

    op: str  # The op that it is about.
    form: str  # What is special about it.
    inputs: Sequence[Array]  # What it is run on.
    text: str  # The program.
    first: str = ""  # What is done to it before it is compiled; usually nothing.


def forms() -> Iterator[Form]:
    """Yields the programs."""
    for part in FORMS.read_text("utf-8").split("// -----\n"):
        told = dict(re.findall(r"^// (op|form|inputs|first): (.*)$", part, re.MULTILINE))
        inputs = [_input(*found) for found in _INPUT.findall(told.get("inputs", ""))]
        yield Form(told["op"], told["form"], inputs, part, told.get("first", ""))


def _input(kind: str, shape: str, value: str) -> Array:
    dtype = np.dtype(_DTYPES[kind])
    if value:
        return np.array(json.loads(value), dtype)
    sizes = [int(each) for each in shape.split(",") if each]
    return np.arange(np.prod(sizes, dtype=int), dtype=dtype).reshape(sizes)


def outcome(form: Form) -> str:
    """Returns what becomes of a form: `taken`, or how it goes wrong."""
    module = IRParser(form.text).parse_module()
    if form.first:
        # The op at hand is rewritten only where an attribute asks for it, which the program lacks.
        StablehloToIreeInput().apply(module)
    text = StableHLOText(module, inline=True).to_bytes() if form.first else form.text.encode()
    try:
        program = compiler.compile_text(lambda stream: stream.writelines([text]), Iree(), SECONDS).content
    except ConversionError as problem:
        # Some end the compiler itself, but not each time.
        return "the compiler does not end" if problem.code == "iree-timeout" else "not compiled"
    if not form.inputs:
        return "compiled"
    try:
        expected: Sequence[Array] | None = Executor(IRParser(form.text).parse_module()).run("main", form.inputs)
    except ConversionError:
        expected = None
    found = _run(program, form.inputs)
    if isinstance(found, str):
        return TAKEN if expected is None and found == "refused" else found
    if expected is None:
        return "not refused"
    same = all(np.allclose(one, other, 1e-5, 1e-5) for one, other in zip(found, expected, strict=True))
    return TAKEN if same else "wrong numbers"


def _run(program: bytes, inputs: Sequence[Array]) -> list[Array] | str:
    """Runs a program in a process of its own; returns its results, or how it has ended."""
    with tempfile.TemporaryDirectory() as folder:
        file, given, results = (Path(folder, name) for name in ("model.vmfb", "inputs.npz", "results.npz"))
        file.write_bytes(program)
        np.savez(given, *inputs)
        command = [sys.executable, "-m", "benchmarks.iree_probe", "--run", str(file), str(given), str(results)]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode:
            return "crashes" if done.returncode < 0 else "refused"
        with np.load(results) as found:
            return [found[name] for name in found.files]


def _run_here(program: Path, inputs: Path, results: Path) -> None:
    """Runs a program in this process."""
    from iree import runtime

    config = runtime.Config("local-task")
    module = runtime.VmModule.copy_buffer(config.vm_instance, program.read_bytes())
    context = runtime.SystemContext(config=config)
    context.add_vm_module(module)
    with np.load(inputs) as given:
        found = context.modules[module.name]["main"](*[given[name] for name in given.files])
    np.savez(results, *[each.to_host() for each in (found if isinstance(found, list | tuple) else [found])])


def probe() -> dict[tuple[str, str], str]:
    """Returns the outcome of every form, by op and form."""
    return {(form.op, form.form): outcome(form) for form in forms()}


def table() -> dict[tuple[str, str], str]:
    """Returns the outcomes that are written down."""
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {(op, form): found for op, form, found in rows}


def main() -> None:
    """Probes IREE and prints the table."""
    parser = parser_of("iree_probe", __doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the table")
    parser.add_argument("--run", nargs=3, type=Path, metavar=("PROGRAM", "INPUTS", "RESULTS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        _run_here(*given.run)
        return
    lines = [f"# What IREE {version('iree-base-compiler')} makes of each form: op, form, outcome.\n"]
    for (op, form), found in probe().items():
        print(f"{op:40} {form:50} {found}", flush=True)
        lines.append(f"{op}\t{form}\t{found}\n")
    if given.write:
        TABLE.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
