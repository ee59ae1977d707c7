"""The result of a pass: counts of its rewrites, notes for the user, and the measures that the report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.schema.diagnostics import Diagnostic

if TYPE_CHECKING:
    from tfconvert.converter.pipeline.quantization_report import Layer


class PassResult(NamedTuple):
    """The effect of a pass on one module.

    Attributes:
        counts: How often each pattern was applied, or how many things of each kind have changed; without zeros.
        notes: Warnings and decisions for the report.
        heading: The title under which the short report lists the counts; only the whole report does if it is empty.
        frozen_variables: How many variables became constants.
        operations: How many TensorFlow ops of each name the model has, from the pass after which they can be counted.
        layers: What became of operators that were to be quantized.
    """

    counts: Counter[str]
    notes: Sequence[Diagnostic] = ()
    heading: str = ""
    frozen_variables: int = 0
    operations: Counter[str] | None = None
    layers: Sequence[Layer] = ()

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> PassResult:
        """Returns a result of nothing but counts, from a mapping that may hold zeros."""
        return cls(Counter({name: count for name, count in counts.items() if count}))


NOTHING_DONE = PassResult(Counter())
"""The result of a pass that only ensures something, or had nothing to do; must not be mutated."""
