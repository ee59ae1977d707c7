"""Partitioned tensors and parts of tensors: every box of them is what it should be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.importers.checkpoint.bundle import PartitionedSource, PartOfSource
from tfconvert.schema.dialects.sources import BufferSource

F32 = np.dtype(np.float32)


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[np.ndarray, PartitionedSource]:
    """A tensor cut along one axis."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    axis = draw(st.integers(0, len(shape) - 1))
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    cuts = sorted(draw(st.sets(st.integers(1, shape[axis]), max_size=3)) | {0, shape[axis]})
    slices = []
    for start, stop in pairwise(cuts):
        place = [(0, dim) for dim in shape]
        place[axis] = (start, stop - start)
        part = value[tuple(slice(first, first + length) for first, length in place)]
        slices.append((place, part.shape, BufferSource(np.ascontiguousarray(part))))
    return value, PartitionedSource.checked(shape, slices)


@given(partitioned(), st.sampled_from([4, 12, 1000]), st.data())
def test_boxes_and_blocks(made: tuple[np.ndarray, PartitionedSource], size: int, data: st.DataObject) -> None:
    value, source = made
    box = tuple(slice(*sorted(data.draw(st.tuples(*[st.integers(0, dim)] * 2)))) for dim in value.shape)
    np.testing.assert_array_equal(source.part(F32, value.shape, box), value[box])
    blocks = list(source.blocks(F32, value.shape, size))
    assert b"".join(block.tobytes() for block in blocks) == value.tobytes()
    part = PartOfSource.checked(source, value.shape, [(each.start, each.stop - each.start) for each in box])
    assert part.part_shape == value[box].shape
    np.testing.assert_array_equal(part.array(F32, part.part_shape), value[box])
    blocks = list(part.blocks(F32, part.part_shape, size))
    assert b"".join(block.tobytes() for block in blocks) == value[box].tobytes()
