"""Estimates whether LiteRT is faster with a scatter as one operator, or with operators that visit all rows.

`scatter_speed.tsv` has the times of both, as sums of terms: a constant one, and one for each row, each element of the
rows, each update and each element of the updates. `python -m benchmarks.scatter_speed` measures many sizes on an x86-64
processor with one thread, and writes the terms that fit best.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("scatter_speed.tsv")

USUAL, SCATTER = "usual", "scatter"


# The factor by which the operator may be slower: it is cheaper to store and plan than several, and needs less memory.
_LOSS = 1.1


class Sizes(NamedTuple):
    """The sizes that the time of a scatter depends on.

    Attributes:
        rows: The number of rows of the tensor.
        width: The number of elements of a row.
        updates: The number of rows that updates replace, or are combined with.
    """

    rows: int
    width: int
    updates: int

    @property
    def terms(self) -> tuple[int, ...]:
        """The numbers that the terms are multiplied by."""
        return 1, self.rows, self.rows * self.width, self.updates, self.updates * self.width


def is_faster(form: str, sizes: Sizes) -> bool:
    """Returns whether the operator is known to be the faster form.

    Args:
        form: The other form, by its name in the table.
        sizes: The sizes.
    """
    table = _table()
    if (form, USUAL) not in table:
        return False
    usual, scatter = (
        sum(each * count for each, count in zip(table[form, which], sizes.terms, strict=True))
        for which in (USUAL, SCATTER)
    )
    return scatter <= _LOSS * usual


@cache
def _table() -> dict[tuple[str, str], tuple[float, ...]]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return {(form, which): tuple(map(float, terms)) for form, which, *terms in rows}
