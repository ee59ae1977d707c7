"""Convolutions of all layouts: as `Conv2D` and its kin, transposed ones as the gradients that TensorFlow writes.

A convolution over an input with gaps, `lhs_dilation`, is the gradient of one with strides, of the reversed kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.from_stablehlo.padding import amounts, is_computed_same
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.from_stablehlo.shaping import padded
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.schema.dialects.stablehlo import ConvAttr
from tfconvert.schema.limits import budget

Pairs = tuple[tuple[int, int], ...]

# Integers up to this are exact as floats.
_EXACT = 1 << 24


class _Windows(NamedTuple):
    """How windows slide over the spatial dimensions.

    Attributes:
        strides: The steps.
        pads: What is added before and after; negative numbers are cut off.
        gaps: The distance of the input's elements.
        rates: The distance of the kernel's.
        groups: The number of groups of channels.
        is_same: Whether padding is that of `SAME` for dimensions that aren't known.
    """

    strides: tuple[int, ...]
    pads: Pairs
    gaps: tuple[int, ...]
    rates: tuple[int, ...]
    groups: int
    is_same: bool

    @property
    def rank(self) -> int:
        return len(self.strides)

    def extents(self, kernel: EmittedTensor) -> tuple[int, ...]:
        """Returns the size of a kernel with its gaps."""
        shape = kernel.shape
        assert shape is not None
        return tuple((size - 1) * rate + 1 for size, rate in zip(shape, self.rates, strict=False))


def _convolution(raised: RaisedOp) -> EmittedTensor:
    x, kernel = raised.operands
    return _convolved(raised, x, kernel, raised.pairs("padding", x.rank - 2))


def _dynamic_convolution(raised: RaisedOp) -> EmittedTensor:
    x, kernel, padding = raised.operands
    known = raised.known(padding)
    if known is not None:
        return _convolved(raised, x, kernel, known.reshape(-1, 2).tolist())
    if max(raised.ints("lhs_dilation"), default=1) > 1:
        raise Declined("its padding isn't known before it runs, and its input has gaps")
    layout = _dimensions(raised).lhs
    rank = x.rank - 2
    pairs = amounts(raised, padding)
    space = [raised.sizes(x)[layout.index(str(axis))] for axis in range(rank)]
    strides, rates = (raised.ints(name, (1,) * rank) for name in ("window_strides", "rhs_dilation"))
    of_kernel = [raised.sizes(kernel)[_dimensions(raised).rhs.index(str(axis))] for axis in range(rank)]
    extents = [(length - 1) * rate + 1 for length, rate in zip(of_kernel, rates, strict=True)]
    if all(is_computed_same(raised, *one) for one in zip(pairs, space, extents, strides, strict=True)):
        return _convolved(raised, x, kernel, None)
    none = raised.constant(0, np.int32), raised.constant(0, np.int32)
    rows = [x.op("Pack", *(pairs[int(letter)] if letter.isdigit() else none)) for letter in layout]
    padded_x = x.op("Pad", x, x.op("Pack", *rows))
    return _convolved(raised, padded_x, kernel, [(0, 0)] * rank)


def _dimensions(raised: RaisedOp) -> ConvAttr:
    dims = raised.op.properties["dimension_numbers"]
    assert isinstance(dims, ConvAttr)
    return dims


def _convolved(
    raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, padding: Sequence[Sequence[int]] | None
) -> EmittedTensor:
    """Returns a convolution; padding of `None` is that of `SAME`, for all sizes."""
    rank = x.rank - 2
    if rank not in (0, 1, 2, 3):
        raise Declined(f"it has {rank} spatial dimensions")
    ones = (1,) * rank
    windows = _Windows(
        raised.ints("window_strides", ones),
        ((0, 0),) * rank if padding is None else tuple((low, high) for low, high in padding),
        raised.ints("lhs_dilation", ones),
        raised.ints("rhs_dilation", ones),
        raised.integer("feature_group_count", 1),
        padding is None,
    )
    dims = _dimensions(raised)
    spatial = [str(number) for number in range(rank)]
    x, kernel = _as_floats(raised, x, kernel, dims)
    x = _arranged(x, dims.lhs, ("b", *spatial, "f"))
    kernel = _arranged(kernel, dims.rhs, (*spatial, "i", "o"))
    turned = [axis for axis, is_turned in enumerate(raised.ints("window_reversal")) if is_turned]
    kernel = kernel.op("ReverseV2", kernel, turned) if turned else kernel
    batches = raised.integer("batch_group_count", 1)
    if batches > 1:
        x, windows = _batches_as_groups(raised, x, batches), windows._replace(groups=batches)
    found = _of_rank(raised, x, kernel, windows) if rank else _multiplied(x, kernel, windows.groups)
    return _arranged(found, ("b", *spatial, "f"), dims.result).cast(raised.dtype())


def _arranged(x: EmittedTensor, layout: Sequence[str], wanted: Sequence[str]) -> EmittedTensor:
    order = [layout.index(letter) for letter in wanted]
    return x if order == sorted(order) else x.op("Transpose", x, order)


def _as_floats(
    raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, dims: ConvAttr
) -> tuple[EmittedTensor, EmittedTensor]:
    """Returns the operands in the type of the result, or small integers as floats where these are exact."""
    dtype = raised.dtype()
    if dtype.kind not in "iu":
        return x.cast(dtype), kernel.cast(dtype)
    shape = raised.sizes(kernel)
    count = prod(size for size, letter in zip(shape, dims.rhs, strict=True) if letter != "o")
    largest = prod(max(abs(int(np.iinfo(each.dtype).min)), int(np.iinfo(each.dtype).max)) for each in (x, kernel))
    if count * largest > _EXACT or dtype.itemsize < 4:
        raise Declined(f"sums of {count} products of {x.dtype} aren't exact as floats, and there are no others")
    return x.cast(np.float32), kernel.cast(np.float32)


def _batches_as_groups(raised: RaisedOp, x: EmittedTensor, count: int) -> EmittedTensor:
    """Makes groups of the batch, which are its slowest part, groups of channels."""
    batch, *space, channels = raised.sizes(x)
    if batch < 0:
        raise Declined("it has groups of a batch whose size isn't known")
    rest = batch // count
    if rest > 1:
        x = raised.reshaped(x, [count, rest, *space, channels])
        x = x.op("Transpose", x, [*range(1, x.rank - 1), 0, x.rank - 1])
        return raised.reshaped(x, [rest, *space, count * channels])
    x = x.op("Transpose", x, [*range(1, x.rank - 1), 0, x.rank - 1])
    return raised.reshaped(x, [1, *space, count * channels])


def _multiplied(x: EmittedTensor, kernel: EmittedTensor, groups: int) -> EmittedTensor:
    """Returns a convolution without spatial dimensions, which is a product of matrices."""
    if groups > 1:
        raise Declined("it has groups of channels, and no spatial dimensions")
    return x.op("MatMul", x, kernel)  # type: ignore[no-any-return]


def _of_rank(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    if windows.rank > 1:
        return _with_gaps(raised, x, kernel, windows)
    flat = windows._replace(
        strides=(1, *windows.strides), pads=((0, 0), *windows.pads), gaps=(1, *windows.gaps), rates=(1, *windows.rates)
    )
    found = _with_gaps(raised, x.expand_dims(1), kernel.expand_dims(0), flat)
    return found.op("Squeeze", found, squeeze_dims=[1])  # type: ignore[no-any-return]


def _with_gaps(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    if max(windows.gaps) == 1:
        return _grouped(raised, x, kernel, windows)
    if windows.groups == max(windows.strides) == 1:
        return _transposed(raised, x, kernel, windows)
    x = _padded(raised, x, ((0, 0),) * windows.rank, windows.gaps)
    return _grouped(raised, x, kernel, windows._replace(gaps=(1,) * windows.rank))


def _padded(raised: RaisedOp, x: EmittedTensor, pads: Pairs, gaps: Sequence[int] = ()) -> EmittedTensor:
    """Returns an image with zeros around it, and between its elements; negative numbers are cut off."""
    if not any(map(any, pads)) and max(gaps, default=1) == 1:
        return x
    low, high = ([0, *(pad[side] for pad in pads), 0] for side in (0, 1))
    interior = [0, *(gap - 1 for gap in gaps), 0] if gaps else ()
    return padded(raised, x, raised.constant(0, x.dtype), low, high, interior)


def _grouped(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns a convolution over an input without gaps."""
    x = _padded(raised, x, tuple((min(low, 0), min(high, 0)) for low, high in windows.pads))
    windows = windows._replace(pads=tuple((max(low, 0), max(high, 0)) for low, high in windows.pads))
    x, padding, explicit = _padding(raised, x, kernel, windows)
    options: dict[str, Any] = {
        "strides": [1, *windows.strides, 1],
        "dilations": [1, *windows.rates, 1],
        "padding": padding,
        "data_format": "NHWC" if windows.rank == 2 else "NDHWC",
        **explicit,
    }
    *space, channels, outputs = raised.sizes(kernel)
    groups = windows.groups
    if groups > 1 and channels == 1 and windows.rank == 2:
        kernel = raised.reshaped(kernel, [*space, groups, outputs // groups])
        return x.op("DepthwiseConv2dNative", x, kernel, **options)  # type: ignore[no-any-return]
    if windows.rank == 2 or groups == 1:
        return x.op("Conv2D" if windows.rank == 2 else "Conv3D", x, kernel, **options)  # type: ignore[no-any-return]
    budget().take_operations(groups, "a convolution in groups")
    parts = zip(x.split(x.rank - 1, groups), kernel.split(kernel.rank - 1, groups), strict=True)
    first, *others = [part.op("Conv3D", part, weights, **options) for part, weights in parts]
    return first.concat(others, x.rank - 1)  # type: ignore[no-any-return]


def _padding(
    raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows
) -> tuple[EmittedTensor, str, dict[str, list[int]]]:
    """Returns the input, the kind of padding, and the attribute of an explicit one."""
    if windows.is_same or not any(map(any, windows.pads)):
        return x, "SAME" if windows.is_same else "VALID", {}
    space = raised.sizes(x)[1:-1]
    each = zip(space, windows.extents(kernel), windows.strides, windows.pads, strict=True)
    if all(is_same(*one) for one in each):
        return x, "SAME", {}
    if windows.rank == 2:
        pads = ((0, 0), *windows.pads, (0, 0))
        return x, "EXPLICIT", {"explicit_paddings": [amount for pad in pads for amount in pad]}
    return _padded(raised, x, windows.pads), "VALID", {}


def is_same(size: int, extent: int, stride: int, pads: tuple[int, int]) -> bool:
    """Returns whether padding is what TensorFlow calls `SAME` for a dimension, whose size may not be known."""
    if size < 0 and stride > 1:
        return False
    total = extent - 1 if stride == 1 else max((-(-size // stride) - 1) * stride + extent - size, 0)
    return pads == (total // 2, total - total // 2)


def _transposed(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns a convolution over an input with gaps as the gradient of one with strides."""
    rank, gaps = windows.rank, windows.gaps
    if max(windows.rates) > 1:
        interior = [*(rate - 1 for rate in windows.rates), 0, 0]
        kernel = padded(raised, kernel, raised.constant(0, kernel.dtype), [0] * (rank + 2), [0] * (rank + 2), interior)
    extents = raised.sizes(kernel)[:rank]
    filters = kernel.op("ReverseV2", kernel, list(range(rank)))
    filters = filters.op("Transpose", filters, [*range(rank), rank + 1, rank])
    # What is cut off from all that the windows reach, and how much of the last stride is missing.
    cuts = [(extent - 1 - low, extent - 1 - high) for extent, (low, high) in zip(extents, windows.pads, strict=True)]
    each = list(zip(cuts, extents, gaps, strict=True))
    padding, grown = "VALID", [extent - gap for _, extent, gap in each]
    if all(_is_gradient_of_same(*one) for one in each):
        padding, grown = "SAME", [extent - gap - sum(cut) for cut, extent, gap in each]
        cuts = [(0, 0)] * rank
    elif all(low == 0 and 0 <= -high < gap for (low, high), _, gap in each):
        grown = [extent - gap - high for (_, high), extent, gap in each]
        cuts = [(0, 0)] * rank
    sizes = _grown(raised, x, gaps, grown)
    op, data_format = ("Conv2DBackpropInput", "NHWC") if rank == 2 else ("Conv3DBackpropInputV2", "NDHWC")
    if rank == 3:
        sizes = [raised.size(x, 0), *sizes, raised.constant(raised.sizes(filters)[-2], np.int32)]
    vector = x.op("Pack", *sizes)
    options: dict[str, Any] = {
        "strides": [1, *gaps, 1],
        "padding": padding,
        "data_format": data_format,
        "dilations": [1] * (rank + 2),
    }
    found = x.op(op, vector, filters, x, **options)
    return _padded(raised, found, tuple((-low, -high) for low, high in cuts))


def _is_gradient_of_same(cut: tuple[int, int], extent: int, stride: int) -> bool:
    """Returns whether a forward convolution with padding `SAME` pads what is cut, for all numbers of windows."""
    total = sum(cut)
    # A window less than the last stride is missing.
    missing = total - extent + stride
    return 0 <= missing < stride and cut == (total // 2, total - total // 2)


def _grown(raised: RaisedOp, x: EmittedTensor, factors: Sequence[int], added: Sequence[int]) -> list[EmittedTensor]:
    """Returns the spatial dimensions, multiplied and with something added."""
    sizes = []
    for axis, (factor, more) in enumerate(zip(factors, added, strict=True), 1):
        size = raised.size(x, axis)
        sizes.append(size.op("AddV2", size.op("Mul", size, factor), more) if (factor, more) != (1, 0) else size)
    return sizes


ROWS: Rows = {"convolution": _convolution, "dynamic_conv": _dynamic_convolution}
