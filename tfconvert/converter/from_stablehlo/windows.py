"""Reductions over windows: as poolings, as running sums and the like, or by combining shifted slices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.from_stablehlo.convolutions import is_same
from tfconvert.converter.from_stablehlo.idioms import number, operands_of
from tfconvert.converter.from_stablehlo.padding import amounts, equals, is_computed_same
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.from_stablehlo.reductions import (
    Combine,
    combine_by,
    is_log_add_exp,
    is_neutral,
    logical,
    neutral,
    ops_of,
    wide_type,
)
from tfconvert.converter.from_stablehlo.shaping import padded
from tfconvert.converter.ir.constants import index_range
from tfconvert.converter.ir.symbol_table import named
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.schema.dialects import dims, tf
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.limits import budget

# Integers up to this are exact as floats.
_EXACT = 1 << 24

# Sizes up to which all pairs of elements of a running maximum are compared at once.
_MAX_PAIRED = 128

# Sizes of windows up to which each of their elements is a slice.
_MAX_TAPS = 8

# The most dimensions of a tensor that LiteRT transposes, and that XNNPACK reduces.
_MAX_RANK = 6

# How many copies of each element windows may have that overlap, on average.
_MAX_COPIES = 4

# Up to how many elements each one of a window has an operator of its own.
_MAX_PLACES = 1024

# The rank of a volume, which is pooled in steps.
_DEEP = 5


class _Windows(NamedTuple):
    """How windows slide over all dimensions.

    Attributes:
        sizes: Their sizes; that of a whole dimension as `RaisedOp.sizes` returns it.
        strides: The steps.
        rates: The distance of their elements.
        pads: What is added before and after.
        running: The dimension with windows of all elements up to each one, if it is the only one with windows.
        is_reversed: Whether these are of all from each one.
        is_same: Whether padding is that of `SAME` for dimensions that aren't known.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    rates: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    running: int | None = None
    is_reversed: bool = False
    is_same: bool = False

    @property
    def axes(self) -> list[int]:
        """The dimensions in which windows are more than each element."""
        each = zip(self.sizes, self.strides, self.pads, strict=True)
        return [axis for axis, one in enumerate(each) if one != (1, 1, (0, 0))]

    def in_order(self, order: Sequence[int]) -> _Windows:
        """Returns the windows over dimensions in another order; -1 is a new one."""

        def moved(values: Sequence[Any], new: Any) -> tuple[Any, ...]:
            return tuple(new if axis < 0 else values[axis] for axis in order)

        return _Windows(
            moved(self.sizes, 1),
            moved(self.strides, 1),
            moved(self.rates, 1),
            moved(self.pads, (0, 0)),
            is_same=self.is_same,
        )


def _reduce_window(raised: RaisedOp) -> Sequence[EmittedTensor]:
    count = len(raised.operands) // 2
    rank = raised.operands[0].rank
    ones = (1,) * rank
    sizes = raised.ints("window_dimensions")
    strides, rates, gaps = (
        raised.ints(name, ones) for name in ("window_strides", "window_dilations", "base_dilations")
    )
    pads = tuple(raised.pairs("padding", rank))
    found = []
    block = raised.op.regions[0].block
    for name, x, init in zip(_names(block), raised.operands[:count], raised.operands[count:], strict=True):
        if max(gaps, default=1) > 1:
            x = padded(raised, x, init, [0] * rank, [0] * rank, [gap - 1 for gap in gaps])
        windows = _as_running(raised, x, _Windows(sizes, strides, rates, pads))
        found.append(_reduced(raised, name, x, init, windows))
    return found


def _dynamic_reduce_window(raised: RaisedOp) -> Sequence[EmittedTensor]:
    x, init, *vectors, padding = raised.operands
    sizes, strides, gaps, rates = map(raised.elements, vectors)
    need(all(len(each) == x.rank for each in (sizes, strides, gaps, rates)), "its windows have another rank")
    need(padding.shape == (x.rank, 2), "its padding has another rank")
    need(min(*strides, *gaps, *rates) > 0 and max(gaps) == 1, "its strides or dilations aren't known before it runs")
    (name,) = _names(_body(raised))
    pairs = amounts(raised, padding)
    windows = _Windows(sizes, strides, rates, ((0, 0),) * x.rank)
    space = raised.sizes(x)
    known = [[raised.known(amount) for amount in pair] for pair in pairs]
    if all(each is not None for pair in known for each in pair):
        pads = tuple((int(low.item()), int(high.item())) for low, high in known)  # type: ignore[union-attr]
        return [_reduced(raised, name, x, init, _as_running(raised, x, windows._replace(pads=pads)))]
    axes = [axis for axis, size in enumerate(sizes) if size != 1]
    if len(axes) == 1 and sizes[axes[0]] == space[axes[0]] and max(*strides, *rates) == 1:
        (axis,) = axes
        for is_reversed, (long, short) in ((False, pairs[axis]), (True, pairs[axis][::-1])):
            if equals(raised, long, space[axis], lambda size: size - 1) and equals(
                raised, short, space[axis], lambda size: size * 0
            ):
                return [_reduced(raised, name, x, init, windows._replace(running=axis, is_reversed=is_reversed))]
    if name in ("maximum", "minimum") and is_neutral(raised, name, init) and x.dtype.kind == "f":
        each = zip(pairs, space, sizes, strides, strict=True)
        if (
            _image_order(x.rank, axes) is not None
            and max(rates) == 1
            and all(is_computed_same(raised, *one) for one in each)
        ):
            return [_reduced(raised, name, x, init, windows._replace(is_same=True))]
    x = x.op("PadV2", x, padding.cast(np.int32), init)
    return [_reduced(raised, name, x, init, windows)]


def _body(raised: RaisedOp) -> Block:
    """Returns the function that combines elements."""
    module = raised.op.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None
    found = defined_functions(module).get(named(raised.op, "called_computations"))
    if found is None:
        raise Declined("the function that it calls isn't in the module")
    return found.body.block


def _names(block: Block) -> list[str]:
    return ["log_add_exp"] if is_log_add_exp(block) else ops_of(block)


def _as_running(raised: RaisedOp, x: EmittedTensor, windows: _Windows) -> _Windows:
    """Notes windows that reach from one end to each element."""
    axes = windows.axes
    if len(axes) != 1 or max(*windows.strides, *windows.rates) > 1:
        return windows
    (axis,) = axes
    size, pads = raised.sizes(x)[axis], windows.pads[axis]
    if windows.sizes[axis] != size or size < 2 or pads not in ((size - 1, 0), (0, size - 1)):
        return windows
    return windows._replace(running=axis, is_reversed=pads[0] == 0)


def _reduced(raised: RaisedOp, name: str, x: EmittedTensor, init: EmittedTensor, windows: _Windows) -> EmittedTensor:
    name = logical(name, x.dtype)
    if name == "log_add_exp":
        need(windows.running is not None and is_neutral(raised, "maximum", init), "its windows are of another form")
    elif not is_neutral(raised, name, init):
        constant = raised.constant(neutral(name, x.dtype), x.dtype)
        if windows.running is None:
            x = padded(raised, x, init, *([pad[side] for pad in windows.pads] for side in (0, 1)))
            windows = windows._replace(pads=((0, 0),) * x.rank)
        else:
            # Other windows have it as often as they reach outside.
            need(name not in ("add", "multiply", "xor"), "a running sum or product begins with a value of its own")
        return combine_by(name)(_reduced(raised, name, x, constant, windows), init)
    if windows.running is not None:
        return _running(raised, name, x, windows.running, windows.is_reversed)
    if not windows.axes:
        return x
    need(min(windows.sizes) > 0, "its windows have a size that isn't known before it runs")
    return _pooled(raised, name, x, windows)


_REDUCTIONS = {"add": "Sum", "and": "All", "maximum": "Max", "minimum": "Min", "multiply": "Prod", "or": "Any"}
_RUNNING = {"add": "Cumsum", "multiply": "Cumprod"}


# The lowest numbers of narrow floats.
_LOWEST = {"bfloat16": -3.3895313892515355e38, "float16": -65504.0}


def _running(raised: RaisedOp, name: str, x: EmittedTensor, axis: int, is_reversed: bool) -> EmittedTensor:
    """Returns each element combined with all before it, or behind it."""
    size = raised.sizes(x)[axis]
    dtype = x.dtype
    wide = x.cast(wide_type(name, dtype))
    if name in ("maximum", "minimum") and 0 <= size <= _MAX_TAPS:
        # Elements that are compared once more change nothing.
        places = np.arange(size, dtype=np.int32)
        places = (np.maximum if is_reversed else np.minimum)(places[:, None], places)
        return x.op("GatherV2", wide, places, axis).reduce(_REDUCTIONS[name], [axis + 1]).cast(dtype)  # type: ignore[no-any-return]
    if name in _RUNNING and dtype != np.bool_ and (name == "add" or size > _MAX_TAPS):
        found: EmittedTensor = x.op(_RUNNING[name], wide, axis, exclusive=False, reverse=is_reversed)
        return found.cast(dtype)
    if size > _MAX_PAIRED and name != "log_add_exp":
        return _by_doubling(raised, name, wide, axis, is_reversed).cast(dtype)
    numbers = raised.constant(index_range(size), np.int32) if size >= 0 else x.op("Range", 0, raised.size(x, axis), 1)
    rest = [1] * (x.rank - axis - 1)
    one, other = numbers.reshape([-1, 1, *rest]), numbers.reshape([1, -1, *rest])
    reached = one.op("LessEqual", one, other) if is_reversed else one.op("GreaterEqual", one, other)
    fill = neutral("maximum" if name == "log_add_exp" else name, wide.dtype)
    terms: EmittedTensor = reached.op("SelectV2", reached, wide.expand_dims(axis), raised.constant(fill, wide.dtype))
    if name == "log_add_exp":
        lowest = _LOWEST.get(wide.dtype.name, float(np.finfo(np.float32).min))
        top = terms.reduce("Max", [axis + 1]).maximum(lowest)
        return (terms - top.expand_dims(axis + 1)).exp().sum([axis + 1]).log() + top
    need(name in _REDUCTIONS, "TensorFlow has no such running reduction")
    return terms.reduce(_REDUCTIONS[name], [axis + 1]).cast(dtype)


def _by_doubling(raised: RaisedOp, name: str, x: EmittedTensor, axis: int, is_reversed: bool) -> EmittedTensor:
    """Returns a running reduction by steps of which each doubles how many elements are combined."""
    size, step = raised.sizes(x)[axis], 1
    fill = raised.constant(neutral(name, x.dtype), x.dtype)
    while step < size:
        by = [step if each == axis else 0 for each in range(x.rank)]
        less = [-each for each in by]
        shifted = padded(raised, x, fill, *((less, by) if is_reversed else (by, less)))
        x, step = combine_by(name)(x, shifted), 2 * step
    return x


def _pooled(raised: RaisedOp, name: str, x: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns the reduction of windows as a pooling where there is one."""
    dtype = x.dtype
    order = _image_order(x.rank, windows.axes)
    count = prod(windows.sizes)
    largest = np.iinfo(dtype).max + 1 if dtype.kind in "iu" else 0
    is_exact = largest * (count if name == "add" else 1) <= _EXACT
    is_pooling = order is not None and max(windows.rates) == 1 and is_exact and name in ("add", "maximum", "minimum")
    is_plain = is_pooling and name != "minimum" and x.rank < _DEEP
    if order is None or not is_pooling or (not is_plain and _are_tiles(raised.sizes(x), windows)):
        return _by_parts(raised, name, x.cast(wide_type(name, dtype)), windows).cast(dtype)
    x = x.cast(np.float32) if dtype.kind in "iu" else x
    image = _ordered(raised, x, order)
    windows = windows.in_order(order)
    if name == "minimum":
        found = -_pool(raised, "Max", -image, windows)
    else:
        found = _pool(raised, "Max" if name == "maximum" else "Avg", image, windows)
    return _ordered_back(found, order).cast(dtype)


def _image_order(rank: int, axes: Sequence[int]) -> list[int] | None:
    """Returns the dimensions in the order batch, space, channels, where -1 is a new one; `None` if it is no image."""
    if rank <= 2:
        return [-1] * (3 - rank) + [*range(rank), -1]
    if rank == 3:
        return (
            [0, -1, 1, 2]
            if axes == [1]
            else [0, 1, 2, -1]
            if 0 not in axes
            else [-1, 0, 1, 2]
            if 2 not in axes
            else None
        )
    spatial = range(1, rank - 1)
    if rank > 5:
        return None
    if set(axes) <= {*spatial}:
        return [*range(rank)]
    return [0, *range(2, rank), 1] if set(axes) <= {*range(2, rank)} else None


def _ordered(raised: RaisedOp, x: EmittedTensor, order: Sequence[int]) -> EmittedTensor:
    kept = [axis for axis in order if axis >= 0]
    if kept != sorted(kept):
        return x.op("Transpose", x, kept)  # type: ignore[no-any-return]
    for at, axis in enumerate(order):
        if axis < 0:
            x = x.expand_dims(at)
    return x


def _ordered_back(x: EmittedTensor, order: Sequence[int]) -> EmittedTensor:
    new = [at for at, axis in enumerate(order) if axis < 0]
    if new:
        return x.op("Squeeze", x, squeeze_dims=new)  # type: ignore[no-any-return]
    back = [order.index(axis) for axis in range(len(order))]
    return x if back == sorted(back) else x.op("Transpose", x, back)


def _pool(raised: RaisedOp, kind: str, x: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns the maxima of windows, or their sums by their means."""
    each = list(zip(raised.sizes(x), windows.sizes, windows.strides, windows.pads, strict=True))
    padding = "SAME" if windows.is_same else "VALID"
    counts: Any = prod(windows.sizes)
    if any(map(any, windows.pads)):
        is_static = (
            kind == "Max"
            or min(size for size, (low, high) in zip(raised.sizes(x), windows.pads, strict=True) if low or high) >= 0
        )
        if is_static and all(is_same(*one) for one in each):
            padding = "SAME"
            counts = 1 if kind == "Max" else _counts(each)
        else:
            fill = raised.constant(-np.inf if kind == "Max" else 0, x.dtype)
            x = padded(raised, x, fill, *([pad[side] for pad in windows.pads] for side in (0, 1)))
    deep = "3D" if x.rank == 5 else ""
    options: dict[str, Any] = {
        "ksize": list(windows.sizes),
        "strides": list(windows.strides),
        "padding": padding,
        "data_format": "NDHWC" if deep else "NHWC",
    }
    found: EmittedTensor = x.op(f"{kind}Pool{deep}", x, **options)
    return found if kind == "Max" else found * raised.constant(counts, x.dtype)


def averaged(raised: RaisedOp, total: EmittedTensor, count: EmittedTensor) -> EmittedTensor | None:
    """Returns the average that sums of windows, divided by how many elements these have inside, are.

    The image has a size that only running tells, and padding is computed of it.
    """
    sums, numbers = _sums(total), _sums(count)
    if sums is None or numbers is None or sums.pool.properties != numbers.pool.properties:
        return None
    x, ones, size = sums.x, numbers.x, _lists(sums.pool)
    pairs = [amounts(raised, each.padding) for each in (sums, numbers)]
    space, same = raised.sizes(x), raised.sizes(ones)
    for axis, (extent, stride) in enumerate(zip(*size, strict=True)):
        is_as_large = space[axis] == same[axis] or extent == stride == 1
        if not is_as_large or not all(
            is_computed_same(raised, pair[axis], space[axis], extent, stride) for pair in pairs
        ):
            return None
    if raised.only_element(ones) != 1 or sums.factor != numbers.factor:
        return None
    ksize, strides = size
    return x.op("AvgPool", x, ksize=ksize, strides=strides, padding="SAME", data_format="NHWC")  # type: ignore[no-any-return]


class _Sums(NamedTuple):
    """Sums of windows.

    Attributes:
        pool: The pooling of an image with zeros around it.
        x: The image.
        padding: How many zeros there are.
        factor: What the means are multiplied by.
    """

    pool: Operation
    x: EmittedTensor
    padding: EmittedTensor
    factor: float | None


def _sums(x: EmittedTensor) -> _Sums | None:
    factors = operands_of(x, "Mul")
    means = operands_of(factors[0], "AvgPool") if factors else ()
    image = operands_of(means[0], "Pad", "PadV2") if means else ()
    if not image or any(number(value) != 0 for value in image[2:]):
        return None
    pool = factors[0].value.owner
    assert isinstance(pool, Operation)
    return _Sums(pool, image[0], image[1], number(factors[1]))


def _lists(pool: Operation) -> tuple[list[int], list[int]]:
    return tf.get(pool, "ksize"), tf.get(pool, "strides")


def _counts(each: Sequence[tuple[int, int, int, tuple[int, int]]]) -> Any:
    """Returns how many elements of windows are within the image."""
    found: Any = np.ones((), np.float32)
    for size, length, stride, (low, high) in each:
        inside = np.ones(1)
        if low + high:
            begins = index_range(0, size + low + high - length + 1, stride) - low
            inside = np.minimum(begins + length, size) - np.maximum(begins, 0)
        elif length > 1:
            inside = np.full(1, length)
        budget().take_bytes(found.size * inside.nbytes, "the numbers of elements in windows")
        found = found[..., None] * inside
    return found


def _by_parts(raised: RaisedOp, name: str, x: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns the reduction of windows as one of further dimensions, those of the elements of each window."""
    sizes, reduction = raised.sizes(x), _REDUCTIONS.get(name)
    if reduction is None or (name in ("and", "or")) != (x.dtype == np.bool_):
        return _by_slices(raised, name, x, windows)
    if _are_tiles(sizes, windows):
        return _by_tiles(raised, reduction, x, windows)
    copies = prod(size / stride for size, stride in zip(windows.sizes, windows.strides, strict=True))
    is_known = min(sizes[axis] for axis in windows.axes) >= 0
    if not is_known or copies > _MAX_COPIES or x.rank + len(windows.axes) > _MAX_RANK:
        return _by_slices(raised, name, x, windows)
    if any(map(any, windows.pads)):
        fill = raised.constant(neutral(name, x.dtype), x.dtype)
        x = padded(raised, x, fill, *([pad[side] for pad in windows.pads] for side in (0, 1)))
    added: list[int] = []
    for axis in windows.axes:
        at, size, rate = axis + len(added), windows.sizes[axis], windows.rates[axis]
        begins = range(0, raised.sizes(x)[at] - (size - 1) * rate, windows.strides[axis])
        element, inside = np.divmod(index_range(len(begins) * size), size)
        indices = element * windows.strides[axis] + inside * rate
        x = x.op("GatherV2", x, indices.reshape(-1, size).astype(np.int32), at)
        added.append(at + 1)
    return x.reduce(reduction, added)


def _by_tiles(raised: RaisedOp, reduction: str, x: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Reduces windows that are side by side, in two steps where there are too many dimensions for one."""
    *first, last = windows.axes
    if x.rank + len(windows.axes) > _MAX_RANK and first:
        (rows, added), sizes = _tiled(raised, x, windows, first, merges=True), list(raised.sizes(x))
        for axis in first:
            sizes[axis] //= windows.sizes[axis]
        x = raised.reshaped(rows.reduce(reduction, added), _split(sizes, windows, [last])[0])
        return x.reduce(reduction, [last + 1])
    rows, added = _tiled(raised, x, windows, windows.axes)
    return rows.reduce(reduction, added)


def _tiled(
    raised: RaisedOp, x: EmittedTensor, windows: _Windows, axes: Sequence[int], *, merges: bool = False
) -> tuple[EmittedTensor, list[int]]:
    """Returns a tensor with a further dimension behind each of some, of the elements of a window; and which these are.

    Args:
        raised: The op.
        x: The tensor.
        windows: The windows.
        axes: The dimensions.
        merges: Whether the others become as few as possible.
    """
    shape, added = _split(raised.sizes(x), windows, axes)
    if merges:
        merged: list[int] = []
        places = []
        for axis, size in enumerate(shape):
            if axis in added:
                places.append(len(merged))
            if merged and axis not in added and axis - 1 not in added:
                merged[-1] = dims.multiply(merged[-1], size)
            else:
                merged.append(size)
        shape, added = merged, places
    return raised.reshaped(x, shape), added


def _split(sizes: Sequence[int], windows: _Windows, axes: Sequence[int]) -> tuple[list[int], list[int]]:
    shape: list[int] = []
    added = []
    for axis, size in enumerate(sizes):
        if axis in axes:
            added.append(len(shape) + 1)
            shape += [size // windows.sizes[axis], windows.sizes[axis]]
        else:
            shape.append(size)
    return shape, added


def _by_slices(raised: RaisedOp, name: str, x: EmittedTensor, windows: _Windows) -> EmittedTensor:
    """Returns the reduction of windows by combining the slices of their elements, one dimension after the other."""
    combine = combine_by(name)
    fill = raised.constant(neutral(name, x.dtype), x.dtype)
    x = padded(raised, x, fill, *([pad[side] for pad in windows.pads] for side in (0, 1)))
    for axis in windows.axes:
        size, stride, rate = windows.sizes[axis], windows.strides[axis], windows.rates[axis]
        if size <= _MAX_TAPS:
            taps = [_slice(x, axis, at * rate, (size - 1 - at) * rate, stride) for at in range(size)]
            x = taps[0]
            for tap in taps[1:]:
                x = combine(x, tap)
        else:
            x = _slice(_long_windows(combine, x, axis, size, rate), axis, 0, 0, stride)
    return x


def _long_windows(combine: Combine, x: EmittedTensor, axis: int, size: int, rate: int) -> EmittedTensor:
    """Combines the windows of each power of two that is part of a size."""
    found, reached, length, power = None, 0, 1, x
    while True:
        if size & length:
            if found is None:
                found = power
            else:
                # Both begin where the first does, and end where the shorter one does.
                shifted = _slice(power, axis, reached * rate, 0, 1)
                found = combine(_slice(found, axis, 0, length * rate, 1), shifted)
            reached += length
        if reached == size:
            return found if found is not None else x
        power = combine(_slice(power, axis, 0, length * rate, 1), _slice(power, axis, length * rate, 0, 1))
        length *= 2


def _slice(x: EmittedTensor, axis: int, before: int, behind: int, stride: int) -> EmittedTensor:
    """Returns every so-many-th element of an axis, without the first and last ones."""
    if (before, behind, stride) == (0, 0, 1):
        return x
    begin, end, steps = (
        [value if each == axis else other for each in range(x.rank)]
        for value, other in ((before, 0), (-behind, 0), (stride, 1))
    )
    mask = (1 << x.rank) - 1
    rest = mask & ~(1 << axis)
    return x.op("StridedSlice", x, begin, end, steps, begin_mask=rest, end_mask=rest if behind else mask)  # type: ignore[no-any-return]


def _select_and_scatter(raised: RaisedOp) -> EmittedTensor:
    """Adds each element of the source where its window has its largest or smallest element: a pooling's gradient."""
    x, source, init = raised.operands
    ones = (1,) * x.rank
    windows = _Windows(
        raised.ints("window_dimensions", ones),
        raised.ints("window_strides", ones),
        ones,
        tuple(raised.pairs("padding", x.rank)),
    )
    selection, combination = (region.block for region in raised.op.regions)
    need(ops_of(combination) == ["add"] and is_neutral(raised, "add", init), "it doesn't add to zeros")
    need(x.dtype.kind == "f", "it selects elements that are no floats")
    name, is_last = _selected(selection)
    if not windows.axes:
        return source
    if name == "minimum":
        x = -x
    if _are_tiles(raised.sizes(x), windows) and x.rank + len(windows.axes) <= _MAX_RANK:
        return _into_tiles(raised, x, source, windows, is_last=is_last)
    fill = raised.constant(-np.inf, x.dtype)
    x = padded(raised, x, fill, *([pad[side] for pad in windows.pads] for side in (0, 1)))
    need(prod(windows.sizes) <= _MAX_PLACES, f"its windows have more than {_MAX_PLACES} elements")
    places = [*np.ndindex(*windows.sizes)]
    taps = [_tap(raised, x, source, place, windows) for place in places]
    chosen = _chosen(raised, x.op("Pack", *taps, axis=x.rank), len(taps), is_last=is_last) * source.expand_dims(x.rank)
    spread = []
    parts = chosen.op("Unpack", chosen, results=len(taps), num=len(taps), axis=x.rank)
    for place, part in zip(places, parts, strict=True):
        low, high = [0] * x.rank, [0] * x.rank
        for axis in windows.axes:
            low[axis] = place[axis] - windows.pads[axis][0]
            high[axis] = _behind(raised, x, source, place, windows, axis) - windows.pads[axis][1]
        spread.append(padded(raised, part, init, low, high, [stride - 1 for stride in windows.strides]))
    return spread[0].op("AddN", *spread)  # type: ignore[no-any-return]


def _selected(block: Block) -> tuple[str, bool]:
    """Returns which elements of a window are selected, and whether of equal ones the last is."""
    owner = block.last_op.operands[0].owner if block.last_op is not None else None
    if isinstance(owner, Operation) and owner.name == "stablehlo.compare":
        direction = owner.properties["comparison_direction"]
        assert isinstance(direction, EnumeratorAttr)
        text = direction.value
        if tuple(owner.operands) == tuple(block.args)[::-1]:
            text = text.translate(str.maketrans("GL", "LG"))
        elif tuple(owner.operands) != tuple(block.args):
            text = ""
        if text in ("GE", "GT", "LE", "LT"):
            return "maximum" if text[0] == "G" else "minimum", text[1] == "T"
    raise Declined("it selects by another comparison")


def _chosen(raised: RaisedOp, taps: EmittedTensor, count: int, *, is_last: bool) -> EmittedTensor:
    """Returns 1 for the first or last largest element along the last axis, 0 for others."""
    axis = taps.rank - 1
    if is_last:
        taps = taps.op("ReverseV2", taps, [axis])
    at = taps.op("ArgMax", taps, axis, output_type=np.dtype(np.int32))
    if is_last:
        at = count - 1 - at
    one, zero = (raised.constant(value, taps.dtype) for value in (1, 0))
    return at.op("OneHot", at, count, one, zero, axis=-1)  # type: ignore[no-any-return]


def _tap(
    raised: RaisedOp, x: EmittedTensor, source: EmittedTensor, place: Sequence[int], windows: _Windows
) -> EmittedTensor:
    """Returns the elements at one place of all windows."""
    for axis in windows.axes:
        x = _slice(x, axis, place[axis], _behind(raised, x, source, place, windows, axis), windows.strides[axis])
    return x


def _behind(
    raised: RaisedOp, x: EmittedTensor, source: EmittedTensor, place: Sequence[int], windows: _Windows, axis: int
) -> int:
    """Returns how many elements are behind the last window's element at a place."""
    size, count = raised.sizes(x)[axis], raised.sizes(source)[axis]
    need(min(size, count) >= 0, "the number of its windows isn't known")
    return size - place[axis] - (count - 1) * windows.strides[axis] - 1


def _are_tiles(sizes: Sequence[int], windows: _Windows) -> bool:
    """Returns whether windows neither overlap nor leave anything out."""
    return (
        windows.sizes == windows.strides
        and max(windows.rates) == 1
        and not any(map(any, windows.pads))
        and all(sizes[axis] >= 0 and sizes[axis] % windows.sizes[axis] == 0 for axis in windows.axes)
    )


def _into_tiles(
    raised: RaisedOp, x: EmittedTensor, source: EmittedTensor, windows: _Windows, *, is_last: bool
) -> EmittedTensor:
    sizes = raised.sizes(x)
    need(sum(size < 0 for size in sizes) <= 1, "several of its dimensions aren't known")
    split: list[int] = []
    within = []
    for axis, size in enumerate(sizes):
        length = windows.sizes[axis]
        split.append(max(size // length, -1))
        if axis in windows.axes:
            within.append(len(split))
            split.append(length)
    order = [axis for axis in range(len(split)) if axis not in within] + within
    count = prod(windows.sizes)
    outer, inner = [split[axis] for axis in order[: x.rank]], [split[axis] for axis in within]
    tiles = x.reshape(split)
    tiles = tiles.op("Transpose", tiles, order).reshape([*outer, count])
    found = (_chosen(raised, tiles, count, is_last=is_last) * source.expand_dims(x.rank)).reshape([*outer, *inner])
    back = [order.index(axis) for axis in range(len(order))]
    return found.op("Transpose", found, back).reshape([max(size, -1) for size in sizes])  # type: ignore[no-any-return]


ROWS: Rows = {
    "@stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
}
