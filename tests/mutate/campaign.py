"""Runs many mutants, counts what came of them, and groups failures by where they arise."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.mutate.litert import LiteRT
from tests.mutate.mutants import KINDS, SETTINGS, Mutant, draw
from tests.mutate.seeds import Seeds
from tests.mutate.worker import FAILED, Outcome, Workers, write_mutant
from tests.support.flat_settings import converted
from tfconvert.schema.diagnostics import ConversionError

# Of how many seeds one is converted with all settings to warm up.
_OFTEN = 8


@dataclass(slots=True)
class Summary:
    """The totals of a campaign.

    Attributes:
        counts: How many mutants had which outcome.
        kinds: The same by kind of mutant.
        failures: The failures, by group.
    """

    counts: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failures: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))

    def add(self, outcome: Outcome, kind: str) -> None:
        """Counts an outcome."""
        self.counts[outcome.kind] += 1
        self.kinds[kind][outcome.kind] += 1
        if outcome.kind == FAILED:
            self.failures[outcome.group].append(outcome)


def warm_up(seeds: Seeds) -> None:
    """Converts seeds here, so that what conversions need is loaded before processes are forked."""
    for index, seed in enumerate(seeds.all):
        for settings in SETTINGS if index % _OFTEN == 0 else ("plain",):
            _convert_once(Mutant("", seed, seed.files, seed.target, settings))


def _convert_once(mutant: Mutant) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            bytes(converted(write_mutant(mutant, Path(folder)), **mutant.arguments))
        except ConversionError:
            return  # Some can only be imported.


def run(
    seeds: Seeds,
    numbers: Iterable[int],
    *,
    seed: int = 0,
    kinds: Sequence[str] = tuple(KINDS),
    jobs: int = 1,
    open_every: int = 10,
    keep: Path | None = None,
    progress: float = 0,
) -> Summary:
    """Converts mutants.

    Args:
        seeds: The models they are made of.
        numbers: The mutants.
        seed: Of the random numbers.
        kinds: The kinds to draw from.
        jobs: How many are converted at the same time.
        open_every: Of how many results one is opened in LiteRT; 0 for none.
        keep: Where an example of every failure is written to.
        progress: Seconds between lines that say how far it has come; 0 for none.
    """
    drawn = partial(draw, seeds, seed=seed, kinds=tuple(kinds))
    warm_up(seeds)
    summary, told = Summary(), time.monotonic()
    with LiteRT() as litert:
        for outcome in Workers(drawn, jobs, open_every).run(iter(numbers)):
            kind = drawn(outcome.number).kind
            if outcome.output:
                outcome = _opened(litert, outcome, drawn(outcome.number), summary)
            summary.add(outcome, kind)
            if outcome.kind == FAILED and keep is not None and len(summary.failures[outcome.group]) <= 3:
                _keep(keep, drawn(outcome.number), outcome)
            if progress and time.monotonic() - told > progress:
                told = time.monotonic()
                print(f"{summary.counts.total()}: {dict(summary.counts)}, {len(summary.failures)} groups", flush=True)
    return summary


def _opened(litert: LiteRT, outcome: Outcome, mutant: Mutant, summary: Summary) -> Outcome:
    """Opens a result in LiteRT; returns the outcome of that.

    A `.tflite` file that LiteRT refuses before is refused afterwards: what it says is the same model.
    """
    path = Path(outcome.output)
    problem = litert.problem(path)
    path.unlink()
    summary.counts["opened in LiteRT"] += 1
    if not problem:
        return outcome
    if mutant.kind.startswith("tflite"):
        with tempfile.TemporaryDirectory() as folder:
            written = write_mutant(mutant, Path(folder, "model"))
            if litert.problem(written):
                summary.counts["refused by LiteRT before, too"] += 1
                return outcome
    return outcome._replace(kind=FAILED, group=f"a file that LiteRT refuses: {problem.splitlines()[0]}", detail=problem)


def _keep(folder: Path, mutant: Mutant, outcome: Outcome) -> None:
    """Writes a mutant that fails, and how."""
    place = folder / f"{mutant.kind}-{outcome.number}"
    write_mutant(mutant, place / "model")
    told = {**outcome._asdict(), "arguments": mutant.arguments, "target": mutant.target, "seed": mutant.seed.name}
    (place / "failure.json").write_text(json.dumps(told, indent=1), "utf-8")
    (place / "failure.txt").write_text(f"{outcome.group}\n{outcome.detail}\n", "utf-8")
