"""Converts networks of Hugging Face's transformers and of keras-hub, ours beside the official converter.

    python -m benchmarks.hub_models                        all whose library is installed
    python -m benchmarks.hub_models --only bert,t5-past    some
    python -m benchmarks.hub_models --folder out/hub       keeps models and results there
    python -m benchmarks.hub_models --alone                ours only, the official converter takes minutes each
    python -m benchmarks.hub_models --list

Needs TensorFlow, and `transformers<5` with tf_keras or keras-hub; no weights are loaded, all networks of `hub_table.py`
are small and random. Batch and lengths are open, and every network is run in LiteRT at two or three sizes and compared
with TensorFlow. The table says for either converter whether it converts, the largest error relative to the largest
number of an output (`wrong` above 1e-3), and the operators. Exits with 1 where ours fails, or has more operators than
an official file that is right.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.commands import parser_of, run
from benchmarks.hub_table import Network
from benchmarks.hub_table_keras import NETWORKS
from benchmarks.litert import measure_results
from benchmarks.zoo import QUIET_TENSORFLOW

TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of converting a network with one converter."""

    failure: str = ""  # Why there is no result; empty if there is one.
    error: float = float("inf")  # The largest relative error at any size.
    operators: int = 0  # How many the file has, over all subgraphs.

    @property
    def right(self) -> bool:
        """Whether the file runs and answers as TensorFlow does."""
        return not self.failure and self.error < TOLERANCE

    def __str__(self) -> str:
        if self.failure:
            return self.failure
        return f"{'right' if self.right else 'wrong'}, {self.error:.0e}"


def failure_of(network: Network, *command: str) -> str:
    """Runs a module in a process of its own; returns the last line of its complaint, or nothing if it succeeds."""
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if network.library == "transformers" else {}
    environment = {**os.environ, **QUIET_TENSORFLOW, **legacy}
    try:
        run([sys.executable, "-m", *command], environment)
    except RuntimeError as problem:
        return str(problem)
    return ""


def measure(io: Path, result: Path, failure: str) -> Outcome:
    """Returns the outcome of a conversion that left a file, or failed."""
    if failure:
        return Outcome(f"no: {failure}"[:70])
    try:
        (measured,) = measure_results(io, [result])
    except RuntimeError as error:
        return Outcome(f"doesn't run: {error}"[:70])
    return Outcome("", measured.error, measured.count)


def try_network(network: Network, folder: Path, *, compares: bool = True) -> tuple[Outcome, Outcome]:
    """Returns what our converter and the official one make of a network.

    Args:
        network: The network.
        folder: Where the model and the results are kept.
        compares: Whether the official converter is tried, which takes minutes.

    Raises:
        RuntimeError: The network can't be built with the installed libraries.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model, io = folder / "saved_model", folder / "io.npz"
    if not io.exists():
        failure = failure_of(network, "benchmarks.hub_export", network.name, str(folder))
        if failure:
            raise RuntimeError(f"{network.name} can't be built: {failure}")
    ours, official = folder / "ours.tflite", folder / "official.tflite"
    failure = failure_of(network, "tfconvert", str(model), "-o", str(ours), "-q")
    mine = measure(io, ours, failure)
    if not official.exists() and not compares:
        return mine, Outcome("not tried")
    failure = "" if official.exists() else failure_of(network, "benchmarks.official", str(model), str(official))
    return mine, measure(io, official, failure)


def is_worse(ours: Outcome, official: Outcome) -> bool:
    """Whether our result is wrong, or longer than a right one of the official converter."""
    return not ours.right or (official.right and ours.operators > official.operators)


def choose(names: Sequence[str]) -> list[Network]:
    """Returns the networks of those names, or all whose library is installed.

    Raises:
        ValueError: There is no network of a name.
    """
    unknown = set(names) - {network.name for network in NETWORKS}
    if unknown:
        raise ValueError(f"no such network: {', '.join(sorted(unknown))}")
    return [
        network
        for network in NETWORKS
        if (network.name in names if names else importlib.util.find_spec(network.library) is not None)
    ]


def main() -> int:
    """Runs the command line."""
    parser = parser_of("hub_models", __doc__)
    parser.add_argument("--only", default="", help="names of networks, separated by commas")
    parser.add_argument("--folder", type=Path, help="where models and results are kept (default: nowhere)")
    parser.add_argument("--alone", action="store_true", help="don't try the official converter")
    parser.add_argument("--list", action="store_true", help="list the networks")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{network.name:24} {network.library}" for network in NETWORKS))
        return 0
    try:
        networks = choose([name for name in options.only.split(",") if name])
    except ValueError as error:
        parser.error(str(error))
    worse = 0
    print("| network | ours | operators | official | operators |\n| --- | --- | ---: | --- | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for network in networks:
            try:
                where = (options.folder or Path(temporary)).resolve() / network.name
                ours, official = try_network(network, where, compares=not options.alone)
            except RuntimeError as error:
                # Not every version of a library can build or trace all of its networks.
                print(f"| {network.name} | {error} | | | |"[:120], flush=True)
                continue
            cells = (network.name, ours, ours.operators or "", official, official.operators or "")
            mark = " **worse**" if is_worse(ours, official) else ""
            print(f"| {' | '.join(map(str, cells))} |{mark}", flush=True)
            worse += is_worse(ours, official)
    return int(worse > 0)


if __name__ == "__main__":
    raise SystemExit(main())
