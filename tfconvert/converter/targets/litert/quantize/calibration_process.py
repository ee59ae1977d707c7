"""The process in which a model runs on samples while the ranges of its tensors are observed.

LiteRT may crash on what it is fed, and its memory is given back when it has done its work. First come the file and the
tensors to observe, then a sample each, and at last the word to finish.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from tfconvert.converter.process.child_process import Message, serve_task
from tfconvert.converter.targets.litert.quantize.observers import Observer, observer
from tfconvert.schema.dialects.boxes import Array

_THREADS = 4


class _Vectors:
    """The ranges that a subgraph computes itself, as the vectors of their ends."""

    def __init__(self, places: Sequence[Sequence[int]], count: int) -> None:
        self.places = [(graph, tensor) for graph, tensor in places]
        self._low = np.full(count, np.inf, np.float32)
        self._high = np.full(count, -np.inf, np.float32)

    def add(self, low: Array, high: Array) -> None:
        """Joins the ranges with those of one run."""
        np.minimum(self._low, low, out=self._low)
        np.maximum(self._high, high, out=self._high)

    def ranges(self) -> Array:
        """Returns the ranges, a row a value; each ends before it begins if there was no run."""
        return np.stack([self._low, self._high], 1)


class _Run:
    """An interpreter, and what is observed of its tensors."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self._interpreter: Any = Interpreter(
            header["file"], num_threads=min(_THREADS, os.cpu_count() or 1), experimental_preserve_all_tensors=True
        )
        method, levels = header["method"], header["levels"]
        self._observed: dict[tuple[int, int], Observer] = {
            (graph, tensor): observer(method, levels) for graph, tensor in header["observed"]
        }
        self._vectors = [_Vectors(places, count) for places, count in header["extremes"]]
        self._shapes: dict[int, tuple[int, ...]] | None = None
        self._runners: dict[str, Any] = {}

    def feed(self, header: Mapping[str, Any], arrays: list[Array]) -> None:
        """Runs a sample and observes the tensors of its subgraph."""
        subgraph = header["subgraph"]
        # Once there is a signature's runner, the interpreter can't be run without one: it takes that for a view.
        if subgraph or self._runners:
            runner = self._runners.get(header["key"])
            if runner is None:
                runner = self._runners[header["key"]] = self._interpreter.get_signature_runner(header["key"])
            runner(**dict(zip(header["names"], arrays, strict=True)))
        else:
            self._run_main(dict(zip(header["tensors"], arrays, strict=True)))
        for (graph, tensor), seen in self._observed.items():
            if graph == subgraph:
                values = self._value(graph, tensor)
                if values is not None and values.size:
                    seen.add(values)
                del values  # A view of a tensor prevents the next run.
        for vectors in self._vectors:
            ends = [self._value(*place) for place in vectors.places if place[0] == subgraph]
            if len(ends) == len(vectors.places) and ends[0] is not None and ends[1] is not None:
                vectors.add(ends[0], ends[1])
            del ends
        # It refuses where a state is allocated anew at each run, and need not be reset.
        with contextlib.suppress(RuntimeError):
            self._interpreter.reset_all_variables()

    def _run_main(self, inputs: Mapping[int, Array]) -> None:
        interpreter = self._interpreter
        self._runners.clear()  # The interpreter doesn't run while others refer to it.
        shapes = {index: value.shape for index, value in inputs.items()}
        if shapes != self._shapes:
            for index, value in inputs.items():
                interpreter.resize_tensor_input(index, value.shape)
            interpreter.allocate_tensors()
            self._shapes = shapes
        for index, value in inputs.items():
            if value.size:
                interpreter.set_tensor(index, value)
        interpreter.invoke()

    def _value(self, graph: int, tensor: int) -> Array | None:
        """Returns a tensor's value, `None` if it has none: a part of the model that did not run."""
        try:
            if graph:
                copied: Array = self._interpreter.get_tensor(tensor, graph)
                return copied
            viewed: Array = self._interpreter.tensor(tensor)()
        except ValueError:
            return None
        return viewed

    def finish(self) -> Message:
        """Returns the ranges, a row a tensor; of a tensor that never had a value, it ends before it begins."""
        found = [seen.range() for seen in self._observed.values()]
        inside = [each.ranges() for each in self._vectors]
        return {}, [np.array(found, np.float32).reshape(-1, 2), *inside]


if __name__ == "__main__":
    serve_task(_Run)
