"""The process in which a model of floats and its quantized form run on the same samples, tensor by tensor.

First come the two files, then a sample each, and at last the word to finish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from tfconvert.converter.child_process import Message, serve_task
from tfconvert.converter.litert.quantize.layer_pairs import layers_of, paired
from tfconvert.converter.litert.quantize.stored_values import to_floats, to_stored
from tfconvert.importers.tflite.buffers import FileContent
from tfconvert.schema.dialects.boxes import Array


class Figures(NamedTuple):
    """The findings about one tensor.

    Attributes:
        name: Its name in the model of floats.
        is_output: Whether it is an output of the model.
        signal: The sum of the squares of the model's own numbers.
        noise: The sum of the squares of the differences.
        agreed: In how many rows the same element is the greatest.
        rows: How many rows there were.
    """

    name: str
    is_output: bool
    signal: float = 0.0
    noise: float = 0.0
    agreed: int = 0
    rows: int = 0

    def with_values(self, expected: Array, got: Array) -> Figures:
        """Returns the figures with one more run."""
        expected, got = expected.astype(np.float64), got.astype(np.float64)
        agreed = rows = 0
        if self.is_output and expected.ndim > 1 and expected.shape[-1] > 1:
            best = expected.argmax(-1) == got.argmax(-1)
            agreed, rows = int(best.sum()), best.size
        return self._replace(
            signal=self.signal + float(np.square(expected).sum()),
            noise=self.noise + float(np.square(expected - got).sum()),
            agreed=self.agreed + agreed,
            rows=self.rows + rows,
        )


class _Model:
    """One of the two files."""

    def __init__(self, path: str) -> None:
        self._interpreter: Any = Interpreter(path, num_threads=1, experimental_preserve_all_tensors=True)
        self.inputs: Sequence[Mapping[str, Any]] = self._interpreter.get_input_details()
        self.outputs: list[int] = [each["index"] for each in self._interpreter.get_output_details()]
        self.layers = layers_of(FileContent(path))
        self.tensors: dict[int, Mapping[str, Any]] = {
            each["index"]: each for each in self._interpreter.get_tensor_details()
        }
        self._shapes: list[tuple[int, ...]] = []

    def run(self, values: Sequence[Array]) -> None:
        """Runs the model."""
        interpreter = self._interpreter
        shapes = [value.shape for value in values]
        if shapes != self._shapes:
            for each, value in zip(self.inputs, values, strict=True):
                interpreter.resize_tensor_input(each["index"], value.shape)
            interpreter.allocate_tensors()
            self._shapes = shapes
        for each, value in zip(self.inputs, values, strict=True):
            interpreter.set_tensor(each["index"], to_stored(value, each))
        interpreter.invoke()

    def value(self, index: int) -> Array | None:
        """Returns a tensor as floats, `None` if it has no value."""
        details = self.tensors[index]
        try:
            stored = np.asarray(self._interpreter.get_tensor(index))
        except ValueError:
            return None
        return to_floats(stored, *details["quantization"])

    def reset(self) -> None:
        """Forgets the state."""
        self._interpreter.reset_all_variables()


def _pairs(floats: _Model, quantized: _Model) -> Iterator[tuple[int, int]]:
    """Yields the tensors that are compared: the outputs, and what layers give beside them."""
    yield from zip(floats.outputs, quantized.outputs, strict=True)
    for layer, other in paired(floats.layers, quantized.layers):
        yield from zip(layer.results, other.results, strict=True)


class _Comparison:
    """Both models, and what was found so far."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self._models = [_Model(path) for path in header["files"]]
        floats, quantized = self._models
        # What is paired more than once was an output first.
        self._others = {one: two for one, two in reversed(list(_pairs(floats, quantized)))
                        if floats.tensors[one]["dtype"] is np.float32}  # fmt: skip
        self._figures = {
            one: Figures(str(floats.tensors[one]["name"]), one in floats.outputs) for one in sorted(self._others)
        }

    def feed(self, header: Mapping[str, Any], arrays: list[Array]) -> None:
        """Runs both models on a sample."""
        for model in self._models:
            model.run(arrays)
        floats, quantized = self._models
        for index, each in self._figures.items():
            expected, got = floats.value(index), quantized.value(self._others[index])
            if expected is not None and got is not None and expected.shape == got.shape:
                self._figures[index] = each.with_values(expected, got)
        for model in self._models:
            model.reset()

    def finish(self) -> Message:
        """Returns the figures."""
        return {"figures": list(self._figures.values())}, []


if __name__ == "__main__":
    serve_task(_Comparison)
