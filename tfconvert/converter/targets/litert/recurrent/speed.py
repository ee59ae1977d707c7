"""Estimates whether LiteRT is faster with a recurrent layer as one operator, or as its steps.

The operator multiplies the rows of a batch one by one; a loop's products use XNNPACK. So loops are faster with larger
batches and more units, and operators are faster where the overhead of many small operators dominates. `speed.tsv` has
the times, measured by `python -m benchmarks.recurrent_speed` on an x86-64 processor with one thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tfconvert.converter.recurrence.cells import Cell, LstmCell

TABLE = Path(__file__).with_name("speed.tsv")

LOOP = "loop"
UNROLLED = "unrolled"

OPEN_BATCH = 1
"""The batch that an open one is taken for: a device's usual one."""
OPEN_STEPS = 50

LOSS = 1.02
"""The factor by which an operator may be slower: one operator is cheaper to store, load and plan than many."""


class Sizes(NamedTuple):
    """The sizes that a layer's time depends on."""

    cell: str  # `lstm` or `rnn`.
    form: str  # Its form without the operator: `LOOP` or `UNROLLED`.
    units: int  # The size of its state.
    steps: int  # Its number of steps.
    batch: int  # The number of sequences.

    def __str__(self) -> str:
        return f"{self.units} units, {self.steps} steps, batch {self.batch}"


class Choice(NamedTuple):
    """The faster form of a layer, or of several in one loop."""

    fuse: bool  # Whether operators are the faster form.
    reason: str  # The reason, with figures.


def sizes_of(cell: Cell, form: str, steps: int) -> Sizes:
    """Returns the sizes of a layer.

    Args:
        cell: One of its steps.
        form: Its form without the operator.
        steps: Its number of steps, -1 if unknown.
    """
    batch = (cell.output.shape or (-1,))[0]
    kind = "lstm" if isinstance(cell, LstmCell) else "rnn"
    return Sizes(kind, form, cell.units, steps if steps >= 0 else OPEN_STEPS, batch if batch >= 0 else OPEN_BATCH)


def choose(layers: Sequence[Sizes], measured: tuple[float, float] | None = None) -> Choice:
    """Returns the faster form of layers that must all have the same form.

    Args:
        layers: Their sizes.
        measured: The milliseconds as operators and in the other form, if they are known; otherwise the table decides.
    """
    rows = [_nearest(sizes) for sizes in layers]
    fused, kept = measured or (sum(times[form] for times in rows) for form in (0, 1))
    place = "; ".join(dict.fromkeys(map(str, layers)))
    takes = "takes about" if measured is None else "was measured to take"
    reason = f"LiteRT {takes} {fused:.2g} ms with the operator and {kept:.2g} ms without at {place}"
    return Choice(fused <= LOSS * kept, reason)


@cache
def _table() -> dict[Sizes, tuple[float, float]]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return {
        Sizes(cell, form, int(units), int(steps), int(batch)): (float(fused), float(kept))
        for cell, form, units, steps, batch, fused, kept in rows
    }


def _nearest(sizes: Sizes) -> tuple[float, float]:
    """Returns the times of the most similar measured layer, as the operator and in the other form."""

    def distance(row: Sizes) -> float:
        pairs = zip(row[2:], sizes[2:], strict=True)
        return sum(abs(math.log2(known / max(size, 1))) for known, size in pairs)

    rows = [row for row in _table() if row[:2] == sizes[:2]]
    return _table()[min(rows, key=distance)]
