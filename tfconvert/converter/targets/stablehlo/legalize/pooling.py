"""Pooling: the greatest of each window, also with its index, and the mean of each window."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering, attribute
from tfconvert.converter.targets.stablehlo.legalize.reductions import arg_body
from tfconvert.converter.targets.stablehlo.legalize.sizes import static_shape
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder, lowest
from tfconvert.converter.targets.stablehlo.legalize.window_geometry import (
    Amounts,
    Axis,
    known,
    pad_around,
    padding_of,
    pooled_axes,
    slid,
    table,
)
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.dims import UNKNOWN
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def _padding(emit: StableHLOBuilder, op: Operation, value: Value, axes: Sequence[Axis]) -> list[Amounts]:
    dims = emit.dims(value)
    moving = [axis.size != 1 or axis.stride != 1 for axis in axes]
    found = padding_of(emit, op, dims, axes)
    return [amounts if moves else (0, 0) for amounts, moves in zip(found, moving, strict=True)]


def _properties(axes: Sequence[Axis], padding: Sequence[tuple[int, int]]) -> dict[str, attrs.Value]:
    ones = (1,) * len(axes)
    return {
        "window_dimensions": tuple(axis.size for axis in axes),
        "window_strides": tuple(axis.stride for axis in axes),
        "base_dilations": ones,
        "window_dilations": ones,
        "padding": table(padding),
    }


def _window(emit: StableHLOBuilder, op: Operation, value: Value, name: str, initial: float) -> Value:
    """Inserts a reduction of windows; padding that is computed at run time is put around the value before."""
    dims, element = emit.dims(value), types.element_of(value.type)
    axes = pooled_axes(op, len(dims))
    padding = _padding(emit, op, value, axes)
    result = [
        dim if axis.size == axis.stride == 1 else slid(emit, op, dim, axis, amounts)
        for dim, axis, amounts in zip(dims, axes, padding, strict=True)
    ]
    start, numbers = emit.scalar(initial, element), known(padding)
    if numbers is None:
        value, numbers = pad_around(emit, value, padding, start), [(0, 0)] * len(dims)
    body = emit.body(name, element)
    return emit.one("reduce_window", (value, start), element, result, _properties(axes, numbers), (body,))


def _max_pool(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    return _window(emit, op, value, "maximum", lowest(types.element_of(value.type)))


def _avg_pool(op: Operation, emit: StableHLOBuilder) -> Value:
    value = op.operands[0]
    element = types.element_of(value.type)
    if element in (types.F16, types.BF16):
        value = emit.convert(value, types.F32)
    total = _window(emit, op, value, "add", 0)
    if attribute(op, "padding", "VALID") == "VALID":
        mean = emit.binary("divide", total, math.prod(attribute(op, "ksize")))
        return emit.convert(mean, element)
    # What is padded doesn't count: as many elements as the window has there.
    axes = pooled_axes(op, len(emit.dims(value)))
    shape = [1 if axis.size == axis.stride == 1 else dim for axis, dim in zip(axes, emit.dims(value), strict=True)]
    ones = emit.broadcast(emit.scalar(1, types.element_of(value.type)), shape)
    return emit.convert(emit.binary("divide", total, _window(emit, op, ones, "add", 0)), element)


def _max_pool_with_argmax(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """Inserts a reduction of windows of pairs: the elements with their places in the image."""
    value = op.operands[0]
    dims = emit.dims(value)
    axes = pooled_axes(op, len(dims))
    padding = known(_padding(emit, op, value, axes))
    result = [
        dim if axis.size == axis.stride == 1 else slid(emit, op, dim, axis, (0, 0))
        for dim, axis in zip(dims, axes, strict=True)
    ]
    element, index = (types.element_of(each.type) for each in op.results)
    places = _places(op, emit)
    fill, no_place = emit.scalar(lowest(element), element), emit.scalar(1 << 62, types.I64)
    if padding is None:
        amounts = _padding(emit, op, value, axes)
        value = pad_around(emit, value, amounts, fill)
        places, padding = pad_around(emit, places, amounts, no_place), [(0, 0)] * len(dims)
    operands = (value, places, fill, no_place)
    kinds = [types.tensor(each, static_shape(result)) for each in (element, types.I64)]
    region = arg_body(emit, "GT", element, types.I64)
    found = emit.op("reduce_window", operands, kinds, _properties(axes, padding), (region,)).results
    for each in found:
        emit.sizes.note(each, result)
    return [found[0], emit.convert(found[1], index)]


def _places(op: Operation, emit: StableHLOBuilder) -> Value:
    """Returns the number of each element, counted through its image or through the batch."""
    dims = emit.dims(op.operands[0])
    has_batch = bool(attribute(op, "include_batch_in_index", False))
    total: Value | None = None
    for axis in range(0 if has_batch else 1, len(dims)):
        at = emit.iota(dims, axis, types.I64)
        step = emit.convert(emit.value(emit.product(dims[axis + 1 :])), types.I64)
        at = emit.binary("multiply", at, step)
        total = at if total is None else emit.binary("add", total, at)
    if total is None or any(dim == UNKNOWN for dim in dims):
        raise Declined("the rank of an operand is not known")
    return total


LOWERINGS: Mapping[str, Lowering] = {
    "AvgPool": _avg_pool,
    "AvgPool3D": _avg_pool,
    "MaxPool": _max_pool,
    "MaxPool3D": _max_pool,
    "MaxPoolV2": _max_pool,
    "MaxPoolWithArgmax": _max_pool_with_argmax,
}
