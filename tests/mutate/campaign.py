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

from tests.mutate.journal import Journal
from tests.mutate.litert import LiteRT
from tests.mutate.mutants import DEFAULT_KINDS, FRAMEWORK_KINDS, SETTINGS, Mutant, draw
from tests.mutate.seeds import FRAMEWORK_FORMATS, Seeds
from tests.mutate.worker import FAILED, Outcome, Workers, write_mutant
from tests.support.flat_settings import converted
from tfconvert.schema.diagnostics import ConversionError

# How many mutants a process converts into which a framework has to be loaded.
_IN_A_PROCESS = 500

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
    """Converts seeds here, so that what conversions need is loaded before processes are forked.

    TensorFlow isn't loaded, as it has threads, which a forked process lacks.
    """
    for index, seed in enumerate(seed for seed in seeds.all if seed.format not in FRAMEWORK_FORMATS):
        for settings in SETTINGS if index % _OFTEN == 0 else ("plain",):
            _convert_once(Mutant("", seed, seed.files, seed.target, settings))


def load_frameworks(seeds: Seeds) -> None:
    """Converts a seed of each framework, so that it is loaded into a process that converts many mutants of them."""
    for seed in seeds.of(*FRAMEWORK_FORMATS):
        if seed.name.endswith("_dense"):
            _convert_once(Mutant("", seed, seed.files, seed.target, "plain"))


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
    kinds: Sequence[str] = DEFAULT_KINDS,
    jobs: int = 1,
    open_every: int = 10,
    keep: Path | None = None,
    progress: float = 0,
    journal: Path | None = None,
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
        journal: The file of the outcomes: mutants that are in it already are not converted again.

    Raises:
        ValueError: The journal is that of another campaign.
    """
    drawn = partial(draw, seeds, seed=seed, kinds=tuple(kinds))
    known = Journal(journal, {"seed": seed, "kinds": list(kinds), "seeds": seeds.digest})
    with_frameworks = not FRAMEWORK_KINDS.isdisjoint(kinds)
    warm_up(seeds)
    load = partial(load_frameworks, seeds) if with_frameworks else tuple
    workers = Workers(drawn, jobs, open_every, _IN_A_PROCESS if with_frameworks else 1, load)
    summary, told, wanted = Summary(), time.monotonic(), dict.fromkeys(numbers)
    for outcome, kind in known.outcomes:
        if outcome.number in wanted:
            del wanted[outcome.number]
            summary.add(outcome, kind)
    with LiteRT() as litert, known:
        for outcome in workers.run(iter(wanted)):
            kind = drawn(outcome.number).kind
            if outcome.output:
                outcome = _opened(litert, outcome, drawn(outcome.number), summary)
            summary.add(outcome, kind)
            known.add(outcome, kind)
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
