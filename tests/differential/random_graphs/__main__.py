"""The command; see the package."""

from __future__ import annotations

import argparse
import os
import time

from tests.differential.random_graphs import campaign


def main() -> None:
    """Compares as many graphs as the command line states and prints the result."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.random_graphs", description="Compares random graphs."
    )
    parser.add_argument("--count", type=int, default=500, help="how many graphs")
    parser.add_argument("--seed", type=int, default=0, help="the first graph's seed")
    parser.add_argument("--steps", type=int, default=6, help="the largest number of ops in a graph")
    parser.add_argument("--refusals", action="store_true", help="print why graphs were refused")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    start = time.perf_counter()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    summary = campaign.compare_graphs(tf, seeds, arguments.steps, progress=30)
    for what, count in sorted(summary.counts.items()):
        print(f"{count:9} {what}")
    if arguments.refusals:
        for why, count in summary.refusals.most_common():
            print(f"{count:5} x refused: {why}")
    print(f"{len(summary.failures):9} different failures, {time.perf_counter() - start:.0f} s")
    for group, found in sorted(summary.failures.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(found):5} x {group}\n{found[0]}")
    if summary.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
