"""Fourier transforms."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints, scalar, typed
from tfconvert.ops.complex_numbers import complex_of, parts, product
from tfconvert.ops.declaration import Decomposition, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.requirements import rank_is_known
from tfconvert.ops.shape_functions import Shapes, same_with_rank_at_least
from tfconvert.schema.dialects import tensor_data
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


# Matrices of waves grow with the square of the length. That of a longer transform is the product of two such lengths.
_MAX_LENGTH = 1024

Parts = tuple[Tensor, Tensor | None]
"""Real and imaginary parts, `None` for zeros."""


def _factors(length: int) -> tuple[int, int] | None:
    """Returns the two factors of a length that are closest, `None` if one is too large for a matrix."""
    first = next(each for each in range(math.isqrt(length), 0, -1) if length % each == 0)
    return (first, length // first) if length // first <= _MAX_LENGTH else None


def _lengths(op: Operation) -> list[int] | None:
    """Returns the lengths of a transform, outermost first: of an operand, or the sizes of the innermost dimensions."""
    if len(op.operands) > 1:
        constant = tensor_data.constant_of(op.operands[1])
        return None if constant is None else [int(each) for each in tensor_data.to_array(constant)]
    shape, name = op.operands[0].shape, op.name
    count = int(name[-2]) if name.endswith("D") else 1
    return None if shape is None or len(shape) < count else list(shape[-count:])


def _has_waves(op: Operation) -> str | None:
    shape, lengths = op.operands[0].shape, _lengths(op)
    if lengths is None or shape is None or (len(op.operands) == 1 and min(lengths) < 0):
        return "the length is not known"
    if min(lengths) < 1:
        return "its length is not at least 1"
    if len(shape) < len(lengths) or min(shape[-len(lengths) :]) < 1:
        return "the size of the operand is not known"
    needed = (*lengths[:-1], lengths[-1] // 2 + 1) if "IRFFT" in op.name else lengths
    if any(size > dim for size, dim in zip(needed, shape[-len(lengths) :], strict=True)):
        return "the operand is smaller than the length requires"
    large = next((each for each in lengths if _factors(each) is None), None)
    return None if large is None else f"the length {large} is not a product of two numbers up to {_MAX_LENGTH}"


_IS_POWER_OF_TWO = "its length is a power of two"


def _has_no_kernel(op: Operation) -> str | None:
    """LiteRT's kernel takes powers of two, those that aren't known included, but no rows of one number."""
    lengths = _lengths(op)
    if lengths is None or (lengths[-1] > 1 and all(each > 0 and each & (each - 1) == 0 for each in lengths)):
        return _IS_POWER_OF_TWO
    return _has_waves(op)


def _has_kernel_or_waves(op: Operation) -> str | None:
    return rank_is_known(op) if _has_no_kernel(op) == _IS_POWER_OF_TWO else _has_waves(op)


def _cut(x: Tensor, axis: int, size: int) -> Tensor:
    shape = x.shape or ()
    if shape[axis] == size:
        return x
    sizes = [size if each == axis else -1 for each in range(x.rank)]
    return x.op("Slice", x, [0] * x.rank, sizes)  # type: ignore[no-any-return]


def _waves(rows: int, columns: int, length: int, sign: int) -> Array:
    return np.asarray(np.exp(sign * 2j * np.pi * (np.outer(np.arange(rows), np.arange(columns)) % length) / length))


def _multiplied(found: Parts, waves: Array, axis: int) -> tuple[Tensor, Tensor]:
    """Multiplies an axis by a matrix of complex numbers: their parts, side by side, by one of real ones."""
    matrix = np.concatenate([waves.real, waves.imag], 1)
    if found[1] is not None:
        matrix = np.concatenate([matrix, np.concatenate([-waves.imag, waves.real], 1)])
    first, second = _product(found, matrix, axis).split(axis, 2)
    return first, second


def _product(found: Parts, matrix: Array, axis: int) -> Tensor:
    real, imaginary = found
    joined = real if imaginary is None else real.concat([imaginary], axis)
    rank = joined.rank
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    weights = joined.of(matrix.astype(joined.dtype))
    if rank == 1:
        flat = joined.expand_dims(0)
        product = flat.op("MatMul", flat, weights)
        return product.op("Squeeze", product, squeeze_dims=[0])  # type: ignore[no-any-return]
    turned = joined.transpose(order)
    product = turned.op("MatMul" if rank == 2 else "BatchMatMulV2", turned, weights)
    return product.transpose(order)  # type: ignore[no-any-return]


def _transformed(found: Parts, axis: int, length: int, sign: int, count: int) -> tuple[Tensor, Tensor]:
    """Transforms an axis; returns the first numbers of it."""
    scale = length if sign > 0 else 1
    if length <= _MAX_LENGTH:
        return _multiplied(found, _waves(length, count, length, sign) / scale, axis)
    first, second = _factors(length) or (1, length)
    rank, last = found[0].rank, found[0].rank - 1
    order = [*(each for each in range(rank) if each != axis), axis]

    def divided(x: Tensor) -> Tensor:
        turned = x.transpose(order)
        sizes = [-1 if each < 0 else each for each in (turned.shape or ())[:-1]]
        if sizes.count(-1) <= 1:
            return turned.reshape([*sizes, first, second])
        outer = turned.op("StridedSlice", turned.op("Shape", turned), [0], [-1], [1])
        return turned.op("Reshape", turned, outer.concat([outer.of(np.array([first, second], np.int32))], 0))  # type: ignore[no-any-return]

    # Numbers at distances of one factor first, then those side by side, turned by their places.
    imaginary = None if found[1] is None else divided(found[1])
    real, other = _multiplied((divided(found[0]), imaginary), _waves(first, first, first, sign) / scale, last)
    turns = _waves(first, second, length, sign)
    cosines, sines = (real.of(each.astype(real.dtype)) for each in (turns.real, turns.imag))
    pair = product(real, other, cosines, sines)
    pair = _multiplied(pair, _waves(second, second, second, sign), last + 1)
    back = [order.index(each) for each in range(rank)]

    def joined(x: Tensor) -> Tensor:
        whole = x.transpose([*range(last), last + 1, last])
        sizes = [-1 if each < 0 else each for each in (whole.shape or ())[:-2]]
        if sizes.count(-1) <= 1:
            whole = whole.reshape([*sizes, length])
        else:
            outer = whole.op("StridedSlice", whole.op("Shape", whole), [0], [-2], [1])
            whole = whole.op("Reshape", whole, outer.concat([outer.of(np.array([length], np.int32))], 0))
        return _cut(whole, last, count).transpose(back)

    return joined(pair[0]), joined(pair[1])


def fourier(x: Tensor, length: Tensor | None = None, *, rank: int, sign: int) -> Tensor:
    """Transforms the innermost dimensions of real or complex numbers by products with matrices of waves.

    Args:
        x: The numbers; of real ones, half of the last dimension's transform is returned, and one more.
        length: The sizes to which they are cut.
        rank: The number of dimensions.
        sign: -1, or 1 for the inverse transform.
    """
    first = x.rank - rank
    sizes = list(x.shape or ())[first:] if length is None or length.constant is None else length.constant.tolist()
    is_real = x.dtype.kind != "c"
    found: Parts = (x, None) if is_real else parts(x)
    if not is_real and x.produced("Cast") is not None:
        found = (found[0], None)
    for axis in reversed(range(first, x.rank)):
        size = sizes[axis - first]
        count = size // 2 + 1 if is_real and axis == x.rank - 1 else size
        real, imaginary = found
        cut = None if imaginary is None else _cut(imaginary, axis, size)
        found = _transformed((_cut(real, axis, size), cut), axis, size, sign, count)
    assert found[1] is not None
    return complex_of(found[0], found[1])


def real_transform(x: Tensor, length: Tensor) -> Tensor:
    """A vector is an image of one row, for which kernels take powers of two."""
    size = 2 if length.constant is None else scalar(length.constant)
    if size == 1 or size & (size - 1):
        return fourier(x, length, rank=1, sign=-1)
    rows: Tensor = x.op("RFFT2D", x.expand_dims(-2), x.op("ConcatV2", [1], length, 0))
    return x.op("Squeeze", rows, squeeze_dims=[-2])  # type: ignore[no-any-return]


def inverse_of_half(x: Tensor, length: Tensor, *, rank: int) -> Tensor:
    """Transforms spectra of real signals back, of which the last dimension has half."""
    first, last = x.rank - rank, x.rank - 1
    sizes = [4] * rank if length.constant is None else length.constant.tolist()
    real, imaginary = parts(x)
    for axis in range(first, last):
        size = sizes[axis - first]
        real, imaginary = _transformed((_cut(real, axis, size), _cut(imaginary, axis, size)), axis, size, 1, size)
    size = sizes[-1]
    half = size // 2 + 1
    real, imaginary = _cut(real, last, half), _cut(imaginary, last, half)
    if size > _MAX_LENGTH:
        # All frequencies but the first and, of an even length, the last one have a mirror image.
        mirrored = [0] * last + [1]
        counts = [-1] * last + [size - half]
        above = [each.op("Slice", each, mirrored, counts) for each in (real, imaginary)]
        above = [each.op("ReverseV2", each, [last]) for each in above]
        whole = real.concat([above[0]], last), imaginary.concat([-above[1]], last)
        return _transformed(whole, last, size, 1, size)[0]
    weights = np.full(half, 2.0)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    waves = _waves(half, size, size, 1) * weights[:, None] / size
    return _product((real, imaginary), np.concatenate([waves.real, -waves.imag]), last)


def _complex_transform(call: Call) -> Results:
    (x,) = call.inputs
    rank = int(call.op[-2]) if call.op.endswith("D") else 1
    if x.ndim < rank:
        raise call.bad(f"it needs an operand of at least {rank} dimensions, not {x.ndim}")
    function = np.fft.ifftn if call.op.startswith("I") else np.fft.fftn
    return (typed(function(x, axes=tuple(range(-rank, 0))), x.dtype),)


_SIZES = (8, 6, 4)


def _of_complex(rank: int, sign: int) -> tuple[Decomposition, ...]:
    formula = partial(fourier, rank=rank, sign=sign)
    return (Decomposition(formula, "complex<f32>", _has_waves, example=((2, *_SIZES[:rank]),)),)


def _of_real(rank: int) -> tuple[Decomposition, ...]:
    formula = partial(fourier, rank=rank, sign=-1)
    requires = _has_waves if rank == 3 else _has_no_kernel
    return (Decomposition(formula, "f32", requires, example=((2, *_SIZES[:rank]), (rank,))),)


def _to_real(rank: int) -> tuple[Decomposition, ...]:
    formula = partial(inverse_of_half, rank=rank)
    return (Decomposition(formula, "complex<f32>", _has_waves, example=((2, 4, 4, 3)[3 - rank :], (rank,))),)


OPS = (
    *(
        op(
            name + (f"{rank}D" if rank > 1 else ""),
            shape=same_with_rank_at_least(rank),
            compute=_complex_transform,
            decompose=_of_complex(rank, sign),
        )
        for name, sign in (("FFT", -1), ("IFFT", 1))
        for rank in (1, 2, 3)
    ),
    *(
        op(
            "IRFFT" + (f"{rank}D" if rank > 1 else ""),
            shape=_real_signal_shape,
            compute=_real_signal,
            decompose=_to_real(rank),
        )
        for rank in (1, 2, 3)
    ),
    op(
        "RFFT",
        shape=_real_spectrum_shape,
        compute=_real_transform,
        decompose=(Decomposition(real_transform, "f32", _has_kernel_or_waves, example=((2, 4), (1,))),),
    ),
    op("RFFT2D", shape=_real_spectrum_shape, compute=_real_transform, decompose=_of_real(2)),
    op("RFFT3D", shape=_real_spectrum_shape, compute=_real_transform, decompose=_of_real(3)),
)
