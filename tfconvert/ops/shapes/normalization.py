"""Shapes of batch normalization and of its gradients' inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.ops.operands import Operands, ShapeFunction
from tfconvert.schema.dialects.dims import merge_all, with_rank
from tfconvert.schema.dialects.types import Shape

Shapes = Sequence[Shape | None]


def _fused_batch_norm(operands: Operands) -> Shapes:
    """The image, four vectors and, in the third version, a reserved result of unknown shape."""
    rank = 5 if operands.text("data_format").endswith(("DHWC", "CDHW")) else 4
    image = with_rank(operands.shape(0), rank, "the input")
    place = 1 if operands.text("data_format").startswith("NC") else rank - 1
    # In training the mean and variance may be empty: they are computed.
    shapes = operands.shapes(1, 3 if operands.attribute("is_training", True) else 5)
    vectors = [with_rank(shape, 1, "scale, offset, mean or variance") for shape in shapes]
    channels = merge_all([image[place : place + 1], *vectors])
    assert channels is not None
    result = (*image[:place], *channels, *image[place + 1 :])
    rest = len(operands.op.results) - 5
    return (result, *(channels,) * 4, *(None,) * rest)


def _global_batch_norm(operands: Operands) -> Shapes:
    image = with_rank(operands.shape(0), 4, "the input")
    vectors = [with_rank(shape, 1, "mean, variance, beta or gamma") for shape in operands.shapes(1)]
    channels = merge_all([image[3:], *vectors])
    assert channels is not None
    return ((*image[:3], *channels),)


SHAPES: Mapping[str, ShapeFunction] = {
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _fused_batch_norm),
    "BatchNormWithGlobalNormalization": _global_batch_norm,
}
"""Op name -> shape function."""
