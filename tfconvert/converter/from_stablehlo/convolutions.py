"""Convolutions of all layouts: as `Conv2D` and its kin, transposed ones as the gradients that TensorFlow writes.

A convolution over an input with gaps, `lhs_dilation`, is the gradient of one with strides, of the reversed kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.schema.dialects.stablehlo import ConvAttr

Pairs = tuple[tuple[int, int], ...]

# Integers up to this are exact as floats.
_EXACT = 1 << 24


@dataclass(frozen=True, slots=True)
class _Windows:
    """How windows slide over the spatial dimensions.

    Attributes:
        strides: The steps.
        pads: What is added before and after; negative numbers are cut off.
        gaps: The distance of the input's elements.
        rates: The distance of the kernel's.
        groups: The number of groups of channels.
    """

    strides: tuple[int, ...]
    pads: Pairs
    gaps: tuple[int, ...]
    rates: tuple[int, ...]
    groups: int

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
    rows = padding.cast(np.int32).split(0, x.rank - 2) if x.rank > 3 else [padding.cast(np.int32)]
    none = raised.constant([[0, 0]], np.int32)
    parts = [rows[int(letter)] if letter.isdigit() else none for letter in layout]
    padded = x.op("Pad", x, parts[0].concat(parts[1:], 0))
    return _convolved(raised, padded, kernel, [(0, 0)] * (x.rank - 2))


def _dimensions(raised: RaisedOp) -> ConvAttr:
    dims = raised.op.properties["dimension_numbers"]
    assert isinstance(dims, ConvAttr)
    return dims


def _convolved(
    raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, padding: Sequence[Sequence[int]]
) -> EmittedTensor:
    rank = x.rank - 2
    if rank not in (1, 2, 3):
        raise Declined(f"it has {rank} spatial dimensions")
    ones = (1,) * rank
    windows = _Windows(
        raised.ints("window_strides", ones),
        tuple((low, high) for low, high in padding),
        raised.ints("lhs_dilation", ones),
        raised.ints("rhs_dilation", ones),
        raised.integer("feature_group_count", 1),
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
        x, windows = _batches_as_groups(raised, x, batches), replace(windows, groups=batches)
    found = _of_rank(raised, x, kernel, windows)
    return _arranged(found, ("b", *spatial, "f"), dims.result).cast(raised.dtype())


def _arranged(x: EmittedTensor, layout: Sequence[str], wanted: Sequence[str]) -> EmittedTensor:
    order = [layout.index(letter) for letter in wanted]
    return x if order == sorted(order) else x.op("Transpose", x, order)  # type: ignore[no-any-return]


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


def _of_rank(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    if windows.rank > 1:
        return _with_gaps(raised, x, kernel, windows)
    flat = _Windows(
        (1, *windows.strides), ((0, 0), *windows.pads), (1, *windows.gaps), (1, *windows.rates), windows.groups
    )
    found = _with_gaps(raised, x.expand_dims(1), kernel.expand_dims(0), flat)
    return found.op("Squeeze", found, squeeze_dims=[1])  # type: ignore[no-any-return]


def _with_gaps(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    if max(windows.gaps) == 1:
        return _grouped(raised, x, kernel, windows)
    if windows.groups == max(windows.strides) == 1:
        return _transposed(raised, x, kernel, windows)
    pads = tuple((low, high - gap + 1) for (low, high), gap in zip(windows.pads, windows.gaps, strict=True))
    x = _spread(raised, x, (1, *windows.gaps))
    return _grouped(raised, x, kernel, replace(windows, pads=pads, gaps=(1,) * windows.rank))


def _spread(raised: RaisedOp, x: EmittedTensor, gaps: Sequence[int]) -> EmittedTensor:
    """Returns a tensor with zeros behind the elements of its first dimensions."""
    for axis, gap in reversed(list(enumerate(gaps))):
        if gap == 1:
            continue
        sizes = list(raised.sizes(x))
        inner = prod(sizes[axis + 1 :])
        if min(sizes[axis + 1 :]) < 0:
            raise Declined("its input has gaps, and sizes that aren't known before it runs")
        rows = x.reshape([-1, inner])
        padded = rows.op("Pad", rows, [[0, 0], [0, (gap - 1) * inner]])
        sizes[axis] = sizes[axis] * gap if sizes[axis] >= 0 else -1
        if len([size for size in sizes if size < 0]) > 1:
            shape = x.op("Shape", x)
            shape = shape * raised.constant([gap if at == axis else 1 for at in range(len(sizes))], np.int32)
            x = padded.op("Reshape", padded, shape)
        else:
            x = padded.reshape([max(size, -1) for size in sizes])
    return x


def _grouped(raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns a convolution over an input without gaps."""
    x, windows = _cut(x, windows)
    x, padding, explicit = _padding(raised, x, kernel, windows)
    options = {
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
    parts = zip(x.split(x.rank - 1, groups), kernel.split(kernel.rank - 1, groups), strict=True)
    first, *others = [part.op("Conv3D", part, weights, **options) for part, weights in parts]
    return first.concat(others, x.rank - 1)  # type: ignore[no-any-return]


def _cut(x: EmittedTensor, windows: _Windows) -> tuple[EmittedTensor, _Windows]:
    """Cuts off what negative padding says."""
    cuts = [(max(-low, 0), max(-high, 0)) for low, high in windows.pads]
    kept = tuple((max(low, 0), max(high, 0)) for low, high in windows.pads)
    return cropped(x, cuts), replace(windows, pads=kept)


def cropped(x: EmittedTensor, cuts: Sequence[tuple[int, int]]) -> EmittedTensor:
    """Returns a tensor without a number of elements before and after the rest of each spatial dimension."""
    if not any(map(any, cuts)):
        return x
    ends = [0, *(-high for _, high in cuts), 0]
    found: EmittedTensor = x.op(
        "StridedSlice",
        x,
        [0, *(low for low, _ in cuts), 0],
        ends,
        [1] * x.rank,
        begin_mask=0,
        end_mask=sum(1 << axis for axis, end in enumerate(ends) if not end),
        ellipsis_mask=0,
        new_axis_mask=0,
        shrink_axis_mask=0,
    )
    return found


def _padding(
    raised: RaisedOp, x: EmittedTensor, kernel: EmittedTensor, windows: _Windows
) -> tuple[EmittedTensor, str, dict[str, list[int]]]:
    """Returns the input, the kind of padding, and the attribute of an explicit one."""
    if not any(map(any, windows.pads)):
        return x, "VALID", {}
    space = raised.sizes(x)[1:-1]
    each = zip(space, windows.extents(kernel), windows.strides, windows.pads, strict=True)
    if all(is_same(*one) for one in each):
        return x, "SAME", {}
    pads = ((0, 0), *windows.pads, (0, 0))
    if windows.rank == 2:
        return x, "EXPLICIT", {"explicit_paddings": [amount for pad in pads for amount in pad]}
    return x.op("Pad", x, [list(pad) for pad in pads]), "VALID", {}


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
        kernel = _spread(raised, kernel, windows.rates)
        kernel = cropped(kernel.expand_dims(0), [*((0, rate - 1) for rate in windows.rates), (0, 0)])
        kernel = kernel.op("Squeeze", kernel, squeeze_dims=[0])
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
        batch = raised.sizes(x)[0]
        outer = raised.constant(batch, np.int32) if batch >= 0 else _size(raised, x, 0)
        sizes = [outer, *sizes, raised.constant(raised.sizes(filters)[-2], np.int32)]
    vector = x.op("Pack", *sizes)
    options = {"strides": [1, *gaps, 1], "padding": padding, "data_format": data_format, "dilations": [1] * (rank + 2)}
    found = x.op(op, vector, filters, x, **options)
    found = cropped(found, [(max(low, 0), max(high, 0)) for low, high in cuts])
    added = [[0, 0], *([max(-low, 0), max(-high, 0)] for low, high in cuts), [0, 0]]
    return found.op("Pad", found, added) if any(map(any, added)) else found


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
        size = raised.sizes(x)[axis]
        sizes.append(
            raised.constant(size * factor + more, np.int32) if size >= 0 else _size(raised, x, axis) * factor + more
        )
    return sizes


def _size(raised: RaisedOp, x: EmittedTensor, axis: int) -> EmittedTensor:
    return raised.tensor(x.builder.pick(x.op("Shape", x).value, axis))


ROWS: Rows = {"convolution": _convolution, "dynamic_conv": _dynamic_convolution}
