"""Additions after a convolution or a matrix product go into its bias.

    add(conv(x, w, b), c)  ->  conv(x, w, b + c)

The constant has one value a channel, or one for all, and nothing else uses the product.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import computed, constant, tfl
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching, weighted_ops
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation


def _bias(source: Operation, vector: Constant) -> Constant | Failure:
    bias, length = weighted_ops.bias_of(source), weighted_ops.channels(source)
    if isinstance(bias, Failure):
        return bias
    assert length is not None, "the vector's length comes from it"
    return weighted_ops.sum_of(bias, vector, length)


def _add_to_bias(rewriter: Rewriter, root: Operation, source: Operation, bias: Constant) -> None:
    index = weighted_ops.OPS[source.name].bias
    addend = next(value for value in root.operands if value.owner is not source)
    old = [value for value in source.operands[index : index + 1] if tensor_data.constant_of(value) is not None]
    value = matching.insert_constant(rewriter, bias, *old, addend)
    operands = weighted_ops.with_operands(source, {index: value}, rewriter)
    # The addition's own activation stays.
    options = {matching.ACTIVATION: root.properties.get(matching.ACTIVATION, matching.NONE)}
    rewriter.replace(rewriter.insert(rebuild(source, operands, [root.results[0].type], options)))


PATTERNS: tuple[Pattern[Any], ...] = (
    rule(
        "fold-add-into-bias",
        tfl.add(weighted_ops.SOURCE, constant("c")).commutative(),
        _add_to_bias,
        where=[weighted_ops.VECTOR, computed(_bias, "bias")],
        benefit=20,
    ),
)
