"""Narrow integers of a file: every box of them, wherever in a byte it begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.exporters.tflite.file import packed_bytes
from tfconvert.importers.tflite.buffers import PackedSource
from tfconvert.schema.dialects.sources import BufferSource


@pytest.mark.parametrize(("bits", "name"), [(4, "int8"), (4, "uint8"), (2, "int8")])
@given(shape=st.lists(st.integers(1, 6), max_size=3).map(tuple), size=st.sampled_from([1, 3, 100]), data=st.data())
def test_boxes_and_blocks(bits: int, name: str, shape: tuple[int, ...], size: int, data: st.DataObject) -> None:
    dtype = np.dtype(name)
    low = 0 if name == "uint8" else -(1 << bits - 1)
    count = int(np.prod(shape))
    value = (np.arange(count) * 7 % (1 << bits) + low).astype(dtype).reshape(shape)
    packed = np.frombuffer(packed_bytes(value, 8 // bits), np.uint8)
    source = PackedSource(BufferSource(packed), packed.size, bits)
    np.testing.assert_array_equal(source.array(dtype, shape), value)
    box = tuple(slice(*sorted(data.draw(st.tuples(*[st.integers(0, dim)] * 2)))) for dim in shape)
    np.testing.assert_array_equal(source.part(dtype, shape, box), value[box])
    assert b"".join(block.tobytes() for block in source.blocks(dtype, shape, size)) == value.tobytes()
