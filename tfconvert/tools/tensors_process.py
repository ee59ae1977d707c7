"""Runs a file with every tensor kept, to see where its results come from; in a child process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.stored_values import to_stored
from tfconvert.schema.dialects.boxes import Array


class KeptTensors:
    """An interpreter that keeps its tensors.

    Args:
        path: The file.
        key: The signature to run; empty for the first subgraph.
        subgraph: The subgraph of that signature.
        wanted: The numbers of the tensors that `run` returns.
    """

    def __init__(self, path: str, key: str, subgraph: int, wanted: Sequence[int]) -> None:
        self._interpreter: Any = runtime.interpreter_of(path, num_threads=1, experimental_preserve_all_tensors=True)
        self._key, self._subgraph, self._wanted = key, subgraph, wanted

    def run(self, names: Sequence[str], values: Sequence[Array]) -> dict[int, Array]:
        """Runs the file and returns the tensors that have a value; floats become integers where the file takes these.

        Args:
            names: The names of a signature's inputs.
            values: The inputs.
        """
        interpreter = self._interpreter
        if self._key:
            runner = interpreter.get_signature_runner(self._key)
            details = runner.get_input_details()
            runner(**{name: to_stored(value, details[name]) for name, value in zip(names, values, strict=True)})
        else:
            details = interpreter.get_input_details()
            for detail, value in zip(details, values, strict=True):
                interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(details, values, strict=True):
                interpreter.set_tensor(detail["index"], to_stored(value, detail))
            interpreter.invoke()
        found = {number: self._value(number) for number in self._wanted}
        return {number: value for number, value in found.items() if value is not None}

    def _value(self, number: int) -> Array | None:
        """Returns a tensor's value, `None` if it has none or its type is one that numpy lacks."""
        try:
            return np.asarray(self._interpreter.get_tensor(number, self._subgraph))
        except ValueError:
            return None
