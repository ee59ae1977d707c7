"""Pooling against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError


def window(size: int, stride: int, padding: str, **more: Any) -> dict[str, Any]:
    return {"ksize": (1, size, size, 1), "strides": (1, stride, stride, 1), "padding": padding, **more}


ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        (op, (f"{dtype}[2,9,10,3]",), window(3, stride, padding))
        for op in ("MaxPool", "AvgPool")
        for dtype in ("f32", "f64", "f16", "bf16")
        for stride in (1, 2, 3)
        for padding in ("SAME", "VALID")
    ],
    ("MaxPool", ("i32[2,9,10,3]",), window(2, 2, "SAME")),
    ("MaxPool", ("i8[2,9,10,3]",), window(2, 2, "VALID")),
    ("MaxPool", ("f32[2,9,10,3]",), window(3, 2, "EXPLICIT", explicit_paddings=(0, 0, 1, 1, 0, 2, 0, 0))),
    ("MaxPool", ("f32[2,4,4,3]@-9:-1",), window(3, 1, "SAME")),
    ("MaxPoolV2", ("f32[2,9,10,3]", [1, 2, 3, 1], [1, 2, 1, 1]), {"padding": "SAME"}),
    ("MaxPoolWithArgmax", ("f32[2,9,10,3]",), window(3, 2, "SAME")),
    ("MaxPoolWithArgmax", ("f32[2,9,10,3]",), window(3, 2, "VALID", include_batch_in_index=True)),
    ("MaxPoolWithArgmax", ("f32[2,4,4,1]",), window(2, 2, "VALID", Targmax=np.dtype(np.int32))),
    *[
        (op, ("f32[2,5,6,7,3]",), {"ksize": (1, 2, 3, 2, 1), "strides": (1, 2, 1, 2, 1), "padding": padding})
        for op in ("MaxPool3D", "AvgPool3D")
        for padding in ("SAME", "VALID")
    ],
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_pooling(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    agree(op, inputs, attributes)


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
def test_channels_first_is_a_transposed_channels_last(op: str) -> None:
    x = np.random.default_rng(1).normal(size=(2, 8, 9, 4)).astype(np.float32)
    expected = evaluate(Call(op, (x,), window(3, 2, "SAME")))[0]
    first = {"ksize": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "padding": "SAME", "data_format": "NCHW"}
    result = evaluate(Call(op, (x.transpose(0, 3, 1, 2),), first))[0]
    np.testing.assert_array_equal(result.transpose(0, 2, 3, 1), expected)


def test_pooling_over_channels_is_declined() -> None:
    attributes = {"ksize": (1, 1, 1, 2), "strides": (1, 1, 1, 2), "padding": "VALID"}
    with pytest.raises(ConversionError):
        evaluate(Call("MaxPool", (np.zeros((1, 2, 2, 4), np.float32),), attributes))


SHAPES: list[ShapeCase] = [
    ("MaxPool", ["f32[?,15,15,3]"], {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}),
    ("AvgPool", ["f32[?,15,?,3]"], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}),
    (
        "AvgPool",
        ["f32[2,3,15,15]"],
        {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 2], "padding": "VALID", "data_format": "NCHW"},
    ),
    ("MaxPool3D", ["f32[1,8,8,8,2]"], {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}),
    ("MaxPoolV2", ["f32[1,8,8,2]", [1, 2, 2, 1], [1, 2, 2, 1]], {"padding": "SAME"}),
    ("MaxPoolWithArgmax", ["f32[?,8,8,2]"], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}),
    ("MaxPoolV2", ["f32[1,8,8,2]", "i32[4]", [1, 2, 2, 1]], {"padding": "SAME"}),
    (
        "MaxPoolGrad",
        ["f32[1,8,8,2]", "f32[1,4,4,2]", "f32[1,4,4,2]"],
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    (
        "AvgPoolGrad",
        [[1, 8, 8, 2], "f32[1,4,4,2]"],
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    ("AvgPoolGrad", ["i32[4]", "f32[1,4,4,2]"], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
