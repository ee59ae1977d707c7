"""Convolutions over an image cut into phases are dilated convolutions.

    batch_to_space_nd(conv{VALID}(space_to_batch_nd(x, d, p), w), d, c)  ->  conv{dilation d}(x, w)

This is how TensorFlow writes `dilation_rate`. It holds only where the padding is that of SAME (or VALID), beside the
filling of the last phase, and where exactly this filling is cropped again.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.litert.optimize import matching, pads
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.dsl import array, check, computed, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.values import Value


def _padding(x: Value, w: Value, block: Array, added: Array, crops: Array) -> str | Failure:
    """Returns the padding that the whole has: any more that is padded and cropped fills the last phase."""
    dims, weights = matching.shape(x), matching.shape(w)
    if dims is None or weights is None or len(dims) != 4 or len(weights) != 4 or min(dims[1:3]) < 0:
        return Failure("the size of the image is unknown")
    if block.shape != (2,) or not added.shape == crops.shape == (2, 2):
        return Failure("more than height and width is cut")
    for padding in ("SAME", "VALID"):
        if all(
            _is_exact(size, _base(padding, size, (window - 1) * rate + 1), rate, (int(a), int(b)), (int(c), int(d)))
            for size, window, rate, (a, b), (c, d) in zip(
                dims[1:3], weights[1:3], map(int, block), added, crops, strict=True
            )
        ):
            return padding
    return Failure("the padding and the crops aren't those of a dilated convolution")


def _base(padding: str, size: int, window: int) -> pads.Window:
    return pads.same_padding(size, window, 1) if padding == "SAME" else (0, 0)


def _is_exact(size: int, base: pads.Window, rate: int, padded: pads.Window, crop: pads.Window) -> bool:
    """Returns whether one dimension is padded by `base`, then filled to whole phases, and cropped back."""
    filling = padded[1] - base[1]
    return (
        padded[0] == base[0]
        and crop == (0, filling)
        and 0 <= filling < rate
        and (size + sum(padded)) % rate == 0
    )  # fmt: skip


X, W, BIAS = value("x"), value("w"), rest("bias")

_PHASES = tfl.space_to_batch_nd(X, array("block"), array("added")).once()
_CONVOLUTION = op(("tfl.conv_2d", "tfl.depthwise_conv_2d"), _PHASES, W, BIAS, padding="VALID", stride_h=1, stride_w=1,
                  dilation_h_factor=1, dilation_w_factor=1).once()  # fmt: skip

_WHOLE_PADDING = computed(_padding, "padding")

_DILATE = rule(
    "dilate",
    tfl.batch_to_space_nd(_CONVOLUTION, array("joined"), array("crops")),
    _CONVOLUTION.rebuilt(
        X,
        W,
        BIAS,
        padding=_WHOLE_PADDING,
        dilation_h_factor=computed(lambda block: int(block[0])),
        dilation_w_factor=computed(lambda block: int(block[1])),
    ),
    where=[
        check(
            "the phases are joined in another way than they were cut",
            lambda block, joined: block.tolist() == joined.tolist(),
        ),
        _WHOLE_PADDING,
    ],
    benefit=1,
)

PATTERNS: tuple[Pattern[Any], ...] = (_DILATE,)
