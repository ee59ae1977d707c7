"""The cost of computing an op, estimated before it is computed: the bytes that it makes, and the work.

Work is counted in multiply-adds of the slower kind, those of integers, at about half a billion a second. Estimates are
from above where a kernel's work grows faster than its operands and results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.tensor_data import BufferSource, Constant, TensorData
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

# Work for each element of operands and results.
_ELEMENT = 4

# Work for each element of what is sorted, searched or transformed.
_SORTED = 64

# Bytes of the widest elements; kernels compute in these.
_WIDE = 8


class Cost(NamedTuple):
    """The cost of an op.

    Attributes:
        made: Bytes of the results; at most, where their shapes aren't known.
        transient: Bytes that are needed meanwhile, beside the model's own.
        work: Multiply-adds.
    """

    made: int
    transient: int
    work: int


def cost_of(name: str, op: Operation, constants: Sequence[Constant], shapes: Sequence[Shape | None]) -> Cost:
    """Returns what computing an op costs.

    Args:
        name: The op's name, without the dialect.
        op: The op.
        constants: Its operands.
        shapes: Its results' shapes as inferred.
    """
    given = [constant.shape for constant in constants]
    counts = [math.prod(shape) for shape in given]
    results = 0
    for result, shape in zip(op.results, shapes, strict=True):
        results += _elements(name, result.shape if shape is None else shape, constants)
    work = _ELEMENT * (sum(counts) + results)
    transient = sum(
        count * _WIDE for count, constant in zip(counts, constants, strict=True) if not _is_in_memory(constant)
    )
    more = _MORE.get(name)
    if more is not None:
        given += [(), ()]  # so that damaged ops have operands to look at, too
        work += more(op, given, max(results, 1))
        if name in PADDED:
            transient += _padded(given[0], _window_of(op, given))
    return Cost(results * _WIDE, transient, work)


def _is_in_memory(constant: Constant) -> bool:
    return not isinstance(constant, TensorData) or isinstance(constant.source, BufferSource)


def _elements(name: str, shape: Shape | None, constants: Sequence[Constant]) -> int:
    """Returns how many elements a result has, at most."""
    if shape is not None and all(dim >= 0 for dim in shape):
        return math.prod(shape)
    largest = max((constant.shape for constant in constants), key=math.prod)
    if name not in _BY_VALUE:
        return math.prod(largest) * (len(largest) if name == "Where" else len(constants))
    values = [tensor_data.to_array(constant) for constant in constants]
    rows = 1 + max((int(value.max(initial=0)) for value in values if value.dtype.kind in "iu"), default=0)
    return rows * math.prod(largest[1:])


def _product(op: Operation, given: Sequence[Shape], results: int) -> int:
    """Of matrices m x k and k x n there are mk, kn and mn elements, whose product is the square of mkn."""
    return math.isqrt(math.prod(given[0]) * math.prod(given[1]) * results)


def _einsum(op: Operation, given: Sequence[Shape], results: int) -> int:
    """Returns the work of summing over all labels at once; pairwise it is less."""
    equation = op.properties.get("equation")
    terms = str(tf.python_value(equation)).partition("->")[0].split(",") if equation is not None else []
    dims: dict[str, int] = {}
    for term, shape in zip(terms, given, strict=False):
        if len(term) != len(shape):  # There is an ellipsis.
            return math.prod(map(math.prod, given))
        dims.update(zip(term, shape, strict=True))
    return math.prod(dims.values())


def _convolution(op: Operation, given: Sequence[Shape], results: int) -> int:
    """For each element of the larger side, a filter's elements but for those of one of its axes of channels."""
    filters = given[1]
    own = filters[:-2] if op.name.startswith("tf.Depthwise") else filters[:-1]
    return max(results, math.prod(given[0]), math.prod(given[2])) * math.prod(own)


def _pooling(op: Operation, given: Sequence[Shape], results: int) -> int:
    return results * math.prod(_window_of(op, given))


def _neighbours(op: Operation, given: Sequence[Shape], results: int) -> int:
    radius = op.properties.get("depth_radius")
    return results * (2 * int(tf.python_value(radius) if radius is not None else 5) + 1)


def _resized(op: Operation, given: Sequence[Shape], results: int) -> int:
    """A resized image is multiplied by matrices from both sides."""
    return (math.prod(given[0]) + results) * sum(given[0][1:3])


def _pairs(op: Operation, given: Sequence[Shape], results: int) -> int:
    return _SORTED * int(math.prod(given[1])) ** 2


def _sorted(op: Operation, given: Sequence[Shape], results: int) -> int:
    return _SORTED * sum(map(math.prod, given))


def _sparse_product(op: Operation, given: Sequence[Shape], results: int) -> int:
    return int(math.prod(given[1]) * math.prod(given[-3][1:]))


def _window_of(op: Operation, given: Sequence[Shape]) -> Sequence[int]:
    """Returns the size of a window, in every dimension of the image: an attribute's, or a filter's."""
    for name in ("ksize", "ksizes"):
        value = op.properties.get(name)
        if value is not None:
            sizes: Sequence[int] = tf.python_value(value)
            return sizes
    return (1, *given[1][:-2], 1)


def _padded(image: Shape, window: Sequence[int]) -> int:
    """Returns the bytes of an image with as much around it as the window is large."""
    return _WIDE * math.prod(dim + size for dim, size in zip(image, window, strict=False))


_POOLING = ("AvgPool", "AvgPool3D", "ExtractImagePatches", "MaxPool", "MaxPool3D", "MaxPoolWithArgmax")
_CONVOLUTIONS = (
    "Conv2D",
    "Conv2DBackpropInput",
    "Conv3D",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput",
    "Dilation2D",
)
PADDED = frozenset((*_POOLING, "Conv2D", "Conv3D", "DepthwiseConv2dNative"))
"""Ops whose work follows from an attribute, however small the operands are."""

# Ops whose results have as many rows as a value of an operand tells.
_BY_VALUE = frozenset(
    (
        "Bincount",
        "DenseBincount",
        "DynamicStitch",
        "LinSpace",
        "ParallelDynamicStitch",
        "Range",
        "SegmentMax",
        "SegmentMean",
        "SegmentMin",
        "SegmentProd",
        "SegmentSum",
        "UnsortedSegmentMax",
        "UnsortedSegmentMin",
        "UnsortedSegmentProd",
        "UnsortedSegmentSum",
    )
)

# Op -> the work beyond that of going through operands and results once.
_MORE: Mapping[str, Callable[[Operation, Sequence[Shape], int], int]] = {
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul"), _product),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_POOLING, _pooling),
    **dict.fromkeys((f"NonMaxSuppressionV{version}" for version in (2, 3, 4, 5)), _pairs),
    **dict.fromkeys(("ResizeArea", "ResizeBicubic", "ResizeBilinear", "ScaleAndTranslate"), _resized),
    **dict.fromkeys(
        ("Bucketize", "IRFFT", "IRFFT2D", "LowerBound", "RFFT", "RFFT2D", "TopK", "TopKV2", "UpperBound"), _sorted
    ),
    "Einsum": _einsum,
    "LRN": _neighbours,
    "SparseTensorDenseMatMul": _sparse_product,
}
