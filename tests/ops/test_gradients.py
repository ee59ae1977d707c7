"""Derivatives against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_shapes
from tests.ops.comparison import Agree, compare, tensorflow
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.ops.resampling import KERNELS
from tfconvert.schema.diagnostics import ConversionError

OF_RESULTS = ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "c64"])
@pytest.mark.parametrize("op", OF_RESULTS)
def test_gradients_of_results(agree: Agree, op: str, dtype: str) -> None:
    tolerance = {"c64": 2e-5, "f16": 1e-2}.get(dtype)
    agree(op, (f"{dtype}[3,5]@0.1:2", f"{dtype}[3,5]@-2:2"), tolerance=tolerance)


@pytest.mark.parametrize("op", ["InvGrad", "ReciprocalGrad", "RsqrtGrad", "SqrtGrad"])
def test_no_slope_is_too_steep_for_a_gradient_of_zero(agree: Agree, op: str) -> None:
    agree(op, (np.array([0, 0, np.inf, np.nan, 2], np.float32), np.array([0, 1, 0, 0, 0], np.float32)))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32"])
@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad"])
def test_gradients_of_rectifiers(agree: Agree, op: str, dtype: str) -> None:
    agree(op, (f"{dtype}[4,5]", f"{dtype}[4,5]@-9:9"))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("op", ["EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad"])
def test_gradients_of_smooth_activations(agree: Agree, op: str, dtype: str) -> None:
    attributes = {"alpha": 0.3} if op == "LeakyReluGrad" else {}
    agree(op, (f"{dtype}[3,5]", f"{dtype}[3,5]@-3:3"), attributes, tolerance=1e-2 if dtype == "f16" else None)


def test_a_rectifier_hands_nothing_on_at_its_edges(agree: Agree) -> None:
    agree("Relu6Grad", (np.ones(5, np.float32), np.array([-1, 0, 3, 6, 7], np.float32)))


@pytest.mark.parametrize(("layout", "shape"), [("NHWC", "2,3,4,5"), ("NCHW", "2,5,3,4"), ("NHWC", "6,3")])
@pytest.mark.parametrize("dtype", ["f32", "i32", "f16"])
def test_gradient_of_a_bias(agree: Agree, dtype: str, layout: str, shape: str) -> None:
    agree("BiasAddGrad", (f"{dtype}[{shape}]",), {"data_format": layout}, tolerance=1e-2 if dtype == "f16" else 1e-5)


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@pytest.mark.parametrize(
    "index",
    [
        np.s_[1],
        np.s_[-1],
        np.s_[1:3],
        np.s_[:, 1],
        np.s_[..., -2:],
        np.s_[1::3, ::-1],
        np.s_[::-2, 1],
        np.s_[None, 1, ..., None, 2:4],
        np.s_[3:1:-1, 4:0:-3],
        np.s_[2:2],
        np.s_[:100:2, -3:-1],
    ],
    ids=str,
)
def test_gradient_of_a_slice(agree: Agree, tf: ModuleType, index: Any) -> None:
    with tf.Graph().as_default():
        sliced = tf.zeros([5, 6, 7])[index]
        bounds = [tf.get_static_value(operand).astype(np.int32) for operand in sliced.op.inputs[1:]]
        masks = {name: sliced.op.get_attr(name) for name in _MASKS}
        shape = ",".join(map(str, sliced.shape))
    agree("StridedSliceGrad", ([5, 6, 7], *bounds, f"f32[{shape}]"), masks)


@pytest.mark.parametrize("sizes", [((5, 7), (10, 14)), ((6, 3), (4, 5)), ((4, 4), (1, 1))])
@pytest.mark.parametrize("flag", ["align_corners", "half_pixel_centers", ""])
def test_gradients_of_resizing(agree: Agree, sizes: tuple[tuple[int, int], tuple[int, int]], flag: str) -> None:
    (height, width), (rows, columns) = sizes
    gradient, image = f"f32[2,{rows},{columns},3]", f"f32[2,{height},{width},3]"
    flags = {flag: True} if flag else {}
    agree("ResizeBilinearGrad", (gradient, image), flags, tolerance=1e-5)
    agree("ResizeBicubicGrad", (gradient, image), flags, tolerance=1e-4)
    agree("ResizeNearestNeighborGrad", (gradient, [height, width]), flags, tolerance=1e-5)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_gradient_of_scaling(agree: Agree, kernel: str, antialias: bool) -> None:
    attributes = {"kernel_type": kernel, "antialias": antialias}
    for scale, shift in (([0.6, 1.4], [0.4, -0.7]), ([2.3, 0.45], [-2.0, 1.0])):
        numbers = [np.array(each, np.float32) for each in (scale, shift)]
        agree("ScaleAndTranslateGrad", ("f32[2,7,6,3]", "f32[2,5,8,3]", *numbers), attributes, tolerance=2e-5)


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("pads", [[[0, 0], [1, 2], [2, 0], [0, 0]], [[1, 1], [0, 0], [3, 3], [2, 1]]])
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_gradient_of_mirrored_padding(agree: Agree, dtype: str, pads: list[list[int]], mode: str) -> None:
    agree("MirrorPadGrad", (f"{dtype}[4,9,11,6]", pads), {"mode": mode}, tolerance=1e-5)


def test_gradient_of_local_response_normalization(agree: Agree) -> None:
    attributes: dict[str, Any] = {"depth_radius": 2, "bias": 1.5, "alpha": 0.7, "beta": 0.6}
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 7)).astype(np.float32)
    (y,) = evaluate(Call("LRN", (x,), attributes))
    agree("LRNGrad", ("f32[2,3,4,7]", x, y), attributes, tolerance=1e-5)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("op", ["FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"])
def test_gradients_of_batch_normalization(op: str, is_training: bool) -> None:
    random = np.random.default_rng(1)
    x, gradient = (random.normal(size=(3, 4, 5, 2)).astype(np.float32) for _ in range(2))
    scale = random.normal(size=2).astype(np.float32)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    inputs = (gradient, x, scale, mean, variance, *([np.zeros(0, np.float32)] if op[-1] == "3" else []))
    attributes: dict[str, object] = {"epsilon": 0.01, "is_training": is_training}
    # Results behind the third are a GPU's.
    for got, expected in zip(
        evaluate(Call(op, inputs, attributes))[:3], tensorflow(op, inputs, attributes)[:3], strict=True
    ):
        compare(got, expected, 1e-5)


def test_nothing_is_broadcast() -> None:
    with pytest.raises(ConversionError, match="differ") as caught:
        evaluate(Call("TanhGrad", (np.ones(3, np.float32), np.ones((), np.float32)), {}))
    assert caught.value.code == "bad-operand"


SHAPES: list[ShapeCase] = [
    ("ReluGrad", ["f32[?,3]", "f32[2,?]"], {}),
    ("BiasAddGrad", ["f32[2,4,4,3]"], {}),
    ("BiasAddGrad", ["f32[*]"], {}),
    ("BiasAddGrad", ["f32[2,7,4,3]"], {"data_format": "NCHW"}),
    ("StridedSliceGrad", [[4, 5], [1], [2], [1], "f32[1,5]"], {}),
    ("StridedSliceGrad", ["i32[2]", [1], [2], [1], "f32[1,5]"], {}),
    ("MirrorPadGrad", ["f32[?,6,9]", [[0, 0], [1, 1], [2, 3]]], {"mode": "REFLECT"}),
    ("MirrorPadGrad", ["f32[?,6,9]", "i32[3,2]"], {"mode": "REFLECT"}),
    ("ResizeBicubicGrad", ["f32[?,6,6,3]", "f32[?,4,?,3]"], {}),
    ("ScaleAndTranslateGrad", ["f32[?,6,6,3]", "f32[?,4,?,3]", "f32[2]", "f32[2]"], {}),
    ("LRNGrad", ["f32[?,6,6,3]", "f32[?,6,6,3]", "f32[?,6,6,3]"], {}),
    ("FusedBatchNormGradV3", ["f32[?,6,6,3]", "f32[?,6,6,3]", *["f32[3]"] * 3, "f32[0]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)
