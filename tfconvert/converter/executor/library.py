"""The routines of libraries that programs on buffers call, in numpy: each writes its result to its destination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfconvert.ops.call import Array


def _gemm(a: Array, b: Array, out: Array) -> None:
    np.matmul(a, b, out=out)


def _gemm_nt(a: Array, b: Array, out: Array) -> None:
    np.matmul(a, np.swapaxes(b, -1, -2), out=out)


def _gemm_tn(a: Array, b: Array, out: Array) -> None:
    np.matmul(np.swapaxes(a, -1, -2), b, out=out)


def _patches(x: Array, kernel: tuple[int, int], options: tuple[int, ...]) -> Array:
    """Returns the windows of images: `[batch, rows, columns, channels, kernel rows, kernel columns]`."""
    row_stride, column_stride, top, bottom, left, right, row_step, column_step = options
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    extent = ((kernel[0] - 1) * row_step + 1, (kernel[1] - 1) * column_step + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, extent, (1, 2))
    return np.asarray(windows[:, ::row_stride, ::column_stride, :, ::row_step, ::column_step])


def _conv2d(x: Array, kernel: Array, out: Array, *options: int) -> None:
    windows = _patches(x, kernel.shape[:2], options)
    out[...] = np.einsum("bijchw,hwco->bijo", windows, kernel, optimize=True)


def _depthwise(x: Array, kernel: Array, out: Array, *options: int) -> None:
    channels = x.shape[-1]
    split = kernel.reshape(*kernel.shape[:2], channels, -1)
    windows = _patches(x, kernel.shape[:2], options)
    out[...] = np.einsum("bijchw,hwcm->bijcm", windows, split, optimize=True).reshape(out.shape)


_ROUTINES: Mapping[str, Callable[..., Any]] = {
    "lib_batch_gemm": _gemm,
    "lib_batch_gemm_nt": _gemm_nt,
    "lib_batch_gemm_tn": _gemm_tn,
    "lib_conv2d_nhwc": _conv2d,
    "lib_depthwise_conv2d_nhwc": _depthwise,
    "lib_gemm": _gemm,
    "lib_gemm_nt": _gemm_nt,
    "lib_gemm_tn": _gemm_tn,
}

LIBRARY: Mapping[str, Callable[..., Any]] = {
    f"{name}_{element}": routine for name, routine in _ROUTINES.items() for element in ("f32", "f64")
}
"""Symbol -> routine."""
