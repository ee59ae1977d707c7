"""The reasons why embeddings, segments, sparse tensors, diagonals and windows are declined."""

from __future__ import annotations

import pytest

from tests.support.run_text import parse
from tfconvert.converter.litert.passes.legalize import Legalize
from tfconvert.schema.diagnostics import ConversionError

_WINDOWS = 'strides = [1, 1, 1, 1], rates = [1, 1, 1, 1], padding = "VALID"'

ROWS = [
    ("DynamicPartition", "4xf32, *xi32", "*xf32", "num_partitions = 1 : i64", "the rank of the numbers is not known"),
    ("DynamicPartition", "*xf32, 4xi32", "*xf32", "num_partitions = 1 : i64", "the operand's rank is not known"),
    ("DynamicStitch", "*xi32, *xf32", "*xf32", "", "the operands' ranks are not known"),
    ("DynamicStitch", "?x2xi32, ?x2x?xf32", "?x?xf32", "", "the shape that each index selects is not known"),
    ("SegmentMean", "*xf32, 4xi32", "*xf32", "", "the operand's rank is not known"),
    ("SegmentSum", "4xi64, 4xi32", "?xi64", "", "LiteRT computes it for f32, i32, not for i64"),
    ("UnsortedSegmentSum", "4x?xi64, 4xi32, i32", "?x?xi64", "", "the size of the summed rows is not known"),
    ("UniqueV2", "4x2xi32, 1xi32", "?x2xi32, 4xi32", "", "only a vector's elements are compared"),
    ("SparseReshape", "4x?xi64, ?xi64, 2xi64", "4x2xi64, 2xi64", "", "the sparse tensor's rank is not known"),
    ("SparseFillEmptyRows", "4x?xi64, 4xf32, ?xi64, f32", "?x?xi64, ?xf32, ?xi1, 4xi64", "",
     "the sparse tensor's rank is not known"),
    ("MatrixDiagPart", "?x3xi8", "?xi8", "", "the matrices' size is not known"),
    ("MatrixDiagPartV2", "3x3xf32, i32, f32", "?xf32", "", "which diagonal is meant, or the rank, is not known"),
    ("MatrixDiagPart", "*xf32", "*xf32", "", "the rank, is not known"),
    ("Diag", "?x2xf32", "?x2x?x2xf32", "", "the operand's shape is not known"),
    ("RaggedTensorToTensor", "i64, ?xf32, f32, ?xi64, ?xi64", "?x?x?xf32",
     'row_partition_types = ["ROW_SPLITS", "ROW_SPLITS"]', "only tensors with one ragged dimension are padded"),
    ("RaggedTensorToTensor", "2xi64, ?xf32, f32, ?xi64", "?x?xf32", 'row_partition_types = ["ROW_SPLITS"]',
     "the padded tensor's rank, or the size of its rows' elements, is not known"),
    ("RaggedTensorToSparse", "?xi64, ?x2xf32", "?x3xi64, ?xf32, 3xi64", "",
     "only tensors with one ragged dimension, the last, become sparse"),
    ("ExtractImagePatches", "1x?x8x3xf32", "1x?x5x48xf32", f"ksizes = [1, 4, 4, 1], {_WINDOWS}",
     "the images' size is not known"),
    ("ExtractImagePatches", "1x80x80x1xf32", "1x61x61x400xf32", f"ksizes = [1, 20, 20, 1], {_WINDOWS}",
     "windows that overlap have at most 256 pixels"),
]  # fmt: skip


def _types(text: str) -> list[str]:
    return [f"tensor<{each}>" for each in text.split(", ")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}({row[1]})")
def test_says_why(row: tuple[str, str, str, str, str]) -> None:
    op, operands, results, attributes, reason = row
    names = ", ".join(f"%x{index}: {each}" for index, each in enumerate(_types(operands)))
    operands_text = ", ".join(f"%x{index}" for index in range(len(_types(operands))))
    made = ", ".join(_types(results))
    count = f":{len(_types(results))}" if "," in results else ""
    returned = ", ".join(f"%r#{index}" for index in range(len(_types(results)))) if count else "%r"
    module = parse(f"""
    func.func @main({names}) -> ({made}) {{
      %r{count} = "tf.{op}"({operands_text}) <{{{attributes}}}> : ({", ".join(_types(operands))}) -> ({made})
      func.return {returned} : {made}
    }}""")
    with pytest.raises(ConversionError) as caught:
        Legalize().apply(module)
    assert reason in str(caught.value)
