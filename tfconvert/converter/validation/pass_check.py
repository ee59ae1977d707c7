"""Translation validation: runs a module before and after a pass on the same random inputs and compares.

`tf` and `tf_executor` functions run in the reference executor, and functions of only `tfl` ops as a file in LiteRT. The
executor also runs `tfl` operators that passes have inserted among `tf` ops, if it knows them. Functions that can't be
compared are reported, never skipped silently.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.executor import buffers
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.executor.litert_ops import OUTSIDE
from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.targets.litert.passes.fold_fake_quant import FoldFakeQuant
from tfconvert.converter.targets.litert.passes.separate_state import SeparateState
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.converter.validation.comparison import compare, is_equal
from tfconvert.converter.validation.inputs import REFUSED_INPUT, draws
from tfconvert.exporters.tflite.model import export
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, error
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import MemRefType

MAX_ITERATIONS = 2000
"""Maximum number of iterations; functions with longer loops are not compared."""


def check(before: ModuleOp, after: ModuleOp, pass_name: str, seed: int = 0) -> list[Diagnostic]:
    """Compares the results of a module's exported functions before and after a pass.

    Args:
        before: The module before the pass.
        after: The module after it.
        pass_name: The pass, for the messages.
        seed: The seed of the random inputs.

    Returns:
        A note for each function that could not be compared, with the reason.

    Raises:
        ConversionError: A function's results or the final values of its variables differ, or it no longer runs
            (`pass-changed-results`); or LiteRT would be needed and is not installed (`litert-missing`).
    """
    notes: list[Diagnostic] = []
    problems: list[Diagnostic] = []
    with LiteRTProcess() as runtime:
        one, other = _Side(before, runtime), _Side(after, runtime)
        other.rename(list(one.functions))
        for name in one.functions:
            compared = _compare_function(one, other, name, pass_name, seed)
            notes += compared.notes
            problems += compared.problems
    if problems:
        raise ConversionError(problems)
    return notes


@dataclass(slots=True)
class _Compared:
    """The result of a comparison."""

    notes: list[Diagnostic] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of a function: its results, and the variables that it changed."""

    results: Sequence[Array]
    variables: Mapping[str, Array] = field(default_factory=dict)


class _Side:
    """A module that can be run."""

    def __init__(self, module: ModuleOp, runtime: LiteRTProcess) -> None:
        self.module = module
        self._runtime = runtime
        self.functions = {op.sym_name: op for op in module.ops if isinstance(op, FuncOp) and _is_exported(op)}
        names = {op.name for op in module.walk()}
        dialects = {name.partition(".")[0] for name in names}
        # A file has no ops that exist only in text.
        self.is_file = "tfl" in dialects and not dialects & {"tf", "tf_executor", "arith"} and "tfl.yield" not in names
        self.has_buffers = "memref" in dialects
        self._content = b""

    def rename(self, names: Sequence[str]) -> None:
        """Gives the functions other names, in order, if there are as many and the pass has renamed them."""
        if len(names) == len(self.functions) and not self.functions.keys() & set(names):
            self.functions = dict(zip(names, self.functions.values(), strict=True))

    def cannot_run(self, name: str) -> str:
        """Returns why a function can't be run on any inputs; empty if it can."""
        if self.has_buffers:
            return ""
        if not self.is_file:
            problems = Executor(self.module).problems(self.functions[name].sym_name)
            return ", ".join(dict.fromkeys(f"{one.op}: {one.message}" for one in problems[:3]))
        if name != next(iter(self.functions)) and not self._key(name):
            return "only a file's first function runs without a signature"
        return ""

    def run(self, name: str, inputs: Sequence[Array]) -> _Outcome:
        """Runs a function."""
        if self.is_file:
            return _Outcome(self._run_file(name, inputs))
        if self.has_buffers:
            return _Outcome(buffers.run(self.module, name, inputs).results)
        executor = Executor(self.module, max_iterations=MAX_ITERATIONS)
        results = executor.run(self.functions[name].sym_name, inputs)
        changed = {}
        for symbol, variable in executor.variables.items():
            initial = executor.first_value(symbol)
            if variable.value is not None and (initial is None or not is_equal(initial, variable.value)):
                changed[symbol] = variable.value
        return _Outcome(results, changed)

    def _key(self, name: str) -> str:
        function = self.functions[name]
        keys = interface_of(function).keys if ENTRY_FUNCTION in function.attributes else ()
        return keys[0] if keys else ""

    def _run_file(self, name: str, inputs: Sequence[Array]) -> list[Array]:
        if not self._content:
            stream = io.BytesIO()
            module = self.module.clone()
            # The pipeline replaces ops that LiteRT can't run only at its end.
            FoldFakeQuant().apply(module)
            SeparateState().apply(module)
            export(module).write(stream)
            self._content = stream.getvalue()
        key, outputs = self._key(name), list[str]()
        names = [str(index) for index in range(len(inputs))]
        if key:
            interface = interface_of(self.functions[name])
            names = [tensor.name for tensor in interface.inputs]
            outputs = [tensor.name for tensor in interface.outputs]
        return self._runtime.run_file(self._content, key, dict(zip(names, inputs, strict=True)), outputs)


def _is_exported(function: FuncOp) -> bool:
    visibility = function.sym_visibility
    return bool(function.body.blocks) and visibility in (None, "public")


def _why_not(one: _Side, other: _Side, name: str) -> str:
    """Returns why a function can't be compared on any inputs; empty if it can."""
    if name not in other.functions:
        return "the pass has removed or renamed it"
    if len({len(side.functions[name].function_type.inputs) for side in (one, other)}) == 2:
        return "the pass has changed its arguments"
    return one.cannot_run(name) or other.cannot_run(name)


def _compare_function(one: _Side, other: _Side, name: str, pass_name: str, seed: int) -> _Compared:
    """Runs a function of both sides on each draw of inputs."""
    reason = _why_not(one, other, name)
    if reason:
        return _Compared([_unchecked(pass_name, name, reason)])
    arguments = [list(side.functions[name].body.block.args) for side in (one, other)]
    known = [types.most_specific(*map(_tensor, (a.type, b.type))) for a, b in zip(*arguments, strict=True)]
    refusals: list[ConversionError] = []
    drawn = list(draws(known, [str(index) for index in range(len(known))], seed))
    if not drawn:
        return _Compared([_unchecked(pass_name, name, "no random value exists for a handle")])
    for inputs in drawn:
        try:
            problems = list(_differences(one.run(name, inputs), other, name, pass_name, inputs))
        except ConversionError as problem:
            if problem.code not in REFUSED_INPUT:
                raise
            refusals.append(problem)
            continue
        if problems:
            return _Compared(problems=problems)
    if len(refusals) == len(drawn):
        reason = f"random inputs don't suit it: {refusals[0].diagnostics[0]}"
        return _Compared([_unchecked(pass_name, name, reason)])
    return _Compared()


def _tensor(kind: Attribute) -> Attribute:
    """Returns a type; for a buffer, the type of its tensor."""
    return types.tensor(kind.element_type, kind.shape) if isinstance(kind, MemRefType) else kind


def _differences(
    expected: _Outcome, other: _Side, name: str, pass_name: str, inputs: Sequence[Array]
) -> Iterator[Diagnostic]:
    """Yields the differences of the outcome after the pass from the expected one."""
    try:
        got = other.run(name, inputs)
    except ConversionError as problem:
        if problem.code in ("litert-missing", "empty-tensor", OUTSIDE):
            raise
        yield _changed(pass_name, name, f"it no longer runs: {problem}")
        return
    if len(expected.results) != len(got.results):
        yield _changed(pass_name, name, f"it has {len(got.results)} results, not {len(expected.results)}")
        return
    for index, (was, now) in enumerate(zip(expected.results, got.results, strict=True)):
        difference = compare(was, now).what
        if difference:
            yield _changed(pass_name, name, f"result {index} {difference}")
    if other.is_file:
        return
    for symbol in sorted(expected.variables.keys() | got.variables.keys()):
        if symbol not in expected.variables or symbol not in got.variables:
            verb = "is no longer" if symbol in expected.variables else "is now"
            yield _changed(pass_name, name, f"variable {symbol!r} {verb} assigned")
        elif difference := compare(expected.variables[symbol], got.variables[symbol]).what:
            yield _changed(pass_name, name, f"variable {symbol!r} {difference}")


def _unchecked(pass_name: str, function: str, reason: str) -> Diagnostic:
    return Diagnostic(
        "function-not-checked",
        f"function {function!r} was not run before and after {pass_name}: {reason}",
        op="func.func",
        node=function,
        severity=NOTE,
    )


def _changed(pass_name: str, function: str, what: str) -> Diagnostic:
    problem = error(
        "pass-changed-results",
        f"pass {pass_name} has changed what function {function!r} computes: {what}",
        op="func.func",
        node=function,
        hint="this is a bug in the pass, not in the model; please report it",
    )
    return problem.diagnostics[0]
