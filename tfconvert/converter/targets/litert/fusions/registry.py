"""All built-in fusions, family by family."""

from __future__ import annotations

from tfconvert.converter.composites.fusion import Fusion
from tfconvert.converter.targets.litert.fusions import (
    addons,
    detection,
    embedding,
    fusable,
    keras_lstm,
    lstm_cell,
    text,
)

FUSIONS: tuple[Fusion, ...] = (
    *embedding.FUSIONS,
    *detection.FUSIONS,
    *addons.FUSIONS,
    *text.FUSIONS,
    *keras_lstm.FUSIONS,
    *lstm_cell.FUSIONS,
    # It matches any name, so it comes last.
    *fusable.FUSIONS,
)
