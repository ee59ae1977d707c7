"""The rows of all families: what each StableHLO op is among TensorFlow's."""

from __future__ import annotations

from tfconvert.converter.from_stablehlo import elementwise, shaping
from tfconvert.converter.from_stablehlo.raised_op import Rows

ROWS: Rows = {**elementwise.ROWS, **shaping.ROWS}
"""StableHLO or CHLO op, without its prefix -> its row."""
