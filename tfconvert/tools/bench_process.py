"""Measures how long files take to load and to run, and how much memory; in a child process."""

from __future__ import annotations

import contextlib
import mmap
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.targets.litert import runtime
from tfconvert.schema.dialects.boxes import Array

if sys.platform != "win32":
    import resource

_WARM_UP = 3

_STATM = Path("/proc/self/statm")


class Times(NamedTuple):
    """Times of runs in nanoseconds, that of loading, and by how many bytes the process grew."""

    runs: list[int]
    loading: int
    memory: int


def measured(path: str, values: Sequence[Array], runs: int, threads: int) -> Times:
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
    return Times(times, loading, _memory() - before)


def tensors(path: str, values: Sequence[Array], wanted: Sequence[int]) -> dict[int, Array]:
    """Returns tensors of one run, by their numbers; those without a value are missing."""
    interpreter = _loaded(runtime.interpreter_of(path, experimental_preserve_all_tensors=True), values)
    interpreter.invoke()
    found = {}
    for number in wanted:
        with contextlib.suppress(ValueError):
            found[number] = np.asarray(interpreter.get_tensor(number))
    return found


def _loaded(interpreter: Any, arrays: Sequence[Array]) -> Any:
    """Returns an interpreter that is ready to run on inputs."""
    details = interpreter.get_input_details()
    for detail, value in zip(details, arrays, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, arrays, strict=True):
        if value.size:
            interpreter.set_tensor(detail["index"], value)
    return interpreter


def _memory() -> int:
    """Returns the memory that the process has; where the system doesn't tell, its peak, or 0."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * mmap.PAGESIZE
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
