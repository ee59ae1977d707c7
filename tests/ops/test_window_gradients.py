"""Derivatives of convolutions and poolings against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Array, Call
from tfconvert.ops.computed import compute_by
from tfconvert.ops.registry import decompositions, evaluate


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 1)])
def test_gradients_of_filters(agree: Agree, size: tuple[int, int], stride: int, padding: str) -> None:
    attributes: dict[str, Any] = {"strides": [1, stride, stride, 1], "padding": padding}
    if padding == "EXPLICIT":
        attributes["explicit_paddings"] = [0, 0, 1, 0, 2, 1, 0, 0]
    kernel = np.ones((*size, 3, 4), np.float32)
    (y,) = evaluate(Call("Conv2D", (np.ones((2, 7, 8, 3), np.float32), kernel), attributes))
    windows = ",".join(map(str, y.shape[:3]))
    for op, shape, channels in (
        ("Conv2DBackpropFilter", [*size, 3, 4], 4),
        ("DepthwiseConv2dNativeBackpropFilter", [*size, 3, 2], 6),
    ):
        agree(op, ("f32[2,7,8,3]", shape, f"f32[{windows},{channels}]"), attributes, tolerance=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradient_of_a_filter_of_cubes(agree: Agree, padding: str) -> None:
    windows = "3,3,3" if padding == "SAME" else "2,2,2"
    attributes = {"strides": [1, 2, 2, 2, 1], "padding": padding}
    operands = ("f32[2,5,6,5,2]", [3, 3, 2, 2, 3], f"f32[2,{windows},3]")
    agree("Conv3DBackpropFilterV2", operands, attributes, tolerance=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradient_of_a_pooling_s_gradient(agree: Agree, padding: str) -> None:
    attributes = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": padding}
    x = np.round(np.random.default_rng(2).normal(size=(2, 7, 6, 3))).astype(np.float32)
    (y,) = evaluate(Call("MaxPool", (x,), attributes))
    agree("MaxPoolGradGrad", (x, y, "f32[2,7,6,3]"), attributes)


@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_gradient_of_a_pooling_s_gradient_in_cubes(agree: Agree, padding: str, layout: str) -> None:
    lists = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 1, 2, 2, 1]}
    x = np.round(np.random.default_rng(2).normal(size=(2, 4, 7, 6, 3))).astype(np.float32)
    (y,) = evaluate(Call("MaxPool3D", (x,), {**lists, "padding": padding}))
    gradient = np.random.default_rng(3).normal(size=x.shape).astype(np.float32)
    if layout == "NDHWC":
        agree("MaxPool3DGradGrad", (x, y, gradient), {**lists, "padding": padding, "data_format": layout})
        return
    first = tuple(each.transpose(0, 4, 1, 2, 3) for each in (x, y, gradient))
    moved = {name: [1, *each[-1:], *each[1:-1]] for name, each in lists.items()}
    (found,) = evaluate(Call("MaxPool3DGradGrad", first, {**moved, "padding": padding, "data_format": layout}))
    (wanted,) = evaluate(Call("MaxPool3DGradGrad", (x, y, gradient), {**lists, "padding": padding}))
    np.testing.assert_array_equal(found.transpose(0, 2, 3, 4, 1), wanted)


@pytest.mark.parametrize("batch", [False, True])
def test_gradient_at_the_places_of_a_pooling(agree: Agree, batch: bool) -> None:
    attributes = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME", "include_batch_in_index": batch}
    x = np.random.default_rng(2).normal(size=(2, 7, 6, 3)).astype(np.float32)
    y, places = evaluate(Call("MaxPoolWithArgmax", (x,), attributes))
    agree("MaxPoolGradWithArgmax", (x, y, places), attributes)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("op", ["Dilation2DBackpropFilter", "Dilation2DBackpropInput"])
def test_gradients_of_a_dilation(agree: Agree, op: str, padding: str) -> None:
    attributes = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": padding}
    operands = ("f32[2,7,6,3]", "f32[3,2,3]")
    windows = "4,6" if padding == "SAME" else "3,4"
    agree(op, (*operands, f"f32[2,{windows},3]"), attributes, tolerance=1e-5)


def _by_decomposition(call: Call) -> Array:
    """Computes an op that has a kernel by its decomposition."""
    (found, *_) = decompositions(call.op)
    return compute_by(found.formula, evaluate, call)[0]


@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize(
    ("op", "depth", "outputs", "channels"),
    [
        ("Conv2DBackpropInput", 3, 4, 4),
        ("Conv2DBackpropInput", 1, 6, 6),
        ("DepthwiseConv2dNativeBackpropInput", 3, 1, 3),
        ("DepthwiseConv2dNativeBackpropInput", 3, 2, 6),
    ],
)
def test_inputs_gradients_are_the_adjoint_of_the_convolution(
    op: str, depth: int, outputs: int, channels: int, stride: int, dilation: int, padding: str
) -> None:
    """TensorFlow computes those of dilated and grouped convolutions on other processors only."""
    random = np.random.default_rng(1)
    image, kernel = (np.asarray(random.normal(size=size)) for size in ((2, 9, 8, 3), (3, 2, depth, outputs)))
    attributes: dict[str, object] = {
        "strides": (1, stride, stride, 1),
        "dilations": (1, dilation, dilation, 1),
        "padding": padding,
        "explicit_paddings": (0, 0, 1, 0, 2, 1, 0, 0) if padding == "EXPLICIT" else (),
    }
    forward = "Conv2D" if op.startswith("Conv") else "DepthwiseConv2dNative"
    (result,) = evaluate(Call(forward, (image, kernel), attributes))
    gradient = np.asarray(random.normal(size=result.shape))
    assert result.shape[-1] == channels
    found = _by_decomposition(Call(op, (np.array(image.shape, np.int32), kernel, gradient), attributes))
    np.testing.assert_allclose((found * image).sum(), (result * gradient).sum(), 1e-9)
    by_filter = {"Conv2D": "Conv2DBackpropFilter"}.get(forward, "DepthwiseConv2dNativeBackpropFilter")
    (found,) = evaluate(Call(by_filter, (image, np.array(kernel.shape, np.int32), gradient), attributes))
    np.testing.assert_allclose((found * kernel).sum(), (result * gradient).sum(), 1e-9)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "stride"), [((2, 2), 2), ((3, 3), 2), ((2, 3), 1), ((1, 2), 3)])
def test_gradients_of_poolings(agree: Agree, size: tuple[int, int], stride: int, padding: str) -> None:
    """Of several largest elements of a window, the first one has the gradient; of a cube, all have it."""
    random = np.random.default_rng(1)
    for op, by_x, image, window, steps in (
        ("MaxPool", "MaxPoolGrad", (2, 7, 8, 3), (1, *size, 1), (1, stride, stride, 1)),
        ("MaxPool3D", "MaxPool3DGrad", (2, 5, 6, 5, 2), (1, 2, *size, 1), (1, 2, stride, stride, 1)),
    ):
        x = np.round(random.normal(size=image)).astype(np.float32)
        attributes = {"ksize": list(window), "strides": list(steps), "padding": padding}
        (y,) = evaluate(Call(op, (x,), attributes))
        gradient = np.asarray(random.normal(size=y.shape)).astype(np.float32)
        agree(by_x, (x, y, gradient), attributes, tolerance=1e-5)
        agree(f"Avg{by_x[3:]}", (np.array(image, np.int32), gradient), attributes, tolerance=1e-5)
        if op == "MaxPool":
            operands = (x, y, gradient, np.array(window, np.int32), np.array(steps, np.int32))
            agree("MaxPoolGradV2", operands, {"padding": padding}, tolerance=1e-5)


SHAPES: list[ShapeCase] = [
    ("MaxPoolGradV2", ["f32[?,4,4,2]", "f32[?,2,2,2]", "f32[?,2,2,2]", "i32[4]", "i32[4]"], {"padding": "SAME"}),
    (
        "MaxPool3DGrad",
        ["f32[?,4,4,4,2]", "f32[?,2,2,2,2]", "f32[?,2,2,2,2]"],
        {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"},
    ),
    (
        "AvgPool3DGrad",
        [[1, 4, 4, 4, 2], "f32[1,2,2,2,2]"],
        {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"},
    ),
    (
        "Conv3DBackpropFilterV2",
        ["f32[?,4,4,4,2]", [2, 2, 2, 2, 3], "f32[?,3,3,3,3]"],
        {"strides": [1] * 5, "padding": "VALID"},
    ),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
