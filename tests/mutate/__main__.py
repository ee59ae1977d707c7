"""The command; see the package."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.mutate import campaign
from tests.mutate.mutants import DEFAULT_KINDS, KINDS
from tests.mutate.seeds import find_seeds


def main() -> None:
    """Converts as many mutants as the command line states and prints the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description="Converts random mutants of models.")
    parser.add_argument("--count", type=int, default=1000, help="how many mutants")
    parser.add_argument("--first", type=int, default=0, help="the first mutant's number")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument(
        "--kind",
        action="append",
        choices=KINDS,
        help="only mutants of this kind (repeatable); by default all but those of Keras files, which TensorFlow reads",
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many are converted at the same time")
    parser.add_argument("--open-every", type=int, default=10, help="of how many results one is opened in LiteRT")
    parser.add_argument("--keep", type=Path, help="a folder to write an example of every failure to")
    parser.add_argument(
        "--journal",
        type=Path,
        help="a file for the outcomes; the same command goes on from it after an interruption, and with a larger count",
    )
    parser.add_argument(
        "--seeds",
        type=Path,
        default=Path(tempfile.gettempdir()) / f"tfconvert-seeds-{os.getuid()}",
        help="the folder of the models to mutate; they are created if missing",
    )
    arguments = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    kinds = tuple(arguments.kind or DEFAULT_KINDS)
    start = time.perf_counter()
    summary = campaign.run(
        find_seeds(arguments.seeds),
        range(arguments.first, arguments.first + arguments.count),
        seed=arguments.seed,
        kinds=kinds,
        jobs=arguments.jobs,
        open_every=arguments.open_every,
        keep=arguments.keep,
        progress=30,
        journal=arguments.journal,
    )
    for what, count in sorted(summary.counts.items()):
        print(f"{count:9} {what}")
    for kind, counts in summary.kinds.items():
        print(f"{kind:>20}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}")
    print(f"{len(summary.failures):9} different failures, {time.perf_counter() - start:.0f} s")
    only = "".join(f"--kind {kind} " for kind in arguments.kind or ())
    again = f"python -m tests.mutate --seed {arguments.seed} --count 1 {only}"
    for group, outcomes in sorted(summary.failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(outcomes):5} x {group}\n        {again}--first {outcomes[0].number}")
    if summary.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
