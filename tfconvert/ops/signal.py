"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, typed
from tfconvert.ops.declaration import Decomposition, op, ops_like
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, same, same_with_rank_at_least
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import MismatchError, dim_of_element, text, with_rank_at_least
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation


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


def transform(x: Tensor, length: Tensor) -> Tensor:
    """A vector is an image of one row."""
    rows: Tensor = x.op("RFFT2D", x.expand_dims(-2), x.op("ConcatV2", [1], length, 0))
    return x.op("Squeeze", rows, squeeze_dims=[-2])  # type: ignore[no-any-return]


# Inverse transforms are products with matrices, whose size grows with the square of the length.
_MAX_LENGTH = 1024


def _spectrum_is_known(op: Operation) -> str | None:
    shape, constant = types.shape_of(op.operands[0].type), tensor_data.constant_of(op.operands[1])
    if constant is None:
        return "the length is not a constant"
    lengths = tensor_data.to_array(constant).tolist()
    if not all(0 < length <= _MAX_LENGTH for length in lengths):
        return f"its length is not between 1 and {_MAX_LENGTH}"
    if shape is None or len(shape) < len(lengths) or min(shape[-len(lengths) :]) < 1:
        return "the size of the spectrum is not known"
    needed = (*lengths[:-1], lengths[-1] // 2 + 1)
    is_enough = all(size <= dim for size, dim in zip(needed, shape[-len(lengths) :], strict=True))
    return None if is_enough else "the spectrum is smaller than the length requires"


def inverse_transform(x: Tensor, length: Tensor) -> Tensor:
    """Multiplies by matrices of waves: columns of complex numbers first, then rows, which become real."""
    lengths = [4] if length.constant is None else length.constant.tolist()
    shape, last = x.shape or (), x.rank - 1
    real, imaginary = (x.op(name, x) for name in ("Real", "Imag"))
    if len(lengths) == 2:
        order = (*range(last - 1), last, last - 1)
        columns = real.concat([imaginary], last - 1).transpose(order)
        product = columns.op("BatchMatMulV2", columns, x.of(_column_waves(shape[-2], lengths[0])))
        real, imaginary = product.transpose(order).split(last - 1, 2)
    joined = real.concat([imaginary], last)
    rows = joined if last else joined.expand_dims(0)
    signal: Tensor = rows.op("BatchMatMulV2", rows, x.of(_row_waves(shape[-1], lengths[-1])))
    return signal if last else signal.reshape(lengths)


def _column_waves(count: int, length: int) -> Array:
    """Returns the matrix that maps real parts above imaginary ones, transposed, to those of the inverse.

    Frequencies beyond the length are cut.
    """
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(length)) / length
    cosines, sines = np.cos(angles) / length, np.sin(angles) / length
    cosines[length:], sines[length:] = 0, 0
    return np.block([[cosines, sines], [-sines, cosines]]).astype(np.float32)


def _row_waves(count: int, length: int) -> Array:
    """Returns the matrix that maps real parts beside imaginary ones to a real signal.

    All frequencies but the first and, of an even length, the middle one also represent their mirror images.
    """
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(length)) / length
    weights = np.where(np.arange(count) < (length + 1) // 2, 2.0, 0.0)
    weights[0] = 1
    if length % 2 == 0 and length // 2 < count:
        weights[length // 2] = 1
    factors = weights[:, None] / length
    return np.concatenate([factors * np.cos(angles), -factors * np.sin(angles)]).astype(np.float32)


_INVERSE = (Decomposition(inverse_transform, "complex<f32>", _spectrum_is_known, example=((2, 3), (1,))),)

OPS = (
    *ops_like("FFT IFFT", shape=same_with_rank_at_least(1)),
    *ops_like("FFT2D FFT3D IFFT2D IFFT3D", shape=same),
    *ops_like("IRFFT IRFFT2D", shape=_real_signal_shape, compute=_real_signal, decompose=_INVERSE),
    op("IRFFT3D", shape=_real_signal_shape),
    op(
        "RFFT",
        shape=_real_spectrum_shape,
        compute=_real_transform,
        decompose=(Decomposition(transform, requires=rank_is_known, example=((2, 4), (1,))),),
    ),
    op("RFFT2D", shape=_real_spectrum_shape, compute=_real_transform),
    op("RFFT3D", shape=_real_spectrum_shape),
)
