"""Runs .tflite files in a child process: measures times, and returns every tensor of a run."""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.stored_values import to_stored
from tfconvert.schema.dialects.boxes import Array

if sys.platform != "win32":
    import resource

_WARM_UP = 3

_STATM = Path("/proc/self/statm")


class RunTimes(NamedTuple):
    """Times of runs and of loading in nanoseconds, and the growth of the process in bytes."""

    runs: list[int]
    loading: int
    memory: int


def measured(path: str, values: Sequence[Array], runs: int, threads: int) -> RunTimes:
    """Runs a file and returns the times."""
    before, start = _memory(), time.perf_counter_ns()
    interpreter = _loaded(runtime.interpreter_of(path, num_threads=threads), values)
    loading = time.perf_counter_ns() - start
    for _ in range(_WARM_UP):
        interpreter.invoke()
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        interpreter.invoke()
        times.append(time.perf_counter_ns() - start)
    return RunTimes(times, loading, _memory() - before)


def _loaded(interpreter: Any, arrays: Sequence[Array]) -> Any:
    """Returns an interpreter that is ready to run on inputs; floats become integers where the file expects them."""
    details = interpreter.get_input_details()
    for detail, value in zip(details, arrays, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, arrays, strict=True):
        if value.size:  # LiteRT's Python binding doesn't take empty tensors.
            interpreter.set_tensor(detail["index"], to_stored(value, detail))
    return interpreter


def _memory() -> int:
    """Returns the memory of the process; its peak, or 0, if the system doesn't report it."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * mmap.PAGESIZE
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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
        """Runs the file and returns the tensors that have a value; floats become integers where the file expects them.

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
            _loaded(interpreter, values)
            interpreter.invoke()
        found = {number: self._value(number) for number in self._wanted}
        return {number: value for number, value in found.items() if value is not None}

    def _value(self, number: int) -> Array | None:
        """Returns a tensor's value, or `None` if it has no value or numpy lacks its type."""
        try:
            return np.asarray(self._interpreter.get_tensor(number, self._subgraph))
        except ValueError:
            return None
