"""A grouped convolution with one input channel a group is a depthwise convolution, which has a kernel of its own.

conv_2d(x : NxHxWxC, w : OxKxLx1)  ->  depthwise_conv_2d{depth_multiplier = O / C}(x, w : 1xKxLxO)
"""

from __future__ import annotations

from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.optimize import matching, transposes
from tfconvert.schema.dialects import attributes, tensor_data, tfl
from tfconvert.schema.ir.operation import Operation

_ORDER = (3, 1, 2, 0)
_OPTIONS = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor", matching.ACTIVATION)


def _match(op: Operation) -> int | Failure:
    """Returns how many output channels an input channel has."""
    dims, weights = matching.shape(op.operands[0]), matching.shape(op.operands[1])
    if dims is None or weights is None or len(dims) != 4 or len(weights) != 4:
        return Failure("the shapes aren't known")
    if weights[3] != 1 or dims[3] < 2 or weights[0] % dims[3]:
        return Failure("there isn't one input channel a group")
    if fake_quant.constant_behind(op.operands[1]) is None:
        return Failure("the filter is computed")
    if tfl.attribute(op, "stride_h") != tfl.attribute(op, "stride_w"):
        return Failure("not every depthwise kernel takes two different strides")
    return weights[0] // dims[3]


def _rewrite(op: Operation, match: int, rewriter: Rewriter) -> None:
    data, weights, *rest = op.operands
    constant = tensor_data.constant_of(weights)
    if constant is None:
        moved = fake_quant.transposed(rewriter.insert, weights, _ORDER)
        assert moved is not None, "checked by the match"
    else:
        moved = matching.insert_constant(rewriter, transposes.transposed_constant(constant, _ORDER), weights)
    options = {name: value for name, value in op.properties.items() if name in _OPTIONS}
    operands = [data, moved, *rest]
    properties = {**options, "depth_multiplier": attributes.int32(match)}
    rewriter.replace(rewriter.insert(tfl.build("depthwise_conv_2d", operands, [op.results[0].type], properties)))


PATTERNS: tuple[Pattern[int], ...] = (Pattern("grouped-to-depthwise", "tfl.conv_2d", _match, _rewrite, benefit=3),)
