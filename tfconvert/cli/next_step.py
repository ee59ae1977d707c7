"""The next command for a result: the one that runs a program, and the last line on a terminal."""

from __future__ import annotations

import shlex
from pathlib import Path

from tfconvert.cli.output_options import Output
from tfconvert.exporters.output_file import descriptor_of, is_c_source
from tfconvert.exporters.safetensors import PARAMETERS
from tfconvert.report.report import Report
from tfconvert.settings.options import Options
from tfconvert.settings.targets import DRIVERS, Iree, LiteRT


def run_command(output: Output, target: Iree, report: Report) -> str:
    """Returns the line with the command by which IREE runs a program on zeros; dynamic sizes are 1.

    It is empty for complex inputs, which that command can't read.

    Args:
        output: Where the program was written.
        target: How it was compiled.
        report: The report of its conversion.
    """
    first = report.interfaces[0]
    if any(each.dtype.startswith("complex") for each in first.inputs):
        return ""
    arguments = ["iree-run-module", f"--module={output.file}"]
    if PARAMETERS in report.beside:
        # `model` is the scope of all weights; see the pass `weights-to-parameters`.
        arguments.append(f"--parameters=model={Path(output.file).with_suffix(PARAMETERS)}")
    arguments += [f"--device={DRIVERS[target.backend]}", f"--function={first.function}"]
    for tensor in first.inputs:
        element = tensor.type.partition("[")[0]
        sizes = "".join(f"{1 if size is None else size}x" for size in tensor.shape or ())
        # Tensors are zeros by default; scalars need a value, and those of a byte are written as two digits.
        value = "" if sizes else "=00" if element.endswith(("i1", "i8")) else "=0"
        arguments.append(f"--input={sizes}{element}{value}")
    return f"  run it: {shlex.join(arguments)}"


def next_step(output: Output, options: Options) -> str:
    """Returns the last line for a terminal; empty if there is nothing to say.

    Args:
        output: Where the result was written.
        options: The settings of its conversion.
    """
    if not isinstance(options.target, LiteRT) or is_c_source(output.file) or descriptor_of(output.file) is not None:
        return ""
    measure = f"tfconvert bench {shlex.quote(output.file)} measures it"
    if options.verify is not None:
        return f"next: {measure}"
    return f"next: the same command with --verify compares its results with the model's; {measure}"
