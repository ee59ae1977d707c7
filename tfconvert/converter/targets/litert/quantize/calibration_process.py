"""Runs a model on samples and observes the ranges of its tensors, in a child process.

LiteRT may crash on its inputs, and its memory is freed with the process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.observers import Apart, ChannelRange, Observer, observer
from tfconvert.schema.dialects.boxes import Array

_THREADS = 4


class _Vectors:
    """The ranges that a subgraph computes itself, as vectors of minima and maxima."""

    def __init__(self, places: Sequence[Sequence[int]], count: int) -> None:
        self.places = [(graph, tensor) for graph, tensor in places]
        self._low = np.full(count, np.inf, np.float32)
        self._high = np.full(count, -np.inf, np.float32)

    def add(self, low: Array, high: Array) -> None:
        np.minimum(self._low, low, out=self._low)
        np.maximum(self._high, high, out=self._high)

    def ranges(self) -> Array:
        """Returns the ranges, one row per value; minimum > maximum if there was no run."""
        return np.stack([self._low, self._high], 1)


class Observers:
    """An interpreter with observers of its tensors.

    Args:
        path: The file.
        method: How a range is computed from a tensor's numbers.
        levels: The number of integers that a range will be divided into.
        observed: The tensors, as subgraph and index.
        apart: The axes along which the channels of some of them are, by their positions in `observed`.
        extremes: Pairs of tensors with the minima and maxima of ranges, and the number of these ranges.
    """

    def __init__(
        self,
        path: str,
        method: str,
        levels: int,
        observed: Sequence[Sequence[int]],
        extremes: Sequence[tuple[Sequence[Sequence[int]], int]],
        apart: Mapping[int, Sequence[int]],
    ) -> None:
        self._interpreter: Any = runtime.interpreter_of(
            path, num_threads=min(_THREADS, os.cpu_count() or 1), experimental_preserve_all_tensors=True
        )
        self._observed: dict[tuple[int, int], Observer] = {
            (graph, tensor): observer(method, levels, apart.get(position))
            for position, (graph, tensor) in enumerate(observed)
        }
        self._vectors = [_Vectors(places, count) for places, count in extremes]
        self._shapes: dict[int, tuple[int, ...]] | None = None
        self._runners: dict[str, Any] = {}

    def run(
        self, subgraph: int, key: str, names: Sequence[str], tensors: Sequence[int], values: Sequence[Array]
    ) -> None:
        """Runs a sample and observes the tensors of its subgraph.

        Args:
            subgraph: The subgraph.
            key: The key of its signature.
            names: The names of its inputs.
            tensors: The tensors of its inputs.
            values: The values of its inputs.
        """
        # Once a signature's runner exists, the interpreter can't be run without one: it takes the runner for a view.
        if subgraph or self._runners:
            runner = self._runners.get(key)
            if runner is None:
                runner = self._runners[key] = self._interpreter.get_signature_runner(key)
            runner(**dict(zip(names, values, strict=True)))
        else:
            self._run_main(dict(zip(tensors, values, strict=True)))
        for (graph, tensor), seen in self._observed.items():
            if graph == subgraph:
                value = self._value(graph, tensor)
                if value is not None and value.size:
                    seen.add(value)
                del value  # A view of a tensor prevents the next run.
        for vectors in self._vectors:
            ends = [self._value(*place) for place in vectors.places if place[0] == subgraph]
            if len(ends) == len(vectors.places) and ends[0] is not None and ends[1] is not None:
                vectors.add(ends[0], ends[1])
            del ends
        # It fails if a state is allocated at each run, and then need not be reset.
        with contextlib.suppress(RuntimeError):
            self._interpreter.reset_all_variables()

    def _run_main(self, inputs: Mapping[int, Array]) -> None:
        interpreter = self._interpreter
        self._runners.clear()  # The interpreter doesn't run while views of its tensors exist.
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
        """Returns a tensor's value; `None` if that part of the model did not run."""
        try:
            if graph:
                copied: Array = self._interpreter.get_tensor(tensor, graph)
                return copied
            viewed: Array = self._interpreter.tensor(tensor)()
        except ValueError:
            return None
        return viewed

    def ranges(self) -> list[Array]:
        """Returns the ranges, one row per tensor; minimum > maximum for a tensor that never had a value."""
        found = [seen.range() for seen in self._observed.values()]
        return [np.array(found, np.float32).reshape(-1, 2), *(each.ranges() for each in self._vectors)]

    def channels(self) -> list[ChannelRange | None]:
        """Returns the ranges of channels, for each tensor with some; `None` for one that never had a value."""
        return [seen.channels() for seen in self._observed.values() if isinstance(seen, Apart)]
