"""Random inputs that suit a model: valid indices, partitions, splits, axes and sizes where it needs them.

The ops that an input reaches, through casts, reshapes, calls and bodies, determine its kind; a run of the model shows
which values they accept.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tfconvert.converter.executor import control_flow
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.executor.litert_ops import OUTSIDE
from tfconvert.converter.executor.resources import value_behind
from tfconvert.converter.validation.domains import (
    BOXES,
    RULES,
    SCORES,
    SUPPRESSIONS,
    Domain,
    fits,
    narrower,
    suppresses,
)
from tfconvert.ops.call import Array, Results, call_of
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_traits import SAME_ELEMENTS
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Use, Value
from tfconvert.schema.tflite import operators

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


def draws(kinds: Sequence[Attribute], names: Sequence[str], seed: int = 0, scale: int = 1) -> Iterator[list[Array]]:
    """Yields values for a function's arguments, several times; once without arguments, never if there is a handle.

    Args:
        kinds: The arguments' types.
        names: Names that distinguish arguments of the same type.
        seed: The seed of the run.
        scale: What dynamic sizes other than the batch are multiplied with.
    """
    for draw in range(DRAWS if kinds else 1):
        values = [value_of(kind, name, draw, seed, scale) for kind, name in zip(kinds, names, strict=True)]
        made = [value for value in values if value is not None]
        if len(made) == len(values):
            yield made


def value_of(tensor_type: Attribute, name: str, draw: int, seed: int = 0, scale: int = 1) -> Array | None:
    """Returns a random value, the same for the same arguments.

    Args:
        tensor_type: The type. The size of unknown dimensions depends on their position; an unknown rank is a scalar.
        name: A name that distinguishes values of the same type.
        draw: 0 draws small numbers, as networks expect; 1 larger ones; 2 includes zeros and equal values.
        seed: The seed of the run.
        scale: What dynamic sizes other than the batch are multiplied with.

    Returns:
        The value, or `None` for a handle of a resource or a variant.
    """
    element = types.element_of(tensor_type)
    if isinstance(element, quant.UniformType):
        low, high = element.data.range
        drawn = np.random.default_rng([zlib.crc32(name.encode()), draw, seed])
        shape = sizes_of(types.shape_of(tensor_type) or (), draw, scale)
        return np.asarray(drawn.integers(low, high + 1, shape), types.numpy_dtype(element.storage))
    entry = types.from_mlir(element)
    if entry is None or entry.name in ("resource", "variant"):
        return None
    shape = sizes_of(types.shape_of(tensor_type) or (), draw, scale)
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


def sizes_of(shape: Sequence[int], draw: int = 0, scale: int = 1) -> tuple[int, ...]:
    """Returns the shape of a random value: unknown dimensions (below 0) get a size that depends on their position.

    Args:
        shape: The shape.
        draw: The kind of values.
        scale: What these sizes are multiplied with, except for the first where it is a batch: where others are unknown.
    """
    unknown = [axis for axis, dim in enumerate(shape) if dim < 0]
    scaled = unknown[1:] if unknown[:1] == [0] and len(unknown) > 1 else unknown
    return tuple(
        (_OTHER if axis else _LEADING)[draw % DRAWS] * (scale if axis in scaled else 1) if dim < 0 else dim
        for axis, dim in enumerate(shape)
    )


# Op -> the operands whose elements become the results'; `None` for all.
_THROUGH: Mapping[str, Sequence[int] | None] = {
    **{op: (index,) for op, index in operators.moving_ops().items()},
    **dict.fromkeys(SAME_ELEMENTS | {"Cast", "CheckNumerics", "ClipByValue", "Gather", "Pad", "Reverse"}, (0,)),
    "ConcatV2": None,
    **dict.fromkeys(("Maximum", "Minimum"), (0, 1)),
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
    """Finds the values that ops accept for the inputs that reach them."""

    watched: Watched = field(default_factory=dict)  # The ops.
    domains: dict[int, Domain] = field(default_factory=dict)  # Input -> the values that suit it, from the ops that ran.

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


# Maximum scale of dynamic sizes, and maximum number of elements of an input of such sizes.
_MAX_SCALE = 1 << 14
_MAX_ELEMENTS = 1 << 20


class ReferenceRun(NamedTuple):
    """Inputs, and the reference's outputs for them."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]


class Refused(NamedTuple):
    """Inputs that the reference can't be run on."""

    problem: ConversionError


Answer = Callable[[Sequence[Sequence[Array]]], Sequence[ReferenceRun] | Refused]
"""Calls a function in turn, first in the model's initial state; returns the run of each call."""


class Drawing:
    """Draws random inputs that suit a function, with the results that they have.

    Dynamic sizes are doubled until some inputs are accepted: a window may need many samples.

    Args:
        module: The imported model.
        function: The function.
        names: The names of its inputs.
        answer: Computes the results; `None` for the reference executor.
        accepted: Returns whether inputs were accepted; by default, if the results could be computed.
    """

    def __init__(
        self,
        module: ModuleOp,
        function: FuncOp,
        names: Sequence[str],
        answer: Answer | None = None,
        accepted: Callable[[], bool] | None = None,
    ) -> None:
        self._module, self._function, self._names = module, function, names
        self._answer, self._accepted = answer, accepted
        self._kinds = [each.type for each in function.body.block.args]
        can_run = not Executor(module).problems(function.sym_name)
        self._watched = _watched(module, function) if can_run else {}
        self._declared = _declared(module, function)
        self._is_smooth = any(
            op.name.removeprefix("tf.") in SUPPRESSIONS or (isinstance(op, FuncOp) and suppresses(op))
            for op in module.walk()
        )

    def runs(self) -> Iterator[ReferenceRun | Refused]:
        """Yields runs, and inputs that were refused; none if an input is a handle."""
        scale, done = 1, False
        while True:
            for found in self._scaled(scale):
                yield found
                done = done or isinstance(found, ReferenceRun)
            scale *= 2
            if (done if self._accepted is None else self._accepted()) or not self._can_grow(scale):
                return

    def values(self) -> Iterator[Sequence[Array]]:
        """Yields inputs; computes results only where these decide which inputs suit."""
        if self._watched or self._answer is not None or self._can_grow(2):
            yield from (found.inputs for found in self.runs() if isinstance(found, ReferenceRun))
        else:
            yield from self._draws(1)

    def _can_grow(self, scale: int) -> bool:
        shapes = [types.shape_of(each) or () for each in self._kinds]
        sizes = [math.prod(sizes_of(shape, 0, scale)) for shape in shapes]
        is_dynamic = any(dim < 0 for shape in shapes for dim in shape)
        return is_dynamic and scale <= _MAX_SCALE and max(sizes) <= _MAX_ELEMENTS

    def _draws(self, scale: int) -> Iterator[list[Array]]:
        for draw, values in enumerate(draws(self._kinds, self._names, scale=scale)):
            known = list(map(_spread, values, self._names)) if self._is_smooth else values
            yield [
                _redrawn(each, name, self._declared.get(number), draw)
                for number, (each, name) in enumerate(zip(known, self._names, strict=True))
            ]

    def _scaled(self, scale: int) -> Iterator[ReferenceRun | Refused]:
        for draw, values in enumerate(self._draws(scale)):
            found: ReferenceRun | Refused = ReferenceRun(values, ())
            if self._watched or self._answer is None:
                found = _run(self._module, self._function, values, self._names, self._watched, draw)
            if self._answer is not None and isinstance(found, ReferenceRun):
                answers = self._answer([found.inputs])
                found = answers if isinstance(answers, Refused) else answers[0]
            yield found


def _spread(value: Array, name: str) -> Array:
    """Returns floats without equal ones: the order of equal scores would decide what is chosen by them."""
    if value.dtype.kind != "f":
        return value
    random = np.random.default_rng([zlib.crc32(name.encode()), value.size])
    return np.asarray(value + random.uniform(-0.25, 0.25, value.shape), value.dtype)


def runs_in_ranges(
    drawing: Drawing,
    run: Callable[[Sequence[Array]], ReferenceRun | Refused],
    names: Sequence[str],
    ranges: Mapping[int, tuple[float, float]],
) -> Iterator[ReferenceRun | Refused]:
    """Yields runs on random inputs that suit a function, with floats within ranges.

    Args:
        drawing: Draws inputs.
        run: Computes the results.
        names: The names of the function's inputs.
        ranges: The ranges, by input number.
    """
    for draw, values in enumerate(drawing.values()):
        fitting = list(values)
        for place, (low, high) in ranges.items():
            if fitting[place].dtype.kind == "f":
                random = np.random.default_rng([zlib.crc32(names[place].encode()), draw])
                numbers = np.asarray(random.uniform(low, high, fitting[place].shape))
                fitting[place] = numbers.astype(fitting[place].dtype)
        yield run(fitting)


def run(module: ModuleOp, function: FuncOp, values: Sequence[Array]) -> ReferenceRun | Refused:
    """Returns the reference's run on given inputs.

    Raises:
        ConversionError: The reference can't be run at all.
    """
    try:
        return ReferenceRun(values, Executor(module).run(function.sym_name, values))
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
) -> ReferenceRun | Refused:
    """Returns a run on random inputs; draws them again within the domains of the ops that they reach."""
    first, known = values, dict[int, Domain]()
    for _ in range(_TRIES):
        probe = Probe(module, watched=watched)
        found: ReferenceRun | Refused
        try:
            found = ReferenceRun(values, probe.run(function.sym_name, values))
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


def _declared(module: ModuleOp, function: FuncOp) -> dict[int, Domain]:
    """Returns what suits the inputs that reach functions which declare that they choose boxes by their scores."""
    functions = {op.sym_name: op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks and suppresses(op)}
    found: dict[int, Domain] = {}
    flow = Flow(module) if functions else None
    for number, argument in enumerate(function.body.block.args if flow is not None else ()):
        if not fits(argument.type) or types.numpy_dtype(argument.element).kind != "f":
            continue
        assert flow is not None
        for use in flow.uses(argument):
            for name in control_flow.callees(use.operation):
                if name in functions and use.index < 2:
                    found[number] = narrower(found.get(number), Domain(SCORES if use.index else BOXES))
    return found


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
