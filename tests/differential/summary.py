"""The totals of a comparison of random graphs or programs, and how they are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Totals:
    """The totals of a comparison.

    Attributes:
        counts: How much of each kind.
        problems: The differences.
    """

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def print_summary(counts: Mapping[str, int], problems: Sequence[str], seconds: float) -> None:
    """Prints the result of a comparison; ends the process with status 1 if there are problems."""
    for what, count in counts.items():
        print(f"{count:9} {what}")
    print(f"{len(problems):9} problems, {seconds:.0f} s")
    for problem in problems[:20]:
        print(problem)
    if problems:
        raise SystemExit(1)
