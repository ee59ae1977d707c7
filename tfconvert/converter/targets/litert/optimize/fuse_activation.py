"""Activations become part of the op before them, where its kernel can apply them.

    relu6(conv(x, w, b))  ->  conv{RELU6}(x, w, b)

The kernels of concatenation and L2 normalization refuse activations; those of the ops listed here clamp their result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import attr, check, op, rest
from tfconvert.converter.rewrite.pattern import Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import attributes
from tfconvert.schema.ir.operation import Operation

ACTIVATIONS = ("tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1")

CLAMPING = (
    "tfl.conv_2d",
    "tfl.depthwise_conv_2d",
    "tfl.fully_connected",
    "tfl.transpose_conv",
    "tfl.conv_3d",
    "tfl.add",
    "tfl.sub",
    "tfl.mul",
    "tfl.div",
    "tfl.max_pool_2d",
    "tfl.average_pool_2d",
    "tfl.l2_pool_2d",
)
"""Ops whose float kernels clamp their result."""

# One activation after another, which may be none, as a single one.
_JOINED: Mapping[str, Mapping[str, str]] = {
    "tfl.relu": {"NONE": "RELU", "RELU": "RELU", "RELU6": "RELU6"},
    "tfl.relu6": {"NONE": "RELU6", "RELU": "RELU6", "RELU6": "RELU6"},
    "tfl.relu_n1_to_1": {"NONE": "RELU_N1_TO_1", "RELU_N1_TO_1": "RELU_N1_TO_1"},
}

_BEFORE: Mapping[str, Any] = {matching.ACTIVATION: attr("before")}
_SOURCE = op(CLAMPING, rest("operands"), **_BEFORE).element(np.float32).once().named("source")
_COMBINE = check("the two activations don't combine into one", lambda root, before: before in _JOINED[root.name])


def _fuse(rewriter: Rewriter, root: Operation, source: Operation, before: str) -> None:
    # By hand, since no other pattern is applied as often.
    options = {matching.ACTIVATION: attributes.string(_JOINED[root.name][before])}
    rewriter.replace(rewriter.insert(rebuild(source, source.operands, [root.results[0].type], options)))


PATTERNS: tuple[Pattern[Any], ...] = tuple(
    rule(f"fuse-{root[4:]}", op(root, _SOURCE), _fuse, where=[_COMBINE], benefit=1) for root in ACTIVATIONS
)
