"""Replaces convolutions over the phases of an image by dilated convolutions.

    batch_to_space_nd(conv{VALID}(space_to_batch_nd(x, d, p), w), d, c)  ->  conv{dilation d}(x, w)

TensorFlow writes `dilation_rate` like this. The padding must be SAME (or VALID) plus the filling of the last phase, and
exactly this filling must be cropped again.

One-dimensional convolutions are those of images one pixel high, to which the phases are reshaped:

    batch_to_space_nd(reshape(conv{VALID}(reshape(space_to_batch_nd(x, d, p)), w)), d, c)
        ->  reshape(conv{dilation d}(reshape(x), w))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import array, check, computed, op, rest, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.targets.litert.optimize import pads
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import constant_target
from tfconvert.schema.dialects.tensor_data import Array
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _padding(x: Value, w: Value, block: Array, added: Array, crops: Array) -> str | Failure:
    """Returns the padding of the whole convolution; padding that is cropped again fills the last phase."""
    dims, weights = x.shape, w.shape
    if dims is None or weights is None or len(dims) != 4 or len(weights) != 4 or min(dims[1:3]) < 0:
        return Failure("the size of the image is unknown")
    if block.shape != (2,) or not added.shape == crops.shape == (2, 2):
        return Failure("more than height and width is cut")
    return _whole_padding(zip(dims[1:3], weights[1:3], block, added, crops, strict=True))


def _row_padding(x: Value, w: Value, block: Array, added: Array, crops: Array) -> str | Failure:
    """Like `_padding`, for one dimension."""
    dims, weights = x.shape, w.shape
    if dims is None or weights is None or len(dims) != 3 or len(weights) != 4 or dims[1] < 0:
        return Failure("the length is unknown")
    if block.shape != (1,) or not added.shape == crops.shape == (1, 2) or weights[1] != 1:
        return Failure("more than one dimension is cut")
    return _whole_padding(zip(dims[1:2], weights[2:3], block, added, crops, strict=True))


def _whole_padding(dimensions: Iterable[tuple[int, int, Any, Array, Array]]) -> str | Failure:
    """Returns the padding, given size, window, rate, padding and crop of each dimension."""
    known = [
        (size, (window - 1) * int(rate) + 1, int(rate), (int(added[0]), int(added[1])), (int(crop[0]), int(crop[1])))
        for size, window, rate, added, crop in dimensions
    ]
    for padding in ("SAME", "VALID"):
        if all(
            _is_exact(size, _base(padding, size, window), rate, added, crop)
            for size, window, rate, added, crop in known
        ):
            return padding
    return Failure("the padding and the crops aren't those of a dilated convolution")


def _base(padding: str, size: int, window: int) -> pads.Window:
    return pads.same_padding(size, window, 1) if padding == "SAME" else (0, 0)


def _is_exact(size: int, base: pads.Window, rate: int, padded: pads.Window, crop: pads.Window) -> bool:
    """Returns whether one dimension is padded by `base`, then filled to whole phases, and cropped back."""
    filling = padded[1] - base[1]
    return padded[0] == base[0] and crop == (0, filling) and 0 <= filling < rate and (size + sum(padded)) % rate == 0


def _image(row: Value) -> types.Shape | None:
    """Returns the shape of an image one pixel high, `None` if a reshape doesn't determine it."""
    dims = row.shape
    if dims is None or len(dims) != 3 or constant_target(dims) is None:
        return None
    return (dims[0], 1, *dims[1:])


def _image_type(x: Value) -> Attribute:
    return types.tensor(x.element, _image(x))


def _is_row_of_images(image: Value, row: Value) -> bool:
    return _image(row) is not None and _image(row) == image.shape


X, W, BIAS = value("x"), value("w"), rest("bias")

# Several convolutions may share the phases, as those of a gate do.
_PHASES = tfl.space_to_batch_nd(X, array("block"), array("added"))
_CONVOLUTIONS = ("tfl.conv_2d", "tfl.depthwise_conv_2d")
_UNDILATED: dict[str, Any] = {
    "padding": "VALID",
    "stride_h": 1,
    "stride_w": 1,
    "dilation_h_factor": 1,
    "dilation_w_factor": 1,
}
_CONVOLUTION = op(_CONVOLUTIONS, _PHASES, W, BIAS, **_UNDILATED).once()

_PADDING = computed(_padding, "padding")

_SAME_PHASES = check(
    "the phases are joined in another way than they were cut", lambda block, joined: block.tolist() == joined.tolist()
)

_DILATE = own_rule(
    "dilate",
    tfl.batch_to_space_nd(_CONVOLUTION, array("joined"), array("crops")),
    _CONVOLUTION.rebuilt(
        X,
        W,
        BIAS,
        padding=_PADDING,
        dilation_h_factor=computed(lambda block: int(block[0])),
        dilation_w_factor=computed(lambda block: int(block[1])),
    ),
    where=[_SAME_PHASES, _PADDING],
    benefit=1,
)

_ROWS = _PHASES.named("phases")
_IMAGES = tfl.reshape(_ROWS, value("to_images")).named("images")
_OF_IMAGES = op(_CONVOLUTIONS, _IMAGES, W, BIAS, **_UNDILATED).once().named("convolution")
_RESULTS = tfl.reshape(_OF_IMAGES, value("to_rows")).once().named("rows")

_ROW_PADDING = computed(_row_padding, "padding")


def _reshapes_rows(phases: Operation, images: Operation, convolution: Operation, rows: Operation) -> bool:
    """Returns whether the reshapes insert a height of one, and remove it."""
    pairs = ((images, phases), (convolution, rows))
    return all(_is_row_of_images(image.results[0], row.results[0]) for image, row in pairs)


_DILATE_ROWS = own_rule(
    "dilate-rows",
    tfl.batch_to_space_nd(_RESULTS, array("joined"), array("crops")),
    tfl.reshape(
        _OF_IMAGES.rebuilt(
            tfl.reshape(X, computed(lambda x: np.array(_image(x), np.int32))).typed(_image_type),
            W,
            BIAS,
            padding=_ROW_PADDING,
            dilation_w_factor=computed(lambda block: int(block[0])),
        ).typed(lambda root: _image_type(root.results[0])),
        computed(lambda root: np.array(root.results[0].shape, np.int32)),
    ),
    where=[
        _SAME_PHASES,
        check("the phases become other images than those of one row", _reshapes_rows),
        check(
            "more than one dimension of the rows is unknown",
            lambda x, root: _image(x) is not None and _image(root.results[0]) is not None,
        ),
        _ROW_PADDING,
    ],
    benefit=1,
)

NEEDS = "batch_to_space_nd"
"""The operators without any of which no pattern matches."""

PATTERNS: tuple[Pattern[Any], ...] = (_DILATE, _DILATE_ROWS)
