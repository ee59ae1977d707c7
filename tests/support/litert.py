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


def run_compiled(content: bytes, inputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs the first signature of a file in LiteRT's `CompiledModel`, on the processor, twice in the same buffers.

    Args:
        content: The file.
        inputs: The inputs, in the signature's order. Those of another shape than the model's are resized to.
        wanted: Arrays of the outputs' types and shapes.
    """
    model = importlib.import_module("ai_edge_litert.compiled_model").CompiledModel.from_buffer(content)
    (key, *_), names = model.get_signature_list(), model.get_signature_by_index(0)
    details = model.get_input_tensor_details(key)
    for index, (name, array) in enumerate(zip(names["inputs"], inputs, strict=True)):
        if tuple(details[name]["shape"]) != array.shape:
            model.resize_input_tensor(index, array.shape, strict=False)
    into, out_of = model.create_input_buffers(0), model.create_output_buffers(0)
    for _ in range(2):
        for buffer, array in zip(into, inputs, strict=True):
            buffer.write(np.ascontiguousarray(array))
        model.run_by_index(0, into, out_of)
    pairs = zip(out_of, wanted, strict=True)
    return [np.asarray(buffer.read(array.size, array.dtype)).reshape(array.shape) for buffer, array in pairs]
