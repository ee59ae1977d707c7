"""Movements of elements against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

TEXT = np.array([b"a", b"bc", b""], object)

SHAPES: list[ShapeCase] = [
    ("Bitcast", ["f64[3]"], {"type": tf.float32}),
    ("Bitcast", ["f32[3,2]"], {"type": tf.float64}),
    ("ReverseSequence", ["f32[?,?,3]", "i32[2]"], {"seq_dim": 1, "batch_dim": 0}),
    ("ReverseSequence", ["f32[*]", "i32[2]"], {"seq_dim": 1, "batch_dim": 0}),
    ("Bitcast", ["f32[*]"], {"type": tf.int32}),
    ("Bitcast", ["f32[3,?]"], {"type": tf.float64}),
    ("DataFormatDimMap", ["i32[?]"], {}),
    ("DataFormatVecPermute", ["i32[4,2]"], {}),
    ("Transpose", ["f32[2,?,4]", [2, 0, 1]], {}),
    ("Transpose", ["f32[2,?,4]", "i32[3]"], {}),
    ("Tile", ["f32[2,?]", [3, 4]], {}),
    ("Pad", ["f32[2,?]", [[1, 2], [0, 3]]], {}),
    ("Pad", ["f32[2,?]", "i32[2,2]"], {}),
    ("MirrorPad", ["f32[4,4]", [[1, 2], [0, 3]]], {"mode": "REFLECT"}),
    ("BroadcastTo", ["f32[2,1]", [5, 2, 3]], {}),
    ("Transpose", ["f32[*]", "i32[3]"], {}),
    ("Transpose", ["f32[*]", [2, 0, 1]], {}),
    ("Tile", ["f32[*]", "i32[?]"], {}),
    ("Tile", ["f32[*]", "i32[2]"], {}),
    ("Tile", ["f32[2,?]", "i32[?]"], {}),
    ("Pad", ["f32[*]", "i32[2,2]"], {}),
    ("BroadcastTo", ["f32[2,1]", "i32[?]"], {}),
    ("BroadcastTo", ["f32[2,1]", "i32[3]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("Bitcast", ["f32[2,3]"], {"type": tf.float64}),
    ("BroadcastTo", ["f32[2,3]", [3]], {}),
    ("BroadcastTo", ["f32[2,3]", [2, 4]], {}),
    ("Pad", ["f32[2]", [[1, -2]]], {}),
    ("Transpose", ["f32[2,3]", [0, 0]], {}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


ROWS: list[KernelCase] = [
    ("Transpose", ("f32[2,3,4]", [2, 0, 1]), {}),
    ("Transpose", ("bf16[2,3]", [1, 0]), {}),
    ("ConjugateTranspose", ("c64[2,3]", [1, 0]), {}),
    ("Tile", ("f32[2,3]", [2, 3]), {}),
    ("Tile", (TEXT, [2]), {}),
    ("BroadcastTo", ("f32[3,1]", [2, 3, 4]), {}),
    ("Pad", ("f32[2,3]", [[1, 0], [2, 3]]), {}),
    ("PadV2", ("f32[2,3]", [[1, 0], [2, 3]], 7.0), {}),
    ("PadV2", ("i8[2,3]", [[1, 0], [2, 3]], np.array(-5, np.int8)), {}),
    ("MirrorPad", ("f32[3,4]", [[1, 2], [2, 3]]), {"mode": "REFLECT"}),
    ("MirrorPad", ("i32[3,4]", [[3, 2], [0, 4]]), {"mode": "SYMMETRIC"}),
    ("Bitcast", ("f32[2,3]",), {"type": np.dtype(np.int32)}),
    ("Bitcast", ("f32[2,3]",), {"type": np.dtype(np.uint8)}),
    ("Bitcast", ("ui8[3,4]",), {"type": np.dtype(np.float32)}),
    ("Bitcast", (1.0,), {"type": np.dtype(np.int16)}),
    ("Bitcast", (1.0,), {"type": np.dtype(np.int32)}),
    ("Roll", ("f32[3,4]", [1, -2], [0, 1]), {}),
    ("Roll", ("i32[5]", 2, 0), {}),
    ("ReverseV2", ("f32[3,4,5]", [0, -1]), {}),
    ("ReverseSequence", ("f32[3,4,5]", [1, 4, 0]), {"seq_dim": 1, "batch_dim": 0}),
    ("ReverseSequence", ("f32[3,4,5]", np.array([1, 3, 0, 2])), {"seq_dim": 0, "batch_dim": 1}),
    ("Reverse", ("f32[2,3,4]", np.array([True, False, True])), {}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


BAD: list[KernelCase] = [
    ("Pad", (np.zeros(2), np.array([[-1, 0]])), {}),
    ("MirrorPad", (np.zeros(2), np.array([[2, 0]])), {"mode": "REFLECT"}),
    ("BroadcastTo", (np.zeros(2), np.array([3])), {}),
    ("Bitcast", (np.zeros((2, 3), np.uint8),), {"type": np.dtype(np.int32)}),
]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)
