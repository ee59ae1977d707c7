"""Compares one function of a converted file with its witness."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.targets.litert.quantize.figures import OutputFigures
from tfconvert.converter.validation import inputs
from tfconvert.converter.validation.comparison import OutputDifference, compare, tolerance
from tfconvert.converter.validation.inputs import Answer, ReferenceRun, Refused
from tfconvert.converter.validation.kernels import differing_kernel
from tfconvert.converter.validation.stability import unexplained
from tfconvert.converter.validation.witness import EXECUTOR, Witness
from tfconvert.importers.temporary_model import OwnRun
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import NOTE, WARNING, ConversionError, Diagnostic
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.fidelity import OutputError, OutputFidelity
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.limits import budget, limited

# The rounding error of numbers near one; a small result may be the difference of such numbers.
_ROUNDING = float(np.finfo(np.float32).eps)

# The most that integers that represent floats may be off, in steps of their scale.
_STEPS = 2

# The number of calls in turn of a model that has state.
_TURNS = 3

NOT_VERIFIED = "not-verified"
_CUT_SHORT = "verification-cut-short"

# What LiteRT's message about an operator that an app has to register contains.
CUSTOM = "custom op"

Engine = Callable[[Sequence[Array]], Sequence[Array]]
"""Runs a converted function on inputs in the model's order; raises `runtime-error` if it can't."""


class AnswerSource(NamedTuple):
    """Where the results of a function come from."""

    answer: Answer | None = None  # Computes them; `None` for the reference executor.
    # Returns whether inputs were compared; by default, if the results could be computed.
    accepted: Callable[[], bool] | None = None


class Clock:
    """The time that is left to compare.

    Args:
        seconds: How long it is.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left; at least 1, so that something can be compared."""
        return max(1.0, self._end - time.monotonic())

    def is_over(self) -> bool:
        return time.monotonic() >= self._end


class FunctionCheck:
    """The comparison of one function.

    Attributes:
        interface: Its interface.
        witness: The name of what computes the right results.
        source: Where these come from.
        errors: The maximum difference of each output from the witness's.
        problems: The differences of outputs.
        notes: Notes about outputs that were not compared.
        done: The number of compared runs.
    """

    def __init__(
        self,
        module: ModuleOp,
        function: FuncOp,
        engine: Callable[[Interface], Engine],
        name: str,
        witness: Witness | None,
        clock: Clock,
    ) -> None:
        self._module, self._function, self._name, self._clock = module, function, name, clock
        self.interface = interface_of(function)
        self._engine = engine(self.interface)
        self._answer = None if witness is None else witness.of(self.interface)
        self.witness = EXECUTOR if witness is None or self._answer is None else witness.name
        self.source = AnswerSource(self._answer, lambda: self.done > 0 or bool(self.problems) or clock.is_over())
        self._roughness = _roughness(module)
        self._label = self.interface.keys[0] if self.interface.keys else self.interface.function
        self.errors: dict[str, OutputError] = {}
        self.problems: dict[str, Diagnostic] = {}
        self.notes: list[Diagnostic] = []
        self.done = 0
        self._first: Sequence[Array] | None = None

    def run(self, runs: Iterator[ReferenceRun | Refused], *, given: bool) -> None:
        """Compares the witness's runs with LiteRT's.

        Args:
            runs: The witness's.
            given: Whether the inputs are the user's; the engine then has to run all of them.
        """
        obstacles = Executor(self._module).problems(self._function.sym_name) if self._answer is None else ()
        if obstacles:
            names = ", ".join(dict.fromkeys(each.op for each in obstacles))
            self._decline(f"the reference can't compute {names}", "run it on the device, with inputs of your own")
            return
        refused, failed = list[ConversionError](), list[ConversionError]()
        for each in self._in_time(runs):
            if isinstance(each, Refused):
                refused.append(each.problem)
            elif (failure := self._compare(each)) is not None:
                failed.append(failure)
            else:
                self.done += 1
        self._conclude(refused, failed, given=given)

    def _in_time(self, runs: Iterator[ReferenceRun | Refused]) -> Iterator[ReferenceRun | Refused]:
        """Yields runs as long as there is time; a note says if there would be more."""
        limits = budget().limits
        seconds = min(limits.run_seconds, math.ceil(self._clock.left))
        while True:
            try:
                with limited(limits._replace(run_seconds=seconds)):
                    run = next(runs, None)
            except ConversionError as problem:
                if problem.code != "run-timeout" or seconds == limits.run_seconds:
                    raise
                run = None
                self._cut_short()
            if run is None:
                return
            yield run
            if self._clock.is_over():
                self._cut_short()
                return

    def _cut_short(self) -> None:
        what = f"{self._label!r} was compared with {self.witness} on {self.done} inputs only"
        if not self.done:
            what = f"{self._label!r} was not verified: {self.witness} has computed no results"
        message = f"{what}: the time of {self._clock.seconds:g} s is over"
        hint = "raise `seconds` of Verify (--verify-seconds), or pass fewer or smaller inputs"
        self.notes.append(Diagnostic(_CUT_SHORT if self.done else NOT_VERIFIED, message, hint=hint, severity=NOTE))

    def _conclude(self, refused: Sequence[ConversionError], failed: Sequence[ConversionError], *, given: bool) -> None:
        done = self.done
        if failed and (given or not done):
            self._fail(failed[0])
        elif failed:
            self.notes.append(
                Diagnostic(
                    "refused-inputs",
                    f"{self._name} refuses some inputs of {self._label!r} that {self.witness} "
                    f"takes, perhaps of other sizes: {failed[0].diagnostics[0].message}",
                    severity=NOTE,
                )
            )
        elif done or self.notes:
            return
        elif given:
            self._decline("the data has no inputs for it", "")
        elif refused:
            self._decline(f"no random inputs suit it ({refused[0].diagnostics[0]})", "pass inputs of your own")
        else:
            self._decline("there are no inputs for it; a handle has no random values", "pass inputs of your own")

    @property
    def can_be_called_again(self) -> bool:
        """Whether several calls in turn can be compared: one could, and the results aren't random."""
        return self._first is not None and not any(each.code == NOT_VERIFIED for each in self.notes)

    def run_in_turn(self, engine: OwnRun) -> None:
        """Compares several calls in turn, which see what becomes of the model's state.

        Args:
            engine: Calls the converted function.
        """
        assert self._first is not None, "one call was compared"
        calls = [self._first] * _TURNS
        try:
            found = self._in_turn(calls)
            if isinstance(found, Refused):
                return
            results = engine(calls)
        except ConversionError as problem:
            if problem.code not in (*inputs.REFUSED_INPUT, "run-timeout"):
                raise
            return
        for turn, (run, got) in enumerate(zip(found, results, strict=True)):
            for number, (want, have) in enumerate(zip(run.outputs, got, strict=True)):
                difference = self._difference(number, want, have)
                self._record(number, difference)
                if difference.what:
                    name = self.interface.outputs[number].name
                    what = f"{difference.what} in call {turn + 1} of several in turn"
                    self.problems.setdefault(name, _failed(self._label, name, what, self.witness))

    def _in_turn(self, calls: Sequence[Sequence[Array]]) -> Sequence[ReferenceRun] | Refused:
        if self._answer is not None:
            return self._answer(calls)
        executor = Executor(self._module)
        return [ReferenceRun(values, executor.run(self._function.sym_name, values)) for values in calls]

    def _is_random(self, run: ReferenceRun) -> bool:
        """Returns whether the witness has other results if it runs again."""
        again = None if self._answer is None else self._answer([run.inputs])
        if again is None or isinstance(again, Refused):
            return False
        return any(compare(one, two).what for one, two in zip(run.outputs, again[0].outputs, strict=True))

    def _compare(self, run: ReferenceRun) -> ConversionError | None:
        """Compares one run; returns the error of LiteRT if it refuses the inputs."""
        try:
            got = self._engine(run.inputs)
        except ConversionError as problem:
            if problem.code not in ("runtime-error", "empty-tensor"):
                raise
            return problem
        self._take(run, got)
        return None

    def _difference(self, number: int, want: Array, have: Array) -> OutputDifference:
        scale = self.interface.outputs[number].scale or 0.0
        return compare(want, have, max(_ROUNDING, self._roughness * _largest(want), _STEPS * scale))

    def _take(self, run: ReferenceRun, got: Sequence[Array]) -> None:
        """Compares the results of one run."""
        wrong: dict[int, OutputDifference] = {}
        self._first = run.inputs if self._first is None else self._first
        for number, (want, have) in enumerate(zip(run.outputs, got, strict=True)):
            found = self._difference(number, want, have)
            if found.what:
                wrong[number] = found
            else:
                self._record(number, found)
        if wrong:
            self._judge(run, got, wrong)

    def fidelity(self) -> list[OutputFidelity]:
        """Returns the fidelity of a quantized file's outputs; empty for others."""
        return []

    def _judge(self, run: ReferenceRun, got: Sequence[Array], wrong: dict[int, OutputDifference]) -> None:
        """Separates differences that rounding, random numbers or a kernel explain from all others."""
        left = unexplained(self._module, self._function.sym_name, run, got, list(wrong))
        is_random = bool(left) and self._is_random(run)
        kernel = differing_kernel(self._module, self._function.sym_name, run.inputs) if left else ""
        for number, difference in wrong.items():
            name = self.interface.outputs[number].name
            if number not in left:
                self.notes.append(
                    Diagnostic(
                        "decided-by-rounding",
                        f"output {name!r} of {self._label!r} differs from the reference only where rounding decides: "
                        "between numbers that are equal or nearly so",
                        severity=NOTE,
                    )
                )
            elif is_random and run.outputs[number].shape == got[number].shape:
                what = f"output {name!r} draws random numbers: {self.witness} has others each time"
                self._decline(what, "compare distributions with inputs of your own")
            elif kernel:
                self.notes.append(_differing_kernel(name, self._label, difference.what, kernel))
            else:
                self._record(number, difference)
                self.problems.setdefault(name, _failed(self._label, name, difference.what, self.witness))

    def _record(self, number: int, found: OutputDifference) -> None:
        name = self.interface.outputs[number].name
        known = self.errors.get(name) or OutputError(self._label, name, 0.0, 0.0, self.witness)
        self.errors[name] = known._replace(
            max_absolute=max(known.max_absolute, found.absolute), max_relative=max(known.max_relative, found.relative)
        )

    def _fail(self, failure: ConversionError) -> None:
        message = failure.diagnostics[0].message
        if failure.code == "empty-tensor":
            self._decline(message, "")
        elif CUSTOM in message:
            self._decline("it has custom ops, which plain LiteRT doesn't know", "run it where they are registered")
        else:
            raise failure

    def _decline(self, reason: str, hint: str) -> None:
        self.notes.append(
            Diagnostic(NOT_VERIFIED, f"{self._label!r} was not verified: {reason}", hint=hint, severity=NOTE)
        )


def _roughness(module: ModuleOp) -> float:
    """Returns the largest relative difference of results that halves or integers explain which a model computes.

    LiteRT computes halves as `f32` without rounding, the reference rounds each of them. Integers that represent floats
    may be off by steps, since some kernels round otherwise.
    """
    elements = {each.element for op in module.walk() for each in op.results}
    steps = [each.data.range for each in elements if isinstance(each, quant.UniformType) and each.storage.width == 8]
    if steps:
        return max(_STEPS / (high - low) for low, high in steps)
    dtypes = [np.dtype(types.numpy_dtype(each)) for each in (types.F16, types.BF16) if each in elements]
    return max(map(tolerance, dtypes), default=0.0)


def _largest(value: Array) -> float:
    """Returns the largest magnitude of floats; zero for others."""
    if value.dtype.kind != "f":
        return 0.0
    sizes = np.abs(value)
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0))


class FidelityCheck(FunctionCheck):
    """The comparison of one function of a quantized file, by its fidelity over all runs."""

    def __init__(
        self,
        module: ModuleOp,
        function: FuncOp,
        engine: Callable[[Interface], Engine],
        name: str,
        witness: Witness | None,
        clock: Clock,
    ) -> None:
        super().__init__(module, function, engine, name, witness, clock)
        self._outputs = [OutputFigures() for _ in self.interface.outputs]

    def _take(self, run: ReferenceRun, got: Sequence[Array]) -> None:
        for output, figures, want, have in zip(self.interface.outputs, self._outputs, run.outputs, got, strict=True):
            if want.shape == have.shape:
                figures.add(want, have)
            else:
                self.problems[output.name] = _failed(self._label, output.name, compare(want, have).what, self.witness)

    def fidelity(self) -> list[OutputFidelity]:
        found = [
            figures.fidelity(output.name, self._label)
            for output, figures in zip(self.interface.outputs, self._outputs, strict=True)
        ]
        return [each for each in found if each is not None]


REPORT_IT = "if tfconvert made the file from this model, this is a bug: please report it"
LAYERS_HINT = f"`compare_layers` (--compare-layers) finds the layer; {REPORT_IT}"


def _failed(signature: str, output: str, what: str, witness: str) -> Diagnostic:
    message = f"output {output!r} of {signature!r} {what}, compared with {witness}"
    return Diagnostic("verification-failed", message, hint=LAYERS_HINT)


def _differing_kernel(output: str, signature: str, what: str, kernel: str) -> Diagnostic:
    return Diagnostic(
        "kernel-differs",
        f"output {output!r} of {signature!r} {what}: {kernel}, which LiteRT's kernel takes otherwise than TensorFlow; "
        "the converter can't change that",
        hint="make sure that the app's inputs have no such boxes or scores",
        severity=WARNING,
    )
