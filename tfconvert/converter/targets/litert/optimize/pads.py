"""Simplifies padding: removes empty padding, merges two paddings, and fuses padding into convolutions.

    conv{VALID}(pad(x), w, b)  ->  conv{SAME}(x, w, b)    where SAME is exactly this padding
    pad(pad(x, p), q)          ->  pad(x, p + q)
    pad(x, 0)                  ->  x
    conv(reshape(pad(x)), w)   ->  conv(pad(reshape(x)), w)    where the reshape only adds dimensions of one

XNNPACK fuses padding into a convolution right after it. One-dimensional convolutions pad rows, which become images.

Padding after the last window of a convolution is never read, so it may be more than SAME adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import array, check, computed, number, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern, need, required
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import like, static_shape
from tfconvert.converter.targets.litert.optimize import fold_into_weights
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.ir.operation import Operation

Window = tuple[int, int]

# The dimensions that an op slides over, their names in its options, and the offset of the filter's dimensions.
_SPATIAL: Mapping[str, tuple[tuple[int, ...], str, int]] = {
    "tfl.conv_2d": ((1, 2), "hw", 0),
    "tfl.depthwise_conv_2d": ((1, 2), "hw", 0),
    "tfl.conv_3d": ((1, 2, 3), "dhw", -1),
}


def paddings_of(pad: Operation) -> tuple[Window, ...] | None:
    """Returns the padding before and after each dimension; `None` if it is computed, or the rank is unknown."""
    flat, dims = constant_ints(pad.operands[1]), pad.operands[0].shape
    if flat is None or dims is None or len(flat) != 2 * len(dims):
        return None
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def same_padding(size: int, window: int, stride: int) -> Window:
    """Returns the padding of SAME before and after a dimension, for a dilated window of the given size."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def _is_same(pad: Operation, root: Operation) -> bool | Failure:
    """Returns whether a convolution with SAME would pad its input as an op before it does."""
    pads = paddings_of(pad)
    axes, sides, offset = _SPATIAL[root.name]
    if pads is None or len(pads) != len(axes) + 2:
        return Failure("the input isn't padded by constants")
    dims, weights = pad.operands[0].shape, fold_into_weights.filter_shape(root)
    if dims is None or weights is None or pads[0] != (0, 0) or pads[-1] != (0, 0):
        return Failure("more than the dimensions of the image is padded")
    for axis, side in zip(axes, sides, strict=True):
        size, stride = dims[axis], dialect.attribute(root, f"stride_{side}")
        window = (weights[axis + offset] - 1) * dialect.attribute(root, f"dilation_{side}_factor") + 1
        if size < 0 or stride < 1:
            return Failure("the size of the image is unknown, or the stride is not a number of pixels")
        before, after = pads[axis]
        windows = (size + before + after - window) // stride + 1
        # Padding after the last window doesn't matter.
        if before != same_padding(size, window, stride)[0] or windows != -(-size // stride):
            return False
    return True


X, P, Q = value("x"), array("p"), array("q")

_NOTHING = check("it pads something", lambda p: not p.any())
_SAME_RANK = check("the ranks differ", lambda p, q: p.shape == q.shape)
_SUM = computed(lambda p, q: p + q)
_IS_SAME = check("SAME would pad in another way", _is_same)


def _pad_into(root: str) -> Pattern[Any]:
    # Other users of the padding don't matter: it stays for them.
    matched = op(root, tfl.pad(X, P).named("pad"), rest("weights"), padding="VALID")
    same = matched.rebuilt(X, rest("weights"), padding="SAME")
    return own_rule(f"pad-into-{root[4:]}", matched, same, where=[_IS_SAME], benefit=10)


def _images(op: Operation) -> Emit:
    reshape = required(op.operands[0].sole_producer("tfl.reshape"), "the input isn't made of rows")
    pad = required(reshape.operands[0].sole_producer("tfl.pad"), "the rows aren't padded")
    rows, images = static_shape(pad.results[0]), static_shape(reshape.results[0])
    paddings = required(paddings_of(pad), "the padding is computed")
    kept: list[int] = []
    for axis, dim in enumerate(images):
        if len(kept) < len(rows) and dim == rows[len(kept)]:
            kept.append(axis)
        elif dim != 1:
            break
    need(len(kept) == len(rows) < len(images), "the reshape does more than add dimensions of one")
    amounts = np.zeros((len(images), 2), np.int32)
    amounts[kept] = np.array(paddings, np.int32)
    target = [dim - int(amount.sum()) for dim, amount in zip(images, amounts, strict=True)]

    def emit_padded(build: FormBuilder) -> Operation:
        x = pad.operands[0]
        shaped = build.tfl("reshape", (x, build.ints(target)), like(x, target), {"new_shape": tuple(target)})
        padded = build.tfl("pad", (shaped, build.derived(amounts, pad.operands[1])), op.operands[0].type)
        return build.again(op, (padded, *op.operands[1:]))

    return emit_padded


NEEDS = "pad padv2"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        planned(f"pad-images-{name}", name, _images, depth=2, producers={0: ("tfl.reshape",)})
        for name in ("conv_2d", "depthwise_conv_2d")
    ),
    *map(_pad_into, _SPATIAL),
    own_rule("no-pad", tfl.pad(X, P), X, where=[_NOTHING], benefit=10),
    own_rule("no-padv2", tfl.padv2(X, P, value("fill")), X, where=[_NOTHING], benefit=10),
    own_rule("twice-pad", tfl.pad(tfl.pad(X, P).once(), Q), tfl.pad(X, _SUM), where=[_SAME_RANK], benefit=1),
    own_rule(
        "twice-padv2",
        tfl.padv2(tfl.padv2(X, P, number("inner")).once(), Q, number("outer")),
        tfl.padv2(X, _SUM, number("outer")),
        where=[_SAME_RANK, check("the paddings have different values", lambda inner, outer: inner == outer)],
        benefit=1,
    ),
)
