"""Convolutions against TensorFlow."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

Attributes = dict[str, Any]

ONES = (1, 1, 1, 1)


def attributes(padding: str, strides: int | tuple[int, int], dilations: int = 1, **more: Any) -> Attributes:
    down, across = strides if isinstance(strides, tuple) else (strides, strides)
    return {"padding": padding, "strides": (1, down, across, 1), "dilations": (1, dilations, dilations, 1), **more}


@pytest.mark.parametrize(("padding", "stride", "dilation"), list(product(["SAME", "VALID"], [1, 2, 3], [1, 2])))
@pytest.mark.parametrize("kernel", ["f32[3,3,4,6]", "f32[1,1,4,5]", "f32[2,5,4,3]", "f32[3,3,2,6]", "f32[3,2,1,8]"])
def test_conv_2d(agree: Agree, kernel: str, padding: str, stride: int, dilation: int) -> None:
    agree("Conv2D", ("f32[2,11,10,4]", kernel), attributes(padding, stride, dilation), tolerance=1e-5)


@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID"]),
)
@settings(max_examples=60)
def test_windows(
    agree: Agree, height: int, width: int, kernel: tuple[int, int], strides: tuple[int, int], padding: str
) -> None:
    assume(padding == "SAME" or (kernel[0] <= height and kernel[1] <= width))
    image, weights = f"f32[1,{height},{width},2]", f"f32[{kernel[0]},{kernel[1]},2,3]"
    agree("Conv2D", (image, weights), attributes(padding, strides), tolerance=1e-5)
    if padding == "SAME":
        pool = {"ksize": (1, *kernel, 1), "strides": (1, *strides, 1), "padding": padding}
        agree("MaxPool", (image,), pool)
        agree("AvgPool", (image,), pool)


EXPLICIT: Attributes = {"explicit_paddings": (0, 0, 1, 2, 0, 3, 0, 0)}

ROWS: list[tuple[str, tuple[Any, ...], Attributes]] = [
    ("Conv2D", ("f32[1,8,9,3]", "f32[3,3,3,4]"), attributes("EXPLICIT", 2, **EXPLICIT)),
    ("Conv2D", ("f16[1,8,9,3]", "f16[3,3,3,4]"), attributes("SAME", 1)),
    ("Conv2D", ("bf16[1,8,9,3]", "bf16[3,3,3,4]"), attributes("SAME", 1)),
    ("Conv2D", ("f64[1,8,9,3]", "f64[3,3,3,4]"), attributes("SAME", 1)),
    ("Conv2D", ("f32[1,8,9,3]", "f32[1,1,3,4]"), attributes("SAME", 2)),
    # So large that it is computed in parts.
    ("Conv2D", ("f32[1,75,70,64]@-1:1", "f32[3,3,64,4]@-0.1:0.1"), attributes("SAME", 1)),
    ("DepthwiseConv2dNative", ("f32[2,8,9,3]", "f32[3,3,3,1]"), attributes("SAME", 1)),
    ("DepthwiseConv2dNative", ("f32[2,8,9,3]", "f32[3,3,3,2]"), attributes("VALID", 2)),
    ("DepthwiseConv2dNative", ("f32[2,8,9,3]", "f32[3,3,3,2]"), attributes("SAME", 1, 2)),
    ("DepthwiseConv2dNative", ("f32[2,8,9,3]", "f32[3,3,3,2]"), attributes("EXPLICIT", 1, **EXPLICIT)),
    ("DepthwiseConv2dNative", ("f64[2,8,9,3]", "f64[3,2,3,2]"), attributes("SAME", 3)),
    ("DepthwiseConv2dNative", ("f16[2,8,9,3]", "f16[3,2,3,2]"), attributes("SAME", 1)),
    ("Conv2DBackpropInput", ([2, 8, 9, 3], "f32[3,3,3,4]", "f32[2,8,9,4]"), attributes("SAME", 1)),
    ("Conv2DBackpropInput", ([2, 8, 9, 3], "f32[3,3,3,4]", "f32[2,4,5,4]"), attributes("SAME", 2)),
    ("Conv2DBackpropInput", ([2, 9, 11, 3], "f32[2,3,3,4]", "f32[2,4,5,4]"), attributes("VALID", 2)),
    ("Conv2DBackpropInput", ([2, 7, 9, 3], "f32[2,2,3,4]", "f32[2,3,4,4]"), attributes("VALID", 2)),
    ("Conv2DBackpropInput", ([1, 8, 9, 3], "f32[3,3,3,4]", "f32[1,5,5,4]"), attributes("EXPLICIT", 2, **EXPLICIT)),
    ("DepthwiseConv2dNativeBackpropInput", ([2, 8, 9, 3], "f32[3,3,3,2]", "f32[2,4,5,6]"), attributes("SAME", 2)),
    (
        "Conv3D",
        ("f32[2,6,7,5,3]", "f32[3,2,3,3,4]"),
        {"strides": (1, 2, 1, 2, 1), "padding": "SAME", "dilations": (1, 1, 1, 1, 1)},
    ),
    ("Conv3D", ("f32[2,6,7,5,3]", "f32[3,2,3,3,4]"), {"strides": (1, 1, 1, 1, 1), "padding": "VALID"}),
    (
        "Conv3DBackpropInputV2",
        ([2, 6, 7, 5, 3], "f32[3,2,3,3,4]", "f32[2,3,7,3,4]"),
        {"strides": (1, 2, 1, 2, 1), "padding": "SAME"},
    ),
    ("Dilation2D", ("f32[2,8,9,3]", "f32[3,3,3]"), {"strides": (1, 2, 1, 1), "rates": (1, 1, 2, 1), "padding": "SAME"}),
    ("Dilation2D", ("f32[2,8,9,3]", "f32[3,2,3]"), {"strides": ONES, "rates": ONES, "padding": "VALID"}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_other(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: Attributes) -> None:
    narrow = isinstance(inputs[0], str) and inputs[0].startswith(("f16", "bf16"))
    agree(op, inputs, attributes, tolerance=2e-2 if narrow else 1e-5)


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput"])
def test_channels_first_is_a_transposed_channels_last(op: str) -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(2, 8, 9, 4)).astype(np.float32)
    kernel = random.normal(size=(3, 3, 4, 4 if op != "DepthwiseConv2dNative" else 2)).astype(np.float32)
    last = {"strides": (1, 2, 1, 1), "padding": "EXPLICIT", "explicit_paddings": (0, 0, 1, 1, 2, 0, 0, 0)}
    first = {
        "strides": (1, 1, 2, 1),
        "padding": "EXPLICIT",
        "explicit_paddings": (0, 0, 0, 0, 1, 1, 2, 0),
        "data_format": "NCHW",
    }
    if op == "Conv2DBackpropInput":
        sizes = np.array([2, 16, 9, 4]), np.array([2, 4, 16, 9])
        inputs: list[tuple[Any, ...]] = [(sizes[0], kernel, x), (sizes[1], kernel, x.transpose(0, 3, 1, 2))]
    else:
        inputs = [(x, kernel), (x.transpose(0, 3, 1, 2), kernel)]
    expected = evaluate(Call(op, inputs[0], last))[0]
    result = evaluate(Call(op, inputs[1], first))[0]
    np.testing.assert_allclose(result.transpose(0, 2, 3, 1), expected, 1e-5, 1e-5)


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_a_filter_that_does_not_fit_is_an_error(op: str) -> None:
    inputs = np.zeros((1, 8, 8, 3), np.float32), np.zeros((3, 3, 2, 4), np.float32)
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, inputs, attributes("SAME", 1)))
    assert caught.value.code == "bad-operand"


SHAPES: list[ShapeCase] = [
    ("Conv2D", ["f32[?,224,224,3]", "f32[3,3,3,32]"], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    ("Conv2D", ["f32[?,?,225,3]", "f32[3,3,3,32]"], {"strides": [1, 2, 2, 1], "padding": "VALID"}),
    (
        "Conv2D",
        ["f32[1,6,9,9]", "f32[3,3,3,32]"],
        {"strides": [1, 1, 1, 1], "padding": "VALID", "data_format": "NCHW", "dilations": [1, 1, 2, 2]},
    ),
    (
        "Conv2D",
        ["f32[1,9,9,3]", "f32[3,3,3,8]"],
        {"strides": [1, 2, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 3, 0, 0]},
    ),
    ("DepthwiseConv2dNative", ["f32[?,14,14,6]", "f32[5,5,6,2]"], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    ("Conv3D", ["f32[2,8,8,8,3]", "f32[3,3,3,3,4]"], {"strides": [1, 2, 2, 2, 1], "padding": "VALID"}),
    (
        "Conv2DBackpropInput",
        [[2, 8, 8, 3], "f32[3,3,3,4]", "f32[2,4,4,4]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    (
        "Conv3DBackpropInputV2",
        [[2, 8, 8, 8, 3], "f32[3,3,3,3,4]", "f32[2,4,4,4,4]"],
        {"strides": [1, 2, 2, 2, 1], "padding": "SAME"},
    ),
    (
        "Dilation2D",
        ["f32[?,9,9,3]", "f32[3,3,3]"],
        {"strides": [1, 2, 2, 1], "rates": [1, 2, 2, 1], "padding": "VALID"},
    ),
    ("Conv2DBackpropInput", ["i32[4]", "f32[3,3,3,4]", "f32[2,4,4,4]"], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    ("Conv2DBackpropInput", ["i32[?]", "f32[3,3,3,4]", "f32[2,4,4,4]"], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    ("Conv2DBackpropInput", [[8, 8], "f32[3,3,3,4]", "f32[2,4,4,4]"], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
    (
        "Conv2DBackpropFilter",
        ["f32[2,8,8,3]", [3, 3, 3, 4], "f32[2,4,4,4]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    (
        "DepthwiseConv2dNativeBackpropFilter",
        ["f32[2,8,8,3]", "i32[4]", "f32[2,4,4,6]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("Conv2D", ["f32[1,9,9,4]", "f32[3,3,3,8]"], {"strides": [1, 1, 1, 1], "padding": "VALID"}),
    ("Conv2D", ["f32[1,9,9,4]", "f32[3,3,2,5]"], {"strides": [1, 1, 1, 1], "padding": "VALID"}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
