"""Colours of images against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.comparison import Agree

GREYS = np.array([[0.5, 0.5, 0.5], [0, 0, 0], [1, 0, 1], [0.2, 0.9, 0.2], [-1, -2, -3]], np.float32)

ROWS: list[tuple[str, tuple[Any, ...]]] = [
    ("RGBToHSV", ("f32[2,4,3]@0:1",)),
    ("RGBToHSV", (GREYS,)),
    ("HSVToRGB", ("f32[2,4,3]@0:1",)),
    ("AdjustContrastv2", ("f32[2,4,5,3]", 1.5)),
    ("AdjustSaturation", ("f32[4,5,3]@0:1", 2.0)),
    ("AdjustSaturation", (GREYS[None], 0.5)),
    ("AdjustHue", ("f32[4,5,3]@0:1", -0.7)),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_agrees(row: tuple[str, tuple[Any, ...]], agree: Agree) -> None:
    op, operands = row
    agree(op, operands, tolerance=1e-5)
