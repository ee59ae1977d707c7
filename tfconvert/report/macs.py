"""How many multiplications with additions an op needs: convolutions and matrix products, of both dialects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tfconvert.schema.dialects import types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.operation import Operation


class _Product(NamedTuple):
    """Where an op's numbers come from, as indices of operands.

    Attributes:
        weights: The weights.
        scattered: The operand whose elements are each multiplied with weights; `None` for the result.
    """

    weights: int = 1
    scattered: int | None = None


# Each element of the result needs as many as there are weights for its channel.
_WITH_WEIGHTS: Mapping[str, _Product] = {
    "tfl.conv_2d": _Product(),
    "tfl.conv_3d": _Product(),
    "tfl.depthwise_conv_2d": _Product(),
    "tfl.fully_connected": _Product(),
    "tfl.transpose_conv": _Product(scattered=2),
    "tfl.conv_3d_transpose": _Product(scattered=2),
    "tf.Conv2D": _Product(),
    "tf.Conv3D": _Product(),
    "tf.DepthwiseConv2dNative": _Product(),
    "tf.Conv2DBackpropInput": _Product(scattered=2),
}
# Products of two matrices, with the attributes that transpose the first one.
_PRODUCTS: Mapping[str, str] = {
    "tfl.batch_matmul": "adj_x",
    "tf.MatMul": "transpose_a",
    "tf.BatchMatMul": "adj_x",
    "tf.BatchMatMulV2": "adj_x",
    "tf.BatchMatMulV3": "adj_x",
}
_CHANNELS_FIRST = '"NC'


def macs(op: Operation) -> int:
    """Returns the multiplications with additions of an op; dynamic dimensions count as 1, other ops as 0.

    Args:
        op: An op of `tf` or `tfl`.
    """
    kind = _WITH_WEIGHTS.get(op.name)
    if kind is not None and len(op.operands) > (kind.scattered or kind.weights):
        counted = (op.results[0] if kind.scattered is None else op.operands[kind.scattered]).type
        dims = _dims(counted)
        if not dims:
            return 0
        is_first = str(op.properties.get("data_format", "")).startswith(_CHANNELS_FIRST)
        channels = dims[1] if is_first and len(dims) > 2 else dims[-1]
        return math.prod(dims) * math.prod(_dims(op.operands[kind.weights].type)) // channels
    if op.name in _PRODUCTS:
        left = _dims(op.operands[0].type)
        if len(left) < 2:
            return 0
        flag = op.properties.get(_PRODUCTS[op.name])
        is_transposed = isinstance(flag, IntegerAttr) and bool(flag.value)
        return math.prod(_dims(op.results[0].type)) * left[-2 if is_transposed else -1]
    return 0


def _dims(tensor_type: Attribute) -> tuple[int, ...]:
    return tuple(max(dim, 1) for dim in types.shape_of(tensor_type) or ())
