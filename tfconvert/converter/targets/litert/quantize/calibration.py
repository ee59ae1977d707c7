"""Calibration: the ranges of a module's values while the model runs on samples."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.calibration_process import Observers
from tfconvert.converter.targets.litert.quantize.instrumentation import instrument
from tfconvert.converter.targets.litert.quantize.observers import ChannelRange, Range
from tfconvert.converter.targets.litert.quantize.samples import Entry, Sample
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.exporters.output_file import write_whole
from tfconvert.exporters.tflite.model import Place, export
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value

P = ParamSpec("P")
T = TypeVar("T")

# The version of the files with ranges.
_VERSION = 1


# LiteRT's message about an operator that only an app's runtime has.
_NO_KERNEL = "unresolved custom op"

_WITHOUT_KERNEL = (
    "only your app's runtime has this operator: quantize weights only, with the mode `dynamic`, or pass `calibration`, "
    "a file of ranges"
)


class Observation(NamedTuple):
    """The ranges observed while a model runs on samples.

    Attributes:
        module: The float module.
        values: The values to observe, by function.
        inputs: The arguments of each entry function.
        method: How a range is computed from a value's numbers: `minmax`, `mse` or `percentile`.
        levels: The number of integers that a range will be divided into.
        fold: Folds fake quantization that has no kernel; it is applied to a copy of the module.
        apart: The axes along which the channels of some values are, whose ranges are wanted too.
    """

    module: ModuleOp
    values: Mapping[FuncOp, Sequence[Value]]
    inputs: Sequence[Sequence[Value]]
    method: str
    levels: int
    fold: Callable[[ModuleOp], object]
    apart: Mapping[Value, Sequence[int]] = {}


class Run:
    """The model in a child process, ready for samples; a context manager."""

    def __init__(self, observation: Observation) -> None:
        runtime.require()
        values = {value: value for function in observation.values.values() for value in function}
        copy = instrument(observation.module, observation.values)
        observation.fold(copy.module)
        self._extremes = copy.extremes
        inputs = [[copy.values[value] for value in entry] for entry in observation.inputs]
        inside = {value for extremes in self._extremes for value in extremes.values}
        values = {value: copy.values[value] for value in values if value not in inside}
        self._places: dict[Value, Place] = {}
        file = export(copy.module, places=self._places)
        self._observed = {value: self._places[copy] for value, copy in values.items() if copy in self._places}
        self._apart = {value: axes for value, axes in observation.apart.items() if value in self._observed}
        self._inputs = [[self._places[value] for value in entry] for entry in inputs]
        self._file = file
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._child = Child()
        self._observers: Observers | None = None
        self._method, self._levels = observation.method, observation.levels

    def __enter__(self) -> Run:
        """Writes the model to a file, and starts the process."""
        with ExitStack() as undone:
            undone.callback(self._stop)
            self._start()
            undone.pop_all()
        return self

    def _start(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="tfconvert-")
        path = Path(self._directory.name) / "float.tflite"
        self._file.save(path)
        extremes = [
            ([self._places[end][:2] for end in (each.low, each.high)], len(each.values)) for each in self._extremes
        ]
        observed = [place[:2] for place in self._observed.values()]
        what = "the model can't be loaded"
        apart = {index: self._apart[value] for index, value in enumerate(self._observed) if value in self._apart}
        self._observers = self._call(what, Observers, str(path), self._method, self._levels, observed, extremes, apart)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._child.stop()
        if self._directory is not None:
            self._directory.cleanup()

    def run(self, sample: Sample, entries: Sequence[Entry], number: int) -> None:
        """Runs the model on a sample."""
        places, entry = self._inputs[sample.entry], entries[sample.entry]
        subgraph = places[0].subgraph if places else sample.entry
        names = [each.name for each in entry.inputs]
        tensors = [place.tensor for place in places]
        what = f"the model can't be run on sample {number}"
        assert self._observers is not None
        self._call(what, Observers.run, self._observers, subgraph, entry.key, names, tensors, list(sample.values))

    def ranges(self) -> dict[Value, Range]:
        """Returns the ranges of the values that have been seen."""
        assert self._observers is not None
        found, *inside = self._call("the ranges can't be read", Observers.ranges, self._observers)
        values = [*self._observed, *(value for extremes in self._extremes for value in extremes.values)]
        ends = np.concatenate([found, *inside]).tolist()
        return {value: Range(*each) for value, each in zip(values, ends, strict=True) if not each[0] > each[1]}

    def channels(self) -> dict[Value, ChannelRange]:
        """Returns the ranges of channels."""
        assert self._observers is not None
        found = self._call("the ranges can't be read", Observers.channels, self._observers)
        values = [value for value in self._observed if value in self._apart]
        return {value: each for value, each in zip(values, found, strict=True) if each is not None}

    def _call(self, what: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return self._child.call(function, *args, **kwargs)
        except ChildError as problem:
            hint = _WITHOUT_KERNEL if _NO_KERNEL in problem.refusal else "check the samples' shapes and values"
            raise failure(problem, "calibration-failed", what, hint) from problem


class Runner(Protocol):
    """Runs a model on samples and observes its values."""

    def run(self, sample: Sample, entries: Sequence[Entry], number: int) -> None:
        """Runs the model on a sample; as `Run.run`."""

    def ranges(self) -> dict[Value, Range]:
        """Returns the ranges of the values that have been seen."""

    def channels(self) -> dict[Value, ChannelRange]:
        """Returns the ranges of the channels of values."""


def observe(
    run: Runner,
    samples: Iterable[Sample],
    entries: Sequence[Entry],
    total: int | None,
    progress: Callable[[int, int | None], None] | None,
) -> None:
    """Runs the model on samples.

    Raises:
        ConversionError: There are no samples (`no-samples`), or one is wrong.
    """
    number = 0
    for sample in samples:
        run.run(sample, entries, number)
        number += 1
        if progress is not None:
            progress(number, total)
    if not number:
        hint = "an iterator gives its samples once: pass a list, or a function that returns a new one"
        hint = "pass typical inputs of the model" if total == 0 else hint
        raise error("no-samples", "there are no samples, so the ranges are unknown", hint=hint)


class Calibration(NamedTuple):
    """The ranges of a module's values, as samples show them."""

    ranges: Mapping[Value, Range]
    channels: Mapping[Value, ChannelRange]  # Of the channels that may be divided; see `channels.py`.


def save(path: str | os.PathLike[str], method: str, places: Mapping[Value, Place], found: Calibration) -> None:
    """Writes ranges by the names of tensors, atomically."""
    ranges = {places[value].name: list(map(_written, ends)) for value, ends in found.ranges.items()}
    channels = {
        places[value].name: [list(map(_written, numbers.tolist())) for numbers in each]
        for value, each in found.channels.items()
    }
    content = {"version": _VERSION, "method": method, "ranges": ranges, "channels": channels}
    text = json.dumps(content, allow_nan=False, indent=1)

    def write(stream: BinaryIO) -> None:
        stream.write(text.encode())

    write_whole(path, write)


def _written(number: float) -> float | str:
    # JSON has no such numbers; `float` reads their names.
    return number if math.isfinite(number) else str(number)


def load(path: str | os.PathLike[str], method: str, places: Mapping[Value, Place]) -> Calibration:
    """Returns the ranges of a module's values from a file that `save` wrote.

    Raises:
        ConversionError: The file is invalid, or has ranges of another method (`bad-calibration`).
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        table = {str(name): Range(float(low), float(high)) for name, (low, high) in content["ranges"].items()}
        apart = {
            str(name): ChannelRange(*(np.array(list(map(float, numbers)), np.float32) for numbers in each))
            for name, each in content.get("channels", {}).items()
        }
        found = content["version"], content["method"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise error(
            "bad-calibration", f"{path} is not a calibration file: {problem}", hint="remove it, and pass samples"
        ) from None
    if found != (_VERSION, method):
        raise error(
            "bad-calibration",
            f"{path} holds ranges of {found[1]!r}, of version {found[0]}, not {method!r}",
            hint="remove it, and pass samples",
        )
    known = {value: table[place.name] for value, place in places.items() if place.name in table}
    if table and not known:
        raise error(
            "bad-calibration",
            f"{path} holds ranges of another model: it has none of this model's names",
            hint="remove it, and pass samples",
        )
    return Calibration(known, {value: apart[place.name] for value, place in places.items() if place.name in apart})
