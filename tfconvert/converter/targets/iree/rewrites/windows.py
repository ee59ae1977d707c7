"""Convolutions, and reductions of windows: pooling, maximum with positions, and scans along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.targets.iree.rewrites.indexing import pad, pad_interior
from tfconvert.converter.targets.iree.rewrites.linalg_builder import DYNAMIC, Body, Index, LinalgBuilder, Map, segments
from tfconvert.converter.targets.iree.rewrites.loop_nests import is_computable, multiply_add
from tfconvert.converter.targets.iree.rewrites.numbers import Context, is_dynamic, shape_of
from tfconvert.converter.targets.iree.rewrites.scans import EQUAL, scan
from tfconvert.converter.targets.iree.rewrites.shapes import reshape
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.stablehlo import ConvAttr, EnumeratorAttr
from tfconvert.schema.dialects.stablehlo_properties import ints
from tfconvert.schema.ir.attributes import IntegerAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FloatType
from tfconvert.schema.ir.values import Value


class _Layout(NamedTuple):
    """The dimensions of a convolution.

    Attributes:
        batch: The axis of the batch in the operand.
        feature: That of the channels.
        spatial: Those of the image.
        kernel: The axes of the kernel's image, its input and its output channels.
        result: Those of the result's batch and channels, and of its image.
    """

    batch: int
    feature: int
    spatial: Sequence[int]
    kernel: Sequence[int]
    result: Sequence[int]


def _layout(op: Operation) -> _Layout:
    numbers = op.properties["dimension_numbers"]
    assert isinstance(numbers, ConvAttr)
    lhs, rhs, result = numbers.layouts
    image = [str(number) for number in range(len(lhs) - 2)]
    return _Layout(
        lhs.index("b"),
        lhs.index("f"),
        [lhs.index(each) for each in image],
        [rhs.index(each) for each in (*image, "i", "o")],
        [result.index(each) for each in ("b", "f", *image)],
    )


def _group_count(op: Operation, name: str) -> int:
    value = op.properties.get(name)
    return value.value if isinstance(value, IntegerAttr) else 1


def padding_of(op: Operation, rank: int) -> list[tuple[int, int]]:
    value = op.properties.get("padding")
    if not tensor_data.is_constant(value):
        return [(0, 0)] * rank
    return [(int(low), int(high)) for low, high in tensor_data.to_array(value).reshape(-1, 2)]


def convolution(op: Operation, context: Context) -> Value | None:
    """Returns a convolution that pads first, as in `linalg`; IREE itself only accepts those with a dynamic batch."""
    value, kernel = op.operands[:2]
    layout = _layout(op)
    shape = shape_of(value)
    is_plain = min(shape[axis] for axis in layout.spatial) >= 0 and _group_count(op, "feature_group_count") == 1
    element = op.results[0].element
    if op.name == "stablehlo.convolution" and (is_plain or not is_dynamic(value, kernel)):
        return None
    if is_dynamic(kernel) or _group_count(op, "batch_group_count") != 1 or not is_computable(element):
        return None
    count = len(layout.spatial)
    if op.name == "stablehlo.convolution":
        amounts: list[tuple[Index, Index]] = [*padding_of(op, count)]
    else:
        flat = context.numbers.elements(op.operands[2])
        amounts = list(zip(flat[::2], flat[1::2], strict=True))
    zero = context.emit.scalar(0, value.element)
    between = [each - 1 for each in ints(op, "lhs_dilation") or (1,) * count]
    wide, sizes = padded(value, zero, layout.spatial, amounts, between, context)
    kernel = _kernel_in_order(context.emit, op, kernel, layout)
    return _Convolution(op, wide, kernel, layout, sizes, context).emit()


def _kernel_in_order(emit: LinalgBuilder, op: Operation, kernel: Value, layout: _Layout) -> Value:
    """Returns a kernel in the order image, input, output channels, reversed where the op says so."""
    reversal = ints(op, "window_reversal")
    backwards = tuple([layout.kernel[at] for at, is_reversed in enumerate(reversal) if is_reversed])
    if backwards:
        kernel = emit.one("stablehlo.reverse", (kernel,), kernel.type, {"dimensions": backwards})
    if list(layout.kernel) == list(range(len(layout.kernel))):
        return kernel
    shape = shape_of(kernel)
    kind = types.tensor(kernel.element, tuple([shape[axis] for axis in layout.kernel]))
    return emit.one("stablehlo.transpose", (kernel,), kind, {"permutation": tuple(layout.kernel)})


def padded(
    value: Value,
    filling: Value,
    places: Sequence[int],
    amounts: Sequence[tuple[Index, Index]],
    between: Sequence[int],
    context: Context,
) -> tuple[Value, list[Index]]:
    """Returns a value with padding along some axes, and its sizes."""
    emit, rank = context.emit, len(shape_of(value))
    sizes = context.numbers.sizes(value)
    low: list[Index] = [0] * rank
    high: list[Index] = [0] * rank
    inside = [0] * rank
    for axis, (before, after), more in zip(places, amounts, between, strict=True):
        low[axis], high[axis], inside[axis] = before, after, more
        size = sizes[axis]
        if more:
            last = emit.compute("maximum", emit.compute("subtract", size, 1), 0)
            size = emit.compute("add", size, emit.compute("multiply", last, more))
        both = emit.compute("add", before, after)
        sizes[axis] = emit.compute("add", size, both)
    known = [each for each in (*low, *high) if isinstance(each, int)]
    if len(known) == 2 * rank and min(known, default=0) >= 0:
        if any(known) or any(inside):
            shape = tuple(
                [
                    -1 if dim < 0 or not isinstance(size, int) else size
                    for dim, size in zip(shape_of(value), sizes, strict=True)
                ]
            )
            properties = {
                "edge_padding_low": tuple(known[:rank]),
                "edge_padding_high": tuple(known[rank:]),
                "interior_padding": tuple(inside),
            }
            kind = types.tensor(value.element, shape)
            value = emit.one("stablehlo.pad", (value, filling), kind, properties)
        return value, sizes
    value = pad_interior(emit, value, filling, inside)
    shape = tuple([size if isinstance(size, int) else -1 for size in sizes])
    return pad(value, emit.element(filling), low, high, shape, context), sizes


class _Convolution:
    """A convolution of a padded operand.

    Args:
        op: The op.
        value: Its operand, padded.
        kernel: The kernel, image first, then input and output channels.
        layout: The dimensions.
        sizes: The sizes of the operand.
        context: The context of the rewrite.
    """

    def __init__(
        self, op: Operation, value: Value, kernel: Value, layout: _Layout, sizes: Sequence[Index], context: Context
    ) -> None:
        self._op, self._value, self._kernel, self._layout, self._sizes = op, value, kernel, layout, sizes
        self._context = context
        count = len(layout.spatial)
        self._strides = ints(op, "window_strides") or (1,) * count
        self._dilations = ints(op, "rhs_dilation") or (1,) * count
        self._window = shape_of(kernel)[:count]
        self._element = op.results[0].element
        self._groups = _group_count(op, "feature_group_count")
        self._image = [
            slid(context.emit, sizes[axis], (size - 1) * dilation + 1, stride)
            for axis, size, dilation, stride in zip(
                layout.spatial, self._window, self._dilations, self._strides, strict=True
            )
        ]

    def emit(self) -> Value:
        layout, rank = self._layout, len(self._sizes)
        is_last = (
            layout.batch == 0
            and layout.feature == rank - 1
            and list(layout.result) == [0, rank - 1, *range(1, rank - 1)]
        )
        is_same = self._value.element is self._element
        if is_last and is_same and self._groups == 1 and rank - 2 in _NAMED:
            return self._named(_NAMED[rank - 2], self._kernel)
        inputs, outputs = shape_of(self._kernel)[-2:]
        if is_last and is_same and rank == 4 and inputs == 1 and self._groups == outputs:
            kind = types.tensor(self._kernel.element, (*self._window, outputs))
            flat = self._context.emit.one("stablehlo.reshape", (self._kernel,), kind)
            return self._named("linalg.depthwise_conv_2d_nhwc_hwc", flat)
        return self._loops()

    def _into(self, sizes: Sequence[Index], shape: types.Shape) -> Value:
        emit = self._context.emit
        return emit.filled(emit.scalar(0, self._element), self._element, sizes, shape)

    def _result_sizes(self, channels: Sequence[Index]) -> list[Index]:
        """Returns the sizes of the result, with the given dimensions in place of the channels."""
        batch, feature, *image = self._layout.result
        placed: dict[int, Sequence[Index]] = {
            batch: [self._sizes[self._layout.batch]],
            feature: channels,
            **{axis: [size] for axis, size in zip(image, self._image, strict=True)},
        }
        return [size for axis in sorted(placed) for size in placed[axis]]

    def _named(self, name: str, kernel: Value) -> Value:
        emit, shape = self._context.emit, shape_of(self._op.results[0])
        into = self._into(self._result_sizes([shape[-1]]), shape)
        block = Block(arg_types=(self._element,) * 3)
        inside = LinalgBuilder.at_block_end(block, emit.location)
        inside.op("linalg.yield", (multiply_add(self._element)(inside, block.args),), ())
        properties: dict[str, attrs.Value] = {
            "strides": _vector(self._strides),
            "dilations": _vector(self._dilations),
            "operandSegmentSizes": segments(2, 1),
        }
        return emit.one(name, (self._value, kernel, into), into.type, properties, (Region(block),))

    def _loops(self) -> Value:
        """Inserts a loop nest: batch, image and channels of the result by group, then the window and its channels."""
        context, count, groups = self._context, len(self._window), self._groups
        outputs = shape_of(self._kernel)[-1]
        emit, layout = context.emit, self._layout
        value = _split_channels(self._value, layout.feature, groups, self._sizes, context)
        kernel = _split_channels(self._kernel, count + 1, groups, list(shape_of(self._kernel)), context)
        rank = count + 3
        # Loops: 0 the batch, 1 the group, 2 the channel in it, 3... the image; then the window, its input channels.
        image = [
            f"d{3 + at} * {stride} + d{rank + at} * {dilation}"
            for at, (stride, dilation) in enumerate(zip(self._strides, self._dilations, strict=True))
        ]
        read: dict[int, list[int | str]] = {layout.batch: [0], layout.feature: [1, rank + count]}
        read.update({axis: [text] for axis, text in zip(layout.spatial, image, strict=True)})
        written: dict[int, list[int | str]] = {layout.result[0]: [0], layout.result[1]: [1, 2]}
        written.update({axis: [3 + at] for at, axis in enumerate(layout.result[2:])})
        shape = list(shape_of(self._op.results[0]))
        shape[layout.result[1] : layout.result[1] + 1] = [groups, outputs // groups]
        into = self._into(self._result_sizes([groups, outputs // groups]), tuple(shape))
        weights: list[int | str] = [*range(rank, rank + count), rank + count, 1, 2]
        found = emit.loops(
            [(value, _flat(read)), (kernel, weights)],
            (into, _flat(written)),
            "p" * rank + "r" * (count + 1),
            multiply_add(self._element),
        )
        joined = reshape(found, self._result_sizes([outputs]), shape_of(self._op.results[0]), context)
        assert joined is not None
        return joined


_NAMED = {1: "linalg.conv_1d_nwc_wcf", 2: "linalg.conv_2d_nhwc_hwcf", 3: "linalg.conv_3d_ndhwc_dhwcf"}


def slid(emit: LinalgBuilder, size: Index, extent: int, stride: int) -> Index:
    room = emit.compute("subtract", size, extent) if not isinstance(size, int) else max(size - extent, -stride)
    return emit.compute("add", emit.compute("floor_divide", room, stride), 1)


def _split_channels(value: Value, axis: int, groups: int, sizes: Sequence[Index], context: Context) -> Value:
    """Returns a value whose channels are split into groups, the first of two dimensions."""
    shape = list(shape_of(value))
    wanted: list[Index] = [*sizes]
    parts_of_axis = [groups, shape[axis] // groups]
    shape[axis : axis + 1] = parts_of_axis
    wanted[axis : axis + 1] = parts_of_axis
    emit, dynamic = context.emit, [size for size, dim in zip(wanted, shape, strict=True) if dim < 0]
    parts: list[list[int]] = []
    for at in range(len(sizes)):
        start = at + (at > axis)
        parts.append([start, start + 1] if at == axis else [start])
    properties: dict[str, attrs.Value] = {
        "reassociation": attrs.of(parts),
        "static_output_shape": tuple([DYNAMIC if dim < 0 else dim for dim in shape]),
    }
    kind = types.tensor(value.element, tuple(shape))
    return emit.one("tensor.expand_shape", (value, *[emit.index(each) for each in dynamic]), kind, properties)


def _flat(places: dict[int, list[int | str]]) -> list[int | str]:
    return [each for axis in sorted(places) for each in places[axis]]


def _vector(numbers: Sequence[int]) -> tensor_data.Constant:
    return tensor_data.of_array(np.array(numbers, np.int64))


# The op of `arith` on floats and on integers.
_BODIES = {
    "stablehlo.add": ("addf", "addi"),
    "stablehlo.maximum": ("maximumf", "maxsi"),
    "stablehlo.minimum": ("minimumf", "minsi"),
    "stablehlo.multiply": ("mulf", "muli"),
}


class _Windows(NamedTuple):
    """The positions of windows.

    Attributes:
        sizes: Their sizes.
        strides: The steps between them.
        dilations: The steps between their elements.
        amounts: The padding before and behind each axis.
        between: The interior padding of the operand.
    """

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    amounts: Sequence[tuple[int, int]]
    between: Sequence[int]

    @classmethod
    def of(cls, op: Operation) -> _Windows:
        sizes = ints(op, "window_dimensions")
        ones = (1,) * len(sizes)
        strides, dilations = ints(op, "window_strides") or ones, ints(op, "window_dilations") or ones
        between = [each - 1 for each in ints(op, "base_dilations") or ones]
        return cls(sizes, strides, dilations, padding_of(op, len(sizes)), between)

    @property
    def wide(self) -> list[int]:
        """Axes along which windows have several elements."""
        return [at for at, size in enumerate(self.sizes) if size > 1]

    def read(self) -> Map:
        """Returns the map of the operand: the loops are those of the result, then those of the window."""
        rank, wide = len(self.sizes), self.wide
        found: list[int | str] = []
        for at, stride in enumerate(self.strides):
            step = f"d{at} * {stride}" if stride > 1 else f"d{at}"
            found.append(f"{step} + d{rank + wide.index(at)} * {self.dilations[at]}" if at in wide else step)
        return found

    def counts(self, emit: LinalgBuilder, sizes: Sequence[Index]) -> list[Index]:
        """Returns how many windows fit along each axis of a padded operand."""
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(self.sizes, self.dilations, strict=True)]
        return [slid(emit, *each) for each in zip(sizes, extents, self.strides, strict=True)]

    def reduced(
        self, values: Sequence[Value], beside: Sequence[Value], into: Value, body: Body, context: Context
    ) -> Value:
        """Inserts a loop nest.

        Args:
            values: Padded operands.
            beside: Tensors of the result's sizes.
            into: The initial result.
            body: As for `LinalgBuilder.loops`, with an element of the window, which is undefined.
            context: Where it is inserted.
        """
        rank, wide, emit = len(self.sizes), self.wide, context.emit
        # The window is an operand that only has a size.
        kind = types.tensor(values[0].element, tuple([self.sizes[at] for at in wide]))
        window = emit.one("tensor.empty", (), kind)
        everything = list(range(rank))
        inputs: list[tuple[Value, Map]] = [(value, self.read()) for value in values]
        inputs += [(value, everything) for value in beside]
        inputs.append((window, [rank + at for at in range(len(wide))]))
        return emit.loops(inputs, (into, everything), "p" * rank + "r" * len(wide), body)


def reduce_window(op: Operation, context: Context) -> Value | Sequence[Value] | None:
    """Returns a reduction of windows that pads first, as a loop nest; a cumulative one as a scan."""
    if not is_dynamic(op.operands[0], op.results[0]):
        return None
    if len(op.operands) != 2:
        return _greatest(op, context) if _finds_maximum(op) else None
    value, initial = op.operands
    element = value.element
    names = _BODIES.get(_only_op(op))
    if names is None or not is_computable(element):
        return None
    name = f"arith.{names[0 if isinstance(element, FloatType) else 1]}"
    windows = _Windows.of(op)
    axis = _running(value, windows)
    if axis is not None:
        return scan(value, initial, axis, lambda inside, arguments: inside.one(name, arguments, element), context)
    return _combined(op, value, initial, name, windows, context)[0]


def _combined(
    op: Operation, value: Value, initial: Value, name: str, windows: _Windows, context: Context
) -> tuple[Value, Value, list[Index]]:
    """Returns the reduction of each window by an op of `arith`, the padded operand, and the sizes of the result."""
    element = value.element
    whole, sizes = padded(value, initial, range(len(windows.sizes)), windows.amounts, windows.between, context)
    counts = windows.counts(context.emit, sizes)
    into = context.emit.filled(initial, element, counts, shape_of(op.results[0]))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        return inside.one(name, (arguments[-1], arguments[0]), element)

    return windows.reduced([whole], [], into, body, context), whole, counts


def _greatest(op: Operation, context: Context) -> Sequence[Value] | None:
    """Returns the maximum of each window, and the lowest of its positions, by a loop nest each."""
    value, places, least, nowhere = op.operands
    element, index = value.element, places.element
    if not isinstance(element, FloatType) or not is_computable(index):
        return None
    windows = _Windows.of(op)
    found, whole, counts = _combined(op, value, least, "arith.maximumf", windows, context)
    numbers, _ = padded(places, nowhere, range(len(windows.sizes)), windows.amounts, windows.between, context)
    into = context.emit.filled(nowhere, index, counts, shape_of(op.results[1]))

    def body(inside: LinalgBuilder, arguments: Sequence[Value]) -> Value:
        one, place, best, _, so_far = arguments
        is_it = inside.one("arith.cmpf", (one, best), types.I1, {"predicate": EQUAL})
        return inside.choose(is_it, inside.one("arith.minsi", (place, so_far), index), so_far)

    return found, windows.reduced([whole, numbers], [found], into, body, context)


def _finds_maximum(op: Operation) -> bool:
    """Returns whether a body chooses the larger of two elements with its position; of equal ones the lower position."""
    ops = tuple(op.regions[0].block.ops)
    names = ("compare", "compare", "compare", "and", "or", "select", "select", "return")
    if len(op.operands) != 4 or [each.name for each in ops] != [f"stablehlo.{name}" for name in names]:
        return False
    directions = [each.properties["comparison_direction"] for each in ops[:3]]
    return [each.value for each in directions if isinstance(each, EnumeratorAttr)] == ["GT", "EQ", "LT"]


def _only_op(op: Operation) -> str:
    """Returns the name of the only op in a region of two arguments, empty if there are more."""
    ops = tuple(op.regions[0].block.ops)
    return ops[0].name if len(ops) == 2 and ops[1].operands[0] is ops[0].results[0] else ""


def _running(value: Value, windows: _Windows) -> int | None:
    """Returns the axis along which each window contains all previous elements."""
    wide, amounts = windows.wide, windows.amounts
    if len(wide) != 1 or {*windows.strides, *windows.dilations} != {1} or any(windows.between):
        return None
    (axis,) = wide
    others = [each for at, each in enumerate(amounts) if at != axis]
    is_whole = shape_of(value)[axis] == windows.sizes[axis] and amounts[axis] == (windows.sizes[axis] - 1, 0)
    return axis if is_whole and set(others) <= {(0, 0)} else None
