"""Compares the layers of a quantized .tflite file, whoever made it, with what the model of floats computes there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from tfconvert.converter.targets.litert.quantize.figures import Figures, Step, layers, range_of
from tfconvert.converter.targets.litert.stored_values import to_floats
from tfconvert.converter.validation.result_check import Ranges
from tfconvert.converter.validation.wiring import Wiring
from tfconvert.importers.source import Source
from tfconvert.ops.call import Array
from tfconvert.schema.fidelity import LayerFidelity
from tfconvert.tools.layers import LayerRuns, each_function, is_alike

# How many samples are compared: the reference is slow.
_MAX = 8


def layer_table(source: Source, content: bytes, data: Any, wiring: Wiring, ranges: Ranges) -> tuple[LayerFidelity, ...]:
    """Returns the layers of a file, those where most is lost first.

    Args:
        source: The model of floats.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Which of the file's inputs and outputs are those of the model.
        ranges: The ranges of random inputs.
    """
    rows: list[LayerFidelity] = []
    for runs, draws in each_function(source, content, data, wiring, ranges):
        table = _Table(runs)
        for values in islice(draws, _MAX):
            table.add(values)
        rows += table.rows()
    return tuple(sorted(rows, key=lambda row: -row.lost))


class _Table:
    """The layers of one function."""

    def __init__(self, runs: LayerRuns) -> None:
        self._runs = runs
        self._figures: dict[int, Figures] = {}
        self._chosen: dict[int, int] = {}
        self._stored: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}

    def add(self, values: Sequence[Array]) -> None:
        """Runs both models on a sample."""
        expected, got = self._runs.expected(values), self._runs.got(values)
        for index, stored in got.items():
            tensor = self._runs.tensors[index]
            value = to_floats(stored, tensor.scale, tensor.zero_point) if stored.dtype.kind in "iu" else stored
            candidates = self._runs.candidates(tensor, expected)
            if value.dtype == np.float32 and candidates:
                self._stored[index] = stored.dtype
                self._add(index, value, candidates)

    def _add(self, index: int, value: Array, candidates: Sequence[tuple[str, Array]]) -> None:
        """Compares a tensor with the value that was closest to it on the first sample."""
        alike = [number for number, (_, each) in enumerate(candidates) if is_alike(each, value)]
        if alike and index not in self._chosen:
            self._chosen[index] = min(alike, key=lambda number: _distance(candidates[number][1], value))
        if self._chosen.get(index) in alike:
            self._nodes[index], wanted = candidates[self._chosen[index]]
            self._figures.setdefault(index, Figures()).add(np.reshape(wanted, value.shape), value)

    def rows(self) -> tuple[LayerFidelity, ...]:
        """Returns the layers."""
        measured = {index: found for index, each in self._figures.items() if (found := each.measured()) is not None}
        tensors = self._runs.tensors
        known = {
            index: range_of({"quantization": (tensors[index].scale, tensors[index].zero_point), "dtype": dtype})
            for index, dtype in self._stored.items()
        }
        steps = [
            Step(
                next((self._nodes[index] for index in each.outputs if index in self._nodes), ""),
                each.name,
                each.inputs,
                each.outputs,
            )
            for each in self._runs.operators
        ]
        return layers(steps, measured, {index: each for index, each in known.items() if each is not None})


def _distance(value: Array, other: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        found = float(np.square(np.reshape(value, other.shape).astype(np.float64) - other).sum())
    return found if np.isfinite(found) else np.inf
