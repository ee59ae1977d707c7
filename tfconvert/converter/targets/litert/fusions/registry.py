"""All built-in fusions, family by family."""

from __future__ import annotations

from tfconvert.converter.composites.fusion import Fusion
from tfconvert.converter.targets.litert.fusions import custom_operators, detection, embedding, marked_lstm

FUSIONS: tuple[Fusion, ...] = (
    *embedding.FUSIONS,
    *detection.FUSIONS,
    *custom_operators.FUSIONS,
    *marked_lstm.FUSIONS,
    # It matches any name, so it comes last.
    *custom_operators.FUSABLE,
)
