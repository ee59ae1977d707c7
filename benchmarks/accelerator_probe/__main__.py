"""Tries forms of operators on an accelerator and writes the table of what it accepts.

    python -m benchmarks.accelerator_probe gpu|intel|micro|ethos-u [--check] [--sample N] [--only OPERATOR ...]
        [--python PYTHON]

With `--check` it tells where the table differs, and leaves it; with `--sample` of some forms only. With `--only` the
rows of other operators stay. Each form is tried on several numbers (`--rounds`), of which the worst outcome counts:
some are right by chance.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.accelerator_probe import elementwise, movement, state, vela, weighted
from benchmarks.accelerator_probe.judge import Found, probe
from benchmarks.accelerator_probe.learn import table_of
from benchmarks.accelerator_probe.trial import Trial
from benchmarks.commands import parser_of
from tfconvert.schema.tflite import FOLDER
from tfconvert.schema.tflite.accelerators.acceptance import OUTCOMES, AcceptanceTable
from tfconvert.schema.tflite.accelerators.forms import conditions

_TABLES = {"gpu": "gpu", "intel": "intel", "micro": "micro", "ethos-u": "ethos_u"}
_RELEASES = {
    "gpu": "LiteRT {ai-edge-litert}, GPU accelerator on SwiftShader",
    "intel": "LiteRT {ai-edge-litert}, Intel plugin, OpenVINO {openvino}",
    "micro": "tflite-micro {tflite-micro}",
    "ethos-u": "ethos-u-vela {ethos-u-vela}, Ethos-U55-128",
}


def trials() -> Iterator[Trial]:
    """Yields all forms that are computed when the model runs."""
    for module in (elementwise, weighted, movement, state):
        for trial in module.trials():
            if trial.inputs or trial.operator.startswith("RANDOM_"):
                yield trial


def worst(found: Sequence[Found]) -> list[Found]:
    """Returns the worst outcome of each form: numbers may be right by chance."""
    forms: dict[Any, Found] = {}
    for each in found:
        form = each.form
        key = each.operator, form.signature, conditions(form)
        known = forms.get(key)
        if known is None or OUTCOMES.index(each.outcome) > OUTCOMES.index(known.outcome):
            forms[key] = each
    return list(forms.values())


def differing(table: AcceptanceTable, found: Sequence[Found]) -> list[str]:
    """Returns the forms of which a table has another outcome."""
    return [
        f"{each.operator} {each.form.signature} {[operand.shape for operand in each.call.inputs]}: "
        f"{each.outcome}, in the table {verdict.outcome} ({verdict.reason})"
        for each in found
        if (verdict := table.verdict(each.operator, each.call)).outcome != each.outcome
    ]


def _release(kind: str, python: str) -> str:
    """Returns the releases that outcomes are of."""
    names = re.findall(r"{(.*?)}", _RELEASES[kind])
    script = f"import importlib.metadata as m; print(*map(m.version, {names}))"
    found = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    return _RELEASES[kind].format(**dict(zip(names, found, strict=True)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = parser_of("accelerator_probe", __doc__)
    parser.add_argument("accelerator", choices=_TABLES)
    parser.add_argument("--check", action="store_true", help="compare with the table")
    parser.add_argument("--sample", type=int, help="how many forms to try; compare with the table")
    parser.add_argument("--rounds", type=int, default=2, help="how many times to draw numbers")
    parser.add_argument("--every", type=int, default=1, help="try each n-th form only, and write the table")
    parser.add_argument("--only", nargs="*", default=(), help="the operators to try")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the runtime")
    options = parser.parse_args(arguments)
    kind = options.accelerator
    path = FOLDER / "accelerators" / f"{_TABLES[options.accelerator]}.tsv"
    found: list[Found] = []
    for _ in range(options.rounds):
        chosen = [trial for trial in trials() if not options.only or trial.operator in options.only]
        chosen = chosen[:: options.every]
        if options.sample:
            chosen = random.Random(options.sample).sample(chosen, min(options.sample, len(chosen)))
        found += vela.probe(chosen, options.python) if kind == "ethos-u" else probe(kind, chosen, options.python)
    found = worst(found)
    print(
        *(f"{count:6d} {outcome}" for outcome, count in Counter(each.outcome for each in found).most_common()), sep="\n"
    )
    if not options.sample and not options.check:
        kept = AcceptanceTable(path.read_text("utf-8")) if options.only else None
        path.write_text(table_of(found, _release(kind, options.python), kind, kept), "utf-8")
    differences = differing(AcceptanceTable(path.read_text("utf-8")), found)
    print(*differences, sep="\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
