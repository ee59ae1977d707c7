"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Call, Results, ints, typed
from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes, same, same_with_rank_at_least
from tfconvert.schema.dialects.dims import MismatchError, dim_of_element, text, with_rank_at_least
from tfconvert.schema.dialects.types import Shape


def _real_spectrum_shape(operands: Operands) -> Shapes:
    """RFFT: the last dimensions become the transform's length, the innermost half of it and one more."""
    return (_spectrum(operands, is_real_result=False),)


def _real_signal_shape(operands: Operands) -> Shapes:
    return (_spectrum(operands, is_real_result=True),)


def _spectrum(operands: Operands, *, is_real_result: bool) -> Shape | None:
    shape, lengths = operands.shape(0), operands.elements(1)
    count = int(operands.op.name[-2]) if operands.op.name.endswith("D") else 1
    with_rank_at_least(shape, count)
    if shape is None:
        return None
    if lengths is None:
        return (*shape[:-count], *(-1,) * count)
    if len(lengths) != count:
        raise MismatchError(f"its transform's lengths {text(lengths)} should be {count}")
    dims = list(map(dim_of_element, lengths))
    if not is_real_result and dims[-1] != -1:
        dims[-1] = dims[-1] // 2 + 1 if dims[-1] >= 0 else -1
    return (*shape[:-count], *dims)


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


OPS = (
    *ops_like("FFT IFFT", shape=same_with_rank_at_least(1)),
    *ops_like("FFT2D FFT3D IFFT2D IFFT3D", shape=same),
    *ops_like("IRFFT IRFFT2D", shape=_real_signal_shape, compute=_real_signal),
    op("IRFFT3D", shape=_real_signal_shape),
    *ops_like("RFFT RFFT2D", shape=_real_spectrum_shape, compute=_real_transform),
    op("RFFT3D", shape=_real_spectrum_shape),
)
