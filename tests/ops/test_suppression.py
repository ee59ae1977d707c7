"""Non-maximum suppression against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

_RANDOM = np.random.default_rng(5)
_CORNERS = _RANDOM.uniform(0, 6, (40, 2)).astype(np.float32)
BOXES = np.concatenate([_CORNERS, _CORNERS + _RANDOM.uniform(-0.5, 3, (40, 2))], axis=1).astype(np.float32)
BOXES[7] = BOXES[3]
SCORES = np.round(_RANDOM.uniform(0, 1, 40), 1).astype(np.float32)
"""Scores with ties, boxes with corners in any order, one box twice."""


@pytest.mark.parametrize("most", [0, 5, 60])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_overlapping_boxes_are_dropped(agree: Agree, version: int, overlap: float, most: int) -> None:
    count = {2: 1, 5: 3}.get(version, 2)
    settings = [np.float32(value) for value in (overlap, 0.2, 0.0)[:count]]
    attributes = {"pad_to_max_output_size": True} if version > 3 else {}
    agree(f"NonMaxSuppressionV{version}", (BOXES, SCORES, np.int32(most), *settings), attributes)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_overlaps_lower_scores(agree: Agree, sigma: float, threshold: float) -> None:
    settings = [np.float32(value) for value in (0.5, threshold, sigma)]
    agree("NonMaxSuppressionV5", (BOXES, SCORES, np.int32(30), *settings), tolerance=1e-5)


def test_boxes_and_scores_must_match() -> None:
    operands = (BOXES, SCORES[:3], np.array(3, np.int32), np.array(0.5, np.float32))
    with pytest.raises(ConversionError) as caught:
        evaluate(Call("NonMaxSuppressionV2", operands, {}))
    assert caught.value.code == "bad-operand"


SHAPES: list[ShapeCase] = [
    ("NonMaxSuppressionV3", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0], {}),
    ("NonMaxSuppressionV4", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0], {"pad_to_max_output_size": True}),
    ("NonMaxSuppressionV5", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0, 0.0], {"pad_to_max_output_size": True}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", 4, 5, 0.5, 0.0], {}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", 4, 50, 0.5, 0.0], {"pad_per_class": True}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", 4, "i32[]", 0.5, 0.0], {}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", "i32[]", 5, 0.5, 0.0], {"pad_per_class": True}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("NonMaxSuppressionV2", ["f32[9,4]", "f32[9]", "i32[1]", 0.5], {}),
    ("NonMaxSuppressionV3", ["f32[9,4]", "f32[9]", 3, "f32[1]", 0.0], {}),
    ("NonMaxSuppressionV5", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0, "f32[2]"], {}),
]


@by_op(CONTRADICTIONS)
def test_what_is_one_number_has_no_dimensions(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
