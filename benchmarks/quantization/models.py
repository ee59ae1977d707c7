"""The reference models of quantization: trained small networks, and large ones of the zoo with random weights.

    python -m benchmarks.quantization.models
    python -m benchmarks.quantization.models --only digits,lstm

Each has a folder in the zoo's cache, beside the zoo's own:

    quantization/digits/saved_model/     the model; a large network's is in the zoo
    quantization/digits/calibration.npz  typical inputs by name, the first axis counts the samples
    quantization/digits/test.npz         other inputs, on which the results are compared
    quantization/digits/manifest.json    how it was created; written last

Small networks learn scikit-learn's digits or made-up data; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import zoo
from benchmarks.architectures import ARCHITECTURES
from benchmarks.commands import parser_of
from benchmarks.samples import images, load_samples

# The version of the models and samples, incremented so that old ones are created again.
RECIPE: Final = 1

# The shape of the large networks' inputs.
IMAGE: Final = (224, 224, 3)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe of a model."""

    name: str  # Its name.
    calibration: int = 100  # How many samples there are to calibrate on.
    test: int = 500  # How many there are at most to compare on.
    # Whether it has learned something, so that its first choice is clear; those of the zoo have not.
    is_trained: bool = True


# The models by name. Those of the zoo end in a SOFTMAX over a thousand classes.
RECIPES: Final[dict[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        *map(Recipe, ("digits", "mlp", "lstm", "gru", "transformer", "embed", "audio", "seg", "qat")),
        Recipe("MobileNetV2", 100, 16, is_trained=False),
        Recipe("MobileNetV3Small", 100, 16, is_trained=False),
        Recipe("EfficientNetB0", 50, 16, is_trained=False),
        Recipe("ResNet50", 20, 8, is_trained=False),
    )
}


@dataclass(frozen=True, slots=True)
class Reference:
    """One model in the cache."""

    recipe: Recipe  # What it is made from.
    cache: Path  # The zoo's cache folder.

    @property
    def folder(self) -> Path:
        """The folder of the model and its samples."""
        return self.cache / "quantization" / self.recipe.name

    @property
    def entry(self) -> zoo.Entry | None:
        """The network of the zoo, if it is one."""
        if self.recipe.is_trained:
            return None
        return zoo.Entry(ARCHITECTURES[self.recipe.name], "k3", self.cache)

    @property
    def saved_model(self) -> Path:
        """The SavedModel's folder."""
        return self.folder / "saved_model" if self.entry is None else self.entry.saved_model

    @property
    def calibration(self) -> Path:
        """Samples to calibrate on."""
        return self.folder / "calibration.npz"

    @property
    def test(self) -> Path:
        """Samples to compare on."""
        return self.folder / "test.npz"

    @property
    def manifest(self) -> Path:
        """The recipe of what is there."""
        return self.folder / "manifest.json"

    def settings(self) -> str:
        """Returns a hash of everything that determines the model and its samples."""
        versions = [importlib.metadata.version(name) for name in ("tensorflow", "keras", "tf_keras")]
        above = self.entry.settings() if self.entry is not None else ""
        recipe = json.dumps([RECIPE, asdict(self.recipe), above, versions])
        return hashlib.sha256(recipe.encode()).hexdigest()[:16]

    def exists(self) -> bool:
        """Whether the model and its samples are there, as this version of the script creates them."""
        if self.entry is not None and not self.entry.exists():
            return False
        return zoo.is_made(self.manifest, self.settings())


def select(cache: Path, only: Iterable[str] = ()) -> list[Reference]:
    """Returns the models of those names, or all of them.

    Raises:
        ValueError: A name is not one of ours.
    """
    wanted = {name.strip() for name in only if name.strip()}
    if wanted - RECIPES.keys():
        raise ValueError(f"no reference models: {', '.join(sorted(wanted - RECIPES.keys()))}")
    return [Reference(recipe, cache) for name, recipe in RECIPES.items() if not wanted or name in wanted]


def make(reference: Reference) -> None:
    """Creates a model and its samples, unless they are there.

    Raises:
        RuntimeError: It can't be created; the reason is in the message.
    """
    if reference.exists():
        return
    shutil.rmtree(reference.folder, ignore_errors=True)
    reference.folder.mkdir(parents=True)
    recipe, entry = reference.recipe, reference.entry
    if entry is None:
        counts = (str(recipe.calibration), str(recipe.test))
        zoo.run_module("benchmarks.quantization.networks", recipe.name, *counts, str(reference.folder))
    else:
        zoo.make(entry)
        write_images(reference, entry)
    reference.manifest.write_text(json.dumps({"settings": reference.settings()}) + "\n")


def write_images(reference: Reference, entry: zoo.Entry) -> None:
    """Writes the samples of a network of the zoo: images like those that its norms were made for."""
    (name,) = load_samples(entry.io)[1].inputs
    recipe = reference.recipe
    numbers = entry.architecture.input_range
    for seed, count, target in ((1, recipe.calibration, reference.calibration), (2, recipe.test, reference.test)):
        # numpy's stub mistakes a keyword of another type for one of the arrays.
        np.savez(target, **{name: images(seed, count, IMAGE, numbers)})  # type: ignore[arg-type]


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Adds the options that choose models; `selected` reads them."""
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"these models, of {' '.join(RECIPES)}")
    parser.add_argument("--cache", type=Path, default=zoo.default_cache(), metavar="DIR", help="default: %(default)s")


def selected(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Reference]:
    """Returns the models that the options of `add_selection` name; a wrong name ends the program."""
    try:
        return select(options.cache, options.only.split(","))
    except ValueError as problem:
        parser.error(str(problem))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("quantization.models", __doc__)
    add_selection(parser)
    failed = 0
    for reference in selected(parser, parser.parse_args(arguments)):
        try:
            make(reference)
        except RuntimeError as problem:
            failed += 1
            print(f"{reference.recipe.name:18} {problem}", file=sys.stderr, flush=True)
            continue
        print(f"{reference.recipe.name:18} {reference.saved_model}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
