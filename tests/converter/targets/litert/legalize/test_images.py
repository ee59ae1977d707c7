"""Windows of images, colours, and searches in sorted rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.targets.litert.legalize.cases import Case, Check


def _patches(operand: str, size: tuple[int, int], strides: tuple[int, int], padding: str, rate: int = 1) -> Case:
    lists = {"ksizes": size, "strides": strides, "rates": (rate, rate)}
    return Case(
        "ExtractImagePatches", [operand], {name: [1, *each, 1] for name, each in lists.items()} | {"padding": padding}
    )


CASES = [
    _patches("f32[?2,9,8,3]", (4, 4), (4, 4), "VALID"),
    _patches("f32[1,9,8,3]", (4, 4), (4, 4), "SAME"),
    _patches("i32[?2,7,8,2]", (3, 2), (1, 2), "VALID"),
    _patches("f32[1,7,8,2]", (3, 3), (2, 1), "SAME", 2),
    _patches("f32[1,7,8,2]", (1, 1), (2, 3), "VALID"),
    *(Case(op, [operand]) for op in ("RGBToHSV", "HSVToRGB") for operand in ("f32[?2,4,3]@0:1", "f32[5,3]@0:1")),
    Case("RGBToHSV", ["f32[2,3]@0.4:0.4"]),
    Case("AdjustContrastv2", ["f32[?2,4,5,3]", "f32[]"], tolerance=1e-5),
    *(Case("AdjustSaturation", ["f32[?2,4,5,3]@0:1", factor], tolerance=1e-5) for factor in (0.3, 2.0)),
    *(Case("AdjustHue", ["f32[2,4,5,3]@0:1", delta], tolerance=1e-5) for delta in (0.3, -0.8)),
    *(
        Case(op, [np.array([[1, 3, 3, 5], [0, 2, 4, 6]], dtype), values])
        for op in ("LowerBound", "UpperBound")
        for dtype, values in ((np.int32, "i32[2,?7]@0:7"), (np.float32, "f32[2,9]@0:7"))
    ),
    Case("UpperBound", ["f32[?2,1]", "f32[?2,3]"], {"out_type": np.int64}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


def test_blocks_side_by_side_take_one_operator(check: Check) -> None:
    assert check(_patches("f32[?1,8,8,3]", (4, 4), (4, 4), "VALID")) == ["SPACE_TO_DEPTH"]
