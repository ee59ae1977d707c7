"""Fourier transforms: the runtime's own of real numbers for powers of two, else products with matrices of waves."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.from_stablehlo.complex_numbers import parts
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.ops.call import Array
from tfconvert.schema.ir.operation import Operation

# The matrices grow with the square of the length.
_MAX_LENGTH = 1024

Parts = tuple[EmittedTensor, EmittedTensor | None]
"""A real and an imaginary part, `None` where that is zero."""


def _fft(raised: RaisedOp) -> EmittedTensor:
    (x,) = raised.operands
    kind, lengths = raised.text("fft_type"), raised.ints("fft_length")
    if (
        kind == "RFFT"
        and len(lengths) <= 2
        and x.dtype == np.float32
        and all(_is_power_of_two(each) for each in lengths)
    ):
        name = "RFFT" if len(lengths) == 1 else "RFFT2D"
        return x.op(name, x, list(lengths), Tcomplex=np.dtype(np.complex64))  # type: ignore[no-any-return]
    need(max(lengths) <= _MAX_LENGTH, f"its length is larger than {_MAX_LENGTH}")
    sign = -1 if kind in ("FFT", "RFFT") else 1
    found: Parts = (x, None) if x.dtype.kind != "c" else _parts(x)
    first = x.rank - len(lengths)
    # The last dimension is that of which real signals have half.
    order = range(first, x.rank)
    for axis in order if kind == "IRFFT" else reversed(order):
        length = lengths[axis - first]
        waves = np.exp(sign * 2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length)
        waves = waves / length if sign > 0 else waves
        is_half = axis == x.rank - 1
        if kind == "RFFT" and is_half:
            waves = waves[:, : length // 2 + 1]
        if kind == "IRFFT" and is_half:
            return _real_signal(found, waves[: length // 2 + 1], length)
        found = _transformed(found, waves, axis)
    real, imaginary = found
    return real.op("Complex", real, real * 0 if imaginary is None else imaginary, Tout=raised.dtype())  # type: ignore[no-any-return]


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _parts(x: EmittedTensor) -> Parts:
    owner = x.value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Cast":
        source = EmittedTensor(x.builder, owner.operands[0], x.known)
        if source.dtype.kind == "f":
            return source, None
    return parts(x)


def _transformed(found: Parts, waves: Array, axis: int) -> Parts:
    """Multiplies an axis by a matrix of complex numbers: their parts, side by side, by one of real ones."""
    matrix = np.concatenate([waves.real, waves.imag], 1)
    if found[1] is not None:
        matrix = np.concatenate([matrix, np.concatenate([-waves.imag, waves.real], 1)])
    first, second = _product(found, matrix, axis).split(axis, 2)
    return first, second


def _real_signal(found: Parts, waves: Array, length: int) -> EmittedTensor:
    """Transforms half a spectrum: all its frequencies but the first and the middle one have a mirror image."""
    weights = np.full(len(waves), 2.0)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    waves = waves * weights[:, None]
    matrix = waves.real if found[1] is None else np.concatenate([waves.real, -waves.imag])
    return _product(found, matrix, found[0].rank - 1)


def _product(found: Parts, matrix: Array, axis: int) -> EmittedTensor:
    real, imaginary = found
    joined = real if imaginary is None else real.concat([imaginary], axis)
    rank = joined.rank
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    weights = matrix.astype(joined.dtype)
    if rank == 1:
        flat = joined.expand_dims(0)
        product = flat.op("MatMul", flat, weights)
        return product.op("Squeeze", product, squeeze_dims=[0])  # type: ignore[no-any-return]
    turned = joined if axis == rank - 1 else joined.op("Transpose", joined, order)
    product = turned.op("MatMul" if rank == 2 else "BatchMatMulV2", turned, weights)
    return product if axis == rank - 1 else product.op("Transpose", product, order)  # type: ignore[no-any-return]


ROWS: Rows = {"fft": _fft}
