"""Products of StableHLO: of tensors, convolutions; Fourier transforms and what solves triangles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.converter.executor.stablehlo.properties import Kernel, dtype_of
from tfconvert.converter.executor.stablehlo.reducing import windows_of
from tfconvert.converter.executor.stablehlo.shaping import pad
from tfconvert.converter.executor.tasks import bad
from tfconvert.ops.call import Array, Dtype, Function, Results, is_float
from tfconvert.schema.dialects.stablehlo import ConvAttr, DotAttr
from tfconvert.schema.dialects.stablehlo_properties import flag, integer, ints, pairs, text
from tfconvert.schema.ir.attributes import FloatAttr
from tfconvert.schema.ir.operation import Operation


def _accumulating(dtype: Dtype) -> Dtype:
    """Returns the dtype for accumulating products."""
    return np.dtype(np.float32) if is_float(dtype) and dtype.itemsize < 4 else dtype


def dot(op: Operation, x: Array, y: Array, dtype: Dtype) -> Array:
    """Returns the product of a `dot_general`: batch dimensions, then the free ones of both.

    Raises:
        ConversionError: Sizes that should be equal differ (`unequal-sizes`).
    """
    dims = op.properties["dot_dimension_numbers"]
    assert isinstance(dims, DotAttr)
    batch, summed = dims.of("lhs_batching_dimensions"), dims.of("lhs_contracting_dimensions")
    other_batch, other_summed = dims.of("rhs_batching_dimensions"), dims.of("rhs_contracting_dimensions")
    for one, other in zip((*batch, *summed), (*other_batch, *other_summed), strict=True):
        if x.shape[one] != y.shape[other]:
            raise bad(op, f"the sizes {x.shape[one]} and {y.shape[other]} should be equal", "unequal-sizes")
    free = [axis for axis in range(x.ndim) if axis not in (*batch, *summed)]
    other_free = [axis for axis in range(y.ndim) if axis not in (*other_batch, *other_summed)]
    rows, columns = [x.shape[axis] for axis in free], [y.shape[axis] for axis in other_free]
    depth, outer = math.prod(x.shape[axis] for axis in summed), [x.shape[axis] for axis in batch]
    wide = _accumulating(dtype)
    left = x.transpose([*batch, *free, *summed]).reshape([*outer, math.prod(rows), depth]).astype(wide, copy=False)
    right = y.transpose([*other_batch, *other_summed, *other_free]).reshape([*outer, depth, math.prod(columns)])
    product = np.matmul(left, right.astype(wide, copy=False))
    return np.asarray(product).reshape([*outer, *rows, *columns]).astype(dtype, copy=False)


def _dot_general(op: Operation, inputs: Results) -> Array:
    x, y = inputs
    return dot(op, x, y, dtype_of(op))


def _convolved(op: Operation, x: Array, kernel: Array, padding: Sequence[tuple[int, int]]) -> Array:
    dims = op.properties["dimension_numbers"]
    assert isinstance(dims, ConvAttr)
    layout, of_kernel, of_result = dims.layouts
    rank = len(layout) - 2
    spatial = [str(number) for number in range(rank)]
    dtype = dtype_of(op)
    x = x.transpose([layout.index(letter) for letter in ("b", *spatial, "f")]).astype(_accumulating(dtype), copy=False)
    kernel = kernel.transpose([of_kernel.index(letter) for letter in (*spatial, "i", "o")]).astype(x.dtype, copy=False)
    ones = (1,) * rank
    flipped = [axis for axis, turned in enumerate(ints(op, "window_reversal", (0,) * rank)) if turned]
    kernel = np.flip(kernel, tuple(flipped)) if flipped else kernel
    gaps = [0, *(gap - 1 for gap in ints(op, "lhs_dilation", ones)), 0]
    x = pad(x, np.zeros((), x.dtype), [(0, 0), *padding, (0, 0)], gaps)
    groups, batches = integer(op, "feature_group_count", 1), integer(op, "batch_group_count", 1)
    if x.shape[-1] != kernel.shape[-2] * groups:
        raise bad(op, f"{x.shape[-1]} channels are not {groups} groups of {kernel.shape[-2]}", "unequal-sizes")
    strides = (1, *ints(op, "window_strides", ones), 1)
    sizes, dilations = (1, *kernel.shape[:-2], 1), (1, *ints(op, "rhs_dilation", ones), 1)
    if batches > 1:
        parts = np.split(x, batches)
        kernels = np.split(kernel, batches, -1)
    else:
        parts, kernels = [x], [kernel]
    found = [
        _grouped(windows_of(part, sizes, strides, dilations), one, groups)
        for part, one in zip(parts, kernels, strict=True)
    ]
    result = np.concatenate(found, -1)
    letters = ("b", *spatial, "f")
    return result.transpose([letters.index(letter) for letter in of_result]).astype(dtype, copy=False)


def _grouped(windows: Array, kernel: Array, groups: int) -> Array:
    """Returns the products of windows with kernels, by groups of channels."""
    rank = kernel.ndim - 2
    places, taps = windows.shape[: rank + 1], kernel.shape[:-2]
    inner, outer = kernel.shape[-2], kernel.shape[-1] // groups
    held = windows.reshape(*places, groups, inner, *taps)
    order = [rank + 1, *range(rank + 1), *range(rank + 3, rank + 3 + rank), rank + 2]
    left = held.transpose(order).reshape(groups, math.prod(places), math.prod(taps) * inner)
    right = np.moveaxis(kernel.reshape(math.prod(taps) * inner, groups, outer), 1, 0)
    return np.moveaxis(np.asarray(np.matmul(left, right)), 0, 1).reshape(*places, groups * outer)


def _convolution(op: Operation, inputs: Results) -> Array:
    x, kernel = inputs
    return _convolved(op, x, kernel, pairs(op, "padding", x.ndim - 2))


def _dynamic_convolution(op: Operation, inputs: Results) -> Array:
    x, kernel, padding = inputs
    return _convolved(op, x, kernel, [(int(low), int(high)) for low, high in padding.reshape(-1, 2)])


_TRANSFORMS: Mapping[str, Function] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


def _fourier(op: Operation, inputs: Results) -> Array:
    (x,), lengths = inputs, ints(op, "fft_length")
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    kind = text(op, "fft_type")
    return np.asarray(_TRANSFORMS[kind](x, lengths, axes)).astype(dtype_of(op), copy=False)


def _batch_norm(op: Operation, inputs: Results) -> Array:
    x, scale, offset, mean, variance = inputs
    epsilon = op.properties["epsilon"]
    assert isinstance(epsilon, FloatAttr)
    shape = [1] * x.ndim
    shape[integer(op, "feature_index")] = -1
    scale, offset, mean, variance = (each.reshape(shape) for each in (scale, offset, mean, variance))
    deviation = np.sqrt(variance + np.float32(epsilon.value))
    return np.asarray((x - mean) / deviation * scale + offset).astype(x.dtype, copy=False)


def _cholesky(op: Operation, inputs: Results) -> Array:
    """Returns the Cholesky decomposition of a matrix, of which only one triangle is read."""
    (x,) = inputs
    lower = flag(op, "lower")
    half = np.tril(x) if lower else np.conj(np.swapaxes(np.triu(x), -1, -2))
    strict = np.tril(half, -1)
    try:
        found = np.linalg.cholesky(half + np.conj(np.swapaxes(strict, -1, -2)))
    except np.linalg.LinAlgError as problem:
        raise bad(op, f"the matrix has no such decomposition: {problem}") from problem
    return found if lower else np.conj(np.swapaxes(found, -1, -2))


def _triangular_solve(op: Operation, inputs: Results) -> Array:
    a, b = inputs
    triangle = np.tril(a) if flag(op, "lower") else np.triu(a)
    if flag(op, "unit_diagonal"):
        one = np.eye(a.shape[-1], dtype=a.dtype)
        triangle = triangle * (1 - one) + one
    turn = text(op, "transpose_a")
    if turn in ("TRANSPOSE", "ADJOINT"):
        triangle = np.swapaxes(np.conj(triangle) if turn == "ADJOINT" else triangle, -1, -2)
    try:
        if flag(op, "left_side"):
            return np.linalg.solve(triangle, b)
        return np.swapaxes(np.linalg.solve(np.swapaxes(triangle, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    except np.linalg.LinAlgError as problem:
        raise bad(op, f"the equations have no solution: {problem}") from problem


KERNELS: Mapping[str, Kernel] = {
    "stablehlo.batch_norm_inference": _batch_norm,
    "stablehlo.cholesky": _cholesky,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_conv": _dynamic_convolution,
    "stablehlo.fft": _fourier,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""Op -> kernel."""
