"""Tries all calls in the installed LiteRT and regenerates the schema's table.

    python -m benchmarks.kernel_probe [--output TABLE.tsv] [--cases CASES.tsv] [--only OPERATOR ...]

The second file has a line for each call, with how far it was off. With `--only` the rows of other operators stay as
they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.commands import parser_of
from benchmarks.kernel_probe import plain
from benchmarks.kernel_probe.judge import Found, probe
from benchmarks.kernel_probe.table import all_cases, rows, rows_in, write
from tfconvert.schema.tflite import kernels


def _line(found: Found) -> str:
    case = found.case
    holding = " ".join(sorted(kernels.conditions(case.operator, case.call)))
    errors = [f"{error:.3g}" for error in found.errors]
    problems = [problem[-120:] for problem in dict.fromkeys(found.problems)]
    return "\t".join((*case.key, holding, found.builtin, found.xnnpack, *errors, *problems)).rstrip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = parser_of("kernel_probe", __doc__)
    parser.add_argument("--output", type=Path, default=kernels.TABLE, help="where the table goes")
    parser.add_argument("--cases", type=Path, help="where the single calls go")
    parser.add_argument("--only", nargs="*", default=(), help="the operators that are tried")
    options = parser.parse_args(arguments)
    chosen = set(options.only)
    quantized = probe([case for case in all_cases() if not chosen or case.operator in chosen])
    others = plain.measure([family for family in plain.families() if not chosen or family.operator in chosen])
    known = rows_in(kernels.table(), chosen) if chosen else {}
    options.output.write_text(write({**known, **rows(quantized, others)}, version("ai-edge-litert")), "utf-8")
    found = [*quantized, *others]
    if options.cases is not None:
        options.cases.write_text("".join(f"{_line(each)}\n" for each in found), "utf-8")
    counts = Counter((each.builtin, each.xnnpack) for each in found)
    for (builtin, xnnpack), count in counts.most_common():
        print(f"{count:5d} {builtin} (with XNNPACK {xnnpack})")


if __name__ == "__main__":
    main()
