"""Fourier transforms of real signals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfconvert.ops.call import Call, Kernel, Results, ints, typed


def _real_transform(call: Call) -> Results:
    """Transforms the innermost dimensions, cut to the requested lengths."""
    x, lengths = call.inputs
    sizes = ints(lengths)
    if any(size < 1 for size in sizes):
        raise call.bad(f"the transform's length {sizes} is not positive")
    if len(sizes) > x.ndim or any(size > dim for size, dim in zip(sizes, x.shape[-len(sizes) :], strict=True)):
        raise call.bad(f"a transform of the length {sizes} needs an operand of at least that, not {x.shape}")
    spectrum = np.fft.rfftn(x, sizes, axes=tuple(range(-len(sizes), 0)))
    return (typed(spectrum, np.result_type(x.dtype, np.complex64)),)


def _real_signal(call: Call) -> Results:
    """Transforms spectra of real signals back, cut to the requested lengths."""
    x, lengths = call.inputs
    sizes = ints(lengths)
    if any(size < 1 for size in sizes):
        raise call.bad(f"the transform's length {sizes} is not positive")
    needed = (*sizes[:-1], sizes[-1] // 2 + 1)
    if len(sizes) > x.ndim or any(size > dim for size, dim in zip(needed, x.shape[-len(sizes) :], strict=True)):
        raise call.bad(f"a signal of the length {sizes} needs a spectrum of at least {needed}, not {x.shape}")
    signal = np.fft.irfftn(x, sizes, axes=tuple(range(-len(sizes), 0)))
    return (typed(signal, call.dtype("Treal")),)


KERNELS: Mapping[str, Kernel] = {
    "IRFFT": _real_signal,
    "IRFFT2D": _real_signal,
    "RFFT": _real_transform,
    "RFFT2D": _real_transform,
}
"""Op name -> kernel."""
