"""Shapes of ops that compute element by element, or at least keep the shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.ops.shape_functions import (
    all_equal,
    same,
    same_each,
    same_with_axes,
    same_with_rank,
    same_with_rank_at_least,
)
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import MismatchError, axis_of, merge, with_rank, with_rank_at_least
from tfconvert.schema.dialects.tf_traits import UNARY_IDENTITIES
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute

Shapes = Sequence[Shape | None]


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
    "OnesLike",
    "ZerosLike",
    *UNARY_IDENTITIES,
    "AsString",
    "Bucketize",
    "DeepCopy",
    "FakeQuantWithMinMaxArgs",
    "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsPerChannel",
    "InplaceAdd",
    "InplaceSub",
    "InplaceUpdate",
    "LRN",
    "QuantizeAndDequantize",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3",
    "QuantizeAndDequantizeV4",
    "RandomShuffle",
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

_MATRICES = ("Cholesky", "MatrixBandPart", "MatrixExponential", "MatrixInverse", "MatrixLogarithm", "MatrixSquareRoot")

SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(_UNARY, same),
    **dict.fromkeys(_MATRICES, same_with_rank_at_least(2)),
    **dict.fromkeys(("Cumsum", "Cumprod", "CumulativeLogsumexp", "ReverseV2"), same_with_axes),
    **dict.fromkeys(("LogSoftmax", "Softmax"), same_with_rank_at_least(1)),
    **dict.fromkeys(("FFT", "IFFT"), same_with_rank_at_least(1)),
    **dict.fromkeys(("FFT2D", "FFT3D", "IFFT2D", "IFFT3D"), same),
    "BiasAdd": _bias,
    "BiasAddV1": _bias,
    "Bitcast": _bitcast,
    "Cross": all_equal,
    "EnsureShape": _ensured,
    "IdentityN": same_each,
    "InvertPermutation": same_with_rank(1),
    "PlaceholderWithDefault": _declared,
    "ReverseSequence": _reverse_sequence,
    "Roll": same_with_rank_at_least(1),
}
"""Op name -> shape function."""
