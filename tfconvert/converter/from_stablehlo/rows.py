"""The rows of all families: what each StableHLO op is among TensorFlow's."""

from __future__ import annotations

from tfconvert.converter.from_stablehlo import (
    composites,
    convolutions,
    elementwise,
    fourier,
    indexing,
    linear_algebra,
    normalizations,
    products,
    random_bits,
    reductions,
    scattering,
    shaping,
    sorting,
    windows,
)
from tfconvert.converter.from_stablehlo.raised_op import Rows

ROWS: Rows = {
    **composites.ROWS,
    **convolutions.ROWS,
    **elementwise.ROWS,
    **fourier.ROWS,
    **indexing.ROWS,
    **linear_algebra.ROWS,
    **normalizations.ROWS,
    **products.ROWS,
    **random_bits.ROWS,
    **reductions.ROWS,
    **scattering.ROWS,
    **shaping.ROWS,
    **sorting.ROWS,
    **windows.ROWS,
}
"""StableHLO or CHLO op, without its prefix -> its row."""
