"""Measures a .tflite file in LiteRT, whole and operator by operator.

LiteRT's Python interpreter doesn't report the time of each operator, so each becomes a separate model, which runs on
the values that the operator gets in the whole model. This excludes the gain of delegates that run several operators at
once, and adds the cost of a call to each operator, so the sum is not the time of the whole model.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from tfconvert.converter.ir.excerpt import excerpt, is_given
from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.converter.validation.inputs import sizes_of
from tfconvert.exporters.tflite.model import Place, export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.outline import OutlineTensor, outline, read_file
from tfconvert.schema.diagnostics import printable
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.dialects.func import ReturnOp, functions_of
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.tools.litert_child import KeptTensors, RunTimes, measured

P = ParamSpec("P")
T = TypeVar("T")

# Maximum number of operators in the text.
_MAX_LINES = 20


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
    """An operator, and its median time in milliseconds; `None` if it can't run separately."""

    operator: str
    node: str
    milliseconds: float | None


class Measurement(NamedTuple):
    """The measurements of a file.

    Attributes:
        size: Its bytes.
        threads: The maximum number of threads.
        runs: The number of runs.
        latency: Their times.
        loading: The time to load the file and allocate its tensors, in milliseconds.
        memory: The growth of the process, in bytes.
        inputs: The inputs.
        operators: Its operators in order; empty unless measured.
        file: Its name.
    """

    size: int
    threads: int
    runs: int
    latency: Latency
    loading: float
    memory: int
    inputs: tuple[str, ...]
    operators: tuple[OperatorTime, ...] = ()
    file: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            **self._asdict(),
            "latency": self.latency._asdict(),
            "operators": [each._asdict() for each in self.operators],
        }

    def to_text(self) -> str:
        """Returns the measurements as text, with the slowest operators."""
        times = self.latency
        lines = [
            f"{self.file}: {self.size} bytes, {self.threads} thread{'s' if self.threads > 1 else ''}, "
            f"{self.runs} runs on {', '.join(self.inputs) or 'no inputs'}",
            f"  latency: median {times.median:.3f} ms, mean {times.mean:.3f}, least {times.least:.3f}, "
            f"90% within {times.p90:.3f}, 99% within {times.p99:.3f}",
            f"  loading: {self.loading:.1f} ms; memory: {self.memory / 1e6:.1f} MB",
            *self._operator_lines(),
        ]
        return "\n".join(map(printable, lines))

    def _operator_lines(self) -> Iterator[str]:
        times = [(each, each.milliseconds) for each in self.operators if each.milliseconds is not None]
        measured = sorted(times, key=lambda each: -each[1])
        if not measured:
            return
        total = sum(each for _, each in measured)
        yield f"  operators, each measured alone (sum {total:.3f} ms):"
        width = max(len(each.operator) for each, _ in measured)
        for each, time in measured[:_MAX_LINES]:
            share = time / total if total else 0
            yield f"    {each.operator:<{width}}  {time:9.4f} ms  {share:6.1%}  {each.node.partition(';')[0]}"
        if len(measured) > _MAX_LINES:
            yield f"    ... and {len(measured) - _MAX_LINES} more (--json has all)"
        alone = [each.operator for each in self.operators if each.milliseconds is None]
        if alone:
            yield f"  not measured, as they work on variables or tables: {', '.join(dict.fromkeys(alone))}"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self.to_text()


def measure(
    path: str | os.PathLike[str],
    *,
    runs: int = 50,
    threads: int = 1,
    shapes: Mapping[str, Sequence[int]] | None = None,
    by_operator: bool = True,
) -> Measurement:
    """Measures a file's first subgraph on random inputs, in a separate process.

    Args:
        path: The file.
        runs: The number of measured runs, after a warm-up.
        threads: The maximum number of threads.
        shapes: The shapes of inputs by name; otherwise a dynamic batch is 1, and other dynamic sizes are those of
            `verify`.
        by_operator: Whether to measure each operator too.
    """
    runtime.require()
    content = read_file(path)
    arguments = outline(content).inputs
    module = import_tflite(content)
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        bench = _Bench(Path(folder), module, runs, threads)
        inputs = [_value(each, shapes or {}) for each in arguments]
        whole = bench.whole(content, inputs)
        operators = tuple(bench.operators(inputs)) if by_operator else ()
    shown = tuple(str(each._replace(shape=value.shape)) for each, value in zip(arguments, inputs, strict=True))
    loading = round(whole.loading / 1e6, 6)
    latency = Latency.of(whole.runs)
    file = os.fspath(path)
    return Measurement(len(content), threads, runs, latency, loading, whole.memory, shown, operators, file)


def _value(tensor: OutlineTensor, shapes: Mapping[str, Sequence[int]]) -> Array:
    """Returns a value for an input; integers are 0, which is a valid index for every table."""
    batch = (1 if dim < 0 else dim for dim in tensor.shape[:1])
    shape = tuple(shapes.get(tensor.name, sizes_of((*batch, *tensor.shape[1:]))))
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

    def whole(self, content: bytes, inputs: Sequence[Array]) -> RunTimes:
        """Returns the times of the whole file, and its memory."""
        path = self._folder / "whole.tflite"
        path.write_bytes(content)
        with Child() as child:
            return RunTimes(*_call(child, measured, str(path), inputs, self._runs, self._threads))

    def operators(self, inputs: Sequence[Array]) -> list[OperatorTime]:
        """Returns the time of each operator by itself."""
        found = list(cuts(self._module))
        places: dict[Value, Place] = {}
        path = self._folder / "kept.tflite"
        export(self._module, places=places).save(path)
        wanted = sorted({places[value].tensor for cut in found if cut.module is not None for value in cut.inputs})
        with Child() as child:
            kept = _call(child, KeptTensors, str(path), "", 0, wanted)
            values = _call(child, KeptTensors.run, kept, [], inputs)
            return [
                self._operator(child, cut, [values.get(places[value].tensor) for value in cut.inputs]) for cut in found
            ]

    def _operator(self, child: Child, cut: BenchmarkCut, values: Sequence[Array | None]) -> OperatorTime:
        known = [value for value in values if value is not None]
        median = None
        if cut.module is not None and len(known) == len(values):
            path = self._folder / "operator.tflite"
            export(cut.module).save(path)
            times = RunTimes(*_call(child, measured, str(path), known, self._runs, self._threads))
            median = Latency.of(times.runs).median
        name = cut.op.properties.get("custom_code")
        return OperatorTime(
            cut.op.name.removeprefix("tfl.").upper() if name is None else str(name), node_of(cut.op.location), median
        )


def _call(child: Child, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return child.call(function, *args, **kwargs)
    except ChildError as problem:
        hint = "give dynamic sizes with --input-shape (shapes); by default the batch is 1 and others are 32"
        raise failure(problem, "runtime-error", "the file can't be measured", hint) from problem


# Operators that compute nothing by themselves.
_ALONE = frozenset(("tfl.assign_variable", "tfl.call_once", "tfl.read_variable", "tfl.var_handle"))


class BenchmarkCut(NamedTuple):
    """One operator as a model.

    Attributes:
        op: The operator in the whole model.
        inputs: The inputs of the model.
        module: The model; `None` if the operator can't run separately because it uses a variable or a table.
    """

    op: Operation
    inputs: tuple[Value, ...]
    module: ModuleOp | None


def cuts(module: ModuleOp) -> Iterator[BenchmarkCut]:
    """Yields the operators of a file's first subgraph, in the order in which they run.

    Args:
        module: The image of a file.
    """
    for op in next(iter(functions_of(module).values())).body.block.ops:
        if isinstance(op, ReturnOp) or is_given(op) or _is_folded(op):
            continue
        is_bound = op.name in _ALONE or any(value.element == types.RESOURCE for value in op.operands)
        owners = (value.owner for value in op.operands)
        weights = [owner for owner in dict.fromkeys(owners) if isinstance(owner, Operation) and _is_folded(owner)]
        alone = excerpt(module, [*weights, op])
        yield BenchmarkCut(op, alone.inputs, None if is_bound else alone.module)


def _is_folded(op: Operation) -> bool:
    """Returns whether an op turns a constant to floats, which the runtime does once."""
    owner = op.operands[0].owner if op.name == "tfl.dequantize" else None
    return isinstance(owner, Operation) and is_given(owner)
