"""Declarations of the ops whose parts are still in the tables of shapes and of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from tfconvert.ops.call import Kernel
from tfconvert.ops.declaration import OpDeclaration
from tfconvert.ops.kernels import convolution as convolution_kernels
from tfconvert.ops.kernels import indexing as indexing_kernels
from tfconvert.ops.kernels import layout as layout_kernels
from tfconvert.ops.kernels import matmul as matmul_kernels
from tfconvert.ops.kernels import normalization as normalization_kernels
from tfconvert.ops.kernels import pooling as pooling_kernels
from tfconvert.ops.kernels import ragged as ragged_kernels
from tfconvert.ops.kernels import reduction as reduction_kernels
from tfconvert.ops.kernels import shape as shape_kernels
from tfconvert.ops.kernels.uncommon import BY_OP
from tfconvert.ops.operands import ShapeFunction
from tfconvert.ops.shapes import (
    convolution,
    creation,
    elementwise,
    image,
    indexing,
    matmul,
    normalization,
    pooling,
    rearrange,
    reduction,
    sequences,
    sparse,
    values,
)

SHAPES: Mapping[str, ShapeFunction] = {
    **convolution.SHAPES,
    **creation.SHAPES,
    **elementwise.SHAPES,
    **image.SHAPES,
    **indexing.SHAPES,
    **matmul.SHAPES,
    **normalization.SHAPES,
    **pooling.SHAPES,
    **rearrange.SHAPES,
    **reduction.SHAPES,
    **sequences.SHAPES,
    **sparse.SHAPES,
}
KERNELS: Mapping[str, Kernel] = {
    **convolution_kernels.KERNELS,
    **indexing_kernels.KERNELS,
    **layout_kernels.KERNELS,
    **matmul_kernels.KERNELS,
    **normalization_kernels.KERNELS,
    **pooling_kernels.KERNELS,
    **ragged_kernels.KERNELS,
    **reduction_kernels.KERNELS,
    **shape_kernels.KERNELS,
}


@cache
def declaration(op_name: str) -> OpDeclaration | None:
    """Returns the declaration of an op, or `None`."""
    kernel = KERNELS.get(op_name)
    if op_name in BY_OP:
        kernel = import_module(f"tfconvert.ops.kernels.{BY_OP[op_name]}").KERNELS[op_name]
    found = OpDeclaration(op_name, SHAPES.get(op_name), values.VALUES.get(op_name), kernel)
    return found if any(found[1:4]) else None
