"""The process in which a file runs with every tensor kept, to see where its results come from.

The first request brings the file, each further one inputs; a last one asks for the tensors that have a value then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from tfconvert.converter.process.child_process import Message, serve_task
from tfconvert.converter.targets.litert.stored_values import to_stored
from tfconvert.schema.dialects.boxes import Array


class _Kept:
    """An interpreter that keeps its tensors."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self._interpreter: Any = Interpreter(header["file"], num_threads=1, experimental_preserve_all_tensors=True)
        self._header = header
        self._values: list[Array] = []
        self._numbers: list[int] = []

    def feed(self, header: Mapping[str, Any], arrays: list[Array]) -> None:
        """Runs the file on inputs; floats become integers where the file takes these."""
        interpreter, subgraph = self._interpreter, self._header["subgraph"]
        if self._header["key"]:
            runner = interpreter.get_signature_runner(self._header["key"])
            details = runner.get_input_details()
            names = header["inputs"]
            runner(**{name: to_stored(value, details[name]) for name, value in zip(names, arrays, strict=True)})
        else:
            details = interpreter.get_input_details()
            for detail, value in zip(details, arrays, strict=True):
                interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(details, arrays, strict=True):
                interpreter.set_tensor(detail["index"], to_stored(value, detail))
            interpreter.invoke()
        found = {number: self._value(number, subgraph) for number in self._header["wanted"]}
        self._numbers = [number for number, value in found.items() if value is not None]
        self._values = [value for value in found.values() if value is not None]

    def _value(self, number: int, subgraph: int) -> Array | None:
        """Returns a tensor's value, `None` if it has none or its type is one that numpy lacks."""
        try:
            return np.asarray(self._interpreter.get_tensor(number, subgraph))
        except ValueError:
            return None

    def finish(self) -> Message:
        """Returns the tensors and which they are."""
        return {"numbers": self._numbers}, self._values


if __name__ == "__main__":
    serve_task(_Kept)
