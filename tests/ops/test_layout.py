"""Shapes and movements of elements against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

Agree = Callable[..., None]

INT64 = np.dtype(np.int64)
EMPTY = np.zeros(0, np.int32)
TEXT = np.array([b"a", b"bc", b""], object)

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        (op, ("f32[2,3,4]",), {})
        for op in ("Shape", "Size", "Rank", "ZerosLike", "OnesLike", "Identity", "StopGradient")
    ],
    *[(op, ("f32[2,3]",), {}) for op in ("Snapshot", "DeepCopy")],
    ("PreventGradient", ("f32[2]",), {"message": ""}),
    ("Shape", ("f32[2,3,4]",), {"out_type": INT64}),
    ("Shape", (1.0,), {}),
    ("Size", ("f32[0,3]",), {"out_type": INT64}),
    ("ShapeN", ("f32[2,3]", "f32[4]"), {}),
    ("IdentityN", ("f32[2,3]", "i32[4]"), {}),
    ("ZerosLike", ("i1[4]",), {}),
    ("EnsureShape", ("f32[2,3]",), {"shape": (2, -1)}),
    ("Reshape", ("f32[2,3,4]", [4, -1]), {}),
    ("Reshape", ("f32[1,1]", EMPTY), {}),
    *[("ExpandDims", ("f32[2,3]", axis), {}) for axis in (0, 1, 2, -1, -3)],
    ("Squeeze", ("f32[1,2,1,3]",), {}),
    ("Squeeze", ("f32[1,2,1,3]",), {"squeeze_dims": (0,)}),
    ("Squeeze", ("f32[1,2,1,3]",), {"squeeze_dims": (-2,)}),
    ("Transpose", ("f32[2,3,4]", [2, 0, 1]), {}),
    ("Transpose", ("bf16[2,3]", [1, 0]), {}),
    ("ConjugateTranspose", ("c64[2,3]", [1, 0]), {}),
    ("Concat", (1, "f32[2,3]", "f32[2,4]"), {}),
    ("ConcatV2", ("f32[2,3]", "f32[2,4]", -1), {}),
    ("ConcatV2", (TEXT, TEXT, 0), {}),
    ("ConcatOffset", (1, [2, 3], [2, 4], [2, 1]), {}),
    ("Split", (1, "f32[2,6]"), {"num_split": 3}),
    ("SplitV", ("f32[2,6]", [1, -1, 2], 1), {"num_split": 3}),
    ("Pack", ("f32[2,3]", "f32[2,3]"), {"axis": 1}),
    ("Pack", (1, 2, 3), {}),
    ("Unpack", ("f32[2,3]",), {"num": 3, "axis": -1}),
    ("Tile", ("f32[2,3]", [2, 3]), {}),
    ("Tile", (TEXT, [2]), {}),
    ("Fill", ([2, 3], 1.5), {}),
    ("Fill", ([2], np.array(b"x", object)), {}),
    ("Fill", (EMPTY, np.array(2, ml_dtypes.bfloat16)), {}),
    *[("Range", row, {}) for row in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (0.0, 1.0, 0.3), (1.0, -1.0, -0.25))],
    ("Range", (0.0, 0.3, 0.1), {}),
    *[("LinSpace", (0.0, 3.0, count), {}) for count in (1, 2, 7)],
    ("LinSpace", (np.array(1.0), np.array(-1.0), 5), {}),
    ("BroadcastTo", ("f32[3,1]", [2, 3, 4]), {}),
    ("BroadcastArgs", ([2, 1, 3], [4, 1]), {}),
    *[
        ("BroadcastGradientArgs", row, {})
        for row in (([2, 1, 3], [4, 1]), ([2, 1], [2, 1]), ([1, 1], [1]), ([3], [1, 3]))
    ],
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
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_shape(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    agree(op, inputs, attributes)


BAD: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("EnsureShape", (np.zeros((2, 3)),), {"shape": (2, 4)}),
    ("Reshape", (np.zeros((2, 3)), np.array([5])), {}),
    ("Squeeze", (np.zeros((2, 3)),), {"squeeze_dims": (0,)}),
    ("ConcatV2", (np.zeros((2, 3)), np.zeros((3, 3)), np.array(1)), {}),
    ("Split", (np.array(0), np.zeros((5, 3))), {"num_split": 2}),
    ("SplitV", (np.zeros((5, 3)), np.array([2, 2]), np.array(0)), {}),
    ("Range", (np.array(0), np.array(3), np.array(0)), {}),
    ("Range", (np.array(5), np.array(1), np.array(2)), {}),
    ("Pad", (np.zeros(2), np.array([[-1, 0]])), {}),
    ("MirrorPad", (np.zeros(2), np.array([[2, 0]])), {"mode": "REFLECT"}),
    ("BroadcastTo", (np.zeros(2), np.array([3])), {}),
    ("BroadcastArgs", (np.array([2]), np.array([3])), {}),
    ("Bitcast", (np.zeros((2, 3), np.uint8),), {"type": np.dtype(np.int32)}),
    ("Assert", (np.array(False),), {}),
    ("Const", (), {}),
    ("Fill", (np.array([1 << 50], np.int64), np.array(1.0)), {}),
    ("Gather", (np.zeros(3), np.array([3])), {}),
    ("GatherV2", (np.zeros(3), np.array([-1]), np.array(0)), {}),
    ("GatherNd", (np.zeros((3, 2)), np.array([[0, 2]])), {}),
    ("Slice", (np.zeros(3), np.array([2]), np.array([2])), {}),
    ("StridedSlice", (np.zeros(3), np.array([3]), np.array([4]), np.array([1])), {"shrink_axis_mask": 1}),
    ("StridedSlice", (np.zeros(3), np.array([0, 0]), np.array([1, 1]), np.array([1, 1])), {}),
    ("TopKV2", (np.zeros(3), np.array(4)), {}),
    ("InvertPermutation", (np.array([0, 0]),), {}),
    ("MatMul", (np.zeros((2, 3)), np.zeros((2, 3))), {}),
    ("Sum", (np.zeros((2, 3)), np.array([2])), {}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), BAD)
def test_operands_that_do_not_fit_are_an_error(op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, inputs, attributes))
    assert caught.value.code == "bad-operand"
    assert caught.value.diagnostics[0].op == f"tf.{op}"


def test_an_op_without_a_kernel_is_an_error() -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(Call("Frobnicate", (), {}))
    assert caught.value.code == "no-reference-kernel"
