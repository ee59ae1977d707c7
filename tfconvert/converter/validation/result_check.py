"""Checks a converted model: LiteRT and the reference executor on the same inputs must agree.

The reference runs the model as it was imported, before any pass, so that a mistake of any of them is found. Inputs are
the user's, or random ones that suit the model. What the reference itself would give otherwise if it rounded otherwise,
such as which of two equal numbers is the greatest, is not held against the file; what can't be compared at all is
reported in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.kernels.call import Array
from tfconvert.converter.litert import runtime
from tfconvert.converter.litert.quantize.entries import entries_of
from tfconvert.converter.litert.quantize.samples import Entry, read
from tfconvert.converter.litert.runtime_process import Runtime
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.pipeline.opened import opened
from tfconvert.converter.report import OutputError
from tfconvert.converter.validation import inputs
from tfconvert.converter.validation.comparison import Difference, compare
from tfconvert.converter.validation.inputs import Refused, Run
from tfconvert.converter.validation.stability import unexplained
from tfconvert.converter.validation.wiring import FileEngine, Wiring, own_wiring
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import NOTE, WARNING, ConversionError, Diagnostic, error
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.builtin import ModuleOp

MOST = 32
"""How many of the user's samples are compared for each signature: the reference is slow."""

_ROUNDING = float(np.finfo(np.float32).eps)
"""The rounding error of numbers near one, of which a small result may be the difference."""

_DECLINED = "not-verified"

Engine = Callable[[Sequence[Array]], Sequence[Array]]
"""Runs what a model's function was converted to, on inputs in the model's order; raises `runtime-error` if it can't."""


class Verification(NamedTuple):
    """The outcome of a check.

    Attributes:
        errors: How far each output is from the reference's, at most.
        notes: What was not compared, or differs for a reason, and why.
        problems: What is wrong; empty if the file is right as far as was compared.
    """

    errors: tuple[OutputError, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    problems: tuple[Diagnostic, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "agrees": not self.problems and bool(self.errors),
            "verification": [each._asdict() for each in self.errors],
            "notes": [note.to_dict() for note in self.notes],
            "errors": [problem.to_dict() for problem in self.problems],
        }


def verify(source: Source, content: bytes, data: Any = None) -> Verification:
    """Compares LiteRT's outputs with the reference's, for every exported function.

    Args:
        source: The model that was converted.
        content: The converted file's bytes.
        data: The user's inputs, as `Quantize.samples`; `None` for random ones.

    Raises:
        ConversionError: The outputs differ (`verification-failed`), LiteRT is not installed (`litert-missing`),
            refuses the file (`runtime-error`) or hangs (`litert-timeout`), or the data is not what the model takes
            (`wrong-sample`).
    """
    found = compared(source, content, data)
    if found.problems:
        raise ConversionError(found.problems)
    return found


def compared(source: Source, content: bytes, data: Any = None, wiring: Wiring | None = None) -> Verification:
    """Returns how a file compares with a model; as `verify`, but what differs is returned.

    Args:
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Which of the file's inputs and outputs are those of the model; by default, those of the same names.
    """
    runtime.require()
    with Runtime() as litert:
        return compared_in(litert, source, content, data, wiring or own_wiring)


def compared_in(
    engine: FileEngine, source: Source, content: bytes, data: Any = None, wiring: Wiring = own_wiring
) -> Verification:
    """Returns how a file compares with a model in any engine; see `compared`.

    Args:
        engine: What runs the file.
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Which of the file's inputs and outputs are those of the model.
    """
    module, functions = exported(source)
    if not functions:
        return NAMELESS

    def runs(interface: Interface) -> Engine:
        return partial(wiring(interface).run, engine, content)

    return checked(module, functions, data, runs, engine.name)


def checked(
    module: ModuleOp,
    functions: Sequence[FuncOp],
    data: Any,
    engine: Callable[[Interface], Engine],
    name: str = "the executor",
) -> Verification:
    """Returns how what an engine computes compares with a model.

    Args:
        module: The model.
        functions: Its functions.
        data: The user's inputs; `None` for random ones.
        engine: Returns what runs a function of an interface.
        name: What diagnostics call the engine.
    """
    checks = [_Check(module, function, engine, name) for function in functions]
    for check, runs in zip(checks, reference_runs(module, functions, data), strict=True):
        check.run(runs, given=data is not None)
    return Verification(
        tuple(error for check in checks for error in check.errors.values()),
        tuple(dict.fromkeys(note for check in checks for note in check.notes)),
        tuple(problem for check in checks for problem in check.problems.values()),
    )


NAMELESS = Verification((), (Diagnostic(
    "not-verified",
    "the result was not run: the text names no function's inputs and outputs, by which they could be compared",
    hint='give the function attributes {tf.entry_function = {inputs = "...", outputs = "..."}}',
    severity=WARNING,
),))  # fmt: skip
"""The outcome for a model without functions that have names."""


def exported(source: Source) -> tuple[ModuleOp, list[FuncOp]]:
    """Returns a model as it was imported, and cut if it is, and its exported functions, each once."""
    module = opened(source)
    MergeFunctions().apply(module)
    return module, [op for op in module.ops if isinstance(op, FuncOp) and ENTRY_FUNCTION in op.attributes]


def reference_runs(module: ModuleOp, functions: Sequence[FuncOp], data: Any) -> Iterator[Iterator[Run | Refused]]:
    """Yields each function's runs in the reference.

    Args:
        module: The model.
        functions: The functions.
        data: The user's inputs; `None` for random ones.
    """
    if data is None:
        for function in functions:
            names = [tensor.name for tensor in interface_of(function).inputs]
            yield inputs.drawn_runs(module, function, names)
        return
    _, entries = entries_of(module)
    data = data() if callable(data) else data
    for number, function in enumerate(functions):
        yield _given_runs(module, function, _samples(data, entries, number))


def _samples(data: Any, entries: Sequence[Entry], number: int) -> Iterator[Sequence[Array]]:
    """Yields the user's inputs for one function; those of others are not touched, as they may be read only once."""
    keys = {entry.key for entry in entries} | {key for entry in entries for key in entry.aliases}
    if isinstance(data, Mapping) and data and set(data) <= keys:
        own = {key: value for key, value in data.items() if key in (entries[number].key, *entries[number].aliases)}
        if not own:
            return
        data = own
    yield from islice((each.values for each in read(data, entries, finite=False) if each.entry == number), MOST)


def _given_runs(module: ModuleOp, function: FuncOp, samples: Iterable[Sequence[Array]]) -> Iterator[Run | Refused]:
    """Yields the reference's runs on the user's inputs.

    Raises:
        ConversionError: The model can't be run on one of them (`wrong-sample`).
    """
    for number, values in enumerate(samples):
        found = inputs.run(module, function, values)
        if isinstance(found, Refused):
            raise error("wrong-sample", f"the model can't be run on sample {number}: {found.problem.diagnostics[0]}")
        yield found


class _Check:
    """The comparison of one function.

    Attributes:
        errors: How far each output is from the reference's, at most.
        problems: What is wrong with an output.
        notes: What was not compared.
    """

    def __init__(self, module: ModuleOp, function: FuncOp, engine: Callable[[Interface], Engine], name: str) -> None:
        self._module, self._function, self._name = module, function, name
        self._interface = interface_of(function)
        self._engine = engine(self._interface)
        self._label = self._interface.keys[0] if self._interface.keys else self._interface.function
        self.errors: dict[str, OutputError] = {}
        self.problems: dict[str, Diagnostic] = {}
        self.notes: list[Diagnostic] = []

    def run(self, runs: Iterator[Run | Refused], *, given: bool) -> None:
        """Compares the reference's runs with LiteRT's.

        Args:
            runs: The reference's.
            given: Whether the inputs are the user's: then the engine has to run them all.

        Raises:
            ConversionError: It runs none of them, or hangs.
        """
        obstacles = Executor(self._module).problems(self._function.sym_name)
        if obstacles:
            names = ", ".join(dict.fromkeys(each.op for each in obstacles))
            self._decline(f"the reference can't compute {names}", "run it on the device, with inputs of your own")
            return
        refused, failed, done = list[ConversionError](), list[ConversionError](), 0
        for each in runs:
            if isinstance(each, Refused):
                refused.append(each.problem)
            elif (failure := self._compare(each)) is not None:
                failed.append(failure)
            else:
                done += 1
        if failed and (given or not done):
            self._fail(failed[0])
        elif failed:
            self.notes.append(Diagnostic(
                "refused-inputs", f"{self._name} refuses some inputs of {self._label!r} that the reference "
                f"takes, perhaps of other sizes: {failed[0].diagnostics[0].message}", severity=NOTE,
            ))  # fmt: skip
        elif given and not done:
            self._decline("the data has no inputs for it", "")
        elif refused and not done:
            self._decline(f"no random inputs suit it ({refused[0].diagnostics[0]})", "pass inputs of your own")
        elif not done:
            self._decline("there are no inputs for it; a handle has no random values", "pass inputs of your own")

    def _compare(self, run: Run) -> ConversionError | None:
        """Compares one run; returns the error of LiteRT if it refuses the inputs."""
        try:
            got = self._engine(run.inputs)
        except ConversionError as problem:
            if problem.code not in ("runtime-error", "empty-tensor"):
                raise
            return problem
        wrong: dict[int, Difference] = {}
        for number, (want, have) in enumerate(zip(run.outputs, got, strict=True)):
            found = compare(want, have, _ROUNDING)
            if found.what:
                wrong[number] = found
            else:
                self._record(number, found)
        if wrong:
            self._judge(run, got, wrong)
        return None

    def _judge(self, run: Run, got: Sequence[Array], wrong: dict[int, Difference]) -> None:
        """Tells differences that rounding explains from those that nothing does."""
        left = unexplained(self._module, self._function.sym_name, run, got, list(wrong))
        for number, difference in wrong.items():
            name = self._interface.outputs[number].name
            if number in left:
                self._record(number, difference)
                self.problems.setdefault(name, _failed(self._label, name, difference.what))
            else:
                self.notes.append(Diagnostic(
                    "decided-by-rounding",
                    f"output {name!r} of {self._label!r} differs from the reference only where rounding decides: "
                    "between numbers that are equal or nearly so", severity=NOTE,
                ))  # fmt: skip

    def _record(self, number: int, found: Difference) -> None:
        name = self._interface.outputs[number].name
        known = self.errors.get(name) or OutputError(self._label, name, 0.0, 0.0)
        self.errors[name] = OutputError(self._label, name, max(known.max_absolute, found.absolute),
                                        max(known.max_relative, found.relative))  # fmt: skip

    def _fail(self, failure: ConversionError) -> None:
        message = failure.diagnostics[0].message
        if failure.code == "empty-tensor":
            self._decline(message, "")
        elif "custom op" in message:
            self._decline("it has custom ops, which plain LiteRT doesn't know", "run it where they are registered")
        else:
            raise failure

    def _decline(self, reason: str, hint: str) -> None:
        self.notes.append(
            Diagnostic(_DECLINED, f"{self._label!r} was not verified: {reason}", hint=hint, severity=NOTE)
        )


def _failed(signature: str, output: str, what: str) -> Diagnostic:
    return Diagnostic("verification-failed", f"output {output!r} of {signature!r} {what}, by the reference",
                      hint="`compare_layers` (--compare-layers) finds the layer; a difference that is not one of "
                           "quantization is a defect of the converter, please report it")  # fmt: skip
