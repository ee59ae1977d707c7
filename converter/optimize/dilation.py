"""Convolutions over an image cut into phases are dilated convolutions.

    batch_to_space_nd(conv{VALID}(space_to_batch_nd(x, d, p), w), d, c)  ->  conv{dilation d}(x, w)

This is how TensorFlow writes `dilation_rate`. It holds only where what is padded is what SAME (or VALID) pads, beside
what fills the last phase, and where exactly this filling is cropped again.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from converter.optimize import matching, pads
from converter.rewrite.pattern import Failure, Pattern
from converter.rewrite.rewriter import Rewriter
from schema.dialects import attributes, tfl

_CONVOLUTIONS = frozenset({"tfl.conv_2d", "tfl.depthwise_conv_2d"})

Pairs = tuple[tuple[int, int], ...]


class _Dilated(NamedTuple):
    """What the three ops amount to.

    Attributes:
        conv: The convolution.
        source: What cuts the image.
        rates: Dilation of height and width.
        padding: Padding of the whole.
    """

    conv: Operation
    source: Operation
    rates: tuple[int, int]
    padding: StringAttr


def _match(op: Operation) -> _Dilated | Failure:
    conv = matching.sole_producer(op.operands[0], _CONVOLUTIONS)
    if conv is None:
        return Failure("no convolution comes before, or it is used elsewhere too")
    source = matching.sole_producer(conv.operands[0], "tfl.space_to_batch_nd")
    if source is None:
        return Failure("the convolution's input isn't cut into phases")
    if not _is_simple(conv):
        return Failure("the convolution has strides, a dilation or padding of its own")
    rates, crops, paddings = (_pairs(value) for value in (source.operands[1], op.operands[2], source.operands[2]))
    dims, weights = matching.shape(source.operands[0]), matching.shape(conv.operands[1])
    if rates is None or crops is None or paddings is None or matching.integers(op.operands[1]) != rates[0]:
        return Failure("block shapes, paddings or crops are computed, or differ")
    if dims is None or weights is None or len(dims) != 4 or min(dims[1:3]) < 0:
        return Failure("the size of the image is unknown")
    height, width = rates[0]
    for padding in (matching.SAME, matching.VALID):
        if all(
            _is_exact(size, _base(padding, size, (window - 1) * rate + 1), rate, padded, crop)
            for size, window, rate, padded, crop in zip(dims[1:3], weights[1:3], rates[0], paddings, crops, strict=True)
        ):
            return _Dilated(conv, source, (height, width), padding)
    return Failure("what is padded and cropped isn't what a dilated convolution needs")


def _pairs(value: SSAValue) -> Pairs | None:
    """Returns a constant of four (or two) numbers as pairs."""
    flat = matching.integers(value)
    return None if flat is None or len(flat) not in (2, 4) else tuple(zip(flat[::2], flat[1::2], strict=True))


def _is_simple(conv: Operation) -> bool:
    ones = ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")
    return conv.properties.get("padding") == matching.VALID and all(tfl.attribute(conv, name) == 1 for name in ones)


def _base(padding: StringAttr, size: int, window: int) -> pads.Window:
    return pads.same_padding(size, window, 1) if padding == matching.SAME else (0, 0)


def _is_exact(size: int, base: pads.Window, rate: int, padded: pads.Window, crop: pads.Window) -> bool:
    """Tells whether one dimension is padded by `base`, then filled to whole phases, and cropped back."""
    filling = padded[1] - base[1]
    return (
        padded[0] == base[0]
        and crop == (0, filling)
        and 0 <= filling < rate
        and (size + sum(padded)) % rate == 0
    )  # fmt: skip


def _rewrite(op: Operation, match: _Dilated, rewriter: Rewriter) -> None:
    options = {
        "padding": match.padding,
        "dilation_h_factor": attributes.int32(match.rates[0]),
        "dilation_w_factor": attributes.int32(match.rates[1]),
    }
    operands = [match.source.operands[0], *match.conv.operands[1:]]
    dilated = matching.rebuild(match.conv, operands, [op.results[0].type], options)
    rewriter.replace(rewriter.insert(dilated, match.source, match.conv))


PATTERNS: tuple[Pattern[_Dilated], ...] = (Pattern("dilate", "tfl.batch_to_space_nd", _match, _rewrite),)
