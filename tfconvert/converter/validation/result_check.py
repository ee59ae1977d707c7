"""Checks a converted model: LiteRT and a witness of the model's results on the same inputs must agree.

The witness is the most independent one at hand (`witness.py`). The reference executor runs the imported model before
any pass, so that a bug in any pass is found; only StableHLO's ops are raised to TensorFlow's before. Inputs are the
user's, or random ones that suit the model. Differences as large as those that the executor shows if it rounds
differently, such as the larger of two equal numbers, don't count as errors. Functions that can't be compared are
reported in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.pipeline.runner import opened, run_stages
from tfconvert.converter.pipeline.stages import STANDARD, TO_FUNCTIONS, before
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize.samples import Entry, entries_of, read
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.converter.validation import inputs
from tfconvert.converter.validation.function_check import (
    CUSTOM,
    LAYERS_HINT,
    NOT_VERIFIED,
    REPORT_IT,
    AnswerSource,
    Clock,
    Engine,
    FidelityCheck,
    FunctionCheck,
)
from tfconvert.converter.validation.inputs import Answer, ReferenceRun, Refused
from tfconvert.converter.validation.wires import FileEngine, StatefulEngine, Wiring, own_wiring
from tfconvert.converter.validation.witness import Witness, witness_of
from tfconvert.importers.source import Source
from tfconvert.importers.temporary_model import OwnRun
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import NOTE, WARNING, ConversionError, Diagnostic, error, printable
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.fidelity import Fidelity, Limits, OutputError
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options
from tfconvert.settings.targets import StableHLO
from tfconvert.settings.verify_options import VERIFY_SECONDS, Verify

MOST = 32
"""Maximum number of the user's samples per signature that are compared; the reference is slow."""

Ranges = Callable[[Interface], Mapping[int, tuple[float, float]]]
"""Returns the ranges of a function's float inputs, by input number."""


class Verification(NamedTuple):
    """The outcome of a check."""

    errors: tuple[OutputError, ...] = ()  # The maximum difference of each output from the reference's.
    notes: tuple[Diagnostic, ...] = ()  # Notes about outputs that were not compared, or that differ for a known reason.
    problems: tuple[Diagnostic, ...] = ()  # The differences; empty if everything that was compared agrees.
    fidelity: Fidelity | None = None  # The fidelity of a quantized file; `None` for others.

    @property
    def agrees(self) -> bool:
        """Whether something was compared, and nothing is wrong."""
        return not self.problems and bool(self.errors or self.fidelity)

    def with_layers(self, notes: Iterable[Diagnostic]) -> Verification:
        """Returns the outcome with the notes of a layer comparison, instead of hints to compare layers."""
        problems = tuple(each._replace(hint=REPORT_IT) if each.hint == LAYERS_HINT else each for each in self.problems)
        return self._replace(notes=(*self.notes, *notes), problems=problems)

    def to_text(self) -> str:
        """Returns the comparison of each output, and of layers if they were compared."""
        lines = [
            f"{each.signature}/{each.output}: largest error {each.max_absolute:.2e} "
            f"({each.max_relative:.1e} of the largest value), compared with {each.witness}"
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
    """Compares LiteRT's outputs with those of the witness, for every exported function.

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
    """The criteria for a quantized file."""

    limits: Limits  # The minimum fidelity.
    ranges: Ranges  # The ranges of random inputs.


def compared(
    source: Source,
    content: bytes,
    data: Any = None,
    wiring: Wiring | None = None,
    quantized: Quantized | None = None,
    wanted: Verify | None = None,
) -> Verification:
    """Compares a file with a model, like `verify`, but returns differences instead of raising an error.

    Args:
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs; by default, by name.
        quantized: The criteria if the file is quantized; integers that represent floats are then fed and read as
            floats.
        wanted: The witness, and the time limit.

    Raises:
        ConversionError: LiteRT can't load the file (`runtime-error`).
    """
    runtime.require()
    how = wanted or Verify()
    with witness_of(source, how.witness) as witness:
        as_floats = quantized is not None or (witness is not None and witness.as_floats)
        with LiteRTProcess(as_floats=as_floats) as litert:
            if (declined := not_loaded(litert, content)) is not None:
                return Verification(notes=(declined,))
            return compared_in(litert, source, content, data, wiring or own_wiring, quantized, witness, how.seconds)


def not_loaded(litert: LiteRTProcess, content: bytes) -> Diagnostic | None:
    """Returns a note if LiteRT's Python package lacks operators of a file, which apps may have; else `None`.

    Raises:
        ConversionError: LiteRT can't load the file for another reason (`runtime-error`), or hangs (`litert-timeout`).
    """
    try:
        litert.load_file(content)
    except ConversionError as problem:
        if CUSTOM not in problem.diagnostics[0].message:
            raise
        hint = "run it where they are registered"
        message = "the result was not verified: it has custom ops, which plain LiteRT doesn't know"
        return Diagnostic(NOT_VERIFIED, message, hint=hint, severity=WARNING)
    return None


def compared_in(
    engine: FileEngine,
    source: Source,
    content: bytes,
    data: Any = None,
    wiring: Wiring = own_wiring,
    quantized: Quantized | None = None,
    witness: Witness | None = None,
    seconds: float = VERIFY_SECONDS,
) -> Verification:
    """Compares a file with a model in any runtime; see `compared`.

    Args:
        engine: The runtime.
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs.
        quantized: The criteria if the file is quantized.
        witness: Computes the right results; `None` for the reference executor.
        seconds: The time limit.
    """
    module, functions = exported(source)
    if not functions:
        return NAMELESS

    def runs(interface: Interface) -> Engine:
        return partial(wiring(interface).run, engine, content)

    in_turn = None
    if isinstance(engine, StatefulEngine) and quantized is None:

        def in_turn(interface: Interface) -> OwnRun:
            return partial(wiring(interface).run_in_turn, engine, content)

    return checked(module, functions, data, runs, engine.name, quantized, witness, seconds, in_turn)


def checked(
    module: ModuleOp,
    functions: Sequence[FuncOp],
    data: Any,
    engine: Callable[[Interface], Engine],
    name: str = "the executor",
    quantized: Quantized | None = None,
    witness: Witness | None = None,
    seconds: float = VERIFY_SECONDS,
    in_turn: Callable[[Interface], OwnRun] | None = None,
) -> Verification:
    """Compares the results of an engine with a model.

    Args:
        module: The model.
        functions: Its functions.
        data: The user's inputs; `None` for random ones.
        engine: Returns the engine for a function of an interface.
        name: The engine's name in diagnostics.
        quantized: The criteria if it computes a quantized file.
        witness: Computes the right results; `None` for the reference executor.
        seconds: The time limit, after which no further inputs are compared.
        in_turn: Returns what calls a function in turn, to compare what becomes of its state; `None` if nothing can.
    """
    make = FunctionCheck if quantized is None else FidelityCheck
    ranges = None if quantized is None else quantized.ranges
    clock = Clock(seconds)
    checks = [make(module, function, engine, name, witness, clock) for function in functions]
    notes: list[Diagnostic] = []
    sources = [check.source for check in checks]
    for check, runs in zip(checks, reference_runs(module, functions, data, ranges, notes, sources), strict=True):
        check.run(runs, given=data is not None)
        if in_turn is not None and check.can_be_called_again and changes_state(module):
            check.run_in_turn(in_turn(check.interface))
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
    fidelity = fidelity._replace(witness=" and ".join(dict.fromkeys(check.witness for check in checks)))
    return found._replace(fidelity=fidelity, problems=(*found.problems, *([problem] if problem is not None else ())))


def changes_state(module: ModuleOp) -> bool:
    """Returns whether a model assigns to variables."""
    return any("assign" in op.name.lower() or op.name.startswith("tf.Resource") for op in module.walk())


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
    sources: Sequence[AnswerSource] = (),
) -> Iterator[Iterator[ReferenceRun | Refused]]:
    """Yields each function's runs in its witness.

    Args:
        module: The model.
        functions: The functions.
        data: The user's inputs; `None` for random ones.
        ranges: Returns the ranges of random float inputs, by input number; `None` for any.
        notes: Where notes on the user's inputs are added.
        sources: Where the results of each function come from; by default the reference executor.
    """
    sources = sources or [AnswerSource()] * len(functions)
    if data is None:
        for function, source in zip(functions, sources, strict=True):
            interface = interface_of(function)
            known = {} if ranges is None else ranges(interface)
            names = [tensor.name for tensor in interface.inputs]
            drawing = inputs.Drawing(module, function, names, *source)
            if known:
                yield inputs.runs_in_ranges(drawing, _answering(module, function, source.answer), names, known)
            else:
                yield drawing.runs()
        return
    _, entries = entries_of(module)
    data = data() if callable(data) else data
    for number, (function, source) in enumerate(zip(functions, sources, strict=True)):
        run = _answering(module, function, source.answer)
        yield _given_runs(run, samples_of(data, entries, number, notes))


def _answering(
    module: ModuleOp, function: FuncOp, answer: Answer | None
) -> Callable[[Sequence[Array]], ReferenceRun | Refused]:
    """Returns what runs a function once in its initial state."""

    def run(values: Sequence[Array]) -> ReferenceRun | Refused:
        if answer is None:
            return inputs.run(module, function, values)
        found = answer([values])
        return found if isinstance(found, Refused) else found[0]

    return run


def samples_of(
    data: Any, entries: Sequence[Entry], number: int, notes: list[Diagnostic] | None = None, most: int | None = MOST
) -> Iterator[Sequence[Array]]:
    """Yields the user's inputs for one function; doesn't read those of others, which may be readable only once.

    Args:
        data: The user's inputs.
        entries: The inputs of each function.
        number: The function.
        notes: Where notes on the inputs are added.
        most: The maximum number; `None` for all.
    """
    keys = {entry.key for entry in entries} | {key for entry in entries for key in entry.aliases}
    if isinstance(data, Mapping) and data and set(data) <= keys:
        own = {key: value for key, value in data.items() if key in (entries[number].key, *entries[number].aliases)}
        if not own:
            return
        data = own
    found = read(data, entries, allow_nan=True, notes=notes)
    values = (each.values for each in found if each.entry == number)
    yield from islice(values, most)
    if notes is not None and next(values, None) is not None:
        notes.append(
            Diagnostic("samples-left-out", f"the first {most} samples were compared, not the others", severity=NOTE)
        )


def _given_runs(
    run: Callable[[Sequence[Array]], ReferenceRun | Refused], samples: Iterable[Sequence[Array]]
) -> Iterator[ReferenceRun | Refused]:
    """Yields the runs on the user's inputs.

    Raises:
        ConversionError: The model can't be run on one of them (`wrong-sample`).
    """
    for number, values in enumerate(samples):
        found = run(values)
        if isinstance(found, Refused):
            raise error("wrong-sample", f"the model can't be run on sample {number}: {found.problem.diagnostics[0]}")
        yield found
