"""The example that the README shows: its claims about the converted model must be true."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite


@pytest.fixture(scope="module")
def content(digits_model: Path) -> bytes:
    return bytes(tfconvert.convert(digits_model))


@pytest.fixture(scope="module")
def digits(digits_model: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the held-out images, as the model expects them, and their labels."""
    with np.load(digits_model.parent / "held_out.npz") as held_out:
        pixels = (held_out["pixels"] / 16).astype(np.float32)[..., np.newaxis]
        return pixels, held_out["labels"]


def test_reads_digits_that_it_never_saw(
    content: bytes, digits: tuple[np.ndarray, np.ndarray], run_tflite: RunTFLite
) -> None:
    pixels, labels = digits
    (probabilities,) = run_tflite(content, [pixels])
    assert np.mean(np.argmax(probabilities, axis=1) == labels) >= 0.95
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def test_answers_as_tensorflow_does(
    content: bytes, digits: tuple[np.ndarray, np.ndarray], digits_model: Path, run_tflite: RunTFLite, tf: ModuleType
) -> None:
    pixels = digits[0][:64]
    signature = tf.saved_model.load(str(digits_model)).signatures["serving_default"]
    (expected,) = [value.numpy() for value in signature(pixels=tf.constant(pixels)).values()]
    (found,) = run_tflite(content, {"pixels": pixels}, signature="serving_default")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_is_smaller_than_its_source(content: bytes, digits_model: Path) -> None:
    """Batch norms are folded, and the checkpoint's second copy of the weights and its training ops are gone."""
    weights = (digits_model / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert len(content) < 0.6 * weights
