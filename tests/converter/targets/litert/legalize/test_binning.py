"""Counting and sorting into bins."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.litert.legalize.cases import Case, Check, converted, graph, operand
from tests.support.litert import RunTFLite
from tfconvert.schema.diagnostics import ConversionError

NONE = np.zeros(0, np.float32)
MANY = 1 << 18

CASES = [
    Case("Bincount", ["i32[5]@0:6", 5, NONE]),
    Case("Bincount", ["i32[?5]@0:6", 5, "f32[?5]"]),
    Case("DenseBincount", ["i32[2,5]@0:9", 7, NONE]),
    Case("DenseBincount", ["i64[?2,?5]@0:9", np.array(7), np.zeros(0, np.int64)], {"binary_output": True}),
    Case("DenseBincount", ["i32[?2,5]@0:9", 7, "f32[?2,5]"]),
    Case("DenseBincount", ["i32[2,5]@0:9", 7, "f32[2,5]"], {"binary_output": True}),
    Case("DenseBincount", ["i32[2,0]", 7, NONE], {"binary_output": True}),
    Case("DenseBincount", ["i32[2,5]@0:9", 7, np.zeros(0)]),
    Case("DenseBincount", ["i32[2,5]@0:9", "i32[]@7:8", "i64[2,5]"]),
    Case("DenseBincount", ["i32[7]@0:9", MANY, NONE]),
    Case("DenseBincount", [f"i32[2,?7]@0:{2 * MANY}", MANY, np.zeros(0, np.int64)]),
    Case("DenseBincount", ["i64[?2,7]@0:9", np.array(MANY), "f32[?2,7]"]),
    Case("DenseBincount", ["i32[2,7]@0:9", MANY, NONE], {"binary_output": True}),
    *(Case("Bucketize", [f"{kind}[?2,3]"], {"boundaries": [-1.0, 0.0, 2.0]}) for kind in ("f32", "i32", "i64")),
    Case("Bucketize", ["f32[2,1,1,2,3]@-1:1"], {"boundaries": [0.0]}),
    Case("Bucketize", ["f32[2]"], {"boundaries": []}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_binning(check: Check, case: Case) -> None:
    check(case)


def test_rows_of_many_bins_are_not_spelt_out(check: Check) -> None:
    few = check(Case("DenseBincount", ["i32[7]@0:9", 100, NONE]))
    many = check(Case("DenseBincount", ["i32[7]@0:9", MANY, NONE]))
    assert few == ["ONE_HOT", "SUM"]
    assert "ONE_HOT" not in many


def test_buckets_are_one_operator(check: Check) -> None:
    below = Case("Bucketize", ["f32[2]@1:2"], {"boundaries": [float("-inf"), 0.0, float("inf")]})
    assert check(below) == ["BUCKETIZE"]


def test_values_that_are_no_numbers_are_above_all_boundaries(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path
) -> None:
    case = Case("Bucketize", ["f32[5]"], {"boundaries": [-1.0, 0.0, 2.0]})
    values = np.array([np.nan, np.inf, -np.inf, 0, 2], np.float32)
    (got,) = run_tflite(bytes(converted(case, tmp_path)), [values])
    expected = tf.raw_ops.Bucketize(input=values, boundaries=[-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(got, expected.numpy())


REFUSED = [
    (Case("DenseBincount", ["i32[3]", [4], NONE]), "not a scalar"),
    (Case("DenseBincount", ["i32[3]", -4, NONE]), "is negative"),
    (Case("DenseBincount", ["i32[3]", 4, "f64[3]"]), "it counts by weights of f32 i32 i64, not f64"),
    (Case("DenseBincount", ["i32[3]", 4, "f32[?3]"]), "whether there is a weight"),
    (Case("DenseBincount", ["i32[3]", MANY, "i64[3]"]), "too many bins"),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED, ids=str)
def test_what_cannot_be_counted_is_told(tmp_path: Path, case: Case, reason: str) -> None:
    operands = [operand(each, 0) for each in case.operands]
    (tmp_path / "graph.pb").write_bytes(graph(case, operands).SerializeToString())
    with pytest.raises(ConversionError, match=reason):
        tfconvert.convert(tmp_path / "graph.pb", outputs=["y"])
