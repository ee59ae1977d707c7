"""Kernels of ops that few networks have, or that are hardly ever given constants; `registry.py` loads them late."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.converter.kernels import (
    binning,
    colors,
    gradients,
    image,
    signal,
    sparse,
    stacks,
    suppression,
    tensor_lists,
)
from tfconvert.converter.kernels.call import Kernel

KERNELS: Mapping[str, Kernel] = {
    **binning.KERNELS,
    **colors.KERNELS,
    **gradients.KERNELS,
    **image.KERNELS,
    **signal.KERNELS,
    **sparse.KERNELS,
    **stacks.KERNELS,
    **suppression.KERNELS,
    **tensor_lists.KERNELS,
}
"""Op name -> kernel; none of these ops is among the common ones."""
