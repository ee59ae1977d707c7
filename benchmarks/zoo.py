"""Exports networks of keras.applications with random weights, for benchmarks and whole-model checks.

    python -m benchmarks.zoo --set bench
    python -m benchmarks.zoo --only MobileNetV2,ResNet50 --flavour k3 --official
    python -m benchmarks.zoo --list

The models go into a cache folder outside of the repository, one folder each:

    k3/MobileNetV2/saved_model/     the model
    k3/MobileNetV2/io.npz           inputs, and TensorFlow's answers
    k3/MobileNetV2/manifest.json    how it was created; written last, so its presence means that all files are there
    k3/MobileNetV2/official.tflite  the official converter's result, with --official

A model whose manifest fits is kept. Each one is created in a process of its own: TensorFlow frees memory only so.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.architectures import ARCHITECTURES, BENCH_SET, FLAVOURS, Architecture, Flavour
from benchmarks.commands import REPOSITORY, parser_of

# The version of `export_model`'s models, incremented so that old ones are created again.
RECIPE = 2

QUIET_TENSORFLOW = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
    "KERAS_BACKEND": "tensorflow",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "OMP_NUM_THREADS": "1",
}


def default_cache() -> Path:
    """Returns the folder that the models are kept in."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tfconvert" / "zoo"


def is_made(manifest: Path, settings: str) -> bool:
    """Returns whether a manifest is there and has been written for these settings."""
    try:
        made = json.loads(manifest.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return bool(made.get("settings") == settings)


@dataclass(frozen=True, slots=True)
class Entry:
    """One model in the cache."""

    architecture: Architecture  # The network.
    flavour: Flavour  # The library that exports it.
    cache: Path  # The cache folder.

    @property
    def label(self) -> str:
        """Its name in listings: `k3/MobileNetV2`."""
        return f"{self.flavour}/{self.architecture.name}"

    @property
    def folder(self) -> Path:
        """The model's folder."""
        return self.cache / self.flavour / self.architecture.name

    @property
    def saved_model(self) -> Path:
        """The SavedModel's folder."""
        return self.folder / "saved_model"

    @property
    def io(self) -> Path:
        """Inputs and TensorFlow's answers, see `samples.py`."""
        return self.folder / "io.npz"

    @property
    def official(self) -> Path:
        """The official converter's result."""
        return self.folder / "official.tflite"

    @property
    def manifest(self) -> Path:
        """The recipe of the model."""
        return self.folder / "manifest.json"

    def settings(self) -> str:
        """Returns a hash of everything that determines the model."""
        library = "keras" if self.flavour == "k3" else "tf_keras"
        versions = [importlib.metadata.version(name) for name in ("tensorflow", library)]
        recipe = json.dumps([RECIPE, asdict(self.architecture), self.flavour, versions])
        return hashlib.sha256(recipe.encode()).hexdigest()[:16]

    def exists(self) -> bool:
        """Whether the model is there, as this version of the script creates it."""
        return is_made(self.manifest, self.settings())


def select(cache: Path, only: Iterable[str] = (), flavour: str = "all", which: str = "all") -> list[Entry]:
    """Returns entries: those of the bench set first, Keras 3's before tf_keras'.

    Args:
        cache: The cache folder.
        only: Names to keep; a name can be narrowed to a flavour, as in `tfk/ResNet50`. Empty for all.
        flavour: `k3`, `tfk` or `all`.
        which: `bench` or `all`.

    Raises:
        ValueError: A name is not in the zoo.
    """
    wanted = {name.strip() for name in only if name.strip()}
    entries = [
        Entry(row, kind, cache)
        for kind in FLAVOURS
        for row in ARCHITECTURES.values()
        if kind in row.flavours and flavour in (kind, "all")
    ]
    known = {name for entry in entries for name in (entry.label, entry.architecture.name)}
    if wanted - known:
        raise ValueError(f"not in the zoo: {', '.join(sorted(wanted - known))}")
    if wanted:
        entries = [entry for entry in entries if {entry.label, entry.architecture.name} & wanted]
    rank = {name: index for index, name in enumerate(BENCH_SET)}
    if which == "bench":
        entries = [entry for entry in entries if entry.architecture.name in rank]
    order = list(ARCHITECTURES)
    return sorted(
        entries,
        key=lambda entry: (
            entry.architecture.name not in rank,
            FLAVOURS.index(entry.flavour),
            rank.get(entry.architecture.name, 0),
            order.index(entry.architecture.name),
        ),
    )


def run_module(module: str, *arguments: str, **variables: str) -> None:
    """Runs a module of this package in a process of its own, without TensorFlow's chatter.

    Args:
        module: The module.
        arguments: Its arguments.
        variables: Environment variables that differ from the usual ones, as `KERAS_BACKEND`.

    Raises:
        RuntimeError: It failed; its output is in the message.
    """
    environment = {**os.environ, **QUIET_TENSORFLOW, **variables}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed:\n{done.stdout}{done.stderr}")


def make(entry: Entry) -> None:
    """Exports one model, unless it is there."""
    if entry.exists():
        return
    shutil.rmtree(entry.folder, ignore_errors=True)
    entry.folder.mkdir(parents=True)
    row = entry.architecture
    low, high = map(str, row.input_range)
    run_module("benchmarks.export_model", row.name, entry.flavour, low, high, str(entry.folder))
    spread = entry.folder / "spread.json"
    measured = json.loads(spread.read_text())
    spread.unlink()
    entry.manifest.write_text(json.dumps({"settings": entry.settings(), **measured}, indent=2) + "\n")


def make_official(entry: Entry) -> None:
    """Converts one model by the official converter, unless that has been done."""
    if not entry.official.exists():
        run_module("benchmarks.official", str(entry.saved_model), str(entry.official))


def describe(entry: Entry) -> str:
    """Returns a line about an entry that exists."""
    made = json.loads(entry.manifest.read_text())
    parts = [
        f"{entry.label:24} {made['parameters'] * 4 / 1e6:6.1f} MB of weights",
        f"outputs {made['least']:.1e} to {made['greatest']:.1e}, two inputs differ by {made['difference']:4.0%}",
    ]
    if entry.official.exists():
        parts.append(f"official {entry.official.stat().st_size / 1e6:6.1f} MB")
    return "  ".join(parts)


def add_selection(parser: argparse.ArgumentParser, which: str = "all", flavour: str = "all") -> None:
    """Adds the options that choose models; `selected` reads them.

    Args:
        parser: Where to add them.
        which: The default set.
        flavour: The flavour that is.
    """
    parser.add_argument(
        "--only", "--models", default="", metavar="NAME,...", help="these models: MobileNetV2 or tfk/MobileNetV2"
    )
    parser.add_argument("--flavour", choices=(*FLAVOURS, "all"), default=flavour, help="default: %(default)s")
    parser.add_argument("--set", choices=("bench", "all"), default=which, dest="which", help="default: %(default)s")
    parser.add_argument("--cache", type=Path, default=default_cache(), metavar="DIR", help="default: %(default)s")


def selected(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Entry]:
    """Returns the entries that the options of `add_selection` name; a wrong name ends the program."""
    try:
        return select(options.cache, options.only.split(","), options.flavour, options.which)
    except ValueError as problem:
        parser.error(str(problem))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("zoo", __doc__)
    add_selection(parser)
    parser.add_argument("--list", action="store_true", help="list the models, and create nothing")
    parser.add_argument("--official", action="store_true", help="convert each by the official converter too")
    options = parser.parse_args(arguments)
    failed = 0
    for entry in selected(parser, options):
        if options.list:
            print(describe(entry) if entry.exists() else f"{entry.label:24} not created")
            continue
        start = time.perf_counter()
        try:
            make(entry)
            if options.official:
                make_official(entry)
        except RuntimeError as problem:
            failed += 1
            print(f"{entry.label:24} {problem}", file=sys.stderr, flush=True)
            continue
        print(f"{describe(entry)}  ({time.perf_counter() - start:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
