"""Measures a .tflite file in LiteRT, whole and operator by operator.

LiteRT's Python interpreter doesn't tell how long each operator takes. So each is cut out as a model of its own, which
runs on the values that the operator gets in the whole model. That leaves out what a delegate gains by taking several
operators at once, and adds the cost of one call to each: the sum is not the time of the whole.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.exporters.tflite.model import Place, export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.outline import Tensor, outline, read_file
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.tools.cut import Cut, cuts

_PROCESS = "tfconvert.tools.bench_process"


class Latency(NamedTuple):
    """Times of runs, in milliseconds."""

    median: float
    mean: float
    least: float
    p90: float
    p99: float

    @classmethod
    def of(cls, nanoseconds: Sequence[int]) -> Latency:
        """Returns the figures of some runs."""
        times = np.array(nanoseconds) / 1e6
        figures = (np.median(times), np.mean(times), np.min(times), *np.percentile(times, (90, 99)))
        return cls(*(round(float(each), 6) for each in figures))


class OperatorTime(NamedTuple):
    """An operator, and the median of its times alone in milliseconds; `None` if it can't run alone."""

    operator: str
    node: str
    milliseconds: float | None


class Measurement(NamedTuple):
    """The measurements of a file.

    Attributes:
        size: Its bytes.
        threads: How many threads LiteRT could use.
        runs: How many runs there were.
        latency: Their times.
        loading: How long it took to load the file and allocate its tensors, in milliseconds.
        memory: By how many bytes the process grew.
        inputs: The inputs that it ran on.
        operators: Its operators in order; empty unless measured.
    """

    size: int
    threads: int
    runs: int
    latency: Latency
    loading: float
    memory: int
    inputs: tuple[str, ...]
    operators: tuple[OperatorTime, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            **self._asdict(),
            "latency": self.latency._asdict(),
            "operators": [each._asdict() for each in self.operators],
        }


def measure(
    path: str | os.PathLike[str],
    *,
    runs: int = 50,
    threads: int = 1,
    shapes: Mapping[str, Sequence[int]] | None = None,
    by_operator: bool = True,
) -> Measurement:
    """Measures a file's first subgraph on random inputs, in a process of its own.

    Args:
        path: The file.
        runs: How many runs are measured, after a few that are not.
        threads: How many threads LiteRT may use.
        shapes: The shapes of inputs by name; sizes that are open are 1 otherwise.
        by_operator: Whether to measure each operator too.
    """
    runtime.require()
    content = read_file(path)
    tensors = outline(content).inputs
    module = import_tflite(content)
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        bench = _Bench(Path(folder), module, runs, threads)
        inputs = [_value(each, shapes or {}) for each in tensors]
        whole = bench.whole(content, inputs)
        operators = tuple(bench.operators(inputs)) if by_operator else ()
    latency = Latency.of(whole["times"])
    shown = tuple(str(each._replace(shape=value.shape)) for each, value in zip(tensors, inputs, strict=True))
    return Measurement(
        len(content), threads, runs, latency, round(whole["loading"] / 1e6, 6), whole["memory"], shown, operators
    )


def _value(tensor: Tensor, shapes: Mapping[str, Sequence[int]]) -> Array:
    """Returns a value for an input: integers are 0, which every table has."""
    shape = tuple(shapes.get(tensor.name, tuple(max(dim, 1) for dim in tensor.shape)))
    if tensor.type == "string":
        value = np.empty(shape, object)
        value.fill(b"text")
        return value
    if tensor.type.startswith("float"):
        random = np.random.default_rng(zlib.crc32(tensor.name.encode()))
        return np.asarray(random.uniform(-1, 1, shape), tensor.type)
    return np.zeros(shape, tensor.type)


class _Bench:
    """A file that is measured."""

    def __init__(self, folder: Path, module: ModuleOp, runs: int, threads: int) -> None:
        self._folder, self._module, self._runs, self._threads = folder, module, runs, threads

    def whole(self, content: bytes, inputs: Sequence[Array]) -> dict[str, Any]:
        """Returns the times of the whole file, and its memory."""
        path = self._folder / "whole.tflite"
        path.write_bytes(content)
        with Child(_PROCESS) as child:
            answer, _ = self._ask(child, path, inputs, self._runs)
        return answer

    def operators(self, inputs: Sequence[Array]) -> list[OperatorTime]:
        """Returns the time of each operator by itself."""
        found = list(cuts(self._module))
        places: dict[Value, Place] = {}
        path = self._folder / "kept.tflite"
        export(self._module, places=places).save(path)
        wanted = sorted({places[value].tensor for cut in found if cut.module is not None for value in cut.inputs})
        with Child(_PROCESS) as child:
            answer, arrays = self._ask(child, path, inputs, 0, wanted)
            values = dict(zip(answer["numbers"], arrays, strict=True))
            return [
                self._operator(child, cut, [values.get(places[value].tensor) for value in cut.inputs]) for cut in found
            ]

    def _operator(self, child: Child, cut: Cut, values: Sequence[Array | None]) -> OperatorTime:
        known = [value for value in values if value is not None]
        median = None
        if cut.module is not None and len(known) == len(values):
            path = self._folder / "operator.tflite"
            export(cut.module).save(path)
            answer, _ = self._ask(child, path, known, self._runs)
            median = Latency.of(answer["times"]).median
        name = cut.op.properties.get("custom_code")
        return OperatorTime(
            cut.op.name.removeprefix("tfl.").upper() if name is None else str(name), node_of(cut.op.location), median
        )

    def _ask(
        self, child: Child, path: Path, inputs: Sequence[Array], runs: int, wanted: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[Array]]:
        header = {"file": str(path), "threads": self._threads, "runs": runs, "wanted": list(wanted)}
        try:
            answer, arrays = child.ask(header, inputs)
        except ChildError as crash:
            raise failure(crash, "runtime-error", "the file can't be measured") from crash
        if answer["problem"]:
            raise error(
                "runtime-error",
                f"the file can't be measured: {answer['problem']}",
                hint="give open sizes with --input-shape",
            )
        return answer, arrays
