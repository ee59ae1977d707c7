"""The types of MLIR's `quant` dialect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.quant import Uniform, UniformType
from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.ir.types import IntegerType, Signedness


def parse(text: str) -> object:
    return IRParser(text).parse_type()


@pytest.mark.parametrize(
    ("text", "scales", "zero_points", "axis"),
    [
        ("!quant.uniform<i8:f32, 0.5:3>", (0.5,), (3,), None),
        ("!quant.uniform<u8:f32, 1e-05:-3>", (float(np.float32(1e-5)),), (-3,), None),
        ("!quant.uniform<i16:f32:1, {0.5,0.25:3}>", (0.5, 0.25), (0, 3), 1),
    ],
)
def test_text(text: str, scales: tuple[float, ...], zero_points: tuple[int, ...], axis: int | None) -> None:
    made = parse(text.replace("1e-05", "1.0e-05"))
    assert isinstance(made, UniformType)
    assert (made.data.scales, made.data.zero_points, made.data.axis) == (scales, zero_points, axis)
    assert str(made) == text.replace("1e-05", "1.0e-05")
    assert quant.storage_of(made) == made.storage
    assert quant.storage_of(types.F32) == types.F32


SCALES = st.floats(min_value=2.0**-120, max_value=2.0**120, width=32)


@given(
    st.sampled_from([4, 8, 16, 32]),
    st.booleans(),
    st.lists(st.tuples(SCALES, st.integers(-(2**31), 2**31)), min_size=1, max_size=4),
    st.booleans(),
)
def test_every_type_is_read_as_it_was_written(
    width: int, unsigned: bool, pairs: list[tuple[float, int]], whole: bool
) -> None:
    storage = IntegerType.get(width, Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)
    pairs = pairs[:1] if whole else pairs
    uniform = Uniform(
        storage, tuple(scale for scale, _ in pairs), tuple(zero for _, zero in pairs), None if whole else 2
    )
    made = types.tensor(UniformType.get(uniform), (2, 3))
    assert parse(str(made)) == made


@pytest.mark.parametrize(
    "text", ["<f32:f32, 0.5>", "<i8:f64, 0.5>", "<i8:f32, -1.0>", "<i8:f32, 0.0>", "<i8:f32:0, 0.5>", "<i99:f32, 0.5>"]
)
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(ParseError):
        parse(f"!quant.uniform{text}")
