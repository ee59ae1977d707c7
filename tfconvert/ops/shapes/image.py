"""Shapes of ops on images and of detection post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.ops.resampling import height_and_width
from tfconvert.schema.dialects.dims import dim_of_element, merge, window, with_rank
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _crop_and_resize(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the image")
    boxes = with_rank(operands.shape(1), 2, "the boxes")
    merge(boxes[1:], (4,))
    count = merge(boxes[:1], with_rank(operands.shape(2), 1, "the box indices"))
    assert count is not None
    return ((*count, *height_and_width(operands, 3), image[3]),)


def _projective(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the images")
    return ((image[0], *height_and_width(operands, 2), image[3]),)


def _patches(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the images")
    names = ("ksizes", "strides", "rates")
    sizes, strides, rates = (operands.integers(name, 4)[1:3] for name in names)
    padding = operands.text("padding")
    space = [
        window(dim, size, stride, padding, rate)
        for dim, size, stride, rate in zip(image[1:3], sizes, strides, rates, strict=True)
    ]
    depth = image[3] * sizes[0] * sizes[1] if image[3] >= 0 else -1
    return ((image[0], *space, depth),)


def _suppression(operands: Operands) -> Shapes:
    """`NonMaxSuppressionV3` keeps as many boxes as it finds."""
    _check_boxes(operands)
    return ((-1,),)


def _check_boxes(operands: Operands) -> None:
    boxes = with_rank(operands.shape(0), 2, "the boxes")
    merge(boxes[:1], with_rank(operands.shape(1), 1, "the scores"))
    merge(boxes[1:], (4,))


def _padded_length(operands: Operands) -> int:
    found = operands.partial(2)
    return dim_of_element(found[0]) if found and operands.attribute("pad_to_max_output_size", False) else -1


def _suppression_v4(operands: Operands) -> Shapes:
    _check_boxes(operands)
    return ((_padded_length(operands),), ())


def _suppression_v5(operands: Operands) -> Shapes:
    _check_boxes(operands)
    length = _padded_length(operands)
    return ((length,), (length,), ())


def _combined_suppression(operands: Operands) -> Shapes:
    boxes = with_rank(operands.shape(0), 4, "the boxes")
    per_class, total = operands.scalar(2), operands.scalar(3)
    scores = with_rank(operands.shape(1), 3, "the scores")
    if total is None:
        length = -1
    elif not operands.attribute("pad_per_class", False):
        length = total
    elif per_class is None or scores[2] < 0:
        length = -1
    else:
        length = min(total, per_class * scores[2])
    batch = boxes[0]
    return ((batch, length, 4), (batch, length), (batch, length), (batch,))


SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3"), _suppression),
    "CombinedNonMaxSuppression": _combined_suppression,
    "CropAndResize": _crop_and_resize,
    "ExtractImagePatches": _patches,
    "ImageProjectiveTransformV2": _projective,
    "ImageProjectiveTransformV3": _projective,
    "NonMaxSuppressionV4": _suppression_v4,
    "NonMaxSuppressionV5": _suppression_v5,
}
"""Op name -> shape function."""
