"""Random inputs that suit a model: valid indices, partitions, splits, axes and sizes where it needs them.

The ops that an input reaches, through casts, reshapes, calls and bodies, determine its kind; a run of the model shows
which values they accept.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tfconvert.converter.executor import control_flow
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.executor.litert_ops import OUTSIDE
from tfconvert.converter.executor.resources import value_behind
from tfconvert.converter.validation.domains import RULES, Domain, fits, narrower
from tfconvert.ops.call import Array, Results, call_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Use, Value

DRAWS = 3
"""The number of different kinds of values."""

_LEADING = (2, 1, 3)
# Sizes of unknown dimensions for each draw: the first is usually a batch, the others are large or odd.
_OTHER = (32, 5, 8)

_WORDS = (b"", b"a", b"two words", "gr\u00fc\u00df".encode(), b"a longer text, with 42.")


REFUSED_INPUT = frozenset(
    {
        "bad-operand",
        "integer-division-by-zero",
        "assertion-failed",
        "endless-loop",
        "dead-fetch",
        "runtime-error",
        "uninitialized-variable",
        "call-depth",
        "empty-tensor",
        "outside-of-tensor",
        "unequal-sizes",
        OUTSIDE,
    }
)
"""Error codes for functions that can run, but not on these random inputs."""


def draws(kinds: Sequence[Attribute], names: Sequence[str], seed: int = 0) -> Iterator[list[Array]]:
    """Yields values for a function's arguments, several times; once without arguments, never if there is a handle.

    Args:
        kinds: The arguments' types.
        names: Names that distinguish arguments of the same type.
        seed: The seed of the run.
    """
    for draw in range(DRAWS if kinds else 1):
        values = [value_of(kind, name, draw, seed) for kind, name in zip(kinds, names, strict=True)]
        made = [value for value in values if value is not None]
        if len(made) == len(values):
            yield made


def value_of(tensor_type: Attribute, name: str, draw: int, seed: int = 0) -> Array | None:
    """Returns a random value, the same for the same arguments.

    Args:
        tensor_type: The type. The size of unknown dimensions depends on their position; an unknown rank is a scalar.
        name: A name that distinguishes values of the same type.
        draw: 0 draws small numbers, as networks expect; 1 larger ones; 2 includes zeros and equal values.
        seed: The seed of the run.

    Returns:
        The value, or `None` for a handle of a resource or a variant.
    """
    element = types.element_of(tensor_type)
    entry = types.from_mlir(element)
    if entry is None or entry.name in ("resource", "variant"):
        return None
    shape = sizes_of(types.shape_of(tensor_type) or (), draw)
    random = np.random.default_rng([zlib.crc32(name.encode()), draw, seed])
    if entry.dtype.kind == "O":
        value = np.empty(shape, object)
        value.reshape(-1)[:] = [_WORDS[at] for at in random.integers(0, len(_WORDS), value.size)]
        return value
    if entry.dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if entry.dtype.kind in "iu" or entry.name in ("int4", "uint4"):
        low = 0 if entry.dtype.kind == "u" or draw == 0 or entry.name == "uint4" else -8
        return np.asarray(random.integers(low, 8, shape), entry.dtype)
    numbers = random.uniform(-1, 1, shape) * (1.0, 20.0, 1.0)[draw % DRAWS]
    if draw % DRAWS == 2:
        numbers = np.round(numbers * 2) / 2
    # A number that was multiplied is no array of rank 0 any more.
    return np.asarray(numbers, entry.dtype)


def sizes_of(shape: Sequence[int], draw: int = 0) -> tuple[int, ...]:
    """Returns the shape of a random value: unknown dimensions (below 0) get a size that depends on their position."""
    return tuple((_OTHER if axis else _LEADING)[draw % DRAWS] if dim < 0 else dim for axis, dim in enumerate(shape))


_PASS_FIRST = (
    "BroadcastTo",
    "Cast",
    "CheckNumerics",
    "EnsureShape",
    "ExpandDims",
    "GatherV2",
    "Identity",
    "Pad",
    "PreventGradient",
    "Reshape",
    "Reverse",
    "ReverseV2",
    "Slice",
    "Snapshot",
    "Split",
    "SplitV",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unpack",
)

# Op -> the operands whose elements become the results'; `None` for all.
_THROUGH: Mapping[str, Sequence[int] | None] = {
    **dict.fromkeys(_PASS_FIRST, (0,)),
    "ConcatV2": None,
    "Pack": None,
    "Select": (1, 2),
    "SelectV2": (1, 2),
}

# Ops whose results are their operands, in order.
_POSITIONAL = frozenset(
    ("IdentityN", "tf_executor.Enter", "tf_executor.Exit", "tf_executor.LoopCond", "tf_executor.NextIteration.Sink")
)

_MERGED = frozenset(("tf_executor.Merge", "tf_executor.Switch", "tf_executor._SwitchN"))


class Flow:
    """The paths of values through a module's functions.

    Args:
        module: The module.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._functions = {op.sym_name: op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks}
        self._calls: dict[str, list[Operation]] = {}
        for function in self._functions.values():
            for op in control_flow.all_ops(function):
                for name in control_flow.callees(op):
                    self._calls.setdefault(name, []).append(op)

    def uses(self, value: Value) -> Iterator[Use]:
        """Yields the operands of ops without bodies that a value reaches, directly or through others."""
        waiting, seen = [value], {value}
        while waiting:
            for use in waiting.pop().uses:
                if not use.operation.regions:
                    yield use
                for following in self._following(use):
                    if following not in seen:
                        seen.add(following)
                        waiting.append(following)

    def _following(self, use: Use) -> Sequence[Value]:
        """Returns the values that have the elements of an operand."""
        op, name = use.operation, use.operation.name.removeprefix("tf.")
        if name in _POSITIONAL:
            return _sink(op) if name.endswith("Sink") else op.results[use.index : use.index + 1]
        if name in _MERGED:
            return op.results[:1] if name.endswith("Merge") else op.results
        if name in _THROUGH:
            through = _THROUGH[name]
            return op.results if through is None or use.index in through else ()
        if name in ("tf_executor.yield", "tf_executor.fetch", "Yield"):
            return _outer(op, use.index)
        if name == "func.return":
            return self._returned(op, use.index)
        return [*self._arguments(op, use.index), *_bodies(op, use.index)]

    def _arguments(self, op: Operation, index: int) -> Iterator[Value]:
        """Yields the arguments of functions that an operand becomes."""
        for name in control_flow.callees(op):
            function = self._functions.get(name)
            if function is not None:
                arguments = function.body.block.args
                place = index - (len(op.operands) - len(arguments))  # Conditions precede the arguments.
                if 0 <= place < len(arguments):
                    yield arguments[place]

    def _returned(self, op: Operation, index: int) -> Sequence[Value]:
        function = op.parent_op()
        calls = self._calls.get(function.sym_name, ()) if isinstance(function, FuncOp) else ()
        return [call.results[index] for call in calls if index < len(call.results)]


def _sink(op: Operation) -> Sequence[Value]:
    """Returns the value of a loop's Source, which its Sink passes to the next iteration."""
    token = op.operands[0]
    return token.owner.results[:1] if isinstance(token.owner, Operation) else ()


def _outer(op: Operation, index: int) -> Sequence[Value]:
    """Returns the result of the enclosing op that a terminator's operand becomes, and the arguments of a loop."""
    parent = op.parent_op()
    if parent is None:
        return ()
    found: list[Value] = list(parent.results[index : index + 1])
    if parent.name == "tf.WhileRegion":
        found += [region.block.args[index] for region in parent.regions if index < len(region.block.args)]
    return found


def _bodies(op: Operation, index: int) -> Iterator[Value]:
    if op.name == "tf.WhileRegion":
        for region in op.regions:
            if index < len(region.block.args):
                yield region.block.args[index]


Watched = Mapping[Operation, Mapping[int, tuple[int, ...]]]
"""Op -> operand -> the inputs that reach it."""


@dataclass(slots=True)
class Probe(Executor):
    """Finds the values that ops accept for the inputs that reach them.

    Attributes:
        watched: The ops.
        domains: Input -> the values that suit it, from the ops that ran.
    """

    watched: Watched = field(default_factory=dict)
    domains: dict[int, Domain] = field(default_factory=dict)

    def execute(self, op: Operation, inputs: Results) -> Results:
        for index, reached in self.watched.get(op, {}).items():
            rule = RULES[op.name.removeprefix("tf.")][index]
            try:
                domain = rule(call_of(op, tuple(value_behind(op, value) for value in inputs)), index)
            except ConversionError:
                continue  # The op itself will report the error.
            for number in reached if domain is not None else ():
                assert domain is not None
                self.domains[number] = narrower(self.domains.get(number), domain)
        return Executor.execute(self, op, inputs)


# Maximum number of times that inputs are drawn again with the domains of the last run.
_TRIES = 6


class Run(NamedTuple):
    """Inputs, and the reference's outputs for them."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]


class Refused(NamedTuple):
    """Inputs that the reference can't be run on."""

    problem: ConversionError


def drawn_runs(module: ModuleOp, function: FuncOp, names: Sequence[str]) -> Iterator[Run | Refused]:
    """Yields the reference's runs on random inputs that suit a function; none if one of them is a handle.

    Args:
        module: The imported model.
        function: The function.
        names: The names of its inputs.
    """
    kinds = [each.type for each in function.body.block.args]
    watched = _watched(module, function)
    for draw, values in enumerate(draws(kinds, names)):
        yield _run(module, function, values, names, watched, draw)


def drawn(module: ModuleOp, function: FuncOp, names: Sequence[str]) -> Iterator[Sequence[Array]]:
    """Yields random inputs that suit a function, like `drawn_runs`, but runs the reference only if necessary.

    Args:
        module: The imported model.
        function: The function.
        names: The names of its inputs.
    """
    if _watched(module, function) and not Executor(module).problems(function.sym_name):
        yield from (found.inputs for found in drawn_runs(module, function, names) if isinstance(found, Run))
    else:
        yield from draws([each.type for each in function.body.block.args], names)


def runs_in_ranges(
    module: ModuleOp, function: FuncOp, names: Sequence[str], ranges: Mapping[int, tuple[float, float]]
) -> Iterator[Run | Refused]:
    """Yields the reference's runs on random inputs that suit a function, with floats within ranges.

    Args:
        module: The imported model.
        function: The function.
        names: The names of its inputs.
        ranges: The ranges, by input number.
    """
    for draw, values in enumerate(drawn(module, function, names)):
        fitting = list(values)
        for place, (low, high) in ranges.items():
            if fitting[place].dtype.kind == "f":
                random = np.random.default_rng([zlib.crc32(names[place].encode()), draw])
                numbers = np.asarray(random.uniform(low, high, fitting[place].shape))
                fitting[place] = numbers.astype(fitting[place].dtype)
        yield run(module, function, fitting)


def run(module: ModuleOp, function: FuncOp, values: Sequence[Array]) -> Run | Refused:
    """Returns the reference's run on given inputs.

    Raises:
        ConversionError: The reference can't be run at all.
    """
    try:
        return Run(values, Executor(module).run(function.sym_name, values))
    except ConversionError as problem:
        if problem.code not in REFUSED_INPUT:
            raise
        return Refused(problem)


def _run(
    module: ModuleOp,
    function: FuncOp,
    values: list[Array],
    names: Sequence[str],
    watched: dict[Operation, dict[int, tuple[int, ...]]],
    draw: int,
) -> Run | Refused:
    """Returns a run on random inputs; draws them again within the domains of the ops that they reach."""
    first, known = values, dict[int, Domain]()
    for _ in range(_TRIES):
        probe = Probe(module, watched=watched)
        found: Run | Refused
        try:
            found = Run(values, probe.run(function.sym_name, values))
        except ConversionError as problem:
            if problem.code not in REFUSED_INPUT:
                raise
            found = Refused(problem)
        if {**known, **probe.domains} == known:
            return found
        known |= probe.domains
        values = [
            _redrawn(each, name, known.get(number), draw)
            for number, (each, name) in enumerate(zip(first, names, strict=True))
        ]
    return run(module, function, values)


def _redrawn(value: Array, name: str, domain: Domain | None, draw: int) -> Array:
    if domain is None:
        return value
    return domain.draw(value.shape, value.dtype, np.random.default_rng([zlib.crc32(name.encode()), draw]))


def _watched(module: ModuleOp, function: FuncOp) -> dict[Operation, dict[int, tuple[int, ...]]]:
    """Returns the ops with restricted operands that a function's inputs reach."""
    flow, found = Flow(module), dict[Operation, dict[int, tuple[int, ...]]]()
    for number, argument in enumerate(function.body.block.args):
        if not fits(argument.type):
            continue
        for use in flow.uses(argument):
            if use.index in RULES.get(use.operation.name.removeprefix("tf."), {}):
                reached = found.setdefault(use.operation, {})
                reached[use.index] = (*reached.get(use.index, ()), number)
    return found
