"""Inputs for the networks, and the file that keeps them with TensorFlow's answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]

# Cells a side of the patterns that an image is the sum of; the last pattern is noise in every pixel.
GRIDS = (1, 3, 8, 28)


def images(seed: int, count: int, shape: tuple[int, int, int], numbers: tuple[float, float]) -> np.ndarray:
    """Returns random images with patterns of all sizes.

    Images of pure noise would look all alike to a network that averages over them in the end.

    Args:
        seed: For the random numbers.
        count: How many.
        shape: Height, width, channels.
        numbers: The least and greatest number in them.
    """
    random = np.random.default_rng(seed)
    height, width, channels = shape
    result = np.zeros((count, height, width, channels))
    for cells in (*GRIDS, max(height, width)):
        grid = random.normal(0, 1, (count, cells, cells, channels))
        strength = random.uniform(0.05, 0.3, (count, 1, 1, channels))
        rows, columns = np.arange(height) * cells // height, np.arange(width) * cells // width
        result += strength * grid[:, rows][:, :, columns]
    low, high = numbers
    return (low + (high - low) * np.clip(0.5 + result, 0, 1)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Sample:
    """Inputs of a signature by name, and TensorFlow's outputs by name."""

    inputs: Arrays
    outputs: Arrays


def save_samples(path: Path, samples: Mapping[int, Sample]) -> None:
    """Writes samples by batch size."""
    arrays = {
        f"{batch}/{side}/{name}": array
        for batch, sample in samples.items()
        for side, half in (("in", sample.inputs), ("out", sample.outputs))
        for name, array in half.items()
    }
    # numpy's stub mistakes a keyword of another type for one of the arrays.
    np.savez(path, **arrays)  # type: ignore[arg-type]


def load_samples(path: Path) -> dict[int, Sample]:
    """Reads samples by batch size."""
    samples: dict[int, Sample] = {}
    with np.load(path) as stored:
        for key in stored.files:
            batch, side, name = key.split("/", 2)
            sample = samples.setdefault(int(batch), Sample({}, {}))
            (sample.inputs if side == "in" else sample.outputs)[name] = stored[key]
    return samples


def relative_error(answer: np.ndarray, expected: np.ndarray) -> float:
    """Returns the largest difference relative to the largest expected number; infinite where shapes or NaNs differ."""
    if answer.shape != expected.shape or not np.array_equal(np.isnan(answer), np.isnan(expected)):
        return float("inf")
    scale = float(np.nanmax(np.abs(expected), initial=0.0)) or 1.0
    return float(np.nanmax(np.abs(answer.astype(np.float64) - expected), initial=0.0)) / scale
