"""Where a kernel differs from TensorFlow's op in a corner, the legalization corrects it, declines, or reports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check, converted

_INT64_MAX = np.iinfo(np.int64).max
_INT32_MIN = np.iinfo(np.int32).min

_EQUAL = np.tile(np.array([0, 0, 1, 1], np.float32), (4, 1))
_HALF_OVER = np.array([[0, 0, 1, 1], [0, 0, 1, 0.5], [2, 2, 3, 3], [2, 2, 2.5, 3], [5, 5, 6, 6]], np.float32)


def _longs(*values: int) -> Any:
    return np.array(values, np.int64)


def _indices(*values: int) -> Any:
    return np.array(values, np.int32)


CASES = (
    # The kernel drops boxes that overlap by the threshold, TensorFlow those that overlap by more.
    Case("NonMaxSuppressionV3", (_HALF_OVER, "f32[5]@0:1", 5, 0.5, 0.0)),
    Case("NonMaxSuppressionV3", (_HALF_OVER, "f32[5]@0:1", 5, 0.0, 0.0)),
    Case("NonMaxSuppressionV3", (_HALF_OVER, "f32[5]@0:1", 5, "f32[]@0.5:0.5", 0.0)),
    Case("NonMaxSuppressionV3", (_EQUAL, "f32[4]@0:1", 5, 0.5, 0.0)),
    Case("NonMaxSuppressionV5", (_HALF_OVER, "f32[5]@0:1", 5, 0.5, 0.0, 0.5)),
    # Updates of one place replace each other; scattering adds them up.
    Case("TensorScatterUpdate", ("f32[4,3]", _indices(1, 1, 3).reshape(3, 1), "f32[3,3]")),
    *(
        Case(f"TensorScatter{how}", ("f32[90,80]", "i32[9,2]@0:79", "f32[9]"))
        for how in ("Add", "Max", "Min", "Sub", "Update")
    ),
    Case("TensorScatterUpdate", ("i32[9000]", "i32[9,1]@0:8999", "i32[9]")),
    Case("TensorScatterAdd", ("f32[9000,2]", "i32[3,4,1]@0:8999", "f32[3,4,2]")),
    Case("TensorScatterUpdate", ("f32[4,3]", "i32[9,1]@0:2", "f32[9,3]")),
    Case("TensorScatterUpdate", ("f32[?4,3]", "i32[?9,2]@0:2", "f32[?9]")),
    Case("TensorScatterUpdate", ("i64[4,3,2]", "i64[2,2,2]@0:2", "i64[2,2,2]")),
    Case("TensorScatterUpdate", ("i1[4,2]", "i32[?0,1]", "i1[?0,2]")),
    Case("TensorScatterUpdate", ("f32[4,?3]", "i32[2,1]@0:3", "f32[2,?3]")),
    Case("TensorScatterUpdate", ("f32[4,?3]", _indices(1, 1, 3).reshape(3, 1), "f32[3,?3]")),
    Case("TensorScatterUpdate", ("f32[?4,?3,2]", "i32[?5,2]@0:2", "f32[?5,2]")),
    Case("TensorScatterUpdate", ("f32[?4,?3,?2,?3]", "i32[?5,2]@0:2", "f32[?5,?2,?3]")),
    Case("TensorScatterMax", ("f32[?4,?3,?2]", "i32[?5,1]@0:2", "f32[?5,?3,?2]")),
    # Bounds that don't fit 32 bits.
    Case("StridedSlice", ("f32[6,5]", "i64[2]@0:2", _longs(_INT64_MAX, _INT64_MAX), _longs(1, 1))),
    Case("StridedSlice", ("f32[6,5]", _longs(0, 1), "i64[2]@9000000000:9100000000", _longs(1, 1))),
    # Sizes that have no positive counterpart.
    Case("TruncateMod", (f"i32[2]@{_INT32_MIN}:{_INT32_MIN}", "i32[2]@3:5")),
    Case("TruncateMod", ("i64[20]@-9:9", _longs(3))),
    Case("Mod", ("i32[20]@-9:9", _indices(-3))),
    # Squares that overflow.
    Case("Asinh", ("f32[9]@-100000000000000000000000:100000000000000000000000",)),
    Case("Acosh", ("f32[9]@1:100000000000000000000000",)),
    Case("Sign", (_longs(-(1 << 62), -1, 0, 1, 1 << 62, -_INT64_MAX - 1),)),
    Case("Sign", ("i64[?9]@-3:3",)),
    # Swapped bounds.
    Case("ClipByValue", ("f32[9]", 1.0, -1.0)),
    Case("ClipByValue", ("f32[9]", 6.0, 0.0)),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_corner(case: Case, check: Check) -> None:
    check(case)


DECLINED = (
    (Case("NonMaxSuppressionV3", (_EQUAL, "f32[4]", 5, 1.0, 0.0)), "equal boxes"),
    (Case("Cast", ("f32[4]",), {"DstT": np.float16, "Truncate": True}), "truncates"),
    (Case("MirrorPad", ("f32[4]", [[1, 1]]), {"mode": "EXPLICIT"}), "EXPLICIT"),
)


@pytest.mark.parametrize(("case", "reason"), DECLINED, ids=str)
def test_what_no_kernel_computes_is_declined(case: Case, reason: str, tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match=reason):
        converted(case, tmp_path)


NOTED = (
    (Case("NonMaxSuppressionV5", (_HALF_OVER, "f32[5]", 5, 0.5, 0.0, 0.5)), "NonMaxSuppressionV5: boxes equal"),
    (Case("CheckNumerics", ("f32[4]",), {"message": "no"}), "CheckNumerics"),
)


@pytest.mark.parametrize(("case", "text"), NOTED, ids=str)
def test_what_may_show_is_noted(case: Case, text: str, tmp_path: Path) -> None:
    notes = converted(case, tmp_path).report.notes
    assert [note.severity for note in notes if note.message.startswith(text)] == ["warning"]


@pytest.mark.parametrize(("first", "notes"), [("Sigmoid", 0), ("Sqrt", 1)])
def test_limits_of_numbers_are_followed_through_ops_that_move_them(first: str, notes: int, tmp_path: Path) -> None:
    path = tmp_path / "moved.mlir"
    path.write_text(
        f"""
        func.func @main(%x: tensor<2x3xf32>) -> tensor<6x1xi8> {{
          %axes = "tf.Const"() <{{value = dense<[6, 1]> : tensor<2xi32>}}> : () -> tensor<2xi32>
          %order = "tf.Const"() <{{value = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
          %0 = "tf.{first}"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
          %1 = "tf.ReverseV2"(%0, %order) : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<2x3xf32>
          %2 = "tf.Reshape"(%1, %axes) : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<6x1xf32>
          %3 = "tf.Cast"(%2) <{{Truncate = false}}> : (tensor<6x1xf32>) -> tensor<6x1xi8>
          func.return %3 : tensor<6x1xi8>
        }}
        """
    )
    found = [note for note in tfconvert.convert(path).report.notes if "out of the integer type's range" in note.message]
    assert len(found) == notes
