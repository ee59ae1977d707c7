"""Checks a converted model: LiteRT and the reference executor on the same inputs must agree.

The reference runs the imported model before any pass, so that a bug in any pass is found; only StableHLO's ops are
raised to TensorFlow's before. Inputs are the user's, or random ones that suit the model. Results that also change in
the reference if it rounds differently, such as the larger of two equal numbers, don't count as errors. Functions that
can't be compared are reported in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.pipeline.runner import opened, run_stages
from tfconvert.converter.pipeline.stages import STANDARD, TO_FUNCTIONS, before
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.figures import OutputFigures
from tfconvert.converter.targets.litert.quantize.samples import Entry, entries_of, read
from tfconvert.converter.targets.litert.runtime_process import Runtime
from tfconvert.converter.validation import inputs
from tfconvert.converter.validation.comparison import Difference, compare, tolerance
from tfconvert.converter.validation.inputs import Refused, Run
from tfconvert.converter.validation.stability import unexplained
from tfconvert.importers.source import Source
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import NOTE, WARNING, ConversionError, Diagnostic, error, printable
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.fidelity import Fidelity, Limits, OutputError, OutputFidelity
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options
from tfconvert.settings.targets import StableHLO


class FileEngine(Protocol):
    """A runtime of converted models."""

    name: str
    """Its name in diagnostics."""

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs one of a file's signatures; as that of `litert.runtime_process.Runtime`."""


class Wires(NamedTuple):
    """The mapping of a model function's inputs and outputs to those of a file.

    Attributes:
        key: The signature; empty for the first subgraph.
        inputs: The signature's names of the model's inputs, in the model's order.
        outputs: The signature's names of the model's outputs, in the model's order.
        order: The first subgraph only: the model's input for each of its inputs.
        picked: The first subgraph only: its output for each of the model's outputs.
    """

    key: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    order: Sequence[int] = ()
    picked: Sequence[int] = ()

    def run(self, engine: FileEngine, content: bytes, values: Sequence[Array]) -> list[Array]:
        """Runs the file; returns the outputs in the model's order.

        Args:
            engine: The runtime.
            content: The file's bytes.
            values: The inputs in the model's order.
        """
        if self.key:
            return engine.run_file(content, self.key, dict(zip(self.inputs, values, strict=True)), self.outputs)
        fed = {str(place): values[number] for place, number in enumerate(self.order)}
        results = engine.run_file(content, "", fed, self.outputs)
        return [results[place] for place in self.picked]


Wiring = Callable[[Interface], Wires]
"""Returns the mapping of a model function's inputs and outputs to those of a file."""


def own_wiring(interface: Interface) -> Wires:
    """Returns the mapping for a file that was converted from the model: the same names, in the same order."""
    inputs, outputs = ([tensor.name for tensor in side] for side in (interface.inputs, interface.outputs))
    key = interface.keys[0] if interface.keys else ""
    return Wires(key, inputs, outputs, range(len(inputs)), range(len(outputs)))


MOST = 32
"""Maximum number of the user's samples per signature that are compared; the reference is slow."""

# The rounding error of numbers near one; a small result may be the difference of such numbers.
_ROUNDING = float(np.finfo(np.float32).eps)

_DECLINED = "not-verified"

Engine = Callable[[Sequence[Array]], Sequence[Array]]
"""Runs a converted function on inputs in the model's order; raises `runtime-error` if it can't."""


Ranges = Callable[[Interface], Mapping[int, tuple[float, float]]]
"""Returns the ranges of a function's float inputs, by input number."""


class Verification(NamedTuple):
    """The outcome of a check.

    Attributes:
        errors: The maximum difference of each output from the reference's.
        notes: Notes about outputs that were not compared, or that differ for a known reason.
        problems: The differences; empty if everything that was compared agrees.
        fidelity: The fidelity of a quantized file; `None` for others.
    """

    errors: tuple[OutputError, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    fidelity: Fidelity | None = None

    @property
    def agrees(self) -> bool:
        """Whether something was compared, and nothing is wrong."""
        return not self.problems and bool(self.errors or self.fidelity)

    def with_layers(self, notes: Iterable[Diagnostic]) -> Verification:
        """Returns the outcome with the notes of a layer comparison, instead of hints to compare layers."""
        problems = tuple(each._replace(hint=_REPORT_IT) if each.hint == _HINT else each for each in self.problems)
        return self._replace(notes=(*self.notes, *notes), problems=problems)

    def to_text(self) -> str:
        """Returns the comparison of each output, and of layers if they were compared."""
        lines = [
            f"{each.signature}/{each.output}: largest error {each.max_absolute:.2e} "
            f"({each.max_relative:.1e} of the largest value)"
            for each in self.errors
        ]
        lines += [line.removeprefix("  ") for line in self.fidelity.lines(None)] if self.fidelity is not None else []
        return "\n".join(map(printable, lines))

    def __str__(self) -> str:
        return "\n".join(filter(None, [self.to_text(), *(f"{each.severity}: {each}" for each in self._others)]))

    def __repr__(self) -> str:
        return str(self)

    @property
    def _others(self) -> tuple[Diagnostic, ...]:
        return (*self.notes, *self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "agrees": self.agrees,
            "verification": [each._asdict() for each in self.errors],
            "notes": [note.to_dict() for note in self.notes],
            "errors": [problem.to_dict() for problem in self.problems],
            **({"fidelity": self.fidelity.to_dict()} if self.fidelity is not None else {}),
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


class Quantized(NamedTuple):
    """The criteria for a quantized file.

    Attributes:
        limits: The minimum fidelity.
        ranges: The ranges of random inputs.
    """

    limits: Limits
    ranges: Ranges


def compared(
    source: Source, content: bytes, data: Any = None, wiring: Wiring | None = None, quantized: Quantized | None = None
) -> Verification:
    """Compares a file with a model, like `verify`, but returns differences instead of raising an error.

    Args:
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs; by default, by name.
        quantized: The criteria if the file is quantized; integers that represent floats are then fed and read as
            floats.
    """
    runtime.require()
    with Runtime(as_floats=quantized is not None) as litert:
        return compared_in(litert, source, content, data, wiring or own_wiring, quantized)


def compared_in(
    engine: FileEngine,
    source: Source,
    content: bytes,
    data: Any = None,
    wiring: Wiring = own_wiring,
    quantized: Quantized | None = None,
) -> Verification:
    """Compares a file with a model in any runtime; see `compared`.

    Args:
        engine: The runtime.
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs.
        quantized: The criteria if the file is quantized.
    """
    module, functions = exported(source)
    if not functions:
        return NAMELESS

    def runs(interface: Interface) -> Engine:
        return partial(wiring(interface).run, engine, content)

    return checked(module, functions, data, runs, engine.name, quantized)


def checked(
    module: ModuleOp,
    functions: Sequence[FuncOp],
    data: Any,
    engine: Callable[[Interface], Engine],
    name: str = "the executor",
    quantized: Quantized | None = None,
) -> Verification:
    """Compares the results of an engine with a model.

    Args:
        module: The model.
        functions: Its functions.
        data: The user's inputs; `None` for random ones.
        engine: Returns the engine for a function of an interface.
        name: The engine's name in diagnostics.
        quantized: The criteria if it computes a quantized file.
    """
    make = _Check if quantized is None else _FidelityCheck
    ranges = None if quantized is None else quantized.ranges
    checks = [make(module, function, engine, name) for function in functions]
    notes: list[Diagnostic] = []
    for check, runs in zip(checks, reference_runs(module, functions, data, ranges, notes), strict=True):
        check.run(runs, given=data is not None)
    found = Verification(
        tuple(error for check in checks for error in check.errors.values()),
        tuple(dict.fromkeys([*notes, *(note for check in checks for note in check.notes)])),
        tuple(problem for check in checks for problem in check.problems.values()),
    )
    outputs = tuple(each for check in checks for each in check.fidelity())
    if quantized is None or not outputs:
        return found
    fidelity = Fidelity(sum(check.done for check in checks), outputs, limits=quantized.limits, is_random=data is None)
    problem = fidelity.problem()
    return found._replace(fidelity=fidelity, problems=(*found.problems, *([problem] if problem is not None else ())))


NAMELESS = Verification(
    (),
    (
        Diagnostic(
            "not-verified",
            "the result was not run: the text names no function's inputs and outputs, by which they could be compared",
            hint='give the function attributes {tf.entry_function = {inputs = "...", outputs = "..."}}',
            severity=WARNING,
        ),
    ),
)
"""The outcome for a model without named functions."""


# Prefixes of ops that can be raised.
_RAISED = ("stablehlo.", "chlo.", "tf.Xla")


def exported(source: Source) -> tuple[ModuleOp, list[FuncOp]]:
    """Returns an imported model, cut if requested, and its exported functions, each once.

    Programs with ops of StableHLO that the executor has no kernel for are raised to TensorFlow's ops first.
    """
    module = opened(source)
    MergeFunctions().apply(module)
    functions = _entries(module)
    executor = Executor(module)
    problems = [problem for function in functions for problem in executor.problems(function.sym_name)]
    if any(problem.op.startswith(_RAISED) for problem in problems):
        for _ in run_stages(
            module, (*TO_FUNCTIONS, *before(STANDARD, "simplify-control-flow")), Options(target=StableHLO())
        ):
            pass
        functions = _entries(module)
    return module, functions


def _entries(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and ENTRY_FUNCTION in op.attributes]


def reference_runs(
    module: ModuleOp,
    functions: Sequence[FuncOp],
    data: Any,
    ranges: Ranges | None = None,
    notes: list[Diagnostic] | None = None,
) -> Iterator[Iterator[Run | Refused]]:
    """Yields each function's runs in the reference.

    Args:
        module: The model.
        functions: The functions.
        data: The user's inputs; `None` for random ones.
        ranges: Returns the ranges of random float inputs, by input number; `None` for any.
        notes: Where notes on the user's inputs are added.
    """
    if data is None:
        for function in functions:
            interface = interface_of(function)
            known = {} if ranges is None else ranges(interface)
            names = [tensor.name for tensor in interface.inputs]
            if known:
                yield inputs.runs_in_ranges(module, function, names, known)
            else:
                yield inputs.drawn_runs(module, function, names)
        return
    _, entries = entries_of(module)
    data = data() if callable(data) else data
    for number, function in enumerate(functions):
        yield _given_runs(module, function, samples_of(data, entries, number, notes))


def samples_of(
    data: Any, entries: Sequence[Entry], number: int, notes: list[Diagnostic] | None = None
) -> Iterator[Sequence[Array]]:
    """Yields the user's inputs for one function; doesn't read those of others, which may be readable only once.

    Args:
        data: The user's inputs.
        entries: The inputs of each function.
        number: The function.
        notes: Where notes on the inputs are added.
    """
    keys = {entry.key for entry in entries} | {key for entry in entries for key in entry.aliases}
    if isinstance(data, Mapping) and data and set(data) <= keys:
        own = {key: value for key, value in data.items() if key in (entries[number].key, *entries[number].aliases)}
        if not own:
            return
        data = own
    found = read(data, entries, finite=False, notes=notes)
    values = (each.values for each in found if each.entry == number)
    yield from islice(values, MOST)
    if notes is not None and next(values, None) is not None:
        notes.append(
            Diagnostic("samples-left-out", f"the first {MOST} samples were compared, not the others", severity=NOTE)
        )


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
        errors: The maximum difference of each output from the reference's.
        problems: The differences of outputs.
        notes: Notes about outputs that were not compared.
        done: The number of compared runs.
    """

    def __init__(self, module: ModuleOp, function: FuncOp, engine: Callable[[Interface], Engine], name: str) -> None:
        self._module, self._function, self._name = module, function, name
        self._interface = interface_of(function)
        self._engine = engine(self._interface)
        self._roughness = _roughness(module)
        self._label = self._interface.keys[0] if self._interface.keys else self._interface.function
        self.errors: dict[str, OutputError] = {}
        self.problems: dict[str, Diagnostic] = {}
        self.notes: list[Diagnostic] = []
        self.done = 0

    def run(self, runs: Iterator[Run | Refused], *, given: bool) -> None:
        """Compares the reference's runs with LiteRT's.

        Args:
            runs: The reference's.
            given: Whether the inputs are the user's; the engine then has to run all of them.
        """
        obstacles = Executor(self._module).problems(self._function.sym_name)
        if obstacles:
            names = ", ".join(dict.fromkeys(each.op for each in obstacles))
            self._decline(f"the reference can't compute {names}", "run it on the device, with inputs of your own")
            return
        refused, failed = list[ConversionError](), list[ConversionError]()
        for each in runs:
            if isinstance(each, Refused):
                refused.append(each.problem)
            elif (failure := self._compare(each)) is not None:
                failed.append(failure)
            else:
                self.done += 1
        done = self.done
        if failed and (given or not done):
            self._fail(failed[0])
        elif failed:
            self.notes.append(
                Diagnostic(
                    "refused-inputs",
                    f"{self._name} refuses some inputs of {self._label!r} that the reference "
                    f"takes, perhaps of other sizes: {failed[0].diagnostics[0].message}",
                    severity=NOTE,
                )
            )
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
        self._take(run, got)
        return None

    def _take(self, run: Run, got: Sequence[Array]) -> None:
        """Compares the results of one run."""
        wrong: dict[int, Difference] = {}
        for number, (want, have) in enumerate(zip(run.outputs, got, strict=True)):
            found = compare(want, have, max(_ROUNDING, self._roughness * _largest(want)))
            if found.what:
                wrong[number] = found
            else:
                self._record(number, found)
        if wrong:
            self._judge(run, got, wrong)

    def fidelity(self) -> list[OutputFidelity]:
        """Returns the fidelity of a quantized file's outputs; empty for others."""
        return []

    def _judge(self, run: Run, got: Sequence[Array], wrong: dict[int, Difference]) -> None:
        """Separates differences that rounding explains from all others."""
        left = unexplained(self._module, self._function.sym_name, run, got, list(wrong))
        for number, difference in wrong.items():
            name = self._interface.outputs[number].name
            if number in left:
                self._record(number, difference)
                self.problems.setdefault(name, _failed(self._label, name, difference.what))
            else:
                self.notes.append(
                    Diagnostic(
                        "decided-by-rounding",
                        f"output {name!r} of {self._label!r} differs from the reference only where rounding decides: "
                        "between numbers that are equal or nearly so",
                        severity=NOTE,
                    )
                )

    def _record(self, number: int, found: Difference) -> None:
        name = self._interface.outputs[number].name
        known = self.errors.get(name) or OutputError(self._label, name, 0.0, 0.0)
        self.errors[name] = OutputError(
            self._label, name, max(known.max_absolute, found.absolute), max(known.max_relative, found.relative)
        )

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


def _roughness(module: ModuleOp) -> float:
    """Returns the largest relative difference of results that the halves explain which a model computes in between.

    LiteRT computes them as `f32` without rounding, the reference rounds each of them.
    """
    elements = {types.element_of(each.type) for op in module.walk() for each in op.results}
    dtypes = [np.dtype(types.numpy_dtype(each)) for each in (types.F16, types.BF16) if each in elements]
    return max(map(tolerance, dtypes), default=0.0)


def _largest(value: Array) -> float:
    """Returns the largest magnitude of floats; zero for others."""
    if value.dtype.kind != "f":
        return 0.0
    sizes = np.abs(value)
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0))


class _FidelityCheck(_Check):
    """The comparison of one function of a quantized file, by its fidelity over all runs."""

    def __init__(self, module: ModuleOp, function: FuncOp, engine: Callable[[Interface], Engine], name: str) -> None:
        super().__init__(module, function, engine, name)
        self._outputs = [OutputFigures() for _ in self._interface.outputs]

    def _take(self, run: Run, got: Sequence[Array]) -> None:
        for output, figures, want, have in zip(self._interface.outputs, self._outputs, run.outputs, got, strict=True):
            if want.shape == have.shape:
                figures.add(want, have)
            else:
                self.problems[output.name] = _failed(self._label, output.name, compare(want, have).what)

    def fidelity(self) -> list[OutputFidelity]:
        found = [
            figures.fidelity(output.name, self._label)
            for output, figures in zip(self._interface.outputs, self._outputs, strict=True)
        ]
        return [each for each in found if each is not None]


_REPORT_IT = "if tfconvert made the file from this model, this is a bug: please report it"
_HINT = f"`compare_layers` (--compare-layers) finds the layer; {_REPORT_IT}"


def _failed(signature: str, output: str, what: str) -> Diagnostic:
    return Diagnostic(
        "verification-failed", f"output {output!r} of {signature!r} {what}, compared with the reference", hint=_HINT
    )
