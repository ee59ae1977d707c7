"""Observes a model in the reference executor, if LiteRT is not installed: slowly, and in this process."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.targets.litert.quantize.calibration import Observation
from tfconvert.converter.targets.litert.quantize.observers import Apart, ChannelRange, Observer, Range, observer
from tfconvert.converter.targets.litert.quantize.samples import Entry, Sample, entries_of
from tfconvert.ops.call import Results
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.ir.values import Value

_HINT = "pip install 'tfconvert[verify]': samples run in LiteRT where it is installed"


class NumpyRun:
    """The model in the reference executor, ready for samples; a context manager like `calibration.Run`.

    Values of loops and branches are observed whenever they are computed.

    Raises:
        ConversionError: Operators have no reference kernel (`no-reference-kernel`).
    """

    def __init__(self, observation: Observation) -> None:
        self._observers: dict[Value, Observer] = {
            value: observer(observation.method, observation.levels, observation.apart.get(value))
            for values in observation.values.values()
            for value in values
        }
        copies: dict[Value, Value] = {}
        module = observation.module.clone(copies)
        observation.fold(module)
        self._originals = {copy: original for original, copy in copies.items()}
        self._executor = Executor(module, on_values=self._observe)
        functions, _ = entries_of(module)
        self._names = [function.sym_name for function in functions]
        problems = [problem for name in self._names for problem in self._executor.problems(name)]
        if problems:
            raise ConversionError(problem._replace(hint=_HINT) for problem in problems)

    def __enter__(self) -> NumpyRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing."""

    def run(self, sample: Sample, entries: Sequence[Entry], number: int) -> None:
        """Runs the model on a sample.

        Raises:
            ConversionError: The run fails (`calibration-failed`).
        """
        try:
            self._executor.run(self._names[sample.entry], sample.values)
        except ConversionError as problem:
            raise ConversionError(
                _failed(each, f"the model can't be run on sample {number}") for each in problem.diagnostics
            ) from problem
        # Stateful operators start from their initial state with each sample.
        self._executor.states.clear()

    def ranges(self) -> dict[Value, Range]:
        """Returns the ranges of the values that have been seen."""
        found = {value: seen.range() for value, seen in self._observers.items()}
        return {value: each for value, each in found.items() if not each.low > each.high}

    def channels(self) -> dict[Value, ChannelRange]:
        """Returns the ranges of the channels of values."""
        apart = ((value, seen.channels()) for value, seen in self._observers.items() if isinstance(seen, Apart))
        return {value: each for value, each in apart if each is not None}

    def _observe(self, values: Sequence[Value], results: Results) -> None:
        for value, result in zip(values, results, strict=False):
            seen = self._observers.get(self._originals.get(value, value))
            if seen is not None and result.size:
                seen.add(result)


def _failed(problem: Diagnostic, what: str) -> Diagnostic:
    hint = "check the samples' shapes and values"
    return problem._replace(code="calibration-failed", message=f"{what}: {problem.message}", hint=hint)
