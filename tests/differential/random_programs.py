"""Random structured programs in V1 control flow, as TensorFlow's own front end builds them.

`tf.cond` and `tf.while_loop` nest in each other, with control dependencies into, inside of and out of them; Switches
and Merges written by hand stand between. Programs with effects write down, in a variable, the order in which they come:
each effect has a control input from the one before, wherever that was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.control_flow import control_flow_v1

SCALAR, VECTOR, BOOL = "s", "v", "b"
_SHAPES = {SCALAR: (), VECTOR: (2,), BOOL: ()}
_MAX_DEPTH = 3

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor and its kind: an integer, two integers, or a truth value."""

    tensor: Any
    kind: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a piece of program.

    Attributes:
        values: The values in sight; its results are added.
        depth: How many conditionals and loops are around it.
    """

    values: list[Value]
    depth: int = 0

    def inner(self, *more: Value) -> Scope:
        """Returns the scope of a branch or a loop's body."""
        return Scope([*self.values, *more], self.depth + 1)


@dataclass(frozen=True, slots=True)
class Program:
    """A program, built.

    Attributes:
        graph: The GraphDef.
        inputs: Its placeholders' names with values for them.
        outputs: The fetches.
        log: The tensor that holds the order of its effects; empty if it has none.
    """

    graph: Any
    inputs: dict[str, list[Array]]
    outputs: list[str]
    log: str = ""

    @property
    def fetches(self) -> list[str]:
        """All that is to be compared."""
        return [*self.outputs, *([self.log] if self.log else [])]

    def feeds(self) -> list[dict[str, Array]]:
        """Returns the inputs of each run."""
        count = len(next(iter(self.inputs.values())))
        return [{name: values[run] for name, values in self.inputs.items()} for run in range(count)]


@dataclass(slots=True)
class Builder:
    """Adds random statements to the default graph.

    Attributes:
        tf: TensorFlow, with control flow V1.
        random: Draws everything.
        variable: The variable that effects write to; `None` if there are to be none.
        token: The control input of the next effect.
    """

    tf: ModuleType
    random: Random
    variable: Any = None
    token: Any = None
    _count: int = field(default=0)

    def run(self, scope: Scope, statements: int) -> None:
        """Adds statements."""
        nesting = [(self.conditional, 4), (self.loop, 2)] if scope.depth < _MAX_DEPTH else []
        kinds: list[tuple[Callable[[Scope], None], int]] = [
            (self.computation, 9),
            (self.comparison, 4),
            (self.by_hand, 2),
            (self.three_ways, 1),
            (self.numbered, 1),
            (self.waiting, 2),
            *nesting,
            *([(self.effect, 4)] if self.variable is not None else []),
        ]
        methods, weights = zip(*kinds, strict=True)
        for _ in range(statements):
            self.random.choices(methods, weights)[0](scope)

    def pick(self, scope: Scope, kind: str) -> Any:
        """Returns a value of a kind, newer ones more often; a constant if no value is of that kind."""
        fitting = [value.tensor for value in scope.values if value.kind == kind]
        if not fitting or self.random.random() < 0.1:
            return self.constant(kind)
        return self.random.choice(fitting[-6:] if self.random.random() < 0.7 else fitting)

    def constant(self, kind: str) -> Any:
        """Returns a constant."""
        if kind == BOOL:
            return self.tf.constant(self.random.random() < 0.5)
        numbers = [self.random.randint(-3, 3) for _ in range(2)]
        return self.tf.constant(numbers if kind == VECTOR else numbers[0])

    def computation(self, scope: Scope) -> None:
        """Adds arithmetic."""
        tf, kind = self.tf, self.random.choice((SCALAR, VECTOR))
        function = self.random.choice((tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.negative))
        count = 1 if function is tf.negative else 2
        operands = [self.pick(scope, kind), self.pick(scope, self.random.choice((SCALAR, kind)))][:count]
        if kind == VECTOR and self.random.random() < 0.2:
            function, operands, kind = tf.reduce_sum, operands[:1], SCALAR
        scope.values.append(Value(function(*operands), kind))

    def comparison(self, scope: Scope) -> None:
        """Adds a truth value."""
        tf = self.tf
        if self.random.random() < 0.3:
            function: Any = self.random.choice((tf.logical_and, tf.logical_or))
            kind = BOOL
        else:
            function, kind = self.random.choice((tf.less, tf.equal, tf.greater_equal)), SCALAR
        scope.values.append(Value(function(self.pick(scope, kind), self.pick(scope, kind)), BOOL))

    def waiting(self, scope: Scope) -> None:
        """Adds a value that waits for another one."""
        kind = self.random.choice((SCALAR, VECTOR, BOOL))
        before = [self.pick(scope, self.random.choice((SCALAR, VECTOR)))]
        with self.tf.control_dependencies(before):
            scope.values.append(Value(self.tf.identity(self.pick(scope, kind)), kind))

    def effect(self, scope: Scope) -> None:
        """Adds an effect that waits for the one before, and that the next one waits for."""
        tf = self.tf
        with tf.control_dependencies([self.token]):
            before = self.variable.read_value()
            with tf.control_dependencies([before]):
                self._count += 1
                after = before * 7 + self._count + self.pick(scope, SCALAR)
                done = self.variable.assign(after, read_value=False)
        with tf.control_dependencies([done]):
            self.token = tf.identity(self.token)

    def conditional(self, scope: Scope) -> None:
        """Adds a `tf.cond`, perhaps two by one predicate."""
        predicate = self.pick(scope, BOOL)
        for _ in range(self.random.choice((1, 1, 2))):
            kinds = self._kinds()
            if self.random.random() < 0.3:
                with self.tf.control_dependencies([self.pick(scope, SCALAR)]):
                    self._cond(scope, predicate, kinds)
            else:
                self._cond(scope, predicate, kinds)

    def _kinds(self) -> list[str]:
        return [self.random.choice((SCALAR, VECTOR, BOOL)) for _ in range(self.random.randint(1, 3))]

    def _cond(self, scope: Scope, predicate: Any, kinds: Sequence[str]) -> None:
        before = self.token

        def branch() -> list[Any]:
            self.token = before
            inner = scope.inner()
            self.run(inner, self.random.randint(0, 4))
            results = [self.pick(inner, kind) for kind in kinds]
            return results if before is None else [*results, self.token]

        results = self.tf.compat.v1.cond(predicate, branch, branch, strict=True)
        if before is not None:
            self.token = results.pop()
        scope.values.extend(map(Value, results, kinds))

    def loop(self, scope: Scope) -> None:
        """Adds a `tf.while_loop` of a few iterations, which ends early perhaps."""
        tf, kinds, before = self.tf, self._kinds(), self.token
        limit, stops = self.random.randint(0, 4), self.random.random() < 0.3
        variables = [tf.constant(0), *([] if before is None else [before]), *(self.pick(scope, kind) for kind in kinds)]
        own = 1 if before is None else 2

        def condition(*values: Any) -> Any:
            inner = scope.inner(*map(Value, values[own:], kinds))
            again = tf.less(values[0], limit)
            return tf.logical_and(again, self.pick(inner, BOOL)) if stops else again

        def body(*values: Any) -> list[Any]:
            if before is not None:
                self.token = values[1]
            inner = scope.inner(Value(values[0], SCALAR), *map(Value, values[own:], kinds))
            self.run(inner, self.random.randint(0, 5))
            following = [self.pick(inner, kind) for kind in kinds]
            return [values[0] + 1, *([] if before is None else [self.token]), *following]

        results = tf.compat.v1.while_loop(
            condition, body, variables, shape_invariants=[tf.TensorShape(each.shape) for each in variables]
        )
        if before is not None:
            self.token = results[1]
        scope.values.extend(map(Value, results[own:], kinds))

    def by_hand(self, scope: Scope) -> None:
        """Adds a Switch and a Merge, its inputs in either order, and uses the Merge's index."""
        raw, kind = self.tf.raw_ops, self.random.choice((SCALAR, VECTOR))
        no, yes = raw.Switch(data=self.pick(scope, kind), pred=self.pick(scope, BOOL))
        inputs = [no, self.tf.negative(yes) if self.random.random() < 0.7 else yes]
        self.random.shuffle(inputs)
        self._merge(scope, inputs, kind)

    def three_ways(self, scope: Scope) -> None:
        """Adds a Merge of three inputs: a Switch after a Switch."""
        raw, kind = self.tf.raw_ops, self.random.choice((SCALAR, VECTOR))
        no, yes = raw.Switch(data=self.pick(scope, kind), pred=self.pick(scope, BOOL))
        yes_no, yes_yes = raw.Switch(data=yes, pred=self.pick(scope, BOOL))
        inputs = [no, self.tf.negative(yes_no), yes_yes + 1]
        self.random.shuffle(inputs)
        self._merge(scope, inputs, kind)

    def numbered(self, scope: Scope) -> None:
        """Adds a `_SwitchN` with a Merge of all its outputs."""
        tf, count = self.tf, self.random.randint(1, 3)
        graph = tf.compat.v1.get_default_graph()
        attributes = {"num_outs": tf.compat.v1.AttrValue(i=count), "T": tf.compat.v1.AttrValue(type=3)}
        data, index = self.pick(scope, VECTOR), self.pick(scope, SCALAR)
        switch = graph.create_op("_SwitchN", [data, index], [tf.int32] * count, attrs=attributes, name="SwitchN")
        for output in switch.outputs:
            output.set_shape((2,))
        self._merge(scope, [output * (number + 2) for number, output in enumerate(switch.outputs)], VECTOR)

    def _merge(self, scope: Scope, inputs: Sequence[Any], kind: str) -> None:
        merged, index = self.tf.raw_ops.Merge(inputs=list(inputs))
        merged.set_shape(_SHAPES[kind])
        scope.values.append(Value(merged, kind))
        if self.random.random() < 0.5:
            scope.values.append(Value(index, SCALAR))


def random_program(tf: ModuleType, random: Random, *, statements: int = 10, effects: bool = False) -> Program:
    """Returns a random program.

    Args:
        tf: TensorFlow.
        random: Draws everything.
        statements: How many statements it has outside of branches and loops.
        effects: Whether it has effects, the order of which it records.
    """
    tf1 = tf.compat.v1
    with control_flow_v1(tf), tf.Graph().as_default() as graph:
        builder, scope, inputs = Builder(tf, random), Scope([]), {}
        for number, kind in enumerate((SCALAR, VECTOR, BOOL, BOOL)):
            tensor = tf1.placeholder(tf.bool if kind == BOOL else tf.int32, _SHAPES[kind], name=f"in{number}")
            scope.values.append(Value(tensor, kind))
            inputs[tensor.name] = [_draw(random, kind) for _ in range(3)]
        if effects:
            builder.variable = tf1.get_variable("log", initializer=tf.constant(0), use_resource=True)
            with tf.control_dependencies([builder.variable.assign(1, read_value=False)]):
                builder.token = tf.constant(0)
        builder.run(scope, statements)
        made = scope.values[len(inputs) :]
        chosen = random.sample(made, min(3, len(made))) or scope.values[:1]
        program = Program(None, inputs, [_named(tf, value.tensor) for value in chosen])
        if effects:
            with tf.control_dependencies([builder.token]):
                program = replace(program, log=_named(tf, builder.variable.read_value()))
        return replace(program, graph=graph.as_graph_def())


def _named(tf: ModuleType, tensor: Any) -> str:
    name: str = tf.identity(tensor).name
    return name


def _draw(random: Random, kind: str) -> Array:
    if kind == BOOL:
        return np.array(random.random() < 0.5)
    numbers = [random.randint(-5, 5) for _ in range(2)]
    return np.array(numbers if kind == VECTOR else numbers[0], np.int32)
