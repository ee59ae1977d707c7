"""Other sizes of images and signals, which JAX computes along each axis: by products with weights, or by gathers.

Before:

    %0 = "tf.Einsum"(%w, %x) <{equation = "ab,cdae->bcde"}> : (tensor<4x8xf32>, tensor<1x4x4x3xf32>) -> ...
    %1 = "tf.Einsum"(%w, %0) <{equation = "ab,cdae->bcde"}> : (tensor<4x8xf32>, tensor<8x1x4x3xf32>) -> ...
    %2 = "tf.Transpose"(%1, %order) : (tensor<8x8x1x3xf32>, tensor<4xi32>) -> tensor<1x8x8x3xf32>

After:

    %2 = "tf.ResizeBilinear"(%x, %size) <{half_pixel_centers = true}> : (...) -> tensor<1x8x8x3xf32>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeVar

import numpy as np

from tfconvert.converter.from_stablehlo.idioms import operands_of
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.constants import index_range
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.ops.call import Array
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.operation import Operation

# Axes of the pixels of images.
_PIXELS = (1, 2)

_NEAREST = "ResizeNearestNeighbor"

T = TypeVar("T")


def weighted(raised: RaisedOp, x: EmittedTensor, order: Sequence[int]) -> EmittedTensor | None:
    """Returns what a transposed product is, if each axis was multiplied by a constant matrix and is in its place again.

    Args:
        raised: The op.
        x: The product.
        order: The order that its axes get.
    """
    axes, matrices = list(order), dict[int, Array]()
    while (factor := _factor(raised, x)) is not None:
        source, places, axis, matrix = factor
        moved = {places[own]: each for own, each in matrices.items()}
        if axis in moved:
            break
        x, axes, matrices = source, [places[own] for own in axes], {**moved, axis: matrix}
    if not matrices or axes != sorted(axes) or [*matrices] == [x.rank - 1]:
        return None
    sizes = raised.sizes(x)
    if any(sizes[axis] != matrix.shape[1] for axis, matrix in matrices.items()):
        return None
    image = _bilinear(raised, x, matrices)
    if image is not None:
        return image
    # What makes the tensor smallest comes first.
    for axis, matrix in sorted(matrices.items(), key=lambda each: each[1].shape[0] / each[1].shape[1]):
        x = _multiplied(raised, x, axis, matrix)
    return x


def _factor(raised: RaisedOp, x: EmittedTensor) -> tuple[EmittedTensor, Sequence[int], int, Array] | None:
    """Returns what was multiplied along one axis by a constant matrix, with a row for each element of the product.

    Between them are the axis that each one of the product was, and the one that was multiplied.
    """
    pair = operands_of(x, "Einsum")
    owner = x.value.owner
    if len(pair) != 2 or not isinstance(owner, Operation):
        return None
    terms, _, result = tf.get(owner, "equation").partition("->")
    for (term, matrix), (other, source) in _both_ways(list(zip(terms.split(","), pair, strict=True))):
        constant = tensor_data.constant_of(matrix.value)
        if constant is None or len(term) != 2:
            continue
        for into, along in (term, term[::-1]):
            if into in result and into not in other and along in other and along not in result:
                array = tensor_data.to_array(constant)
                named = {into: along}
                places = [other.index(named.get(letter, letter)) for letter in result]
                return source, places, other.index(along), array if into == term[0] else array.T
    return None


def _both_ways(pair: Sequence[T]) -> Sequence[Sequence[T]]:
    return (pair, pair[::-1])


def _bilinear(raised: RaisedOp, x: EmittedTensor, matrices: Mapping[int, Array]) -> EmittedTensor | None:
    """Returns an image whose pixels were weighted as those of a resized one are."""
    is_single = x.rank == 3 and len(matrices) == 2
    axes = [axis + is_single for axis in matrices]
    if x.rank + is_single != 4 or not {*axes} <= {*_PIXELS} or x.dtype != np.float32:
        return None
    for matrix in matrices.values():
        rows, size = matrix.shape
        if not np.allclose(matrix, _weights(rows, size), rtol=0, atol=1e-6 * size):
            return None
    image = x.expand_dims(0) if is_single else x
    size = list(raised.sizes(image)[1:3])
    for axis, matrix in zip(axes, matrices.values(), strict=True):
        size[axis - 1] = matrix.shape[0]
    if min(size) < 0:
        return None
    found: EmittedTensor = image.op("ResizeBilinear", image, size, half_pixel_centers=True)
    return found.op("Squeeze", found, squeeze_dims=[0]) if is_single else found


def _weights(rows: int, size: int) -> Array:
    """Returns the weights of pixels between whose centers an image is sampled."""
    at = np.clip((np.arange(rows) + 0.5) * size / rows - 0.5, 0, size - 1)
    return np.asarray(np.maximum(0, 1 - np.abs(at[:, None] - np.arange(size))))


def _multiplied(raised: RaisedOp, x: EmittedTensor, axis: int, matrix: Array) -> EmittedTensor:
    """Returns a tensor with a matrix applied along one axis."""
    sizes = raised.sizes(x)
    rest = sizes[axis + 1 :]
    matrix = np.ascontiguousarray(matrix)
    if not rest:
        return x.op("BatchMatMulV2", x, np.ascontiguousarray(matrix.T))  # type: ignore[no-any-return]
    rows = raised.reshaped(x, (*sizes[: axis + 1], prod(rest))) if len(rest) > 1 else x
    found: EmittedTensor = rows.op("BatchMatMulV2", raised.constant(matrix, x.dtype), rows)
    raised.note(found.value, (*sizes[:axis], matrix.shape[0], raised.sizes(found)[-1]))
    return raised.reshaped(found, (*sizes[:axis], matrix.shape[0], *rest))


def nearest(raised: RaisedOp, x: EmittedTensor, axis: int, indices: Array) -> EmittedTensor | None:
    """Returns an image resized along both axes that elements at constant positions were taken along, one by one.

    Args:
        raised: The op.
        x: What was taken along the other axis.
        axis: The axis.
        indices: The positions, of which the last one is that of the result's last element.
    """
    made = _taken(raised, x)
    if x.rank != 4 or made is None or axis not in _PIXELS:
        return None
    source, other, others = made
    if other == axis or other not in _PIXELS:
        return None
    size = list(raised.sizes(source)[1:3])
    for own, positions in ((axis, indices), (other, others)):
        if not _is_nearest(positions, size[own - 1]):
            return None
        size[own - 1] = len(positions)
    return source.op(_NEAREST, source, size, half_pixel_centers=True)  # type: ignore[no-any-return]


def _taken(raised: RaisedOp, x: EmittedTensor) -> tuple[EmittedTensor, int, Array] | None:
    """Returns what elements of constant positions were taken of, along which axis, and the positions."""
    found = operands_of(x, "GatherV2", "StridedSlice")
    known = [raised.known(each) for each in found[1:]]
    owner = x.value.owner
    if not found or any(each is None for each in known) or not isinstance(owner, Operation):
        return None
    arrays = [each for each in known if each is not None]
    if owner.name == "tf.GatherV2":
        is_along_one = arrays[0].ndim == 1 and not tf.get(owner, "batch_dims", 0)
        return (found[0], int(arrays[1].item()), arrays[0]) if is_along_one else None
    masks = {tf.get(owner, name, 0) for name in ("begin_mask", "end_mask")}
    whole = masks.pop()
    sliced = [axis for axis in range(x.rank) if not whole >> axis & 1]
    if masks or len(sliced) != 1 or tf.get(owner, "shrink_axis_mask", 0) or len(arrays[0]) != x.rank:
        return None
    (axis,) = sliced
    begin, end, step = (int(each[axis]) for each in arrays)
    return found[0], axis, index_range(begin, end, step)


def _is_nearest(positions: Array, size: int) -> bool:
    """Returns whether LiteRT takes the same pixels, which it computes in floats of 32 bits."""
    scale = np.float32(size) / np.float32(len(positions))
    expected = np.floor((np.arange(len(positions), dtype=np.float32) + np.float32(0.5)) * scale)
    return size >= 0 and bool((positions == np.minimum(expected, size - 1)).all())


def repeated(raised: RaisedOp, x: EmittedTensor, sizes: Shape) -> EmittedTensor | None:
    """Returns what a tensor in another shape is, if that follows each element with copies of it along one axis.

    Args:
        raised: The op.
        x: The tensor.
        sizes: The other shape.
    """
    (spread,) = operands_of(x, "BroadcastTo")[:1] or (None,)
    made = None if spread is None else raised.unsqueezed(spread)
    if spread is None or made is None or len(raised.sizes(spread)) != len(raised.sizes(x)):
        return None
    source, inserted = made
    own, whole = raised.sizes(source), raised.sizes(x)
    if len(inserted) != 1 or not inserted[0] or tensor_data.constant_of(source.value) is not None:
        return None
    axis, count = inserted[0] - 1, whole[inserted[0]]
    wide = (*own[:axis], own[axis] * count, *own[axis + 1 :])
    if min(own[axis], count) < 1 or wide != sizes or whole != (*own[: axis + 1], count, *own[axis + 1 :]):
        return None
    indices = (index_range(own[axis] * count) // count).astype(np.int32)
    found = nearest(raised, source, axis, indices)
    return found if found is not None else source.op("GatherV2", source, indices, axis, batch_dims=0)
