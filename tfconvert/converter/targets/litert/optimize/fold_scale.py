"""Multiplications after a convolution or a matrix product go into its filter and bias.

    mul(conv(x, w, b), c)  ->  conv(x, w * c, b * c)

The constant has one value an output channel, or one for all. The filter isn't read: the product is a deferred
expression that the exporter computes while it writes the filter out. The ranges of a fake-quantized filter are scaled
with it, so that each number is rounded as before:

    mul(conv(x, fake_quant(w), b), c)  ->  conv(x, fake_quant'(w * c), b * c)
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import check, constant, tfl
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.optimize import matching, weighted_ops
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _can_scale(source: Operation, vector: Constant) -> bool | Failure:
    if weighted_ops.float_filter(source) is None:
        reason = _cannot_scale_ranges(source, vector)
        if reason is not None:
            return reason
    bias = weighted_ops.bias_of(source)
    return bias if isinstance(bias, Failure) else True


def _cannot_scale_ranges(source: Operation, vector: Constant) -> Failure | None:
    """Returns why the filter isn't a fake-quantized constant with one range an output channel, or one for all."""
    layout = weighted_ops.OPS[source.name]
    weights = source.operands[layout.filter]
    if fake_quant.constant_behind(weights) is None:
        return Failure("the filter is computed, or quantised")
    axis = fake_quant.uniform_of(weights).axis
    if matching.size_of(vector) > 1 and axis not in (None, layout.out_axis):
        return Failure("the filter is quantized along another dimension")
    return None


def _scale(rewriter: Rewriter, root: Operation, source: Operation, vector: Constant) -> None:
    layout = weighted_ops.OPS[source.name]
    factor = next(value for value in root.operands if value.owner is not source)
    weights = source.operands[layout.filter]
    scaled = scale_filter(weights, vector, layout.out_axis)
    if fake_quant.source_of(weights) is None:
        value = matching.insert_constant(rewriter, scaled, weights, factor)
    else:
        factors = tensor_data.to_array(vector)
        value = fake_quant.scaled(rewriter.insert, weights, scaled, factors, layout.out_axis, [weights, factor])
    changed = {layout.filter: value}
    bias = weighted_ops.bias_of(source)
    if bias is not None and not isinstance(bias, Failure) and not weighted_ops.is_zero(bias):
        old = source.operands[layout.bias]
        product = tensor_data.defer("mul", (bias, vector), matching.dims_of(bias))
        changed[layout.bias] = matching.insert_constant(rewriter, product, old, factor)
    operands = weighted_ops.with_operands(source, changed, rewriter)
    options = {matching.ACTIVATION: root.properties.get(matching.ACTIVATION, matching.NONE)}
    fused = rebuild(source, operands, [root.results[0].type], options)
    rewriter.replace(rewriter.insert(fused))


def scale_filter(weights: Value, scale: Constant, axis: int) -> Constant:
    """Returns a constant filter, or what is fake-quantized to it, times a vector along a dimension, or one number."""
    constant = fake_quant.constant_behind(weights)
    assert constant is not None, "checked by the match"
    dims, size = matching.dims_of(constant), matching.size_of(scale)
    aligned = tuple(size if index == axis else 1 for index in range(len(dims)))
    factor = tensor_data.defer("reshape", (scale,), aligned, aligned)
    return tensor_data.defer("mul", (constant, factor), dims)


PATTERNS: tuple[Pattern[Any], ...] = (
    rule(
        "fold-mul-into-filter",
        tfl.mul(weighted_ops.SOURCE, constant("c")).commutative(),
        _scale,
        where=[weighted_ops.VECTOR, check("the filter can't be scaled", _can_scale)],
        benefit=20,
    ),
)
