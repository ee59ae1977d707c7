"""Inputs of the benchmarks, and errors of answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.samples import Sample, images, load_samples, relative_error, save_samples


def test_images_are_random_but_the_same_each_time() -> None:
    one, again, other = (images(seed, 2, (16, 12, 3), (-1.0, 1.0)) for seed in (1, 1, 2))
    assert one.shape == (2, 16, 12, 3)
    assert one.dtype == np.float32
    assert -1 <= one.min() < -0.2 < 0.2 < one.max() <= 1
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1
    assert np.abs(one[0] - one[1]).max() > 0.1


def test_samples_survive_their_file(tmp_path: Path) -> None:
    samples = {size: Sample({"x/y": np.full((size, 2), 3.5)}, {"out": np.arange(size)}) for size in (1, 2)}
    save_samples(tmp_path / "io.npz", samples)
    read = load_samples(tmp_path / "io.npz")
    assert read.keys() == {1, 2}
    np.testing.assert_array_equal(read[2].inputs["x/y"], samples[2].inputs["x/y"])
    np.testing.assert_array_equal(read[2].outputs["out"], [0, 1])


@pytest.mark.parametrize(
    ("answer", "expected", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 4.5], [1.0, 5.0], 0.1),
        ([0.25], [0.0], 0.25),
        ([np.nan, 1.0], [np.nan, 2.0], 0.5),
        ([np.nan], [1.0], np.inf),
        ([1.0], [np.nan], np.inf),
        ([1.0, 1.0], [1.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_relative_error(answer: list[float], expected: list[float], error: float) -> None:
    assert relative_error(np.array(answer), np.array(expected)) == pytest.approx(error)
