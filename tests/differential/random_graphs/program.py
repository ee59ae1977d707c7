"""Programs of TensorFlow ops: each op is run when it is added, and the whole becomes a graph with inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tests.differential.random_graphs.values import ALL, Array, draw_array, draw_shape, draw_type
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

_LARGEST = 4096
INPUT, CONSTANT, STEP = "input", "constant", "step"


class RejectedError(Exception):
    """An op that TensorFlow refuses, or whose results are too large."""


class Ref(NamedTuple):
    """A value of the program, by its place."""

    place: int


class Step(NamedTuple):
    """A call of an op.

    Attributes:
        op: Its name.
        arguments: Its operands (`Ref`, or lists of them) and attributes, by TensorFlow's names.
        results: The places of its results.
    """

    op: str
    arguments: dict[str, Any]
    results: tuple[int, ...]

    def operands(self) -> list[int]:
        """Returns the places of its operands."""
        found: list[int] = []
        for value in self.arguments.values():
            if isinstance(value, Ref):
                found.append(value.place)
            elif isinstance(value, list):
                found += [item.place for item in value if isinstance(item, Ref)]
        return found


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its values.

    Attributes:
        values: All values.
        origins: Where each comes from: `INPUT`, `CONSTANT` or `STEP`.
        open: The dimensions of inputs that the graph leaves open, by place; `None` for an unknown rank.
        steps: The calls, in order.
        outputs: The places of the outputs.
    """

    values: tuple[Array, ...]
    origins: tuple[str, ...]
    open: dict[int, frozenset[int] | None]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def needed(self, *, without: frozenset[int] = frozenset()) -> tuple[Step, ...]:
        """Returns the steps that the outputs need if some values are given."""
        wanted, kept = set(self.outputs) - without, []
        for step in reversed(self.steps):
            if wanted.intersection(step.results):
                kept.append(step)
                wanted.update(place for place in step.operands() if place not in without)
        return tuple(reversed(kept))

    def cut(self, given: Iterable[int], outputs: Sequence[int]) -> Program:
        """Returns a smaller program: some values are inputs, and only some are outputs."""
        places = set(given)
        origins = tuple(INPUT if at in places else origin for at, origin in enumerate(self.origins))
        smaller = replace(self, origins=origins, outputs=tuple(outputs))
        return replace(smaller, steps=smaller.needed(without=frozenset(places)))

    def inputs(self) -> list[int]:
        """Returns the places of the inputs that are used."""
        used = {place for step in self.steps for place in step.operands()} | set(self.outputs)
        return [place for place in sorted(used) if self.origins[place] == INPUT]

    def run(self, tf: ModuleType, disturb: Callable[[Any], Any] = lambda value: value) -> list[Array]:
        """Returns the outputs as TensorFlow computes them op by op; each result is taken through `disturb`."""
        known: dict[int, Any] = {}

        def value(place: int) -> Any:
            return known[place] if place in known else tf.constant(self.values[place])

        for step in self.steps:
            results = call(tf, step.op, step.arguments, value)
            known.update(zip(step.results, map(disturb, results), strict=True))
        return [np.asarray(value(place).numpy()) for place in self.outputs]

    def graph(self, tf: ModuleType) -> pb.GraphDef:
        """Returns the graph, with inputs `in0`, ... and outputs `out0`, ..."""
        with tf.Graph().as_default() as graph:
            made: dict[int, Any] = {}
            for number, place in enumerate(self.inputs()):
                array, unknown = self.values[place], self.open.get(place, frozenset())
                shape = (
                    None
                    if unknown is None
                    else [None if at in unknown else size for at, size in enumerate(array.shape)]
                )
                made[place] = tf.compat.v1.placeholder(tf.as_dtype(array.dtype), shape, f"in{number}")

            def value(place: int) -> Any:
                if place not in made:
                    made[place] = tf.constant(self.values[place])
                return made[place]

            for step in self.steps:
                made.update(zip(step.results, call(tf, step.op, step.arguments, value), strict=True))
            for number, place in enumerate(self.outputs):
                tf.identity(value(place), name=f"out{number}")
            return pb.GraphDef.FromString(graph.as_graph_def().SerializeToString())

    def __str__(self) -> str:
        lines = []
        for place in sorted({place for step in self.steps for place in step.operands()} | set(self.outputs)):
            array = self.values[place]
            origin = self.origins[place]
            if origin != STEP:
                unknown = f", open {sorted(self.open[place] or ())}" if self.open.get(place, 1) != 1 else ""
                text = np.array2string(array.ravel()[:24], separator=",", max_line_width=1000)
                lines.append(f"  %{place} = {origin} {array.dtype}{list(array.shape)}{unknown} {text}")
        lines += [
            f"  {', '.join(f'%{place}' for place in step.results)} = {step.op} {_shown_arguments(step.arguments)}"
            for step in self.steps
        ]
        return "\n".join([*lines, f"  outputs {', '.join(f'%{place}' for place in self.outputs)}"])


def _shown_arguments(arguments: dict[str, Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, Ref):
            return f"%{value.place}"
        return f"[{', '.join(map(one, value))}]" if isinstance(value, list) else repr(value)

    return " ".join(f"{name}={one(value)}" for name, value in arguments.items())


def call(tf: ModuleType, op: str, arguments: dict[str, Any], value: Callable[[int], Any]) -> list[Any]:
    """Calls an op, eagerly or in a graph; returns its results as a list."""

    def resolved(argument: Any) -> Any:
        if isinstance(argument, Ref):
            return value(argument.place)
        return [resolved(item) for item in argument] if isinstance(argument, list) else argument

    results = getattr(tf.raw_ops, op)(**{name: resolved(argument) for name, argument in arguments.items()})
    flat: list[Any] = []
    for result in results if isinstance(results, list | tuple) else [results]:
        flat += result if isinstance(result, list | tuple) else [result]
    return flat


@dataclass(slots=True)
class Builder:
    """Adds ops to a program.

    Attributes:
        tf: TensorFlow.
        random: Draws everything.
    """

    tf: ModuleType
    random: Random
    values: list[Array] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    open: dict[int, frozenset[int] | None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)

    def leaf(self, array: Array, constant: float = 0.3) -> Ref:
        """Adds a value that is given: a constant with some likelihood, an input otherwise."""
        self.values.append(array)
        is_constant = self.random.random() < constant
        self.origins.append(CONSTANT if is_constant else INPUT)
        place = len(self.values) - 1
        kind = self.random.random()
        if not is_constant and kind < 0.4:
            self.open[place] = frozenset(at for at in range(array.ndim) if self.random.random() < 0.5)
            if kind < 0.03:
                self.open[place] = None
        return Ref(place)

    def fixed(self, array: Any, dtype: str = "int32") -> Ref:
        """Adds an operand that says how an op works: a constant, mostly."""
        return self.leaf(np.asarray(array, dtype), 0.92)

    def array(self, ref: Ref) -> Array:
        """Returns a value's array."""
        return self.values[ref.place]

    def type_of(self, ref: Ref) -> str:
        """Returns a value's element type."""
        return str(self.values[ref.place].dtype)

    def pick(
        self,
        types: Sequence[str] = ALL,
        rank: int | Sequence[int] | None = None,
        suits: Callable[[Array], bool] = lambda array: True,
        shape: Sequence[int] | None = None,
    ) -> Ref:
        """Returns a value that suits: one that is there, or a new one.

        Args:
            types: The element types.
            rank: The rank, or the ranks.
            suits: What else is asked of one that is there.
            shape: The shape of a new one.
        """
        ranks = range(7) if rank is None else [rank] if isinstance(rank, int) else rank
        if self.random.random() < 0.65:
            found = [
                place
                for place, array in enumerate(self.values)
                if place not in self.hidden
                and str(array.dtype) in types
                and array.ndim in ranks
                and suits(array)
                and (shape is None or array.shape == tuple(shape))
                and self.origins[place] != CONSTANT
            ]
            if found:
                return Ref(self.random.choice(found[-6:]))
        size = draw_shape(self.random, None if rank is None else self.random.choice(ranks)) if shape is None else shape
        return self.leaf(draw_array(self.random, draw_type(self.random, types), size))

    def op(self, name: str, **arguments: Any) -> list[Ref]:
        """Adds a call; returns its results.

        Raises:
            RejectedError: TensorFlow refuses it, or its results are too large.
        """
        tf = self.tf
        try:
            results = call(tf, name, arguments, lambda place: tf.constant(self.values[place]))
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as problem:
            raise RejectedError(str(problem)) from problem
        arrays = [np.asarray(result.numpy()) for result in results]
        if any(
            array.size > _LARGEST or array.ndim > 8 or str(array.dtype) not in (*ALL, "complex128") for array in arrays
        ):
            raise RejectedError("the results are too large, or of no type that is compared")
        places = tuple(range(len(self.values), len(self.values) + len(arrays)))
        self.values += arrays
        self.origins += [STEP] * len(arrays)
        self.steps.append(Step(name, arguments, places))
        if name == "FusedBatchNormV3":
            self.hidden.update(places[1:])  # What they hold is not defined unless it is trained.
        return [Ref(place) for place in places]

    def program(self) -> Program:
        """Returns the program, with some of its results as outputs."""
        made = [place for step in self.steps for place in step.results]
        used = {place for step in self.steps for place in step.operands()}
        outputs = [place for place in made if place not in used or self.random.random() < 0.2]
        outputs = [place for place in outputs if place not in self.hidden]
        whole = Program(tuple(self.values), tuple(self.origins), self.open, tuple(self.steps), tuple(outputs[-4:]))
        return replace(whole, steps=whole.needed())
