"""Reports the time of each operator of .tflite files, those inside of XNNPACK's pieces included.

    python -m benchmarks.latency_profile MODEL.tflite... [--order]

LiteRT's Python interpreter has no profiler, but the C interface of its newer half has: this calls it through ctypes,
with the structures as they are in the version of ai-edge-litert that pyproject.toml allows. XNNPACK rounds the time of
each of its operators down to whole microseconds, so short ones appear as nothing; the total is measured outside.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_int32, c_size_t, c_uint, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commands import parser_of

_CPU, _FLOAT, _FOR_WRITING = 1, 1, 1

# The profile is of many short series of runs.
SERIES = 20
RUNS = 5

_PROFILED = b"enable_profiling = true\n"


class _Layout(ctypes.Structure):
    _fields_ = (("rank", c_uint, 7), ("strided", c_uint, 1), ("dims", c_int32 * 8), ("strides", c_uint32 * 8))


class _TensorType(ctypes.Structure):
    _fields_ = (("element", c_int), ("layout", _Layout))


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_keep = _Deleter(lambda _: None)


class ProfiledModel:
    """A model in LiteRT's CompiledModel on the CPU, in one thread, with a profiler."""

    def __init__(self, path: Path) -> None:
        import ai_edge_litert

        self._library = ctypes.CDLL(str(Path(ai_edge_litert.__file__).parent / "libLiteRt.so"))
        environment = self._made("CreateEnvironment", 0, None)
        model = self._made("CreateModelFromFile", environment, c_char_p(str(path).encode()))
        options = self._made("CreateOptions")
        self._call("SetOptionsHardwareAccelerators", options, _CPU)
        self._text = ctypes.create_string_buffer(_PROFILED)
        name = c_char_p(b"runtime_options_string")
        self._call(
            "AddOpaqueOptions", options, self._made("CreateOpaqueOptions", name, ctypes.byref(self._text), _keep)
        )
        self._environment = environment
        self._model = self._made("CreateCompiledModel", environment, model, options)
        signature = self._made("GetModelSignature", model, c_size_t(0))
        self._buffers = [self._buffers_of(signature, side) for side in ("Input", "Output")]
        self._profiler = self._made("CompiledModelGetProfiler", self._model)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"LiteRt{name}")(*arguments)
        if status:
            raise RuntimeError(f"LiteRt{name} returned {status}")

    def _made(self, name: str, *arguments: Any) -> c_void_p:
        """Returns what a function writes behind its last parameter."""
        result = c_void_p()
        self._call(name, *arguments, byref(result))
        return result

    def _buffers_of(self, signature: c_void_p, side: str) -> ctypes.Array[c_void_p]:
        count = c_size_t()
        self._call(f"GetNumSignature{side}s", signature, byref(count))
        buffers = (c_void_p * count.value)()
        for index in range(count.value):
            tensor = self._made(f"GetSignature{side}TensorByIndex", signature, c_size_t(index))
            kind = _TensorType()
            self._call("GetRankedTensorType", tensor, byref(kind))
            needs = self._made(f"GetCompiledModel{side}BufferRequirements", self._model, c_size_t(0), c_size_t(index))
            buffer = self._made("CreateManagedTensorBufferFromRequirements", self._environment, byref(kind), needs)
            buffers[index] = buffer
            if side == "Input":
                self._fill(buffer, kind)
        return buffers

    def _fill(self, buffer: c_void_p, kind: _TensorType) -> None:
        """Writes random floats, or zeros for everything else."""
        size, address = c_size_t(), c_void_p()
        self._call("GetTensorBufferPackedSize", buffer, byref(size))
        self._call("LockTensorBuffer", buffer, byref(address), _FOR_WRITING)
        data = np.zeros(size.value, np.uint8)
        if kind.element == _FLOAT:
            data = np.random.default_rng(0).uniform(0, 1, size.value // 4).astype(np.float32)
        ctypes.memmove(address, data.ctypes.data, data.nbytes)
        self._call("UnlockTensorBuffer", buffer)

    def run(self) -> None:
        """Runs the model once."""
        arguments: list[Any] = []
        for buffers in self._buffers:
            arguments += [c_size_t(len(buffers)), buffers]
        self._call("RunCompiledModel", self._model, c_size_t(0), *arguments)

    def summary(self, runs: int) -> str:
        """Returns LiteRT's text about the time of each operator in some runs."""
        self.run()
        self._call("ResetProfiler", self._profiler)
        self._call("StartProfiler", self._profiler)
        for _ in range(runs):
            self.run()
        self._call("StopProfiler", self._profiler)
        text = c_char_p()
        self._call("GetProfileSummary", self._profiler, self._model, byref(text))
        return (text.value or b"").decode()

    def microseconds(self, runs: int) -> float:
        """Returns the minimum time of a run."""
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.run()
            times.append(time.perf_counter() - start)
        return min(times) * 1e6


_ROW = re.compile(r"^ *(\S.*?)  +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+% +[\d.]+% +[\d.]+ +(\d+)", re.MULTILINE)


def times_by_kind(model: ProfiledModel) -> dict[str, tuple[float, float]]:
    """Returns microseconds of a run and the number of calls for each kind of operator, the longest first.

    The time is the least of several short series, because one that another process interrupts is far off.
    """
    least: dict[str, tuple[float, float]] = {}
    for _ in range(SERIES):
        found: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        for row in _ROW.finditer(model.summary(RUNS).partition("Top by Computation")[0]):
            called = int(row[5]) / RUNS
            spent, calls = found[row[1]]
            found[row[1]] = spent + float(row[4]) * 1e3 * called, calls + called
        least = {kind: min(each, least.get(kind, each)) for kind, each in found.items()}
    return dict(sorted(least.items(), key=lambda each: -each[1][0]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("latency_profile", __doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--order", action="store_true", help="print LiteRT's own text, in the order of operators")
    options = parser.parse_args(arguments)
    for path in options.models:
        model = ProfiledModel(path)
        print(f"{path}: {model.microseconds(SERIES * RUNS):.1f} us")
        if options.order:
            print(model.summary(RUNS).partition("=== Top by")[0])
            continue
        for kind, (spent, calls) in times_by_kind(model).items():
            print(f"    {spent:9.1f} us  {calls:5.1f} x  {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
