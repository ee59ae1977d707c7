"""The reasons for which ops are declined."""

from __future__ import annotations

import re

import pytest

from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.schema.diagnostics import ConversionError

_WINDOWS = 'strides = [1, 1, 1, 1], rates = [1, 1, 1, 1], padding = "VALID"'
_POOL = 'strides = [1, 1, 1, 1], padding = "VALID"'
_POOL_3D = 'strides = [1, 1, 1, 1, 1], padding = "VALID"'

ROWS = [
    ("DynamicPartition", "4xf32, *xi32", "*xf32", "num_partitions = 1 : i64", "the rank of the numbers is not known"),
    ("DynamicPartition", "*xf32, 4xi32", "*xf32", "num_partitions = 1 : i64", "the operand's rank is not known"),
    ("DynamicStitch", "*xi32, *xf32", "*xf32", "", "the operands' ranks are not known"),
    ("DynamicStitch", "?x2xi32, ?x2x?xf32", "?x?xf32", "", "the shape that each index selects is not known"),
    ("SegmentMean", "*xf32, 4xi32", "*xf32", "", "the operand's rank is not known"),
    ("SegmentSum", "4xi16, 4xi32", "?xi16", "", "LiteRT computes it for f32, i32, i64, not for i16"),
    ("UnsortedSegmentSum", "4x?xi64, 4xi32, i32", "?x?xi64", "", "the size of the summed rows is not known"),
    ("UniqueV2", "4x2xi32, 1xi32", "?x2xi32, 4xi32", "", "only a vector's elements are compared"),
    ("SparseReshape", "4x?xi64, ?xi64, 2xi64", "4x2xi64, 2xi64", "", "the sparse tensor's rank is not known"),
    (
        "SparseFillEmptyRows",
        "4x?xi64, 4xf32, ?xi64, f32",
        "?x?xi64, ?xf32, ?xi1, 4xi64",
        "",
        "the sparse tensor's rank is not known",
    ),
    ("MatrixDiagPart", "?x3xi8", "?xi8", "", "the matrices' size is not known"),
    ("MatrixDiagPartV2", "3x3xf32, i32, f32", "?xf32", "", "which diagonal is meant, or the rank, is not known"),
    ("MatrixDiagPart", "*xf32", "*xf32", "", "the rank, is not known"),
    ("Diag", "?x2xf32", "?x2x?x2xf32", "", "the operand's shape is not known"),
    (
        "RaggedTensorToTensor",
        "i64, ?xf32, f32, ?xi64, ?xi64",
        "?x?x?xf32",
        'row_partition_types = ["ROW_SPLITS", "ROW_SPLITS"]',
        "only tensors with one ragged dimension are padded",
    ),
    (
        "RaggedTensorToTensor",
        "2xi64, ?xf32, f32, ?xi64",
        "?x?xf32",
        'row_partition_types = ["ROW_SPLITS"]',
        "the padded tensor's rank, or the size of its rows' elements, is not known",
    ),
    (
        "RaggedTensorToSparse",
        "?xi64, ?x2xf32",
        "?x3xi64, ?xf32, 3xi64",
        "",
        "only tensors with one ragged dimension, the last, become sparse",
    ),
    ("DenseBincount", "*xi32, i32, 0xf32", "*xf32", "", "the rank of the counted values is not known"),
    (
        "NonMaxSuppressionV3",
        "5x4xf32, 5xf32, 1xi32, f32, f32",
        "?xi32",
        "",
        "the largest number of boxes is not a scalar",
    ),
    (
        "RaggedTensorToTensor",
        "=[-1, -1, 7]:3xi64, ?x2xf32, f32, ?xi64",
        "?x?x7xf32",
        'row_partition_types = ["ROW_SPLITS"]',
        "it is cut or padded along dimensions other than that of the rows'",
    ),
    ("ApproxTopK", "9xf32", "3xf32, 3xi32", "k = 3 : i64, aggregate_to_topk = false", "depends on the device"),
    ("UnsortedSegmentSum", "*xi64, 4xi32, i32", "*xi64", "", "the operands' ranks are not known"),
    ("Cumprod", "*xf32, =0:i32", "*xf32", "", "the size of the axis is not known"),
    ("CropAndResize", "*xf32, 3x4xf32, 3xi32, 2xi32", "*xf32", "", "the ranks of its operands are not known"),
    ("CropAndResize", "0x4x4x3xf32, 3x4xf32, 3xi32, 2xi32", "3x?x?x3xf32", "", "it has no elements"),
    ("Fill", "=[5000000000]:1xi64, f32", "?xf32", "", "operand 0 doesn't fit 32 bits"),
    (
        "QuantizeAndDequantizeV2",
        "*xf32, 3xf32, 3xf32",
        "*xf32",
        "axis = 1 : i64",
        "the dimension that has several ranges is not known",
    ),
    (
        "QuantizeAndDequantizeV2",
        "3xf32, =-1.0:f32, =0x7F800000:f32",
        "3xf32",
        "range_given = true",
        "its range is not finite",
    ),
    ("MatMul", "*xi32, 3x4xi32", "*xi32", "", "the operands' ranks are not known"),
    ("AvgPool", "*xf32", "*xf32", f"ksize = [1, 2, 2, 1], {_POOL}", "the input's rank is not known"),
    (
        "MaxPool3D",
        "1x?x4x4x2xf32",
        "1x?x2x2x2xf32",
        'ksize = [1, 2, 2, 2, 1], strides = [1, 2, 2, 2, 1], padding = "VALID"',
        "only the batch may be of unknown size",
    ),
    ("RFFT", "2x8xf32, =[0]:1xi32", "2x1xcomplex<f32>", "", "its length is not at least 1"),
    ("RFFT", "2x4xf32, =[6]:1xi32", "2x4xcomplex<f32>", "", "the operand is smaller than the length requires"),
    ("IRFFT", "2x4xcomplex<f32>, =[0]:1xi32", "2x0xf32", "", "its length is not at least 1"),
    ("IRFFT", "2x?xcomplex<f32>, =[6]:1xi32", "2x6xf32", "", "the size of the operand is not known"),
    ("IRFFT", "2x4xcomplex<f32>, 1xi32", "2x?xf32", "", "the length is not known"),
    (
        "MaxPoolWithArgmax",
        "1x?x4x2xf32",
        "1x?x2x2xf32, 1x?x2x2xi64",
        f"ksize = [1, 2, 2, 1], {_POOL}",
        "only the batch may be of unknown size",
    ),
    (
        "MaxPoolWithArgmax",
        "1x4x4x2xf32",
        "1x2x2x1xf32, 1x2x2x1xi64",
        f"ksize = [1, 2, 2, 2], {_POOL}",
        "it pools over the batch or the channels",
    ),
    (
        "MaxPoolWithArgmax",
        "9x40000x40000x1xf32",
        "9x20000x20000x1xf32, 9x20000x20000x1xi64",
        f"ksize = [1, 2, 2, 1], {_POOL}",
        "places in the image don't fit 32 bits",
    ),
    (
        "FusedBatchNormV3",
        "*xf32, 3xf32, 3xf32, 3xf32, 3xf32",
        "*xf32, 3xf32, 3xf32, 3xf32, 3xf32, *xf32",
        "is_training = true",
        "the input's rank is not known",
    ),
    (
        "MaxPoolGrad",
        "1x4x4x2xf32, 1x4x4x1xf32, 1x4x4x1xf32",
        "1x4x4x2xf32",
        'ksize = [1, 1, 1, 2], strides = [1, 1, 1, 2], padding = "VALID"',
        "ksize [1, 1, 1, 2] reach over batch or channels",
    ),
    (
        "AvgPoolGrad",
        "=[1, 4, 4, 2]:4xi32, 1x4x4x2xf32",
        "1x4x4x2xf32",
        'ksize = [1, 2, 2, 1, 1], strides = [1, 1, 1, 1], padding = "SAME"',
        "ksize [1, 2, 2, 1, 1] are not 4 sizes",
    ),
    (
        "Conv2DBackpropFilter",
        "1x4x4x2xf32, =[1, 1, 2, 2]:4xi32, 1x4x4x2xf32",
        "1x1x2x2xf32",
        'strides = [1, 0, 1, 1], padding = "SAME"',
        "strides [1, 0, 1, 1] are not 4 sizes",
    ),
    (
        "DepthwiseConv2dNativeBackpropInput",
        "=[1, 4, 4, 2]:4xi32, 1x1x2x1xf32, 1x4x4x2xf32",
        "1x4x4x2xf32",
        'strides = [1, 1, 1, 2], padding = "SAME"',
        "strides [1, 1, 1, 2] reach over batch or channels",
    ),
    (
        "Conv2DBackpropInput",
        "=[1, 4, 4, 2]:4xi32, 1x1x2x2xf32, 1x4x4x2xf32",
        "1x4x4x2xf32",
        'strides = [1, 1, 1, 1], dilations = [1, 2, 1, 1], padding = "EXPLICIT", explicit_paddings = [0, 1]',
        "explicit_paddings are not 4 pairs of sizes",
    ),
    (
        "MaxPoolGrad",
        "1x?x9x2xf32, 1x?x1x2xf32, 1x?x1x2xf32",
        "1x?x9x2xf32",
        'ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID"',
        "only the batch may be of unknown size",
    ),
    (
        "MaxPoolGrad",
        "1x9x9x2xf32, 1x1x1x2xf32, 1x1x1x2xf32",
        "1x9x9x2xf32",
        'ksize = [1, 9, 9, 1], strides = [1, 9, 9, 1], padding = "VALID"',
        "its windows have more than 64 places",
    ),
    (
        "MaxPoolGradV2",
        "1x4x4x2xf32, 1x2x2x2xf32, 1x2x2x2xf32, 4xi32, 4xi32",
        "1x4x4x2xf32",
        'padding = "VALID"',
        "the windows are not known",
    ),
    (
        "StridedSliceGrad",
        "1xi32, =[0]:1xi32, =[9]:1xi32, =[2]:1xi32, ?xf32",
        "?xf32",
        "",
        "it is taken in steps from a tensor of unknown size",
    ),
    ("StridedSliceGrad", "1xi32, 1xi32, 1xi32, 1xi32, ?xf32", "?xf32", "", "the rank or the steps are not known"),
    ("MirrorPadGrad", "?xf32, =[[1, 1]]:1x2xi32", "?xf32", 'mode = "REFLECT"', "a dimension of unknown size is padded"),
    ("ResizeBilinearGrad", "1x?x4x3xf32, 1x8x8x3xf32", "1x8x8x3xf32", "", "the height or the width is not known"),
    ("LRNGrad", "1x4x4x?xf32, 1x4x4x?xf32, 1x4x4x?xf32", "1x4x4x?xf32", "", "the number of channels is not known"),
    (
        "Conv2DBackpropFilter",
        "1x?x4x3xf32, 4xi32, 1x2x2x4xf32",
        "2x2x3x4xf32",
        _POOL,
        "only the batch may be of unknown size",
    ),
    ("Roll", "2x3xf32, =[1, 2]:2xi32, =[0]:1xi32", "2x3xf32", "", "there isn't one shift for each axis"),
    ("Roll", "*xf32, 1xi32, 1xi32", "*xf32", "", "the operands' ranks are not known"),
    ("Roll", "2x3xf32, 2xi32, 1xi32", "2x3xf32", "", "there isn't one shift for each axis"),
    ("Equal", "2x?xf32, 2x?xf32", "*xi1", "incompatible_shape_error = false", "whether they can is not known"),
    ("Equal", "2x3xf32, 4xf32", "*xi1", "incompatible_shape_error = false", "whether they can is not known"),
    ("Equal", "*xf32, 4xf32", "*xi1", "incompatible_shape_error = false", "whether they can is not known"),
    ("Cast", "4x!tf_type.string", "4xf32", "", "tfl.cast doesn't convert !tf_type.string"),
    ("SpaceToBatchND", "1x4x?x1x2x2xi64, =[2]:1xi64, 1x2xi64", "?x?x?x1x2x2xi64", "", "operand 2 is not a constant"),
    ("ResizeBicubic", "*xf32, 2xi32", "?x?x?x?xf32", "", "how many dimensions the image has is not known"),
    ("ResizeBicubic", "1x3x4x2xf32, =[0, 4]:2xi32", "1x0x4x2xf32", "", "the result has no elements"),
    ("ResizeBicubic", "1x3000x4x2xf32, =[3000, 4]:2xi32", "1x3000x4x2xf32", "", "more than 16 MiB"),
    (
        "ScaleAndTranslate",
        "1x3x4x2xf32, =[6, 5]:2xi32, =[0.0, 1.0]:2xf32, =[0.0, 0.0]:2xf32",
        "1x6x5x2xf32",
        "",
        "its scale is not positive",
    ),
    (
        "ScaleAndTranslate",
        "1x3x4x2xf32, =[6, 5]:2xi32, =[1.0]:1xf32, =[0.0, 0.0]:2xf32",
        "1x6x5x2xf32",
        "",
        "its scale and translation are not pairs",
    ),
    (
        "TensorStridedSliceUpdate",
        "?x5xf32, 1xi32, 1xi32, 1xi32, 5xf32",
        "?x5xf32",
        "",
        "the tensor's shape is not known",
    ),
    (
        "TensorStridedSliceUpdate",
        "4x5xf32, =[0, 1]:2xi32, =[0, 2]:2xi32, =[1, 1]:2xi32, 1x1x5xf32",
        "4x5xf32",
        "new_axis_mask = 1 : i64, shrink_axis_mask = 0 : i64, end_mask = 2 : i64",
        "it has new axes",
    ),
    (
        "TensorStridedSliceUpdate",
        "4x5xf32, 1xi32, 1xi32, =[2]:1xi32, 2x5xf32",
        "4x5xf32",
        "",
        "begin or end is computed, and it is written to in steps",
    ),
    (
        "TensorStridedSliceUpdate",
        "4x5xf32, 1xi32, ?xi32, =[1]:1xi32, 2x5xf32",
        "4x5xf32",
        "",
        "begin or end is computed, and their axes are not known",
    ),
    (
        "TensorStridedSliceUpdate",
        "4x5xf32, 1xi32, 1xi32, =[1]:1xi32, ?x5xf32",
        "4x5xf32",
        "",
        "begin or end is computed, and the value's shape is not known",
    ),
    ("Einsum", "2x3xf32, 3x4xf32", "2x4xf32", 'equation = "ij,jk"', "the equation has no arrow"),
    ("Einsum", "2x3xf32, 3xf32", "2x4xf32", 'equation = "ij,jk->ik"', "an operand has fewer dimensions than labels"),
    ("Einsum", "2x3x1xf32, 3x4xf32", "2x4xf32", 'equation = "ij,...k->ik"', "an operand has more dimensions"),
    ("Einsum", "*xf32, 3x4xf32", "2x4xf32", 'equation = "ij,jk->ik"', "an operand's rank is not known"),
    ("Einsum", "3x3xf32", "3xf32", 'equation = "ii->i"', "a label occurs twice in one operand"),
    ("Einsum", "2x3xf32, 5x4xf32", "2x4xf32", 'equation = "ij,jk->ik"', "the operands' dimensions differ"),
    ("StridedSlice", "*xf32, =[0]:1xi32, =[1]:1xi32, =[1]:1xi32", "*xf32", "", "the input's rank is not known"),
    ("StridedSlice", "*xf32, 1xi32, 1xi32, 1xi32", "*xf32", "", "the input's rank is not known"),
    (
        "StridedSlice",
        "2x3xf32, ?xi32, ?xi32, ?xi32",
        "*xf32",
        "new_axis_mask = 1 : i64",
        "the number of its bounds is not known",
    ),
    (
        "StridedSlice",
        "2x3x4x?x2x2x2xf32, 3xi32, 3xi32, 3xi32",
        "*xf32",
        "new_axis_mask = 3 : i64",
        "the result's rank is not known",
    ),
    ("Conv2D", "1x4x4x2xf32, 2x2x2x?xf32", "1x3x3x?xf32", _POOL, "the number of output channels is not known"),
    ("Conv2D", "*xf32, 2x2x2x4xf32", "?x?x?x4xf32", _POOL, "the input is not known to have 4 dimensions"),
    (
        "Conv2D",
        "1x4x4x2xf32, 2x2x2x4xf32",
        "1x3x3x4xf32",
        'strides = [2, 1, 1, 1], padding = "VALID"',
        "strides [2, 1, 1, 1] reach over batch or channels",
    ),
    ("DepthwiseConv2dNative", "1x4x4x2xf32, 2x?x2x2xf32", "1x2x?x4xf32", _POOL, "the filter's shape is not known"),
    ("Conv2DBackpropInput", "4xi32, 2x2x?x4xf32, 1x4x4x4xf32", "?x?x?x?xf32", _POOL, "the filter's shape is not known"),
    (
        "Conv2DBackpropInput",
        "4xi32, 2x2x3x4xf32, 1x4x4x4xf32",
        "?x?x?x3xf32",
        'strides = [1, 1, 1, 1], dilations = [1, 2, 2, 1], padding = "VALID"',
        "only the batch may be of unknown size",
    ),
    ("Conv3D", "1x4x4x4x2xf32, *xf32", "1x?x?x?x?xf32", _POOL_3D, "the filter's rank is not known"),
    ("Conv3D", "1x4x4x4x2xf32, 2x2x2x1x4xf32", "1x3x3x3x4xf32", _POOL_3D, "tfl.conv_3d has no groups"),
    (
        "Conv3DBackpropInputV2",
        "5xi32, 2x2x2x3x4xf32, 1x4x4x4x4xf32",
        "?x?x?x?x3xf32",
        f"{_POOL_3D}, dilations = [1, 2, 2, 2, 1]",
        "only the batch may be of unknown size",
    ),
    (
        "Conv3DBackpropInputV2",
        "5xi32, 2x2x2x3x4xf32, *xf32",
        "?x?x?x?x3xf32",
        _POOL_3D,
        "only the batch may be of unknown size",
    ),
    (
        "ExtractImagePatches",
        "1x?x8x3xf32",
        "1x?x5x48xf32",
        f"ksizes = [1, 4, 4, 1], {_WINDOWS}",
        "the images' size is not known",
    ),
    (
        "ExtractImagePatches",
        "1x80x80x1xf32",
        "1x61x61x400xf32",
        f"ksizes = [1, 20, 20, 1], {_WINDOWS}",
        "windows that overlap have at most 256 pixels",
    ),
]
"""Op, operands (with a value if they are constants), results, attributes, and the reason."""


def _split(text: str) -> tuple[list[str], list[str]]:
    parts = [each.rpartition(":") for each in re.split(r", (?![^\[]*\])", text)]
    return [value for value, _, _ in parts], [f"tensor<{each}>" for _, _, each in parts]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}({row[1]})")
def test_says_why(row: tuple[str, str, str, str, str]) -> None:
    op, operands, results, attributes, reason = row
    values, kinds = _split(operands)
    names = ", ".join(f"%x{index}: {each}" for index, each in enumerate(kinds) if not values[index])
    constants = "".join(
        f'%x{index} = "tf.Const"() <{{value = dense<{value[1:]}> : {kinds[index]}}}> : () -> {kinds[index]}\n'
        for index, value in enumerate(values)
        if value
    )
    operands_text = ", ".join(f"%x{index}" for index in range(len(kinds)))
    made = ", ".join(_split(results)[1])
    count = f":{len(_split(results)[1])}" if "," in results else ""
    returned = ", ".join(f"%r#{index}" for index in range(len(_split(results)[1]))) if count else "%r"
    module = parse(f"""
    func.func @main({names}) -> ({made}) {{
      {constants}
      %r{count} = "tf.{op}"({operands_text}) <{{{attributes}}}> : ({", ".join(kinds)}) -> ({made})
      func.return {returned} : {made}
    }}""")
    with pytest.raises(ConversionError) as caught:
        Legalize().apply(module)
    assert reason in str(caught.value)
