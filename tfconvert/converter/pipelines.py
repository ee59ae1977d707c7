"""The target that settings name, and the pipelines that can be requested by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.pipeline.stages import before
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.target import Target
from tfconvert.settings.targets import AnyTarget, Iree, LiteRT


def load_target(settings: AnyTarget) -> Target[Any]:
    """Returns the target that has some settings, which is imported only now."""
    if isinstance(settings, LiteRT):
        from tfconvert.converter.targets.litert.target import LiteRTTarget

        return LiteRTTarget(settings)
    if isinstance(settings, Iree):
        from tfconvert.converter.targets.iree.target import IreeTarget

        return IreeTarget(settings)
    from tfconvert.converter.targets.stablehlo.target import StableHLOTarget

    return StableHLOTarget(settings)


PIPELINES: Mapping[str, Sequence[Stage]] = {"tflite": STAGES, "tf-standard": before(STAGES, "initialize-state")}
"""Pipelines that can be requested by name: the whole conversion, and its stages before the first LiteRT op."""
