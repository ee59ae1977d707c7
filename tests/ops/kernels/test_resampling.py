"""Matrices that resize; that they are TensorFlow's is tested with the ops that they are for."""

from __future__ import annotations

import numpy as np
import pytest

from tfconvert.ops.resampling import KERNELS, area, bicubic, scaled

SIZES = [(7, 5), (5, 9), (4, 4), (1, 3), (6, 1)]


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_plain_image_stays_plain(inputs: int, outputs: int) -> None:
    matrices = [
        bicubic(inputs, outputs, half_pixel_centers=True),
        bicubic(inputs, outputs, align_corners=True),
        area(inputs, outputs),
        *(scaled(inputs, outputs, kernel, outputs / inputs, 0, antialias=True) for kernel in KERNELS),
    ]
    for matrix in matrices:
        assert matrix.shape == (outputs, inputs)
        np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-5)


def test_nothing_is_done_where_nothing_changes() -> None:
    for matrix in (bicubic(4, 4), area(4, 4), scaled(4, 4, "triangle", 1, 0, antialias=True)):
        np.testing.assert_array_equal(matrix, np.eye(4))


def test_what_is_beyond_the_image_is_black() -> None:
    assert not scaled(4, 6, "lanczos3", 1, 10, antialias=False).any()
