"""The random choices of a program: by name, so that equal names get equal answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Draws:
    """Draws of a program, or of a part of it.

    Attributes:
        seed: The program's seed.
        mutability: How likely each mutation is.
        part: Whose choices these are.
        twin: Whose weights these are, if several parts choose alike.
        mutations: The mutations that have taken place.
    """

    seed: int
    mutability: float
    part: str = ""
    twin: str = ""
    mutations: set[str] = field(default_factory=set)

    def _random(self, name: str) -> Random:
        return Random(f"{self.seed}/{self.part}/{name}")

    def within(self, part: str) -> Draws:
        """Returns the draws of a part."""
        return replace(self, part=f"{self.part}/{part}")

    def of_twin(self, twin: str) -> Draws:
        """Returns draws that choose alike, but have other weights."""
        return replace(self, twin=f"{self.twin}/{twin}")

    def pick(self, name: str, *options: Choice, odds: Sequence[float] | None = None) -> Choice:
        """Returns one of several options."""
        return self._random(name).choices(options, odds)[0]

    def happens(self, name: str, odds: float = 0.5) -> bool:
        """Returns whether a variation is drawn that does not change the meaning of a layer."""
        return self._random(name).random() < odds

    def mutates(self, name: str) -> bool:
        """Returns whether something is other than a layer has it, or may have it."""
        is_drawn = self._random(f"mutation: {name}").random() < self.mutability
        if is_drawn:
            self.mutations.add(name)
        return is_drawn

    def shuffled(self, name: str, items: Sequence[Choice]) -> list[Choice]:
        """Returns items in another order."""
        return self._random(name).sample(items, len(items))

    def numbers(self, name: str, *shape: int) -> Array:
        """Returns weights."""
        key = f"{self.seed}/{self.part}/{self.twin}/{name}"
        random = np.random.default_rng(list(key.encode()))
        return random.normal(0, 0.6, shape).astype(np.float32)
