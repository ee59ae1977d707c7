"""Activations become part of the op before them, where its kernel can apply them.

    relu6(conv(x, w, b))  ->  conv{RELU6}(x, w, b)

The kernels of concatenation and L2 normalization refuse activations; those of the ops listed here clamp their result.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.litert.optimize import matching
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import attributes
from tfconvert.schema.ir.operation import Operation

ACTIVATIONS: Mapping[str, str] = {
    "tfl.relu": "RELU",
    "tfl.relu6": "RELU6",
    "tfl.relu_n1_to_1": "RELU_N1_TO_1",
}

CLAMPING = frozenset({
    "tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.fully_connected", "tfl.transpose_conv", "tfl.conv_3d",
    "tfl.add", "tfl.sub", "tfl.mul", "tfl.div", "tfl.max_pool_2d", "tfl.average_pool_2d", "tfl.l2_pool_2d",
})  # fmt: skip
"""Ops whose float kernels clamp their result."""

_JOINED: Mapping[tuple[str, str], str] = {
    ("RELU", "RELU"): "RELU",
    ("RELU", "RELU6"): "RELU6",
    ("RELU6", "RELU"): "RELU6",
    ("RELU6", "RELU6"): "RELU6",
    ("RELU_N1_TO_1", "RELU_N1_TO_1"): "RELU_N1_TO_1",
}
"""One activation after another, as a single one."""


def _match(op: Operation) -> tuple[Operation, str] | Failure:
    value = op.operands[0]
    source = matching.sole_producer(value, CLAMPING)
    if source is None:
        return Failure("the defining op can't clamp its result, or is used elsewhere too")
    if not matching.is_float(value):
        return Failure("the elements aren't 32-bit floats")
    before, own = matching.activation(source), ACTIVATIONS[op.name]
    fused = own if before == "NONE" else _JOINED.get((before, own))
    return Failure("the two activations don't combine into one") if fused is None else (source, fused)


def _rewrite(op: Operation, match: tuple[Operation, str], rewriter: Rewriter) -> None:
    source, activation = match
    options = {matching.ACTIVATION: attributes.string(activation)}
    fused = rebuild(source, source.operands, [op.results[0].type], options)
    rewriter.replace(rewriter.insert(fused))


PATTERNS: tuple[Pattern[tuple[Operation, str]], ...] = tuple(
    Pattern(f"fuse-{root[4:]}", root, _match, _rewrite, producers={0: CLAMPING}) for root in ACTIVATIONS
)
