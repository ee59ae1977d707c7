"""Where the windows of convolutions and poolings lie: strides, dilations, padding and data formats in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call
from tfconvert.ops.formula import Tensor, in_turn, moved
from tfconvert.ops.operands import Operands
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.dims import window
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

Index = tuple[Any, ...]


def channels_first(data_format: str) -> bool:
    """Returns whether the channels come before the spatial dimensions."""
    return data_format.startswith("NC")


def to_channels_last(x: Array, data_format: str) -> Array:
    """Returns a batch as N, spatial dimensions, C."""
    return np.moveaxis(x, 1, -1) if channels_first(data_format) else x


def from_channels_last(x: Array, data_format: str) -> Array:
    """Returns a batch of N, spatial dimensions, C in its data format."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if channels_first(data_format) else x


def with_channels_last(x: Tensor, data_format: str) -> Tensor:
    """Returns a batch in a formula as N, spatial dimensions, C."""
    return x.transpose((0, *range(2, x.rank), 1)) if channels_first(data_format) else x


def with_channels_as(x: Tensor, data_format: str) -> Tensor:
    """Returns a batch in a formula, of N, spatial dimensions, C, in its data format."""
    return x.transpose((0, x.rank - 1, *range(1, x.rank - 1))) if channels_first(data_format) else x


def spatial(values: Sequence[Any], data_format: str) -> tuple[Any, ...]:
    """Returns the entries of the spatial dimensions from a list of one entry a dimension."""
    return tuple(values[2:] if channels_first(data_format) else values[1:-1])


def image_shape(batch: int, space: Sequence[int], channels: int, data_format: str) -> Shape:
    """Returns the shape of a batch of images."""
    return (batch, channels, *space) if channels_first(data_format) else (batch, *space, channels)


def explicit_pads(operands: Operands, rank: int, data_format: str) -> Sequence[tuple[int, int]]:
    """Returns what `EXPLICIT` padding adds before and after each spatial dimension; zeros for any other padding."""
    if operands.text("padding") != "EXPLICIT":
        return ((0, 0),) * (rank - 2)
    flat = operands.integers("explicit_paddings", 2 * rank)
    return spatial(list(zip(flat[::2], flat[1::2], strict=True)), data_format)


def window_counts(operands: Operands, space: Sequence[int], kernel: Sequence[int], data_format: str) -> Shape:
    """Returns how many windows of an op there are along each spatial dimension."""
    rank = len(space) + 2
    padding = operands.text("padding")
    # Absent or empty lists mean ones.
    strides, dilations = (
        spatial(operands.integers(name, rank), data_format) if operands.attribute(name, ()) else (1,) * (rank - 2)
        for name in ("strides", "dilations")
    )
    pads = explicit_pads(operands, rank, data_format)
    return tuple(
        window(size, length, stride, padding, dilation, pad)
        for size, length, stride, dilation, pad in zip(space, kernel, strides, dilations, pads, strict=True)
    )


MAX_TAPS = 64
"""Largest number of elements of a window of which each becomes a slice."""


class Windows(NamedTuple):
    """The windows over the spatial dimensions.

    Attributes:
        size: Elements of a window.
        strides: Steps between windows.
        dilations: Steps between the elements of a window.
        pads: Elements added before and after each dimension.
        inputs: The dimensions that the windows move over, without padding.
        outputs: Number of windows.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """The dimensions with padding, and at least as large as the windows reach."""
        return tuple(
            max(dim + sum(pad), (out - 1) * stride + (size - 1) * dilation + 1)
            for dim, pad, out, stride, size, dilation in zip(
                self.inputs, self.pads, self.outputs, self.strides, self.size, self.dilations, strict=True
            )
        )

    @property
    def interior(self) -> Index:
        """The index of the inputs among the padded dimensions, between N and C."""
        spans = (slice(pad[0], pad[0] + dim) for pad, dim in zip(self.pads, self.inputs, strict=True))
        return (slice(None), *spans, slice(None))

    def taps(self) -> list[tuple[tuple[int, ...], Index]]:
        """Returns each element of a window with the index of all windows' such elements in a padded batch."""
        result = []
        for tap in product(*map(range, self.size)):
            spans = (
                slice(at * dilation, at * dilation + (out - 1) * stride + 1, stride)
                for at, dilation, out, stride in zip(tap, self.dilations, self.outputs, self.strides, strict=True)
            )
            result.append((tap, (slice(None), *spans, slice(None))))
        return result

    def padded_images(self, images: Tensor, fill: float = 0) -> Tensor:
        """Returns images, with channels at the end, with their padding."""
        if self.padded == self.inputs:
            return images
        spans = zip(self.pads, self.inputs, self.padded, strict=True)
        amounts = [(0, 0), *((pad[0], padded - dim - pad[0]) for pad, dim, padded in spans), (0, 0)]
        fills = [np.array(fill).astype(images.dtype)] if fill else []
        name = "PadV2" if fill else "Pad"
        return images.op(name, images, np.array(amounts, np.int32), *fills)  # type: ignore[no-any-return]

    def slices(self, images: Tensor, fill: float = 0) -> list[Tensor]:
        """Returns the elements of all windows at each place in a window."""
        padded = self.padded_images(images, fill)
        return [self._slice(padded, index[1:-1]) for _, index in self.taps()]

    def spread(self, parts: Sequence[Tensor]) -> Tensor:
        """Adds the elements of all windows up where they lie in images without padding: the adjoint of `slices`.

        Args:
            parts: The elements at each place in a window, in the order of `taps`.
        """
        for axis in reversed(range(len(self.size))):
            count = self.size[axis]
            parts = [self._spread_along(axis, parts[at : at + count]) for at in range(0, len(parts), count)]
        (images,) = parts
        return images

    def spread_evenly(self, part: Tensor) -> Tensor:
        """Adds up windows whose elements are all the same."""
        for axis, count in enumerate(self.size):
            part = self._spread_along(axis, [part] * count)
        return part

    def _spread_along(self, axis: int, parts: Sequence[Tensor]) -> Tensor:
        """Adds parts up along one axis.

        Places that are a multiple of the stride apart are added where the windows are, and then take turns.
        """
        stride = self.strides[axis]
        steps = [divmod(tap * self.dilations[axis], stride) for tap in range(len(parts))]
        length = self.outputs[axis] + steps[-1][0]
        turns: dict[int, Tensor] = {}
        for part, (shift, turn) in zip(parts, steps, strict=True):
            part = moved(part, axis + 1, shift, length)
            turns[turn] = turns[turn] + part if turn in turns else part
        spread = in_turn([turns.get(turn) for turn in range(max(turns) + 1)], axis + 1, stride)
        return moved(spread, axis + 1, -self.pads[axis][0], self.inputs[axis])

    def undone(self, gradients: Tensor) -> Tensor:
        """Returns one element a window as images whose convolution with the reversed filter is the gradient.

        Over these, windows of the same size and dilations slide in single steps.
        """
        for axis, dim in enumerate(self.inputs):
            reach = (self.size[axis] - 1) * self.dilations[axis]
            gradients = in_turn([gradients], axis + 1, self.strides[axis])
            gradients = moved(gradients, axis + 1, reach - self.pads[axis][0], dim + reach)
        return gradients

    def reached(self, images: Tensor) -> Tensor:
        """Returns images with their padding, as far as the windows reach."""
        spans = zip(self.outputs, self.strides, self.size, self.dilations, strict=True)
        sizes = [(out - 1) * stride + (size - 1) * dilation + 1 for out, stride, size, dilation in spans]
        return images.placed([0, *(pad[0] for pad in self.pads), 0], [-1, *sizes, -1])

    def _slice(self, images: Tensor, spans: Sequence[slice]) -> Tensor:
        """Returns the elements within spans of the spatial dimensions."""
        columns = zip(*((span.start, span.stop, span.step) for span in spans), strict=True)
        bounds = [[edge, *column, edge] for edge, column in zip((0, 0, 1), columns, strict=True)]
        ends = 1 | 1 << (len(spans) + 1)
        return images.op("StridedSlice", images, *bounds, begin_mask=ends, end_mask=ends)  # type: ignore[no-any-return]

    def pad(self, x: Array, fill: Any = 0) -> Array:
        """Returns a batch (N, spatial dimensions, C) with its padding."""
        if self.padded == self.inputs:
            return x
        result = np.full((x.shape[0], *self.padded, x.shape[-1]), fill, x.dtype)
        result[self.interior] = x
        return result

    def view(self, x: Array) -> Array:
        """Returns a padded batch as N, windows, C, elements of a window; a view."""
        reach = tuple((size - 1) * dilation + 1 for size, dilation in zip(self.size, self.dilations, strict=True))
        axes = tuple(range(1, x.ndim - 1))
        every = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
        places = zip(self.outputs, self.strides, strict=True)
        starts = tuple(slice(0, (out - 1) * step + 1, step) for out, step in places)
        elements = tuple(slice(None, None, dilation) for dilation in self.dilations)
        return every[(slice(None), *starts, slice(None), *elements)]


def windows(
    call: Call, inputs: Sequence[int], size: Sequence[int], data_format: str, strides: Sequence[int]
) -> Windows:
    """Returns the windows of an op with the attributes `padding`, `explicit_paddings` and `dilations`.

    Args:
        call: The op.
        inputs: The spatial dimensions that the windows move over.
        size: Elements of a window.
        data_format: `NHWC`, `NCHW`, `NDHWC` or `NCDHW`; lists of attributes are in its order.
        strides: The strides, one a dimension of the tensor.
    """
    steps = spatial(strides, data_format)
    dilations = spatial(call.integers("dilations", (1,) * (len(size) + 2)), data_format)
    reach = [(extent - 1) * dilation + 1 for extent, dilation in zip(size, dilations, strict=True)]
    padding = call.text("padding")
    pads: tuple[tuple[int, int], ...]
    if padding == "SAME":
        pads = tuple(map(_same, inputs, reach, steps))
    elif padding == "EXPLICIT":
        flat = call.integers("explicit_paddings")
        pads = spatial([(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)], data_format)
    else:
        pads = ((0, 0),) * len(reach)
    outputs = tuple(
        max((dim + sum(pad) - extent) // step + 1, 0)
        for dim, pad, extent, step in zip(inputs, pads, reach, steps, strict=True)
    )
    return Windows(tuple(size), steps, dilations, pads, tuple(inputs), outputs)


def _same(dim: int, reach: int, stride: int) -> tuple[int, int]:
    total = max((-(-dim // stride) - 1) * stride + reach - dim, 0)
    return total // 2, total - total // 2


def slides_over_images(op: Operation, lists: Mapping[str, Sequence[int]], rank: int) -> str | None:
    """Returns why windows can't slide over an image, and not over batch or channels; `None` if they can.

    Args:
        op: The op, which has the layout and the padding.
        lists: Lists with a number for each dimension, by name.
        rank: The image's rank.
    """
    layout = str(tf.get(op, "data_format", "NHWC"))
    for name, values in lists.items():
        if len(values) != rank or min(values) < 1:
            return f"{name} {list(values)} are not {rank} sizes"
        if math.prod(values) != math.prod(spatial(values, layout)):
            return f"{name} {list(values)} reach over batch or channels"
    if tf.get(op, "padding") != "EXPLICIT":
        return None
    pads = tf.get(op, "explicit_paddings") or ()
    if len(pads) != 2 * rank or min(pads) < 0:
        return f"explicit_paddings are not {rank} pairs of sizes"
    pairs = list(zip(pads[::2], pads[1::2], strict=True))
    return None if sum(pads) == sum(map(sum, spatial(pairs, layout))) else "batch or channels are padded"
