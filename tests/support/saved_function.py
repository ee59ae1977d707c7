"""Saves a traced function by itself."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any


def save_function(tf: ModuleType, folder: Path | str, concrete: Any, signature: str = "serving_default") -> None:
    """Saves a concrete function as a signature, with its variables.

    What is saved doesn't own the function: TensorFlow traces those that an object owns again.
    """
    owner = tf.Module()
    owner.variables_of_function = concrete.variables
    tf.saved_model.save(owner, str(folder), signatures={signature: concrete})
