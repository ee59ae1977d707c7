"""Shapes of pooling ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.ops.shapes.convolution import channels_first, explicit_pads, image_shape, spatial_of
from tfconvert.schema.dialects.dims import text, window, with_rank
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _pool(operands: Operands, rank: int, kernel: Sequence[int], strides: Sequence[int]) -> Shape:
    image = with_rank(operands.shape(0), rank, "the input")
    is_first = channels_first(operands)
    padding = operands.text("padding")
    sizes = zip(
        spatial_of(image, is_first),
        spatial_of(kernel, is_first),
        spatial_of(strides, is_first),
        explicit_pads(operands, rank, is_first),
        strict=True,
    )
    space = [window(size, length, stride, padding, 1, pads) for size, length, stride, pads in sizes]
    depth_at = 1 if is_first else rank - 1
    # A window over channels (of the NHWC MaxPool) is as good a window as any other.
    depth = window(image[depth_at], kernel[depth_at], strides[depth_at], padding if padding != "EXPLICIT" else "VALID")
    return image_shape(image[0], space, depth, is_first)


def _pool_2d(operands: Operands) -> Shapes:
    return (_pool(operands, 4, operands.integers("ksize", 4), operands.integers("strides", 4)),)


def _pool_3d(operands: Operands) -> Shapes:
    return (_pool(operands, 5, operands.integers("ksize", 5), operands.integers("strides", 5)),)


def _pool_v2(operands: Operands) -> Shapes:
    """The window and the strides are operands."""
    kernel, strides = operands.ints(1), operands.ints(2)
    if kernel is None or strides is None:
        image = with_rank(operands.shape(0), 4, "the input")
        return ((image[0], -1, -1, -1),)
    return (_pool(operands, 4, with_rank(kernel, 4, "ksize"), with_rank(strides, 4, f"strides {text(strides)}")),)


def _pool_with_indices(operands: Operands) -> Shapes:
    shape = _pool(operands, 4, operands.integers("ksize", 4), operands.integers("strides", 4))
    return (shape, shape)


def _gradient(operands: Operands) -> Shapes:
    """A pooling's gradient has the shape of the pooled value."""
    return (operands.shape(0),)


def _average_gradient(operands: Operands) -> Shapes:
    sizes = operands.elements(0)
    return (None if sizes is None else tuple(size if size >= 0 else -1 for size in sizes),)


SHAPES: Mapping[str, ShapeFunction] = {
    "AvgPool": _pool_2d,
    "AvgPool3D": _pool_3d,
    "AvgPoolGrad": _average_gradient,
    "MaxPool": _pool_2d,
    "MaxPool3D": _pool_3d,
    "MaxPoolGrad": _gradient,
    "MaxPoolV2": _pool_v2,
    "MaxPoolWithArgmax": _pool_with_indices,
}
"""Op name -> shape function."""
