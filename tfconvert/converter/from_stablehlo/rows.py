"""The rows of all families: what each StableHLO op is among TensorFlow's."""

from __future__ import annotations

from tfconvert.converter.from_stablehlo import composites, convolutions, elementwise, indexing, products, shaping
from tfconvert.converter.from_stablehlo.raised_op import Rows

ROWS: Rows = {
    **composites.ROWS,
    **convolutions.ROWS,
    **elementwise.ROWS,
    **indexing.ROWS,
    **products.ROWS,
    **shaping.ROWS,
}
"""StableHLO or CHLO op, without its prefix -> its row."""
