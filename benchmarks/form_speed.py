"""Times the fast forms of operators in LiteRT, and prints the table that says what each gains.

    python -m benchmarks.form_speed > tfconvert/converter/targets/litert/forms/speed.tsv

A row is a graph with the microseconds of its usual form and of its fast one: one thread, minima of runs in turns. The
graphs are those of the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.commands import parser_of
from tests.converter.targets.litert.forms.cases import FAST_CASES, FastCase
from tests.converter.targets.litert.optimize.graph import Graph
from tfconvert.converter.targets.litert.passes.fast_forms import FastForms
from tfconvert.converter.targets.litert.tuning.form_timing import microseconds_of_files

# How long each pair is timed.
SECONDS = 0.5


def measured(case: FastCase) -> list[float]:
    """Returns the microseconds of a graph's usual form and of its fast one."""
    graph = Graph(case.shape)
    graph.returns(case.make(graph, graph.inputs[0]))
    usual = graph.content
    FastForms().apply(graph.module)
    return microseconds_of_files([usual, graph.content], SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("form_speed", __doc__)
    parser.parse_args(arguments)
    print("pattern", "shape", "becomes", "usual", "fast", sep="\t")
    for case in FAST_CASES:
        usual, fast = measured(case)
        shape = "x".join(map(str, case.shape))
        print(case.pattern, shape, case.expected, f"{usual:.1f}", f"{fast:.1f}", sep="\t", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
