"""Where slices are: their starts, moved to where a slice is inside, and the slices themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.from_stablehlo.bounds import Number, Span, offset_of, span_of, spanned
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.from_stablehlo.ranges import range_of, wrapped_index
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import need
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Places:
    """The starts of slices along one axis of a tensor, moved to where they are inside.

    Attributes:
        raised: The op.
        of: The tensor.
        axis: The axis.
        length: The slices' length, or the symbol of a size.
        part: The length, where it is computed as a scalar of `i32`.
        index: The starts, of any shape.
        size: The size of the axis, or its symbol.
    """

    __slots__ = ("axis", "index", "length", "of", "part", "raised", "size")

    def __init__(
        self, raised: RaisedOp, of: EmittedTensor, axis: int, length: int, index: EmittedTensor, part: Number = -1
    ) -> None:
        self.raised = raised
        self.of = of
        self.axis = axis
        self.length = length
        self.part = part
        self.size = raised.sizes(of)[axis]
        dtype = index.dtype
        if dtype.kind == "u" and dtype.itemsize >= 4:
            need(dtype.itemsize == 4, "indices of ui64 are beyond those of LiteRT")
            index = index.cast(np.int64)
        self.index = index.cast(np.int32) if dtype.itemsize < 4 else index

    def of_shape(self, shape: Sequence[int]) -> Places:
        """Returns the same with the starts in another shape."""
        index = settled(self.raised, self.index, shape)
        return Places(self.raised, self.of, self.axis, self.length, index, self.part)

    @property
    def is_whole(self) -> bool:
        return self.length == self.size

    @property
    def constant(self) -> np.ndarray[Any, np.dtype[Any]] | None:
        """The clamped starts, `None` where they, or the tensor's size, are not known."""
        found = tensor_data.constant_of(self.index.value)
        if found is None:
            return None
        array = tensor_data.to_array(found).astype(np.int64)
        last = self.known_last
        if last is not None:
            return np.clip(array, 0, last)
        return None if (array > 0).any() else np.zeros_like(array)

    @property
    def known_last(self) -> int | None:
        """The last start that is inside, where that is known."""
        if self.size >= 0:
            return self.size - self.length if self.length >= 0 else None
        length = offset_of(self.part) if isinstance(self.part, EmittedTensor) else None
        return -length[1] if length is not None and length[0] == self.size else None

    @property
    def last(self) -> Number:
        """The last start that is inside."""
        known = self.known_last
        if known is not None:
            return known
        return subtracted(extent(self.of, self.axis), self.length if self.length >= 0 else self.part)

    @property
    def is_from_end(self) -> bool:
        """Returns whether each slice is known to be the last one of its length."""
        return self.size < 0 <= self.length and offset_of(self.index) == (self.size, -self.length)

    @property
    def is_inside(self) -> bool:
        found, last = range_of(self.index.value, self.index.known), self.known_last
        if found.low < 0:
            return False
        return found.high <= last if last is not None else self.length == 1 and found.below == self.size

    @property
    def wrapped(self) -> EmittedTensor | None:
        """The indices that the starts are computed from, where negative ones are counted from the end."""
        found = wrapped_index(self.index.value)
        if found is None or self.length < 0 or _is_used(self.index.value):
            return None
        constant, partial = tensor_data.constant_of(found[1]), self.index.known.partial(found[1])
        if constant is not None:
            is_size = bool(np.all(tensor_data.to_array(constant) == self.size))
        else:
            is_size = partial == (self.size,)
        return self.raised.tensor(found[0]) if is_size else None

    def clamped(self) -> EmittedTensor:
        """Returns the starts, clamped."""
        constant = self.constant
        if constant is not None:
            return self.raised.constant(constant, np.int32)
        if self.is_inside:
            return self.index
        return _limited([self], self.index if self.wrapped is None else self.wrapped)


def _limited(places: Sequence[Places], index: EmittedTensor) -> EmittedTensor:
    """Returns starts along one axis, or in the last dimension along several ones, clamped.

    A start that is counted from the end where it is negative, `x < 0 ? x + n : x`, is the remainder by n of x
    limited from -n to n - 1.
    """
    wrapped = [each.wrapped for each in places]
    ranges = [
        range_of((each.index if x is None else x).value, index.known) for each, x in zip(places, wrapped, strict=True)
    ]
    sizes = [extent(each.of, each.axis) for each in places]
    lasts = [
        each.last if x is None else subtracted(size, 1) for each, x, size in zip(places, wrapped, sizes, strict=True)
    ]
    if not all(isinstance(last, int) and found.high <= last for last, found in zip(lasts, ranges, strict=True)):
        index = index.minimum(_joined(index, lasts))
    lows = [0 if x is None else subtracted(0, size) for x, size in zip(wrapped, sizes, strict=True)]
    if not all(isinstance(low, int) and found.low >= low for low, found in zip(lows, ranges, strict=True)):
        index = index.maximum(_joined(index, lows))
    if all(x is None for x in wrapped):
        return index
    index = index % _joined(index, sizes)
    if any(each.length != 1 and x is not None for each, x in zip(places, wrapped, strict=True)):
        index = index.minimum(_joined(index, [each.last for each in places]))
    return index


def _joined(index: EmittedTensor, numbers: Sequence[Number]) -> EmittedTensor | int:
    """Returns numbers as a vector beside indices, or the only one as it is."""
    if len(numbers) == 1:
        (number,) = numbers
        return number if isinstance(number, int) else number.cast(index.dtype)
    vector = vector_of(index, numbers)
    if isinstance(vector, EmittedTensor):
        return vector.cast(index.dtype)
    return EmittedTensor(index.builder, index.builder.constant(np.array(vector, index.dtype)), index.known)


def together(places: Sequence[Places], axis: int) -> EmittedTensor:
    """Returns the clamped starts along several axes, in a further dimension."""
    constants = [each.constant is not None for each in places]
    if all(constants) or any(each.is_inside for each in places):
        return packed([each.clamped() for each in places], axis)
    raw = [
        each.clamped() if is_constant else each.wrapped or each.index
        for each, is_constant in zip(places, constants, strict=True)
    ]
    return _limited(places, packed(raw, axis))


def packed(indices: Sequence[EmittedTensor], axis: int) -> EmittedTensor:
    """Returns indices along several axes in one tensor, with a further dimension."""
    if len({index.dtype for index in indices}) > 1:
        indices = [index.cast(np.int64) for index in indices]
    return indices[0].op("Pack", *indices, axis=axis)  # type: ignore[no-any-return]


def _is_used(index: Value) -> bool:
    """Returns whether indices have another use than as such: a comparison, which tells whether they are inside."""
    users = [use.operation for use in index.uses]
    return any(_is_used(user.results[0]) if user.name in _RESHAPES else user.name in _LIMITS for user in users)


_LIMITS = ("tf.GreaterEqual", "tf.LessEqual")


def settled(raised: RaisedOp, tensor: EmittedTensor, sizes: Sequence[int]) -> EmittedTensor:
    """Returns a tensor in another shape; what it was reshaped from, if that has it."""
    owner, source = tensor.value.owner, tensor
    while isinstance(owner, Operation) and owner.name in _RESHAPES:
        source = raised.tensor(owner.operands[0])
        if raised.sizes(source) == tuple(sizes):
            return source
        owner = source.value.owner
    return raised.reshaped(tensor, sizes)


_RESHAPES = ("tf.ExpandDims", "tf.Reshape", "tf.Squeeze")


def extent(tensor: EmittedTensor, axis: int) -> Number:
    """Returns the size of a dimension."""
    shape = tensor.shape
    assert shape is not None
    if shape[axis] >= 0:
        return shape[axis]
    found: EmittedTensor = tensor.op(
        "StridedSlice", tensor.op("Shape", tensor), [axis], [axis + 1], [1], shrink_axis_mask=1
    )
    return found


class Window(NamedTuple):
    """A slice along one axis.

    Attributes:
        begin: Where it starts; -1 for the last one of its length.
        length: Its length; -1 for all that follows.
    """

    begin: Number
    length: Number


WHOLE = Window(0, -1)


def cut(x: EmittedTensor, windows: Sequence[Window]) -> EmittedTensor:
    """Returns a slice of a tensor."""
    if all(window == WHOLE for window in windows):
        return x
    begins, lengths = [each.begin for each in windows], [each.length for each in windows]
    if all(isinstance(each, int) for each in (*begins, *lengths)):
        return _static_cut(x, begins, lengths)
    begins = [
        subtracted(extent(x, axis), lengths[axis]) if is_number(each, -1) else each for axis, each in enumerate(begins)
    ]
    found: EmittedTensor = x.op("Slice", x, vector_of(x, begins), vector_of(x, lengths))
    return found


def is_number(number: Number, value: int) -> bool:
    return isinstance(number, int) and number == value


def subtracted(one: Number, other: Number) -> Number:
    if isinstance(one, int) and not isinstance(other, int):
        return other.__rsub__(one)
    return one - other


def _static_cut(x: EmittedTensor, begins: Sequence[Number], lengths: Sequence[Number]) -> EmittedTensor:
    if -1 not in begins:
        return x.op("Slice", x, begins, lengths)  # type: ignore[no-any-return]
    from_end = [is_number(begin, -1) for begin in begins]
    first = [-length if last else begin for begin, length, last in zip(begins, lengths, from_end, strict=True)]
    to_end = [last or is_number(length, -1) for length, last in zip(lengths, from_end, strict=True)]
    ends = [0 if last else begin + length for begin, length, last in zip(begins, lengths, to_end, strict=True)]
    mask = sum(last << axis for axis, last in enumerate(to_end))
    return x.op("StridedSlice", x, first, ends, [1] * len(ends), end_mask=mask)  # type: ignore[no-any-return]


def vector_of(x: EmittedTensor, numbers: Sequence[Number]) -> EmittedTensor | Sequence[Number]:
    if all(isinstance(each, int) for each in numbers):
        return numbers
    return x.op("Pack", *[each if isinstance(each, int) else each.cast(np.int32) for each in numbers])  # type: ignore[no-any-return]


# Element types that LiteRT doesn't gather, though it slices them.
_NOT_GATHERED = ("f8", "u4", "u8")


def is_gathered(x: EmittedTensor) -> bool:
    """Returns whether LiteRT gathers elements of a tensor's type."""
    return x.dtype.str[1:] not in _NOT_GATHERED


def sliced(raised: RaisedOp, x: EmittedTensor, places: Sequence[Places], sizes: Sequence[Number]) -> EmittedTensor:
    """Returns one slice of a tensor.

    Args:
        raised: The op.
        x: The tensor.
        places: Where it starts, on the axes where that is not the beginning.
        sizes: Its shape; dimensions that are whole may be symbols.
    """
    shape = raised.sizes(x)
    places = [each.of_shape(()) for each in places]
    x, spans = _from_ends(x, shape, {each.axis: each for each in places}, sizes)
    sizes = [-1 if axis in spans else size for axis, size in enumerate(sizes)]
    windows = [Window(0, -1 if is_number(size, own) else size) for size, own in zip(sizes, shape, strict=True)]
    computed: list[Places] = []
    for each in places:
        if each.is_whole or each.axis in spans:
            continue
        constant, size = each.constant, sizes[each.axis]
        if each.is_from_end:
            windows[each.axis] = Window(-1, each.length)
        elif constant is not None:
            start = int(constant.reshape(-1)[0])
            windows[each.axis] = Window(start, -1 if start == each.known_last and each.size < 0 else size)
        else:
            computed.append(each)
    computed.sort(key=lambda each: each.axis)
    axes = [each.axis for each in computed]
    is_leading = axes == list(range(len(axes))) or len(axes) == 1
    if {each.length for each in computed} == {1} and is_leading and is_gathered(x):
        return _picked(raised, _cut_elsewhere(x, windows, axes), computed)
    if len(axes) == len(shape):
        lengths = [window.length for window in windows]
        return x.op("Slice", x, together(computed, 0), vector_of(x, lengths))  # type: ignore[no-any-return]
    for each in computed:
        windows[each.axis] = Window(each.clamped(), sizes[each.axis])
    return cut(x, windows)


def _from_ends(
    x: EmittedTensor, shape: Sequence[int], places: Mapping[int, Places], sizes: Sequence[Number]
) -> tuple[EmittedTensor, Mapping[int, Span]]:
    """Returns a tensor without what is left out of dimensions that only running tells, and these dimensions.

    Args:
        x: The tensor.
        shape: Its shape.
        places: Where the slice starts, by axis.
        sizes: The slice's shape.
    """
    spans = {}
    for axis, (own, size) in enumerate(zip(shape, sizes, strict=True)):
        begin = places[axis].index if axis in places else 0
        span = span_of(begin, size, own) if own < 0 and not isinstance(size, int) else None
        if span is not None:
            spans[axis] = span
    return (spanned(x, spans) if spans else x), spans


def _cut_elsewhere(x: EmittedTensor, windows: Sequence[Window], axes: Sequence[int]) -> EmittedTensor:
    return cut(x, [WHOLE if axis in axes else window for axis, window in enumerate(windows)])


def _picked(raised: RaisedOp, x: EmittedTensor, places: Sequence[Places]) -> EmittedTensor:
    """Returns what is at one index along each of some axes, which stay with a size of 1."""
    axes = [each.axis for each in places]
    if len(places) == 1:
        found = x.op("GatherV2", x, places[0].clamped(), axes[0])
    else:
        found = x.op("GatherNd", x, together(places, 0))
    sizes = list(raised.sizes(x))
    return raised.reshaped(found, [1 if axis in axes else size for axis, size in enumerate(sizes)])
