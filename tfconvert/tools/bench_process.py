"""The process in which files are measured: how long they take to load and to run, and how much memory."""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from tfconvert.converter.process.child_process import Message, serve
from tfconvert.schema.dialects.boxes import Array

if sys.platform != "win32":
    import resource

_WARM_UP = 3

_STATM = Path("/proc/self/statm")


def _answer(header: Mapping[str, Any], arrays: list[Array]) -> Message:
    try:
        return _measured(header, arrays) if header["runs"] else _values(header, arrays)
    except (RuntimeError, ValueError) as problem:
        return {"problem": str(problem)}, []


def _measured(header: Mapping[str, Any], arrays: Sequence[Array]) -> Message:
    """Returns the times of runs in nanoseconds."""
    before, start = _memory(), time.perf_counter_ns()
    interpreter = _loaded(Interpreter(header["file"], num_threads=header["threads"]), arrays)
    loading = time.perf_counter_ns() - start
    for _ in range(_WARM_UP):
        interpreter.invoke()
    times = []
    for _ in range(header["runs"]):
        start = time.perf_counter_ns()
        interpreter.invoke()
        times.append(time.perf_counter_ns() - start)
    return {"problem": "", "times": times, "loading": loading, "memory": _memory() - before}, []


def _values(header: Mapping[str, Any], arrays: Sequence[Array]) -> Message:
    """Returns tensors of one run; empty arrays for those that have no value."""
    interpreter = _loaded(Interpreter(header["file"], experimental_preserve_all_tensors=True), arrays)
    interpreter.invoke()
    numbers, values = [], []
    for number in header["wanted"]:
        try:
            values.append(np.asarray(interpreter.get_tensor(number)))
        except ValueError:
            continue
        numbers.append(number)
    return {"problem": "", "numbers": numbers}, values


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
    """Returns the memory that the process has; where the system doesn't tell, the most that it has had, or 0."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * mmap.PAGESIZE
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    serve(_answer)
