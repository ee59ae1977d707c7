"""Fourier transforms against TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import ShapeCase, by_op, check_contradiction, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError


@pytest.mark.parametrize(
    ("op", "shape", "length"),
    [
        ("RFFT", "8", [8]),
        ("RFFT", "3,10", [8]),
        ("RFFT", "2,3,5", [5]),
        ("RFFT2D", "8,8", [8, 8]),
        ("RFFT2D", "2,9,12", [8, 7]),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_real_transforms(agree: Agree, op: str, shape: str, length: list[int], dtype: str) -> None:
    attributes = {"Tcomplex": np.dtype(f"complex{2 * int(dtype[1:])}")}
    agree(op, (f"{dtype}[{shape}]", length), attributes, tolerance=2e-5 if dtype == "f32" else 1e-10)


@pytest.mark.parametrize(
    ("op", "shape", "length"),
    [("IRFFT", "5", [8]), ("IRFFT", "2,5", [7]), ("IRFFT2D", "2,4,3", [4, 5]), ("IRFFT2D", "8,5", [3, 1])],
)
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_inverse_transforms(agree: Agree, op: str, shape: str, length: list[int], dtype: str) -> None:
    attributes = {"Treal": np.dtype(f"float{int(dtype[1:]) // 2}")}
    agree(op, (f"{dtype}[{shape}]", length), attributes, tolerance=2e-5 if dtype == "c64" else 1e-10)


@pytest.mark.parametrize(("op", "shape"), [("FFT", "2,5"), ("FFT2D", "2,4,3"), ("FFT3D", "2,3,4")])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_complex_transforms(agree: Agree, op: str, shape: str, dtype: str) -> None:
    tolerance = 2e-5 if dtype == "c64" else 1e-10
    agree(op, (f"{dtype}[{shape}]",), {}, tolerance=tolerance)
    agree(f"I{op}", (f"{dtype}[{shape}]",), {}, tolerance=tolerance)


def test_transforms_of_three_dimensions(agree: Agree) -> None:
    agree("RFFT3D", ("f32[4,3,6]", [4, 3, 6]), {"Tcomplex": np.dtype(np.complex64)}, tolerance=2e-5)
    agree("IRFFT3D", ("c64[4,3,4]", [4, 3, 6]), {"Treal": np.dtype(np.float32)}, tolerance=2e-5)


@pytest.mark.parametrize(
    ("op", "length"),
    [("IRFFT", [0]), ("IRFFT", [9]), ("IRFFT2D", [4, 4]), ("RFFT", [0]), ("RFFT", [5]), ("RFFT2D", [4, 4])],
)
def test_lengths_that_make_no_transform(op: str, length: list[int]) -> None:
    with pytest.raises(ConversionError) as caught:
        evaluate(Call(op, (np.ones(4, np.float32), np.array(length, np.int32)), {}))
    assert caught.value.code == "bad-operand"


SHAPES: list[ShapeCase] = [
    ("RFFT", ["f32[2,8]", [8]], {}),
    ("RFFT2D", ["f32[2,8,9]", [8, 9]], {}),
    ("RFFT", ["f32[*]", [8]], {}),
    ("RFFT2D", ["f32[2,8,9]", "i32[?]"], {}),
    ("IRFFT", ["c64[2,5]", [8]], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [("RFFT2D", ["f32[2,8,9]", [8]], {})]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)
