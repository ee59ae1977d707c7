"""Convolutions, pooling, matrix products, normalizations, resizing and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.targets.litert.legalize.cases import Case, Check


def _conv(op: str, image: str, weights: str, strides: list[int], **attributes: Any) -> Case:
    return Case(op, [image, weights], {"strides": strides, "padding": "SAME"} | attributes, tolerance=1e-5)


_PADS = [0, 0, 1, 2, 2, 0, 0, 0]
_PADS_NCHW = [0, 0, 0, 0, 1, 2, 2, 0]

CONVOLUTIONS = [
    _conv("Conv2D", "f32[2,7,6,3]", "=f32[3,2,3,4]", [1, 1, 1, 1]),
    _conv("Conv2D", "f32[2,7,6,3]", "=f32[3,2,3,4]", [1, 2, 1, 1], padding="VALID"),
    _conv("Conv2D", "f32[?2,7,6,3]", "=f32[3,3,3,4]", [1, 2, 2, 1]),
    _conv("Conv2D", "f32[?2,?7,?6,3]", "=f32[3,3,3,4]", [1, 1, 1, 1], dilations=[1, 2, 1, 1]),
    _conv("Conv2D", "f32[2,7,6,3]", "=f32[3,2,3,4]", [1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=_PADS),
    _conv("Conv2D", "f32[2,7,6,3]", "f32[3,2,3,4]", [1, 1, 1, 1]),
    _conv("Conv2D", "f32[2,7,6,4]", "=f32[3,2,2,6]", [1, 1, 1, 1]),
    _conv("Conv2D", "f16[2,7,6,3]", "=f16[3,2,3,4]@-1:1", [1, 1, 1, 1]),
    _conv("DepthwiseConv2dNative", "f32[2,7,6,3]", "=f32[3,3,3,1]", [1, 1, 1, 1]),
    _conv("DepthwiseConv2dNative", "f32[?2,7,6,3]", "=f32[3,3,3,2]", [1, 2, 2, 1], padding="VALID"),
    _conv("DepthwiseConv2dNative", "f32[2,7,6,3]", "=f32[3,3,3,2]", [1, 1, 1, 1], dilations=[1, 2, 2, 1]),
    _conv("DepthwiseConv2dNative", "f32[2,7,6,3]", "f32[3,3,3,2]", [1, 1, 1, 1]),
    _conv(
        "DepthwiseConv2dNative",
        "f32[2,7,6,3]",
        "=f32[3,3,3,2]",
        [1, 1, 1, 1],
        padding="EXPLICIT",
        explicit_paddings=_PADS,
    ),
    _conv("Conv3D", "f32[1,4,5,6,2]", "=f32[2,3,2,2,3]", [1, 1, 2, 1, 1]),
    Case(
        "Conv2DBackpropInput",
        [[2, 7, 6, 3], "=f32[3,2,3,4]", "f32[2,4,3,4]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
        tolerance=1e-5,
    ),
    Case(
        "Conv2DBackpropInput",
        [[2, 7, 6, 3], "=f32[3,2,3,4]", "f32[2,3,3,4]"],
        {"strides": [1, 2, 2, 1], "padding": "VALID"},
        tolerance=1e-5,
    ),
    Case(
        "Conv2DBackpropInput",
        [[2, 7, 6, 3], "=f32[3,2,3,4]", "f32[2,4,4,4]"],
        {"strides": [1, 2, 2, 1], "padding": "EXPLICIT", "explicit_paddings": _PADS},
        tolerance=1e-5,
    ),
    Case(
        "Conv2DBackpropInput",
        [[7, 6], "=f32[3,2,3,4]", "f32[?2,4,3,4]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
        tolerance=1e-5,
    ),
    Case(
        "Conv2DBackpropInput",
        ["i32[4]@3:4", "=f32[3,2,3,4]", "f32[?3,?2,2,4]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
        tolerance=1e-5,
    ),
    Case(
        "Conv2DBackpropInput",
        ["i32[2]@5:6", "=f32[3,2,3,4]", "f32[?2,3,?3,4]"],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
        tolerance=1e-5,
    ),
    Case(
        "Conv2DBackpropInput",
        [[7, 6], "=f32[3,2,3,4]", "f32[?2,4,4,4]"],
        {"strides": [1, 2, 2, 1], "padding": "EXPLICIT", "explicit_paddings": _PADS},
        tolerance=1e-5,
    ),
    Case(
        "Conv3DBackpropInputV2",
        [[1, 4, 5, 6, 2], "=f32[2,3,2,2,3]", "f32[1,4,3,6,3]"],
        {"strides": [1, 1, 2, 1, 1], "padding": "SAME"},
        tolerance=1e-5,
    ),
]


def _pool(op: str, image: str, ksize: list[int], strides: list[int], **attributes: Any) -> Case:
    return Case(op, [image], {"ksize": ksize, "strides": strides, "padding": "SAME"} | attributes)


POOLING = [
    _pool("AvgPool", "f32[2,7,6,3]", [1, 3, 2, 1], [1, 2, 1, 1]),
    _pool("AvgPool", "f32[?2,7,6,3]", [1, 2, 2, 1], [1, 2, 2, 1], padding="VALID"),
    _pool("MaxPool", "f32[2,7,6,3]", [1, 3, 2, 1], [1, 2, 1, 1]),
    _pool(
        "MaxPool",
        "f32[2,7,6,3]",
        [1, 3, 2, 1],
        [1, 2, 1, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0],
    ),
    *(
        _pool("MaxPoolWithArgmax", f"f32[{batch},7,6,3]", [1, 3, 2, 1], [1, 2, 3, 1], padding=padding, **kind)
        for batch, padding, kind in (
            ("2", "SAME", {"Targmax": np.int32}),
            ("?2", "VALID", {"include_batch_in_index": True}),
            ("2", "SAME", {}),
        )
    ),
    Case("MaxPoolV2", ["f32[2,7,6,3]", [1, 3, 2, 1], [1, 2, 1, 1]], {"padding": "VALID"}),
    _pool("AvgPool3D", "f32[1,5,6,7,2]", [1, 2, 3, 2, 1], [1, 2, 1, 2, 1]),
    _pool("MaxPool3D", "f32[?1,5,6,7,2]", [1, 2, 3, 2, 1], [1, 1, 2, 2, 1], padding="VALID"),
]

MATRICES = [
    Case("MatMul", ["f32[2,3]", "=f32[3,4]"], tolerance=1e-5),
    Case("MatMul", ["f32[?2,3]", "=f32[4,3]"], {"transpose_b": True}, tolerance=1e-5),
    Case("MatMul", ["f32[3,2]", "=f32[3,4]"], {"transpose_a": True}, tolerance=1e-5),
    Case("MatMul", ["f32[3,2]", "f32[4,3]"], {"transpose_a": True, "transpose_b": True}, tolerance=1e-5),
    Case("MatMul", ["i32[2,3]", "i32[3,4]"]),
    Case("MatMul", ["f32[2,0]", "f32[0,4]"]),
    Case("BatchMatMul", ["f32[2,5,3]", "f32[2,3,4]"], tolerance=1e-5),
    Case("BatchMatMulV2", ["f32[2,1,5,3]", "f32[4,3,6]"], tolerance=1e-5),
    Case("BatchMatMulV2", ["f32[2,5,3]", "=f32[3,4]"], tolerance=1e-5),
    Case("BatchMatMulV2", ["f32[2,3,5]", "f32[2,4,3]"], {"adj_x": True, "adj_y": True}, tolerance=1e-5),
    Case("BatchMatMulV2", ["i32[2,5,3]", "i32[2,4,3]"], {"adj_y": True}),
    Case("BatchMatMulV2", ["i32[2,3,5]", "i32[?2,3,4]"], {"adj_x": True}),
    Case("BatchMatMulV3", ["f32[2,5,3]", "f32[2,3,4]"], {"Tout": np.float32}, tolerance=1e-5),
    Case("Cross", ["f32[?2,3]", "f32[?2,3]"]),
    Case("Cross", ["i32[3]", "i32[3]"]),
    Case("TridiagonalMatMul", [*["f32[?2,1,4]"] * 3, "f32[?2,4,3]"]),
    Case("TridiagonalMatMul", [*["f32[1,?4]"] * 3, "f32[?4,3]"]),
    Case("TridiagonalMatMul", ["f32[1,1]"] * 4),
    *(
        Case("Einsum", operands, {"equation": equation}, tolerance=1e-5)
        for equation, operands in (
            ("ij,jk->ik", ["f32[2,3]", "f32[3,4]"]),
            ("...ij,j...->i...", ["f32[5,4,3]", "f32[3,2,1]"]),
            ("...i,...i->...", ["f32[2,1,3]", "f32[?1,4,3]"]),
            ("...ab,...b->...a", ["f32[1,2,3]", "f32[5,1,3]"]),
            ("abc,cd->abd", ["f32[?2,3,4]", "=f32[4,5]"]),
            ("abc,cde->abde", ["f32[?2,3,4]", "=f32[4,5,6]"]),
            ("abc,cde->abde", ["f32[?2,?3,4]", "=f32[4,5,6]"]),
            ("abcd,cde->abe", ["f32[?2,3,4,5]", "=f32[4,5,6]"]),
            ("abcd,ecd->abe", ["f32[?2,3,?4,5]", "f32[6,?4,5]"]),
            ("abcd,ecd->eab", ["f32[?2,?3,?4,5]", "f32[?6,4,?5]"]),
            ("ba,ca->cab", ["f32[?2,?3]", "f32[?4,?3]"]),
            ("aecd,abcd->acbe", ["f32[?2,3,4,5]", "f32[?2,6,4,5]"]),
            ("acbe,aecd->abcd", ["f32[2,3,4,5]", "f32[2,5,3,6]"]),
            ("abcde,fbcde->afbcd", ["f32[2,2,2,2,3]", "f32[3,2,2,2,3]"]),
            ("...ij,...jk->...ik", ["f32[2,3,4]", "f32[2,4,5]"]),
            ("ij->ji", ["f32[2,3]"]),
            ("ijk->j", ["f32[2,3,4]"]),
            ("i,j->ij", ["f32[2]", "f32[3]"]),
            ("i,i->", ["f32[3]", "f32[3]"]),
            ("bij,bj->bi", ["f32[2,3,4]", "f32[2,4]"]),
        )
    ),
]

_STATISTICS = ["=f32[3]", "=f32[3]", "=f32[3]", "=f32[3]@0.5:2"]

NORMALIZATIONS = [
    Case("BiasAdd", ["f32[2,5,3]", "=f32[3]"]),
    Case("BiasAddV1", ["f32[2,5,3]", "=f32[3]"]),
    *(
        Case(op, ["f32[2,5,4,3]", *_STATISTICS], {"is_training": False, "epsilon": 0.01}, results=1, tolerance=1e-5)
        for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
    ),
    Case("SoftmaxCrossEntropyWithLogits", ["f32[4,3]", "f32[4,3]@0:1"]),
    *(
        Case("SoftmaxCrossEntropyWithLogits", [f"f32[{logits},3]", f"f32[{labels},3]@0:1"])
        for logits, labels in (("4", "1"), ("1", "?4"), ("?4", "1"), ("?4", "?4"))
    ),
    Case("SparseSoftmaxCrossEntropyWithLogits", ["f32[?4,3]", "i64[?4]@0:3"]),
    *[
        Case("FusedBatchNormV3", [images, *["f32[3]"] * 4], {"is_training": True, "exponential_avg_factor": factor}, 3)
        for images, factor in (("f32[2,5,4,3]", 1.0), ("f32[?2,5,4,3]", 0.25))
    ],
    Case(
        "FusedBatchNormV3",
        ["f32[2,5,4,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3]@0.5:2"],
        {"is_training": False},
        results=1,
        tolerance=1e-5,
    ),
    Case(
        "FusedBatchNormV3",
        ["f32[2,5,4,3]", "=f32[3]", "=f32[3]", "=f32[0]", "=f32[0]"],
        {"is_training": True},
        results=1,
        tolerance=1e-5,
    ),
    Case("LRN", ["f32[2,4,3,8]"], {"depth_radius": 2, "bias": 1.5, "alpha": 0.1, "beta": 0.75}),
]

_BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.1, 1, 3.1], [5, 5, 6, 6]], np.float32)

OTHERS = [
    Case("ResizeBilinear", ["f32[1,3,4,2]", [6, 5]], tolerance=1e-5),
    Case("ResizeBilinear", ["f32[1,3,4,2]", [6, 5]], {"half_pixel_centers": True}, tolerance=1e-5),
    Case("ResizeBilinear", ["f32[1,3,4,2]", [6, 5]], {"align_corners": True}, tolerance=1e-5),
    Case("ResizeBilinear", ["ui8[1,3,4,2]@0:255", [6, 5]], tolerance=1e-5),
    Case("ResizeBicubic", ["f32[?2,3,4,2]", [6, 5]], {"half_pixel_centers": True}, tolerance=1e-5),
    Case("ResizeBicubic", ["ui8[1,3,4,?2]@0:255", [6, 4]], tolerance=1e-5),
    Case("ResizeBicubic", ["f32[1,3,4,2]", [2, 9]], {"align_corners": True}, tolerance=1e-5),
    Case("ResizeArea", ["f32[?2,5,4,2]", [2, 9]], tolerance=1e-5),
    Case("ResizeArea", ["f32[2,5,4,2]", [2, 9]], {"align_corners": True}, tolerance=1e-5),
    *(
        Case(
            "ScaleAndTranslate",
            ["f32[?2,5,4,2]", [2, 9], [0.4, 2.25], [0.0, 0.0]],
            {"kernel_type": kernel, "antialias": antialias},
            tolerance=1e-5,
        )
        for kernel, antialias in (("lanczos3", True), ("mitchellcubic", False))
    ),
    Case("ResizeNearestNeighbor", ["f32[?1,3,4,2]", [6, 5]]),
    Case("ResizeNearestNeighbor", ["ui8[1,3,4,2]", [6, 5]], {"half_pixel_centers": True}),
    Case("ResizeNearestNeighbor", ["f16[1,3,4,2]", [6, 5]]),
    Case("NonMaxSuppressionV2", [_BOXES, "f32[5]", 3, 0.5]),
    Case("NonMaxSuppressionV3", [_BOXES, "f32[5]", 3, 0.5, 0.0]),
    Case("NonMaxSuppressionV4", [_BOXES, "f32[5]", 4, 0.5, 0.0], {"pad_to_max_output_size": True}),
    Case("NonMaxSuppressionV4", [_BOXES, "f32[5]", "i32[]@4:5", 0.5, 0.0]),
    Case("NonMaxSuppressionV5", [_BOXES, "f32[5]@0.1:1", 4, 0.5, 0.0, 0.3]),
    Case("NonMaxSuppressionV5", [_BOXES, "f32[5]@0.1:1", 4, 0.5, 0.0, 0.0]),
    Case("Complex", ["f32[?2,3]", "f32[?2,3]"]),
    Case("RFFT", ["f32[2,8]", [8]], tolerance=1e-5),
    Case("RFFT2D", ["f32[2,4,8]", [4, 8]], tolerance=1e-5),
    *(
        Case(op, [operand, length], tolerance=1e-5)
        for op, operand, length in (
            ("IRFFT", "c64[5]", [8]),
            ("IRFFT", "c64[?2,3,5]", [9]),
            ("IRFFT", "c64[2,3]", [1]),
            ("IRFFT2D", "c64[8,5]", [8, 8]),
            ("IRFFT2D", "c64[?2,3,8,5]", [3, 6]),
        )
    ),
]

CASES = [*CONVOLUTIONS, *POOLING, *MATRICES, *NORMALIZATIONS, *OTHERS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees(case: Case, check: Check) -> None:
    check(case)


@pytest.mark.parametrize(
    ("case", "operators"),
    [
        (CONVOLUTIONS[0], ["CONV_2D"]),
        (CONVOLUTIONS[4], ["CONV_2D", "PAD"]),
        (CONVOLUTIONS[8], ["DEPTHWISE_CONV_2D"]),
        (MATRICES[0], ["FULLY_CONNECTED"]),
        (MATRICES[8], ["FULLY_CONNECTED"]),
        (NORMALIZATIONS[2], ["ADD", "MUL"]),
        (Case("Einsum", ["f32[2,3,4]", "=f32[4,5]"], {"equation": "abc,cd->abd"}, tolerance=1e-5), ["FULLY_CONNECTED"]),
    ],
    ids=str,
)
def test_becomes(case: Case, operators: list[str], check: Check) -> None:
    assert check(case) == operators


# TensorFlow computes channels first on other devices only: the same graphs with channels last are the oracle.
_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def _channels_first(
    op: str, operands: list[Any], attributes: dict[str, Any], last: dict[str, Any]
) -> tuple[Case, Case]:
    return Case(op, operands, attributes | {"data_format": "NCHW"}), Case(op, operands, attributes | last)


FIRST = [
    _channels_first(
        "Conv2D",
        ["f32[2,3,7,6]", "=f32[3,2,3,4]"],
        {"padding": "SAME", "strides": [1, 1, 2, 1]},
        {"strides": [1, 2, 1, 1]},
    ),
    _channels_first(
        "Conv2D",
        ["f32[2,3,7,6]", "=f32[3,2,3,4]"],
        {"padding": "EXPLICIT", "strides": [1, 1, 1, 1], "explicit_paddings": _PADS_NCHW},
        {"explicit_paddings": _PADS},
    ),
    _channels_first(
        "DepthwiseConv2dNative", ["f32[2,3,7,6]", "=f32[3,2,3,2]"], {"padding": "SAME", "strides": [1, 1, 1, 1]}, {}
    ),
    _channels_first(
        "MaxPool",
        ["f32[2,3,7,6]"],
        {"padding": "SAME", "ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 1]},
        {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1]},
    ),
    _channels_first(
        "AvgPool",
        ["f32[2,3,7,6]"],
        {"padding": "VALID", "ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 1]},
        {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1]},
    ),
    _channels_first("FusedBatchNormV3", ["f32[2,3,4,5]", *_STATISTICS], {"is_training": False}, {}),
    (
        Case(
            "Conv2DBackpropInput",
            [[2, 3, 7, 6], "=f32[3,2,3,4]", "f32[2,4,4,6]"],
            {"padding": "SAME", "strides": [1, 1, 2, 1], "data_format": "NCHW"},
        ),
        Case(
            "Conv2DBackpropInput",
            [[2, 7, 6, 3], "=f32[3,2,3,4]", "f32[2,4,4,6]"],
            {"padding": "SAME", "strides": [1, 2, 1, 1]},
        ),
    ),
    *(
        _channels_first(
            "Conv2DBackpropInput",
            [sizes, "=f32[3,2,3,4]", "f32[?2,4,3,3]"],
            {"padding": "SAME", "strides": [1, 1, 2, 2]},
            {"strides": [1, 2, 2, 1]},
        )
        for sizes in ([6, 5], "i32[2]@5:6")
    ),
    _channels_first(
        "Conv2DBackpropInput",
        ["i32[4]@3:4", "=f32[3,2,3,4]", "f32[?3,4,2,2]"],
        {"padding": "SAME", "strides": [1, 1, 2, 2]},
        {"strides": [1, 2, 2, 1]},
    ),
    _channels_first("SpaceToDepth", ["f32[2,3,4,6]"], {"block_size": 2}, {}),
    _channels_first("DepthToSpace", ["f32[2,8,3,4]"], {"block_size": 2}, {}),
]


@pytest.mark.parametrize(("first", "last"), FIRST, ids=str)
def test_channels_first(first: Case, last: Case, check_pair: Any) -> None:
    check_pair(first, last, _TO_LAST, _TO_FIRST)


@pytest.mark.parametrize(
    "case",
    [
        Case("BiasAdd", ["f32[2,3,4,5]", "=f32[3]"], {"data_format": "NCHW"}),
        Case("BiasAdd", ["f32[2,3,5]", "=f32[3]"], {"data_format": "NCHW"}),
    ],
    ids=str,
)
def test_bias_with_channels_first(case: Case, check: Check) -> None:
    check(case)
