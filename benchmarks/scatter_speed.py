"""Times scatters in LiteRT, as one operator and in the usual forms, and prints the table that conversions choose by.

    python -m benchmarks.scatter_speed > tfconvert/converter/targets/litert/forms/scatter_speed.tsv

Each form is timed in many sizes: one thread, minima of runs in turns. A row has the terms of which a form's time is the
sum: microseconds of a call, and those for each row, each element of the rows, each update and each element of the
updates. They are not negative, and fit the relative errors best. The errors are reported on the side.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np

from benchmarks.commands import parser_of
from benchmarks.form_speed import measured
from tests.converter.targets.litert.forms.cases import FastCase
from tests.converter.targets.litert.forms.scatter_cases import FORMS
from tfconvert.converter.targets.litert.forms import form as forms
from tfconvert.converter.targets.litert.forms.scatter_speed import SCATTER, USUAL, Sizes
from tfconvert.schema.dialects.tensor_data import Array

ROWS = (64, 1024, 16384, 262144)
WIDTHS = (1, 16, 128)
UPDATES = (1, 16, 256)

# The number of elements of rows, and of updates, up to which sizes are timed.
MAX_ELEMENTS = 1 << 20
MAX_UPDATED = 1 << 12


def sizes() -> list[Sizes]:
    """Returns the sizes that are timed."""
    found = (Sizes(*each) for each in product(ROWS, WIDTHS, UPDATES))
    return [
        each
        for each in found
        if each.updates <= each.rows and each.terms[2] <= MAX_ELEMENTS and each.terms[4] <= MAX_UPDATED
    ]


def fitted(terms: Array, times: Array) -> Array:
    """Returns the factors of terms that aren't negative and have the smallest relative errors of the times.

    Args:
        terms: A row for each time.
        times: The times.
    """
    kept = list(range(terms.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(terms[:, kept] / times[:, None], np.ones(len(times)), rcond=None)
        if (found >= 0).all():
            result = np.zeros(terms.shape[1])
            result[kept] = found
            return result
        del kept[int(found.argmin())]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("scatter_speed", __doc__)
    parser.parse_args(arguments)
    timed = sizes()
    terms = np.array([each.terms for each in timed], np.float64)
    print("form", "as", "call", "row", "element", "update", "updated", sep="\t")
    with forms.measured():
        for name, form in FORMS.items():
            cases = [FastCase(form.pattern, form.shape(each), form.make(each), "") for each in timed]
            both = np.array([measured(case) for case in cases])
            for which, times in zip((USUAL, SCATTER), both.T, strict=True):
                found = fitted(terms, times)
                print(name, which, *(f"{each:.3g}" for each in found), sep="\t", flush=True)
                ratios = terms @ found / times
                print(f"{name} {which}: {ratios.min():.2f} to {ratios.max():.2f} of the times", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
