"""Keras' layers in SavedModels of a function each, without the functions that Keras would write for every layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.saved_function import save_function


def save_call(
    tf: ModuleType, folder: Path, call: Callable[..., Any], *shapes: Sequence[int | None]
) -> Callable[..., Any]:
    """Saves a function of layers; returns a function that computes its `result` in TensorFlow.

    Args:
        tf: TensorFlow.
        folder: The directory to save to.
        call: The function, whose inputs are floats.
        shapes: Their shapes; they are called x, y and z.
    """
    specs = [tf.TensorSpec(shape, tf.float32, name) for name, shape in zip("xyz", shapes, strict=False)]
    function = tf.function(lambda *inputs: {"result": call(*inputs)}, input_signature=specs)
    traced = function.get_concrete_function()
    save_function(tf, folder, traced)
    return lambda **inputs: traced(*inputs.values())
