"""Runs many random graphs, counts, and groups differences by what is left of them when they are made small."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from types import ModuleType

from tests.differential.random_graphs.compare import DIFFERS, REFUSED, Verdict, judge, random_program, tamed
from tests.differential.random_graphs.known import known_difference
from tests.differential.random_graphs.program import Program
from tests.differential.random_graphs.shrink import ops_of, shrink
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess


@dataclass(slots=True)
class Summary:
    """The totals of a comparison.

    Attributes:
        counts: How many graphs had which outcome.
        refusals: Why graphs were refused.
        failures: The differences, by group.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def compare_graphs(tf: ModuleType, seeds: Iterable[int], steps: int, *, progress: float = 0) -> Summary:
    """Compares the graphs of some seeds.

    Args:
        tf: TensorFlow.
        seeds: A graph each.
        steps: The largest number of ops in a graph.
        progress: Seconds between lines that say how far it has come; 0 for none.
    """
    summary, told = Summary(), time.monotonic()
    with LiteRTProcess() as runtime:
        for seed in seeds:
            random = Random(seed)
            program = random_program(tf, random, random.randint(1, steps))
            if not program.steps:
                continue
            verdict = judge(tf, program, runtime)
            if verdict.kind == DIFFERS:
                _explain(tf, summary, f"seed {seed}", program, verdict, runtime)
            else:
                summary.counts[verdict.kind] += 1
            if verdict.kind == REFUSED:
                summary.refusals[verdict.detail.partition("\n")[0]] += 1
            if progress and time.monotonic() - told > progress:
                told = time.monotonic()
                print(f"{summary.counts.total()}: {dict(summary.counts)}, {len(summary.failures)} groups", flush=True)
    return summary


def _explain(
    tf: ModuleType, summary: Summary, name: str, program: Program, verdict: Verdict, runtime: LiteRTProcess
) -> None:
    """Makes a difference small, and records it if it is not LiteRT's own."""

    def differs(smaller: Program) -> bool:
        found = judge(tf, smaller, runtime)
        return found.kind == DIFFERS and found.what.partition(":")[0] == verdict.what.partition(":")[0]

    small = shrink(program, verdict.output, differs)
    final = judge(tf, small, runtime)

    def differs_with_ordinary_numbers() -> bool:
        ordinary = tamed(tf, small)
        return ordinary is None or judge(tf, ordinary, runtime).kind == DIFFERS

    row = known_difference(small, final, differs_with_ordinary_numbers)
    if row is not None:
        summary.counts[f"LiteRT's own difference: {row.what}"] += 1
        return
    summary.counts[DIFFERS] += 1
    summary.failures[f"{ops_of(small)}: {final.what}"].append(f"{name}\n{small}\n  {final.detail}")
