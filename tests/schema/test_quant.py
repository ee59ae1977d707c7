"""The types of MLIR's `quant` dialect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.quant import BlockedType, Uniform, UniformType
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
        ("!quant.uniform<i64:f32, 0.25>", (0.25,), (0,), None),
    ],
)
def test_text(text: str, scales: tuple[float, ...], zero_points: tuple[int, ...], axis: int | None) -> None:
    made = parse(text.replace("1e-05", "1.0e-05"))
    assert isinstance(made, UniformType)
    assert (made.data.scales, made.data.zero_points, made.data.axis) == (scales, zero_points, axis)
    assert str(made) == text.replace("1e-05", "1.0e-05")
    assert quant.storage_of(made) == made.storage
    assert quant.storage_of(types.F32) == types.F32


def test_limits() -> None:
    narrow = parse("!quant.uniform<i8<-127:127>:f32:0, {0.5,0.25:3}>")
    assert isinstance(narrow, UniformType)
    assert narrow.data.limits == narrow.data.range == (-127, 127)
    assert str(narrow) == "!quant.uniform<i8<-127:127>:f32:0, {0.5,0.25:3}>"
    for text, limits in (("i8", (-128, 127)), ("u8", (0, 255)), ("i16", (-32768, 32767))):
        whole = parse(f"!quant.uniform<{text}<{limits[0]}:{limits[1]}>:f32, 0.5>")
        assert isinstance(whole, UniformType)
        assert whole is parse(f"!quant.uniform<{text}:f32, 0.5>")
        assert whole.data.range == limits


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
    "text",
    [
        "<f32:f32, 0.5>",
        "<i8:f64, 0.5>",
        "<i8:f32, -1.0>",
        "<i8:f32, 0.0>",
        "<i8:f32:0, 0.5>",
        "<i99:f32, 0.5>",
        "<i8<-129:127>:f32, 0.5>",
        "<i8<0:256>:f32, 0.5>",
        "<u8<-1:1>:f32, 0.5>",
        "<i8<3:3>:f32, 0.5>",
    ],
)
def test_invalid_types(text: str) -> None:
    with pytest.raises(ParseError):
        parse(f"!quant.uniform{text}")


@pytest.mark.parametrize(
    "text",
    [
        "!quant.blockwise<i4:f32, 32, [], dense<5.000000e-01> : tensor<2x1xf16>>",
        "!quant.blockwise<u8:f32, 2, [1, 2], dense<[0.5, 0.25]> : tensor<2xf32>, dense<[1, -2]> : tensor<2xi8>>",
        "!quant.multi_axis<i8:f32, 0, [0, 1], dense<[[0.5, 0.25]]> : tensor<1x2xf32>>",
    ],
)
def test_blocks(text: str) -> None:
    made = parse(text)
    assert isinstance(made, BlockedType)
    assert parse(str(made)) == made
    assert str(made).split(", dense")[0] == text.split(", dense")[0]
    assert quant.storage_of(made) == made.storage
    assert (made.data.zero_points is not None) == (text.count("dense") == 2)


@pytest.mark.parametrize(
    "text",
    [
        "<i4:f64, 32, [], dense<0.5> : tensor<1xf16>>",
        "<i4:f32, -1, [], dense<0.5> : tensor<1xf16>>",
        "<i4:f32, 32, [], 0.5>",
        "<i4:f32, 32, dense<0.5> : tensor<1xf16>>",
    ],
)
def test_values_without_blocks(text: str) -> None:
    with pytest.raises(ParseError):
        parse(f"!quant.blockwise{text}")
