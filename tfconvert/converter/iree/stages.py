"""IREE's pipeline: StableHLO's, and what its compiler needs beside."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.stablehlo import stages as stablehlo

STAGES: Sequence[Stage] = (
    *stablehlo.STAGES,
    Stage("stablehlo-to-iree-input", "IREE takes these forms of ops with open sizes, and no others"),
    Stage("weights-to-parameters", "constants are in their last form; compiling takes no memory for weights"),
)

EMBEDDED: Sequence[Stage] = STAGES[:-1]
"""The same for programs that have their weights in them."""
