"""IREE's pipeline: StableHLO's, and the stages that IREE's compiler needs."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.targets.stablehlo import stages as stablehlo

STAGES: Sequence[Stage] = (
    *stablehlo.STAGES,
    Stage(
        "lift-assertions",
        "all assertions are where they stay; IREE doesn't wait for those in loops",
        (("stablehlo.custom_call",), ("stablehlo.case", "stablehlo.if", "stablehlo.while")),
    ),
    Stage("stablehlo-to-iree-input", "IREE takes these forms of ops with open sizes, and no others"),
    Stage("weights-to-parameters", "constants are in their last form; compiling takes no memory for weights"),
)

EMBEDDED: Sequence[Stage] = STAGES[:-1]
"""The same for programs that have their weights in them."""
