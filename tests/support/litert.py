"""Runs files in LiteRT."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

Arrays = Sequence[np.ndarray] | Mapping[str, np.ndarray]


class RunTFLite(Protocol):
    """The type of the `run_tflite` fixture."""

    def __call__(self, content: bytes, inputs: Arrays, *, signature: str | None = None) -> list[np.ndarray]:
        """Runs a model, as `run` does."""


def run(content: bytes, inputs: Arrays, *, signature: str | None = None) -> list[np.ndarray]:
    """Runs a .tflite file's bytes in LiteRT.

    Args:
        content: The file.
        inputs: In the model's order, or by name: a signature's input names when `signature` is given, tensor names
            otherwise. Those of another shape than the model's are resized to.
        signature: The signature to run.

    Returns:
        The outputs in the model's order, a signature's in the order of their names.
    """
    interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(
        model_content=content, num_threads=1
    )
    if signature is not None:
        if not isinstance(inputs, Mapping):
            raise TypeError("a signature's inputs are given by name")
        return _run_signature(interpreter.get_signature_runner(signature), inputs)
    details = interpreter.get_input_details()
    arrays = [inputs[detail["name"]] for detail in details] if isinstance(inputs, Mapping) else list(inputs)
    assert len(arrays) == len(details), f"the model takes {len(details)} inputs, {len(arrays)} were given"
    for detail, array in zip(details, arrays, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], list(array.shape))
    interpreter.allocate_tensors()
    for detail, array in zip(details, arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _run_signature(runner: object, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    assert callable(runner)
    results = runner(**inputs)
    return [results[name] for name in sorted(results)]
