"""Additions after a convolution or a matrix product go into its bias.

    add(conv(x, w, b), c)  ->  conv(x, w, b + c)

The constant has one value a channel, or one for all, and nothing else uses the product.
"""

from __future__ import annotations

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching, weighted_ops
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation


def _match(op: Operation) -> tuple[Operation, Constant] | Failure:
    found = weighted_ops.followed_by_vector(op)
    if isinstance(found, Failure):
        return found
    source, vector = found
    bias, length = weighted_ops.bias_of(source), weighted_ops.channels(source)
    if isinstance(bias, Failure):
        return bias
    assert length is not None, "the vector's length comes from it"
    return source, weighted_ops.sum_of(bias, vector, length)


def _rewrite(op: Operation, match: tuple[Operation, Constant], rewriter: Rewriter) -> None:
    source, bias = match
    index = weighted_ops.OPS[source.name].bias
    addend = next(value for value in op.operands if value.owner is not source)
    old = [value for value in source.operands[index : index + 1] if tensor_data.constant_of(value) is not None]
    value = matching.insert_constant(rewriter, bias, *old, addend)
    operands = weighted_ops.with_operands(source, {index: value}, rewriter)
    # The addition's own activation stays.
    options = {matching.ACTIVATION: op.properties.get(matching.ACTIVATION, matching.NONE)}
    fused = rebuild(source, operands, [op.results[0].type], options)
    rewriter.replace(rewriter.insert(fused))


PATTERNS: tuple[Pattern[tuple[Operation, Constant]], ...] = (
    Pattern("fold-add-into-bias", "tfl.add", _match, _rewrite, benefit=20, depth=2),
)
