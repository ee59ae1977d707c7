"""IREE's pipeline: StableHLO's, and the stages for IREE's compiler."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.targets.stablehlo import stages as stablehlo

STAGES: Sequence[Stage] = (
    *stablehlo.STAGES,
    Stage(
        "lift-assertions",
        "no later stage adds assertions; IREE doesn't wait for those in loops",
        (("stablehlo.custom_call",), ("stablehlo.case", "stablehlo.if", "stablehlo.while")),
    ),
    Stage("stablehlo-to-iree-input", "IREE accepts these forms of ops with dynamic sizes, and no others"),
    Stage("weights-to-parameters", "constants are in their final form; compiling needs no memory for weights"),
)

EMBEDDED: Sequence[Stage] = STAGES[:-1]
"""The stages for programs with embedded weights."""
