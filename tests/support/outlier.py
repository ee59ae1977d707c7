"""A model that 8-bit integers ruin: one channel is 900 times as large as the others, which share its range."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.sample_models import traced
from tests.support.saved_function import save_function

# The sizes of an input.
SIZES = (8, 8, 3)

# The layers whose exclusion restores the accuracy: what writes the channel, and what reads it.
CULPRITS = ["widened", "narrowed"]


def save(tf: ModuleType, folder: Path) -> Path:
    """Saves the model; its input is `image`, of any batch, its output `y`."""
    random = np.random.default_rng(3)
    scale = np.ones(8, np.float32)
    scale[5] = 900
    first = random.normal(0, 0.4, (3, 3, 3, 8)).astype(np.float32) * scale
    second = random.normal(0, 0.3, (3, 3, 8, 6)).astype(np.float32) / scale[:, None]
    third = random.normal(0, 0.3, (3, 3, 6, 6)).astype(np.float32)
    last = random.normal(0, 1, (6, 5)).astype(np.float32)

    @traced(tf, tf.TensorSpec([None, *SIZES], tf.float32, name="image"))
    def call(x: Any) -> Any:
        x = tf.nn.relu(tf.nn.conv2d(x, first, [1] * 4, "SAME", name="conv_1"), name="widened")
        x = tf.nn.relu(tf.nn.conv2d(x, second, [1] * 4, "SAME", name="conv_2"), name="narrowed")
        x = tf.nn.relu(tf.nn.conv2d(x, third, [1] * 4, "SAME", name="conv_3"), name="third")
        return {"y": tf.matmul(tf.reduce_mean(x, [1, 2], name="mean"), last, name="scores")}

    save_function(tf, folder, call.get_concrete_function())
    return folder


def images(count: int = 24) -> np.ndarray[Any, Any]:
    """Returns inputs."""
    random = np.random.default_rng(4)
    smooth = random.uniform(0, 1, (count, 2, 2, 3)).repeat(4, 1).repeat(4, 2)
    found: np.ndarray[Any, Any] = (smooth + random.uniform(0, 0.1, (count, *SIZES))).astype(np.float32)
    return found
