"""What LiteRT is faster with: a recurrent layer as one operator, or as its steps.

The operator multiplies row by row of a batch; the loop's products are XNNPACK's. So loops win with larger batches and
more units, and operators where calling many small operators is what takes the time. `speed.tsv` has the times,
measured by `python -m benchmarks.recurrent_speed` on an x86-64 processor, one thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.converter.recurrence.cells import Cell, Lstm
from tfconvert.schema.dialects import types

TABLE = Path(__file__).with_name("speed.tsv")

LOOP = "loop"
UNROLLED = "unrolled"

OPEN_BATCH = 1
"""What an open batch counts as: what a device usually has."""
OPEN_STEPS = 50

LOSS = 1.1
"""How many times as long an operator may take; one operator is smaller and starts faster."""


class Sizes(NamedTuple):
    """What a layer's time depends on.

    Attributes:
        cell: `lstm` or `rnn`.
        form: What it is without the operator: `LOOP` or `UNROLLED`.
        units: The size of its state.
        steps: How many steps it has.
        batch: The number of sequences.
    """

    cell: str
    form: str
    units: int
    steps: int
    batch: int

    def __str__(self) -> str:
        return f"{self.units} units, {self.steps} steps, batch {self.batch}"


class Choice(NamedTuple):
    """What a layer, or several in one loop, should be.

    Attributes:
        fuse: Whether operators are the better form.
        reason: Why, with figures.
    """

    fuse: bool
    reason: str


def sizes_of(cell: Cell, form: str, steps: int) -> Sizes:
    """Returns the sizes of a layer.

    Args:
        cell: One of its steps.
        form: What it is without the operator.
        steps: How many steps it has, -1 if unknown.
    """
    batch = (types.shape_of(cell.output.type) or (-1,))[0]
    kind = "lstm" if isinstance(cell, Lstm) else "rnn"
    return Sizes(kind, form, cell.units, steps if steps >= 0 else OPEN_STEPS, batch if batch >= 0 else OPEN_BATCH)


def choose(layers: Iterable[Sizes]) -> Choice:
    """Returns the faster form of layers that are either all operators or none."""
    rows = [(sizes, _nearest(sizes)) for sizes in layers]
    ratio = sum(fused for _, (fused, _) in rows) / sum(kept for _, (_, kept) in rows)
    times = f"{ratio:.1f} times as long as the steps' own"
    place = "; ".join(dict.fromkeys(str(sizes) for sizes, _ in rows))
    return Choice(ratio <= LOSS, f"LiteRT's operator takes about {times} at {place}")


@cache
def _table() -> dict[Sizes, tuple[float, float]]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return {
        Sizes(cell, form, int(units), int(steps), int(batch)): (float(fused), float(kept))
        for cell, form, units, steps, batch, fused, kept in rows
    }


def _nearest(sizes: Sizes) -> tuple[float, float]:
    """Returns the times of the most similar layer that was measured, as the operator and otherwise."""

    def distance(row: Sizes) -> float:
        pairs = zip(row[2:], sizes[2:], strict=True)
        return sum(abs(math.log2(known / max(size, 1))) for known, size in pairs)

    rows = [row for row in _table() if row[:2] == sizes[:2]]
    return _table()[min(rows, key=distance)]
