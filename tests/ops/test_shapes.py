"""Every shape function says at least what TensorFlow's says, and nothing that contradicts it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.tiny_graphs import Inferred, Veil, build, operand, zeros
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.ops.registry import shape_function
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.tensorflow import op_defs

Case = tuple[str, list[Any], dict[str, Any]]

ELEMENTWISE: list[Case] = [
    ("Relu", ["f32[?,3]"], {}),
    ("Relu", ["f32[*]"], {}),
    ("AddV2", ["f32[?,1,3]", "f32[4,1]"], {}),
    ("AddV2", ["f32[?,3]", "f32[?,?]"], {}),
    ("AddV2", ["f32[0,3]", "f32[1,3]"], {}),
    ("Mul", ["f32[*]", "f32[2]"], {}),
    ("Equal", ["f32[2,1]", "f32[1,3]"], {}),
    ("SelectV2", ["i1[4,1,1]", "f32[1,5,1]", "f32[6]"], {}),
    ("Select", ["i1[4]", "f32[4,5]", "f32[?,5]"], {}),
    ("BiasAdd", ["f32[?,?,?,?]", "f32[7]"], {}),
    ("BiasAdd", ["f32[?,?,?,?]", "f32[7]"], {"data_format": "NCHW"}),
    ("Bitcast", ["f64[3]"], {"type": tf.float32}),
    ("Bitcast", ["f32[3,2]"], {"type": tf.float64}),
    ("AddN", [["f32[?,3]", "f32[2,?]"]], {}),
    ("Softmax", ["f32[?,3]"], {}),
    ("Cumsum", ["f32[?,3]", 1], {}),
    ("EnsureShape", ["f32[?,3]"], {"shape": [2, None]}),
    ("ReverseSequence", ["f32[?,?,3]", "i32[2]"], {"seq_dim": 1, "batch_dim": 0}),
    ("ClipByValue", ["f32[?,3]", 0.0, 1.0], {}),
    ("ReluGrad", ["f32[?,3]", "f32[2,?]"], {}),
    ("IdentityN", [["f32[?,3]", "i32[2]"]], {}),
    ("InvertPermutation", ["i32[4]"], {}),
    ("PlaceholderWithDefault", ["f32[2,3]"], {"shape": [None, 3]}),
    ("BiasAdd", ["f32[*]", "f32[7]"], {}),
    ("ReverseSequence", ["f32[*]", "i32[2]"], {"seq_dim": 1, "batch_dim": 0}),
    ("Bitcast", ["f32[*]"], {"type": tf.int32}),
    ("Bitcast", ["f32[3,?]"], {"type": tf.float64}),
    ("Equal", ["f32[2,1]", "f32[1,3]"], {"incompatible_shape_error": False}),
    ("Equal", ["f32[2,3]", "f32[4,3]"], {"incompatible_shape_error": False}),
    ("Equal", ["f32[?,3]", "f32[4,3]"], {"incompatible_shape_error": False}),
    ("Select", ["i1[]", "f32[4,5]", "f32[?,5]"], {}),
    ("BroadcastGradientArgs", [[2, 3], [1]], {}),
    ("BroadcastGradientArgs", ["i32[2]", "i32[?]"], {}),
    ("DataFormatDimMap", ["i32[?]"], {}),
    ("DataFormatVecPermute", ["i32[4,2]"], {}),
    ("FakeQuantWithMinMaxArgsGradient", ["f32[?,3]", "f32[2,?]"], {}),
    ("FakeQuantWithMinMaxVarsPerChannel", ["f32[?,?]", "f32[3]", "f32[?]"], {}),
    ("IgammaGradA", ["f32[?,3]", "f32[3]"], {}),
    ("RandomGammaGrad", ["f32[2,3]", "f32[?]"], {}),
    ("ToBool", ["f32[?]"], {}),
]

CONVOLUTION: list[Case] = [
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
    ("DepthToSpace", ["f32[?,4,4,8]"], {"block_size": 2}),
    ("SpaceToDepth", ["f32[?,?,4,8]"], {"block_size": 2}),
    ("SpaceToBatchND", ["f32[?,5,6,3]", [2, 3], [[1, 0], [0, 0]]], {}),
    ("SpaceToBatchND", ["f32[2,5,6,3]", [2, 3], [[1, 0], [0, 0]]], {}),
    ("BatchToSpaceND", ["f32[12,5,6,3]", [2, 3], [[1, 0], [0, 2]]], {}),
    ("BatchToSpaceND", ["f32[12,?,6,3]", [2, 3], "i32[2,2]"], {}),
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
    ("DepthToSpace", ["f32[?,8,4,4]"], {"block_size": 2, "data_format": "NCHW"}),
    ("SpaceToDepth", ["f32[?,2,4,?]"], {"block_size": 2, "data_format": "NCHW"}),
    ("SpaceToBatch", ["f32[2,5,6,3]", [[1, 0], [0, 0]]], {"block_size": 2}),
    ("SpaceToBatchND", ["f32[2,5,6,3]", "i32[2]", [[1, 0], [0, 0]]], {}),
    ("BatchToSpace", ["f32[8,5,6,3]", [[1, 0], [0, 0]]], {"block_size": 2}),
    ("BatchToSpaceND", ["f32[*]", [2, 3], [[1, 0], [0, 2]]], {}),
]

POOLING: list[Case] = [
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

MATMUL: list[Case] = [
    ("MatMul", ["f32[?,4]", "f32[4,5]"], {}),
    ("MatMul", ["f32[4,?]", "f32[5,4]"], {"transpose_a": True, "transpose_b": True}),
    ("BatchMatMulV2", ["f32[?,1,3,4]", "f32[7,4,5]"], {}),
    ("BatchMatMulV2", ["f32[2,4,3]", "f32[2,5,4]"], {"adj_x": True, "adj_y": True}),
    ("BatchMatMul", ["f32[?,3,4]", "f32[2,4,5]"], {}),
    ("Einsum", [["f32[?,3,4]", "f32[4,5]"]], {"equation": "abc,cd->abd"}),
    ("Einsum", [["f32[2,?,3,4]", "f32[7,4,5]"]], {"equation": "...bc,...cd->...bd"}),
    ("Einsum", [["f32[3,3]"]], {"equation": "ii->i"}),
    ("MatrixTriangularSolve", ["f32[2,3,3]", "f32[2,3,4]"], {}),
    ("Qr", ["f32[2,3,4]"], {}),
    ("MatrixDeterminant", ["f32[2,3,3]"], {}),
    ("BatchMatMulV2", ["f32[*]", "f32[7,4,5]"], {}),
    ("Einsum", [["f32[*]", "f32[4,5]"]], {"equation": "...c,cd->...d"}),
    ("Einsum", [["f32[*]", "f32[4,5]"]], {"equation": "bc,cd->bd"}),
    ("MatrixTriangularSolve", ["f32[*]", "f32[2,3,4]"], {}),
    ("MatrixTriangularSolve", ["f32[7,1,3,3]", "f32[2,3,4]"], {}),
    ("MatrixSolve", ["f32[?,3,3]", "f32[2,3,4]"], {}),
    ("Qr", ["f32[*]"], {}),
    ("Qr", ["f32[2,3,4]"], {"full_matrices": True}),
    ("Svd", ["f32[*]"], {}),
    ("Svd", ["f32[2,3,4]"], {}),
    ("Svd", ["f32[2,?,4]"], {"full_matrices": True}),
    ("Svd", ["f32[2,3,4]"], {"compute_uv": False}),
]

REDUCTION: list[Case] = [
    ("Mean", ["f32[?,7,7,3]", [1, 2]], {}),
    ("Mean", ["f32[?,7,7,3]", [-3, -2]], {"keep_dims": True}),
    ("Sum", ["f32[2,3]", "i32[1]"], {"keep_dims": True}),
    ("Sum", ["f32[2,3]", "i32[]"], {}),
    ("Max", ["f32[*]", [0]], {}),
    ("All", ["i1[2,3]", 0], {}),
    ("ArgMax", ["f32[?,3,4]", 1], {}),
    ("ArgMax", ["f32[?,3,4]", "i32[]"], {}),
    ("L2Loss", ["f32[?,3]"], {}),
    ("DenseBincount", ["i32[?,3]", 5, "f32[0]"], {}),
    ("DenseBincount", ["i32[7]", 5, "f32[0]"], {}),
    ("BiasAddGrad", ["f32[2,4,4,3]"], {}),
    ("SegmentSum", ["f32[5,3]", "i32[5]"], {}),
    ("UnsortedSegmentSum", ["f32[5,3]", "i32[5]", 4], {}),
    ("SparseSegmentMean", ["f32[5,3]", "i32[?]", "i32[7]"], {}),
    ("SparseSegmentSum", ["f32[5,?]", "i32[3]", [0, 0, 2]], {}),
    ("SparseSegmentSqrtNWithNumSegments", ["f32[5,3]", "i32[?]", "i32[?]", 4], {}),
    ("SparseFillEmptyRows", ["i64[?,2]", "f32[7]", np.array([4, 3]), 0.5], {}),
    ("SparseFillEmptyRows", ["i64[*]", "f32[?]", "i64[3]", 0.5], {}),
    ("SparseReorder", ["i64[?,2]", "f32[7]", "i64[2]"], {}),
    ("SparseTensorDenseMatMul", ["i64[?,2]", "f32[7]", np.array([4, 3]), "f32[4,?]"], {"adjoint_a": True}),
    ("SparseReshape", ["i64[?,2]", "i64[2]", np.array([4, -1, 2])], {}),
    ("SoftmaxCrossEntropyWithLogits", ["f32[?,3]", "f32[4,3]"], {}),
    ("SparseSoftmaxCrossEntropyWithLogits", ["f32[4,3]", "i32[?]"], {}),
    ("ArgMax", ["f32[*]", 1], {}),
    ("BiasAddGrad", ["f32[*]"], {}),
    ("BiasAddGrad", ["f32[2,7,4,3]"], {"data_format": "NCHW"}),
    ("UnsortedSegmentSum", ["f32[*]", "i32[5]", 4], {}),
    ("SegmentSum", ["f32[*]", "i32[5]"], {}),
    ("SoftmaxCrossEntropyWithLogits", ["f32[*]", "f32[4,3]"], {}),
]

REARRANGE: list[Case] = [
    ("Reshape", ["f32[2,6]", [3, -1]], {}),
    ("Reshape", ["f32[?,6]", [-1, 3]], {}),
    ("Reshape", ["f32[?,6]", [-1, 3, 2]], {}),
    ("Reshape", ["f32[*]", [-1, 3, 2]], {}),
    ("Reshape", ["f32[2,6]", "i32[3]"], {}),
    ("Reshape", ["f32[0,6]", [-1, 2]], {}),
    ("ExpandDims", ["f32[2,?]", -1], {}),
    ("ExpandDims", ["f32[2,?]", "i32[]"], {}),
    ("Squeeze", ["f32[1,2,1]"], {}),
    ("Squeeze", ["f32[1,?,1]"], {"axis": [1]}),
    ("Squeeze", ["f32[1,?,1]"], {"axis": [-1]}),
    ("Transpose", ["f32[2,?,4]", [2, 0, 1]], {}),
    ("Transpose", ["f32[2,?,4]", "i32[3]"], {}),
    ("ConcatV2", [["f32[2,?,4]", "f32[2,3,4]"], 2], {}),
    ("ConcatV2", [["f32[2,?,4]", "f32[?,3,4]"], -2], {}),
    ("ConcatV2", [["f32[2,?]", "f32[*]"], 0], {}),
    ("Pack", [["f32[2,?]", "f32[?,3]"]], {"axis": 1}),
    ("Unpack", ["f32[2,3]"], {"num": 3, "axis": 1}),
    ("Split", [1, "f32[?,6]"], {"num_split": 3}),
    ("SplitV", ["f32[?,6]", [1, -1, 2], 1], {"num_split": 3}),
    ("SplitV", ["f32[?,6]", "i32[2]", 1], {"num_split": 2}),
    ("Tile", ["f32[2,?]", [3, 4]], {}),
    ("Pad", ["f32[2,?]", [[1, 2], [0, 3]]], {}),
    ("Pad", ["f32[2,?]", "i32[2,2]"], {}),
    ("MirrorPad", ["f32[4,4]", [[1, 2], [0, 3]]], {"mode": "REFLECT"}),
    ("BroadcastTo", ["f32[2,1]", [5, 2, 3]], {}),
    ("Shape", ["f32[2,?]"], {}),
    ("Size", ["f32[2,?]"], {}),
    ("Diag", ["f32[2,3]"], {}),
    ("DiagPart", ["f32[2,3,2,3]"], {}),
    ("MatrixDiag", ["f32[2,3]"], {}),
    ("MatrixDiagV3", ["f32[2,3]", 0, -1, -1, 0.0], {}),
    ("MatrixDiagPartV3", ["f32[2,3,5]", 0, 0.0], {}),
    ("ExpandDims", ["f32[*]", 0], {}),
    ("Squeeze", ["f32[*]"], {"axis": [0]}),
    ("Transpose", ["f32[*]", "i32[3]"], {}),
    ("Transpose", ["f32[*]", [2, 0, 1]], {}),
    ("Concat", [1, ["f32[2,?]", "f32[2,3]"]], {}),
    ("ConcatV2", [["f32[2,?]", "f32[2,3]"], "i32[]"], {}),
    ("ConcatV2", [["f32[*]", "f32[*]"], 0], {}),
    ("ConcatOffset", [1, [[2, 3], [2, 4]]], {}),
    ("Pack", [["f32[*]", "f32[*]"]], {"axis": 0}),
    ("Unpack", ["f32[*]"], {"num": 3, "axis": 1}),
    ("Split", [1, "f32[*]"], {"num_split": 3}),
    ("Split", ["i32[]", "f32[?,6]"], {"num_split": 3}),
    ("SplitV", ["f32[*]", [1, 5], 1], {"num_split": 2}),
    ("SplitV", ["f32[?,6]", "i32[2]", "i32[]"], {"num_split": 2}),
    ("SplitV", ["f32[?,6]", "i32[?]", 1], {"num_split": 2}),
    ("SplitV", ["f32[?,?]", [1, -1], 1], {"num_split": 2}),
    ("Tile", ["f32[*]", "i32[?]"], {}),
    ("Tile", ["f32[*]", "i32[2]"], {}),
    ("Tile", ["f32[2,?]", "i32[?]"], {}),
    ("Pad", ["f32[*]", "i32[2,2]"], {}),
    ("BroadcastTo", ["f32[2,1]", "i32[?]"], {}),
    ("BroadcastTo", ["f32[2,1]", "i32[3]"], {}),
    ("BroadcastArgs", ["i32[2]", "i32[3]"], {}),
    ("BroadcastArgs", ["i32[2]", "i32[?]"], {}),
    ("Diag", ["f32[*]"], {}),
    ("DiagPart", ["f32[*]"], {}),
    ("MatrixDiag", ["f32[*]"], {}),
    ("MatrixDiagPart", ["f32[2,?,5]"], {}),
]

_MASKS = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

INDEXING: list[Case] = [
    ("StridedSlice", ["f32[5,6]", [1, 0], [4, 6], [1, 2]], _MASKS),
    ("StridedSlice", ["f32[5,?,7]", [1, 0], [0, 0], [1, 1]], {**_MASKS, "ellipsis_mask": 2, "end_mask": 1}),
    (
        "StridedSlice",
        ["f32[5,?,7]", [1, 0, 0], [2, 0, 3], [1, 1, 1]],
        {**_MASKS, "shrink_axis_mask": 1, "new_axis_mask": 2},
    ),
    ("StridedSlice", ["f32[?,7]", [0, -1], [0, -9], [1, -2]], {**_MASKS, "end_mask": 1, "begin_mask": 1}),
    ("StridedSlice", ["f32[?,7]", "i32[1]", "i32[1]", [1]], _MASKS),
    ("StridedSlice", ["f32[?,7]", [-3], [-1], [1]], _MASKS),
    ("Slice", ["f32[5,?]", [1, 0], [-1, 3]], {}),
    ("Slice", ["f32[5,?]", "i32[2]", [2, 3]], {}),
    ("Gather", ["f32[5,6,7]", "i32[2,?]"], {}),
    ("GatherV2", ["f32[5,6,7]", "i32[2,?]", 1], {}),
    ("GatherV2", ["f32[2,6,7]", "i32[?,3]", 1], {"batch_dims": 1}),
    ("GatherNd", ["f32[5,6,7]", "i32[?,2]"], {}),
    ("ScatterNd", ["i32[?,1]", "f32[?,3]", [4, 3]], {}),
    ("OneHot", ["i32[2,?]", 4, 1.0, 0.0], {"axis": 1}),
    ("TopKV2", ["f32[?,9]", 3], {}),
    ("Where", ["i1[2,3]"], {}),
    ("Unique", ["f32[4]"], {}),
    ("DynamicPartition", ["f32[4,3]", "i32[4]"], {"num_partitions": 2}),
    ("DynamicStitch", [[[0, 2], [1, 3]], ["f32[2,3]", "f32[2,?]"]], {}),
    ("LowerBound", ["f32[2,9]", "f32[2,3]"], {}),
    ("InTopK", ["f32[?,3]", "i32[4]"], {"k": 2}),
    ("StridedSlice", ["f32[?,7]", [3], [2], [1]], _MASKS),
    ("StridedSlice", ["f32[?,7]", [0], [0], [1]], {**_MASKS, "begin_mask": 1}),
    ("StridedSlice", ["f32[?,7]", "i32[?]", "i32[?]", "i32[?]"], _MASKS),
    ("StridedSlice", ["f32[*]", [0], [1], [1]], _MASKS),
    ("Slice", ["f32[*]", "i32[?]", "i32[?]"], {}),
    ("Slice", ["f32[*]", "i32[2]", "i32[2]"], {}),
    ("Slice", ["f32[5,?]", "i32[?]", [2, 3]], {}),
    ("Slice", ["f32[5,?]", [1, 2], [-1, -1]], {}),
    ("GatherV2", ["f32[5,6,7]", "i32[2,?]", "i32[]"], {}),
    ("GatherV2", ["f32[2,6,7]", "i32[?,3]", -1], {"batch_dims": -1}),
    ("GatherNd", ["f32[5,6,7]", "i32[2,?]"], {}),
    ("ScatterNd", ["i32[?,1]", "f32[?,3]", "i32[?]"], {}),
    ("ScatterNd", ["i32[?,1]", "f32[?,3]", "i32[2]"], {}),
    ("TensorScatterAdd", ["f32[4,3]", "i32[?,1]", "f32[?,3]"], {}),
    ("OneHot", ["i32[*]", 4, 1.0, 0.0], {}),
    ("OneHot", ["i32[2]", "i32[]", 1.0, 0.0], {}),
    ("TopKV2", ["f32[*]", 3], {}),
    ("ApproxTopK", ["f32[2,9]"], {"k": 3}),
    ("UniqueV2", ["f32[4,?]", [1]], {}),
    ("UniqueV2", ["f32[4,?]", "i32[1]"], {}),
    ("UniqueWithCountsV2", ["f32[4]", np.zeros([0], np.int32)], {}),
    ("DynamicPartition", ["f32[*]", "i32[4]"], {"num_partitions": 2}),
    ("DynamicStitch", [[[0, 2], [1, 3]], ["f32[*]", "f32[*]"]], {}),
    ("DynamicStitch", [["i32[2]", [1, 3]], ["f32[2,3]", "f32[2,?]"]], {}),
]

IMAGES_AND_MORE: list[Case] = [
    ("ResizeBilinear", ["f32[?,4,4,3]", [8, 9]], {}),
    ("ResizeNearestNeighbor", ["f32[?,4,4,3]", "i32[2]"], {}),
    ("CropAndResize", ["f32[?,4,4,3]", "f32[?,4]", "i32[5]", [8, 9]], {}),
    (
        "ExtractImagePatches",
        ["f32[?,9,9,3]"],
        {"ksizes": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "rates": [1, 2, 2, 1], "padding": "VALID"},
    ),
    ("NonMaxSuppressionV3", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0], {}),
    ("NonMaxSuppressionV4", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0], {"pad_to_max_output_size": True}),
    ("NonMaxSuppressionV5", ["f32[9,4]", "f32[9]", 3, 0.5, 0.0, 0.0], {"pad_to_max_output_size": True}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", 4, 5, 0.5, 0.0], {}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", 4, 50, 0.5, 0.0], {"pad_per_class": True}),
    ("FusedBatchNormV3", ["f32[?,4,4,?]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"], {"is_training": False}),
    ("Fill", [[2, 3], 1.0], {}),
    ("Fill", ["i32[2]", 1.0], {}),
    ("Range", [0, 10, 3], {}),
    ("Range", [0.0, 1.0, 0.25], {}),
    ("Range", [0, "i32[]", 1], {}),
    ("LinSpace", [0.0, 1.0, 7], {}),
    ("RandomUniform", [[2, 3]], {"dtype": tf.float32}),
    ("Multinomial", ["f32[2,3]", 4], {}),
    ("RFFT", ["f32[2,8]", [8]], {}),
    ("RFFT2D", ["f32[2,8,9]", [8, 9]], {}),
    ("ResizeBilinear", ["f32[?,4,4,3]", "i32[?]"], {}),
    ("ResizeBilinearGrad", ["f32[?,8,9,3]", "f32[2,4,4,3]"], {}),
    ("ResizeNearestNeighborGrad", ["f32[?,8,9,3]", [4, 5]], {}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", 4, "i32[]", 0.5, 0.0], {}),
    ("CombinedNonMaxSuppression", ["f32[2,9,1,4]", "f32[2,9,3]", "i32[]", 5, 0.5, 0.0], {"pad_per_class": True}),
    ("Range", [0.0, 0.3, 0.1], {}),
    ("RFFT", ["f32[*]", [8]], {}),
    ("RFFT2D", ["f32[2,8,9]", "i32[?]"], {}),
    ("IRFFT", ["c64[2,5]", [8]], {}),
]

# What TensorFlow refuses to compute.
CONTRADICTIONS: list[Case] = [
    ("AddV2", ["f32[2,3]", "f32[4,3]"], {}),
    ("BatchMatMulV2", ["f32[2,3,4]", "f32[2,5,4]"], {}),
    ("BatchToSpace", ["f32[12,1,6,3]", [[1, 2], [0, 2]]], {"block_size": 2}),
    ("BatchToSpace", ["f32[12,5,6,3]", [[0, 0]]], {"block_size": 2}),
    ("Bitcast", ["f32[2,3]"], {"type": tf.float64}),
    ("BroadcastTo", ["f32[2,3]", [3]], {}),
    ("BroadcastTo", ["f32[2,3]", [2, 4]], {}),
    ("ConcatV2", [["f32[2]", "f32[2,3]"], 0], {}),
    ("ConcatV2", [["f32[2,4]", "f32[3,3]"], 0], {}),
    ("Conv2D", ["f32[1,9,9,4]", "f32[3,3,3,8]"], {"strides": [1, 1, 1, 1], "padding": "VALID"}),
    ("Conv2D", ["f32[1,9,9,4]", "f32[3,3,2,5]"], {"strides": [1, 1, 1, 1], "padding": "VALID"}),
    ("Cumsum", ["f32[2,3]", 2], {}),
    ("DynamicStitch", [["i32[2]"], ["f32[3,2]"]], {}),
    ("FakeQuantWithMinMaxVarsPerChannel", ["f32[2,4]", "f32[3]", "f32[3]"], {}),
    ("DiagPart", ["f32[2,3,2]"], {}),
    ("Einsum", [["f32[2,3]"]], {"equation": "a->a"}),
    ("Einsum", [["f32[2]"]], {"equation": "a...b->ab"}),
    ("Fill", [[2, -3], 1.0], {}),
    ("GatherNd", ["f32[5,6]", "i32[2,3]"], {}),
    ("GatherV2", ["f32[5,6]", "i32[2]", 1], {"batch_dims": 2}),
    ("GatherV2", ["f32[2,6]", "i32[2,3]", 0], {"batch_dims": 1}),
    ("InvertPermutation", ["i32[2,2]"], {}),
    ("MatMul", ["f32[2,3]", "f32[2,3]"], {}),
    ("OneHot", ["i32[2]", -1, 1.0, 0.0], {}),
    ("Pad", ["f32[2]", [[1, -2]]], {}),
    ("Range", [0, 10, 0], {}),
    ("Reshape", ["f32[2,6]", [-1, -1]], {}),
    ("Reshape", ["f32[2,6]", [5, -1]], {}),
    ("Reshape", ["f32[2,6]", [13]], {}),
    ("Reshape", ["f32[2,6]", [-2, 6]], {}),
    ("ResizeBilinear", ["f32[1,4,4,3]", [8]], {}),
    ("RFFT2D", ["f32[2,8,9]", [8]], {}),
    ("Slice", ["f32[5,6]", [0], [1]], {}),
    ("Slice", ["f32[5,6]", [0, 0], [1]], {}),
    ("Slice", ["f32[5,6]", [3, 0], [3, 6]], {}),
    ("SoftmaxCrossEntropyWithLogits", ["f32[3]", "f32[3]"], {}),
    ("SpaceToBatch", ["f32[2,5]", [[1, 0], [0, 0]]], {"block_size": 2}),
    ("Split", [1, "f32[2,7]"], {"num_split": 3}),
    ("SplitV", ["f32[6]", [1, 4], 0], {"num_split": 2}),
    ("Squeeze", ["f32[1,2]"], {"axis": [1]}),
    ("StridedSlice", ["f32[5]", [0, 0], [1, 1], [1, 1]], _MASKS),
    ("StridedSlice", ["f32[5]", [0], [1], [0]], _MASKS),
    ("StridedSlice", ["f32[5]", [0], [1, 1], [1]], _MASKS),
    ("StridedSlice", ["f32[5]", [5], [6], [1]], {**_MASKS, "shrink_axis_mask": 1}),
    ("TensorScatterAdd", ["f32[4,3]", "i32[2,3]", "f32[2]"], {}),
    ("TopKV2", ["f32[2]", 3], {}),
    ("Transpose", ["f32[2,3]", [0, 0]], {}),
    ("Unpack", ["f32[2,3]"], {"num": 2, "axis": 1}),
]

CASES = [*ELEMENTWISE, *CONVOLUTION, *POOLING, *MATMUL, *REDUCTION, *REARRANGE, *INDEXING, *IMAGES_AND_MORE]


def _build(case: Case, made: Callable[[Any], Any] = operand) -> Any:
    name, operands, attributes = case
    values = [[made(item) for item in spec] if _is_several(spec) else made(spec) for spec in operands]
    if name == "Slice":
        values[1:] = [tf.convert_to_tensor(value, tf.int32) for value in values[1:]]
    function = getattr(tf.raw_ops, name)
    parameters = [key for key in _parameters(name) if key not in attributes]
    return function(**dict(zip(parameters, values, strict=False)), **attributes)


def _is_several(spec: Any) -> bool:
    return isinstance(spec, list) and any(isinstance(item, str) for item in spec)


def _parameters(name: str) -> list[str]:
    op_def = tf.raw_ops.__dict__[name].__signature__
    return list(op_def.parameters)


def _at_least(ours: Shape | None, theirs: Shape | None) -> bool:
    """Returns whether one shape says all that the other says."""
    if theirs is None:
        return True
    return (
        ours is not None
        and len(ours) == len(theirs)
        and all(expected in (-1, dim) for dim, expected in zip(ours, theirs, strict=True))
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_shapes_are_tensorflows(case: Case, inferred: Inferred) -> None:
    expected, actual = inferred(lambda: _build(case))
    assert all(map(_at_least, actual, expected)), f"TensorFlow: {expected}, ours: {actual}"


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda case: case[0])
def test_what_tensorflow_refuses_is_refused(case: Case, tmp_path: Path) -> None:
    with pytest.raises((tf.errors.OpError, ValueError)):
        _build(case, zeros)
    veil = Veil()
    module, _ = build(tmp_path / "graph.pb", lambda: _build(case, veil), veil.lift)
    with pytest.raises(ConversionError) as refused:
        ShapeInference().apply(module)
    assert refused.value.code == "shape-mismatch"


def test_cases_are_of_known_ops() -> None:
    assert all(shape_function(name) is not None for name, _, _ in CASES)
    assert shape_function("NoSuchOp") is None
    assert sum(shape_function(name) is not None for name in op_defs.names()) > 250
