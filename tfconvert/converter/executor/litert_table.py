"""LiteRT's operators that compute what a TensorFlow op does: an entry each, with how its operands differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from tfconvert.converter.executor import litert_functions, litert_layout
from tfconvert.ops import recurrent, registry
from tfconvert.ops.call import Call, Kernel, Results

_ACTIVATION = "fused_activation_function"


class Row(NamedTuple):
    """How an operator is computed.

    Attributes:
        op: TensorFlow's op of the same meaning.
        layout: Returns the operator's call with the operands and attributes of that op, other names aside.
        bias: The index of the operand that is added to the result, if it is there.
    """

    op: str
    layout: Callable[[Call], Call] = lambda call: call
    bias: int | None = None


# Operator -> op, where operands, and options that matter, are the same by order and by name.
_SAME: Mapping[str, str] = {
    "abs": "Abs",
    "add": "AddV2",
    "add_n": "AddN",
    "atan2": "Atan2",
    "batch_matmul": "BatchMatMulV2",
    "batch_to_space_nd": "BatchToSpaceND",
    "bitwise_xor": "BitwiseXor",
    "broadcast_args": "BroadcastArgs",
    "broadcast_to": "BroadcastTo",
    "bucketize": "Bucketize",
    "ceil": "Ceil",
    "complex_abs": "ComplexAbs",
    "cos": "Cos",
    "cumsum": "Cumsum",
    "depth_to_space": "DepthToSpace",
    "div": "Div",
    "dynamic_update_slice": "XlaDynamicUpdateSlice",
    "elu": "Elu",
    "equal": "Equal",
    "exp": "Exp",
    "expand_dims": "ExpandDims",
    "fake_quant": "FakeQuantWithMinMaxArgs",
    "fill": "Fill",
    "floor": "Floor",
    "floor_div": "FloorDiv",
    "floor_mod": "FloorMod",
    "gather_nd": "GatherNd",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "imag": "Imag",
    "leaky_relu": "LeakyRelu",
    "less": "Less",
    "less_equal": "LessEqual",
    "log": "Log",
    "log_softmax": "LogSoftmax",
    "logical_and": "LogicalAnd",
    "logical_not": "LogicalNot",
    "logical_or": "LogicalOr",
    "logistic": "Sigmoid",
    "matrix_diag": "MatrixDiag",
    "matrix_set_diag": "MatrixSetDiag",
    "maximum": "Maximum",
    "mean": "Mean",
    "minimum": "Minimum",
    "mirror_pad": "MirrorPad",
    "mul": "Mul",
    "neg": "Neg",
    "not_equal": "NotEqual",
    "one_hot": "OneHot",
    "pack": "Pack",
    "pad": "Pad",
    "padv2": "PadV2",
    "pow": "Pow",
    "range": "Range",
    "rank": "Rank",
    "real": "Real",
    "reduce_all": "All",
    "reduce_any": "Any",
    "reduce_max": "Max",
    "reduce_min": "Min",
    "reduce_prod": "Prod",
    "relu": "Relu",
    "relu6": "Relu6",
    "resize_bilinear": "ResizeBilinear",
    "resize_nearest_neighbor": "ResizeNearestNeighbor",
    "reverse_sequence": "ReverseSequence",
    "reverse_v2": "ReverseV2",
    "rfft2d": "RFFT2D",
    "right_shift": "RightShift",
    "round": "Round",
    "rsqrt": "Rsqrt",
    "scatter_nd": "ScatterNd",
    "segment_sum": "SegmentSum",
    "select": "Select",
    "select_v2": "SelectV2",
    "sign": "Sign",
    "sin": "Sin",
    "slice": "Slice",
    "space_to_batch_nd": "SpaceToBatchND",
    "space_to_depth": "SpaceToDepth",
    "sparse_to_dense": "SparseToDense",
    "split_v": "SplitV",
    "sqrt": "Sqrt",
    "square": "Square",
    "squared_difference": "SquaredDifference",
    "squeeze": "Squeeze",
    "sub": "Sub",
    "sum": "Sum",
    "tanh": "Tanh",
    "tile": "Tile",
    "topk_v2": "TopKV2",
    "transpose": "Transpose",
    "unpack": "Unpack",
    "unsorted_segment_max": "UnsortedSegmentMax",
    "unsorted_segment_min": "UnsortedSegmentMin",
    "unsorted_segment_prod": "UnsortedSegmentProd",
    "unsorted_segment_sum": "UnsortedSegmentSum",
    "where": "Where",
    "zeros_like": "ZerosLike",
}

ROWS: Mapping[str, Row] = {
    **{name: Row(op) for name, op in _SAME.items()},
    "arg_max": Row("ArgMax", litert_layout.indices),
    "arg_min": Row("ArgMin", litert_layout.indices),
    "average_pool_2d": Row("AvgPool", litert_layout.pool),
    "bitcast": Row("Bitcast", litert_layout.bitcast),
    "cast": Row("Cast", litert_layout.cast),
    "concatenation": Row("ConcatV2", litert_layout.axis_last),
    "conv_2d": Row("Conv2D", litert_layout.convolution, bias=2),
    "conv_3d": Row("Conv3D", litert_layout.convolution_3d, bias=2),
    "conv_3d_transpose": Row("Conv3DBackpropInputV2", litert_layout.convolution_3d, bias=3),
    "depthwise_conv_2d": Row("DepthwiseConv2dNative", litert_layout.depthwise, bias=2),
    "fully_connected": Row("BatchMatMulV2", litert_layout.fully_connected, bias=2),
    "gather": Row("GatherV2", litert_layout.axis_last),
    "local_response_normalization": Row("LRN", litert_layout.local_response),
    "max_pool_2d": Row("MaxPool", litert_layout.pool),
    "reshape": Row("Reshape", litert_layout.reshape),
    "shape": Row("Shape", litert_layout.indices),
    "softmax": Row("Softmax", litert_layout.softmax),
    "split": Row("Split", litert_layout.split),
    "strided_slice": Row("StridedSlice", litert_layout.strided_slice),
    "transpose_conv": Row("Conv2DBackpropInput", litert_layout.transposed_convolution, bias=3),
    "unique": Row("Unique", litert_layout.unique),
}
"""Operator -> its entry."""


def _evaluate(row: Row, call: Call) -> Results:
    """Computes an operator: the op, the bias, the activation."""
    operands = call.inputs[: row.bias]
    first, *others = registry.evaluate(row.layout(call._replace(inputs=operands))._replace(op=row.op))
    for bias in call.inputs[len(operands) :]:
        if bias.dtype.kind != "O":  # Else it is absent.
            first = first + bias
    if _ACTIVATION in call.attributes:
        first = recurrent.activation_of(call)(first)
    return first, *others


KERNELS: Mapping[str, Kernel] = {
    **{name: partial(_evaluate, row) for name, row in ROWS.items()},
    **litert_functions.KERNELS,
}
"""Operator -> kernel, which takes the operator's own operands and options."""
