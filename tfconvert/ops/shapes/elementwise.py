"""Shapes of ops that compute element by element, or at least keep the shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.shapes.operands import Operands, ShapeFunction
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import (
    MismatchError,
    axis_of,
    broadcast,
    merge,
    merge_all,
    with_rank,
    with_rank_at_least,
)
from tfconvert.schema.dialects.tf_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, UNARY_IDENTITIES
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute

Shapes = Sequence[Shape | None]


def _same(operands: Operands) -> Shapes:
    return (operands.shape(0),)


def _same_each(operands: Operands) -> Shapes:
    return operands.shapes()


def _same_vector(operands: Operands) -> Shapes:
    return (with_rank(operands.shape(0), 1),)


def _same_matrices(operands: Operands) -> Shapes:
    return (with_rank_at_least(operands.shape(0), 2),)


def _same_with_axis(operands: Operands) -> Shapes:
    """The second operand holds axes."""
    shape, axes = operands.shape(0), operands.ints(1)
    if shape is not None and axes is not None:
        for axis in axes:
            axis_of(axis, len(shape))
    return (shape,)


def _with_last(operands: Operands) -> Shapes:
    """Softmax: at least a vector."""
    return (with_rank_at_least(operands.shape(0), 1),)


def _all_equal(operands: Operands) -> Shapes:
    return (merge_all(operands.shapes()),)


def _binary(operands: Operands) -> Shapes:
    return (broadcast(operands.shape(0), operands.shape(1)),)


def _equality(operands: Operands) -> Shapes:
    """Without `incompatible_shape_error` unequal shapes compare as one `false`."""
    if operands.attribute("incompatible_shape_error", True):
        return _binary(operands)
    first, second = operands.shape(0), operands.shape(1)
    if first is None or second is None or (first != second and min((*first, *second), default=0) < 0):
        return (None,)
    try:
        return (broadcast(first, second),)
    except MismatchError:
        return ((),)


def _ternary(operands: Operands) -> Shapes:
    return (broadcast(broadcast(operands.shape(0), operands.shape(1)), operands.shape(2)),)


def _select(operands: Operands) -> Shapes:
    """`Select` takes a scalar or a vector of conditions beside a condition for each element."""
    condition = operands.shape(0)
    shape = merge(operands.shape(1), operands.shape(2))
    if condition is None or len(condition) == 0 or shape is None:
        return (shape,)
    if len(condition) == 1 and len(shape) != 1:
        with_rank_at_least(shape, 1)
        merge(condition, shape[:1])
        return (shape,)
    return (merge(shape, condition),)


def _clip(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    for limit in operands.shapes(1):
        if limit is not None and len(limit) > 0:
            shape = merge(shape, limit)
    return (shape,)


def _declared(operands: Operands) -> Shapes:
    """`PlaceholderWithDefault`: the default has to fit what is declared, but may be more specific."""
    declared = operands.declared_shape("shape")
    merge(declared, operands.shape(0))
    return (declared,)


def _ensured(operands: Operands) -> Shapes:
    return (merge(operands.shape(0), operands.declared_shape("shape")),)


def _bias(operands: Operands) -> Shapes:
    shape, bias = operands.shape(0), with_rank(operands.shape(1), 1, "the bias")
    if shape is None:
        return (None,)
    with_rank_at_least(shape, 2)
    axis = 1 if operands.text("data_format") == "NCHW" else len(shape) - 1
    channels = merge((shape[axis],), bias)
    assert channels is not None
    return ((*shape[:axis], *channels, *shape[axis + 1 :]),)


def _reverse_sequence(operands: Operands) -> Shapes:
    shape, lengths = operands.shape(0), with_rank(operands.shape(1), 1, "the lengths")
    if shape is None:
        return (None,)
    axis_of(operands.integer("seq_dim"), len(shape))
    axis = axis_of(operands.integer("batch_dim"), len(shape))
    batch = merge((shape[axis],), lengths)
    assert batch is not None
    return ((*shape[:axis], *batch, *shape[axis + 1 :]),)


def _bitcast(operands: Operands) -> Shapes:
    shape = operands.shape(0)
    ratio = _item_size(operands, operands.values[0].type) / _item_size(operands, operands.op.results[0].type)
    if shape is None or ratio == 1:
        return (shape,)
    if ratio > 1:
        return ((*shape, int(ratio)),)
    with_rank_at_least(shape, 1)
    if shape[-1] >= 0 and shape[-1] != int(1 / ratio):
        raise MismatchError(f"its last dimension should be {int(1 / ratio)}, but is {shape[-1]}")
    return (shape[:-1],)


def _item_size(operands: Operands, tensor_type: Attribute) -> int:
    try:
        size = types.numpy_dtype(types.element_of(tensor_type)).itemsize
    except KeyError:
        size = 0
    if size == 0:
        raise MismatchError(f"{operands.op.name} can't reinterpret elements of {tensor_type}")
    return size


_UNARY = (
    *ELEMENTWISE_UNARY,
    *UNARY_IDENTITIES,
    "AdjustContrastv2",
    "AdjustHue",
    "AdjustSaturation",
    "Angle",
    "AsString",
    "Bucketize",
    "Cast",
    "CheckNumerics",
    "CheckNumericsV2",
    "ComplexAbs",
    "DeepCopy",
    "FakeQuantWithMinMaxArgs",
    "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel",
    "HSVToRGB",
    "Imag",
    "InplaceAdd",
    "InplaceSub",
    "InplaceUpdate",
    "IsFinite",
    "IsInf",
    "IsNan",
    "LRN",
    "PopulationCount",
    "QuantizeAndDequantize",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3",
    "QuantizeAndDequantizeV4",
    "RGBToHSV",
    "RandomShuffle",
    "Real",
    "RegexFullMatch",
    "RegexReplace",
    "StaticRegexFullMatch",
    "StaticRegexReplace",
    "StringLength",
    "StringLower",
    "StringStrip",
    "StringToHashBucketFast",
    "StringToNumber",
    "StringUpper",
    "TensorStridedSliceUpdate",
    "XlaDynamicUpdateSlice",
    "XlaSharding",
)

_BINARY = (*ELEMENTWISE_BINARY, "ApproximateEqual", "Complex", "Greater", "GreaterEqual", "Less", "LessEqual")

_GRADIENTS = (
    "AccumulateNV2",
    "AddN",
    "Cross",
    "EluGrad",
    "InvGrad",
    "LeakyReluGrad",
    "ReciprocalGrad",
    "Relu6Grad",
    "ReluGrad",
    "RsqrtGrad",
    "SeluGrad",
    "SigmoidGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "SqrtGrad",
    "TanhGrad",
)

_MATRICES = ("Cholesky", "MatrixBandPart", "MatrixExponential", "MatrixInverse", "MatrixLogarithm", "MatrixSquareRoot")

SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(_UNARY, _same),
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_GRADIENTS, _all_equal),
    **dict.fromkeys(_MATRICES, _same_matrices),
    **dict.fromkeys(("Cumsum", "Cumprod", "CumulativeLogsumexp", "ReverseV2"), _same_with_axis),
    **dict.fromkeys(("Equal", "NotEqual"), _equality),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _with_last),
    **dict.fromkeys(("Betainc", "SelectV2"), _ternary),
    **dict.fromkeys(("FFT", "IFFT"), _with_last),
    **dict.fromkeys(("FFT2D", "FFT3D", "IFFT2D", "IFFT3D"), _same),
    "BiasAdd": _bias,
    "BiasAddV1": _bias,
    "Bitcast": _bitcast,
    "ClipByValue": _clip,
    "EnsureShape": _ensured,
    "IdentityN": _same_each,
    "InvertPermutation": _same_vector,
    "PlaceholderWithDefault": _declared,
    "ReverseSequence": _reverse_sequence,
    "Roll": _with_last,
    "Select": _select,
}
"""Op name -> shape function."""
