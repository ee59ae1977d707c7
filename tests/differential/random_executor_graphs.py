"""Random V1 graphs: Switch and Merge in any arrangement, loops in loops, control edges wherever they are legal.

Every graph ends whatever its values are: a loop goes on only while its own counter is below a constant, and values
passed to the next iteration are dead in the last one. Apart from that anything goes, most of it of a kind that no
front end would write: Merges of unrelated branches, dead control edges, loops that are entered dead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# The element types of all values; all values are scalars.
INT, BOOL = pb.DT_INT32, pb.DT_BOOL

_MAX_LOOP_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph.

    Attributes:
        name: `node` or `node:index`.
        type: `INT` or `BOOL`.
        is_guarded: Whether it is certainly dead in the last iteration of the loop it is in.
    """

    name: str
    type: pb.DataType
    is_guarded: bool = False

    @property
    def node(self) -> str:
        """The node's name."""
        return self.name.partition(":")[0]


@dataclass(slots=True)
class _Scope:
    """The nodes of one frame that may be used from here on."""

    values: list[Value] = field(default_factory=list)
    controls: list[Value] = field(default_factory=list)
    switched: list[tuple[Value, Value]] = field(default_factory=list)
    is_root: bool = True

    def add(self, *values: Value) -> None:
        """Adds values to the scope."""
        self.values += values
        self.controls += values[:1]


def random_graph(random: Random, size: int = 20) -> pb.GraphDef:
    """Returns a random graph without placeholders.

    Args:
        random: Draws everything; hypothesis' own `Random` makes the graph shrink.
        size: About how many nodes are drawn at the top, and how many at most in each loop.
    """
    builder = _Builder(random)
    scope = _Scope()
    for element in (INT, BOOL):
        builder.constant(scope, element)
    builder.fill(scope, random.randint(4, size), 0)
    return builder.graph


class _Builder:
    """Adds random nodes to a graph."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.graph = pb.GraphDef()
        self.graph.versions.producer = 1882

    def fill(self, scope: _Scope, count: int, depth: int) -> None:
        """Adds nodes that use the scope's values."""
        kinds: Sequence[tuple[Callable[..., None], int]] = (
            (self.constant, 2),
            (self.computation, 6),
            (self.switch, 5),
            (self.switch_n, 1),
            (self.merge, 5),
            (self.point, 2),
        )
        methods, weights = zip(*kinds, strict=True)
        for _ in range(count):
            if depth < _MAX_LOOP_DEPTH and self.random.random() < 0.08:
                self.loop(scope, count, depth + 1)
            else:
                self.random.choices(methods, weights)[0](scope)

    def node(
        self,
        op: str,
        inputs: Sequence[Value],
        scope: _Scope | None,
        element: pb.DataType | None = None,
        **attributes: int | str,
    ) -> str:
        """Adds a node and perhaps control edges to it; returns its name."""
        node = self.graph.node.add(name=f"{op.strip('_').lower()}{len(self.graph.node)}", op=op)
        node.input.extend(value.name for value in inputs)
        if scope is not None and scope.controls and self.random.random() < 0.15:
            self._add_controls(node, scope)
        if element is not None:
            node.attr["T"].type = element
        for name, value in attributes.items():
            if isinstance(value, bool):
                node.attr[name].b = value
            elif isinstance(value, int):
                node.attr[name].i = value
            else:
                node.attr[name].s = value.encode()
        return node.name

    def _add_controls(self, node: pb.NodeDef, scope: _Scope) -> list[Value]:
        chosen = {value.node: value for value in self._choose(scope.controls, self.random.randint(1, 2))}
        node.input.extend(f"^{name}" for name in chosen)
        return list(chosen.values())

    def _choose(self, values: Sequence[Value], count: int) -> list[Value]:
        """Draws values, newer ones more often."""
        newest = values[-8:] if self.random.random() < 0.7 else values
        return [self.random.choice(newest) for _ in range(count)]

    def operands(self, scope: _Scope, element: pb.DataType, count: int) -> list[Value]:
        """Draws operands of a type; adds one if it is missing."""
        if all(value.type != element for value in scope.values):
            self.constant(scope, element)
        return self._choose([value for value in scope.values if value.type == element], count)

    def _guarded_by(self, name: str, inputs: Sequence[Value], scope: _Scope) -> bool:
        """Returns whether a node that is dead if any of its inputs is, is guarded: by its data or its control edges."""
        guards = {value.node for value in scope.controls if value.is_guarded}
        node = self.graph.node[-1]
        assert node.name == name
        return any(value.is_guarded for value in inputs) or any(text[1:] in guards for text in node.input)

    def constant(self, scope: _Scope, element: pb.DataType | None = None) -> None:
        """Adds a constant; in a frame an input has to place it there."""
        chosen = self.random.choice((INT, BOOL)) if element is None else element
        name = self._constant(chosen, self.random.randint(-3, 5))
        node = self.graph.node[-1]
        if scope.controls and (not scope.is_root or self.random.random() < 0.15):
            self._add_controls(node, scope)
        scope.add(Value(name, chosen, self._guarded_by(name, (), scope)))

    def _constant(self, element: pb.DataType, value: int, *after: str) -> str:
        """Adds a constant, after other nodes; an odd number is true."""
        name = self.node("Const", (), None)
        node = self.graph.node[-1]
        node.input.extend(f"^{other}" for other in after)
        tensor = node.attr["value"].tensor
        node.attr["dtype"].type = tensor.dtype = element
        tensor.tensor_shape.SetInParent()
        if element == INT:
            tensor.int_val.append(value)
        else:
            tensor.bool_val.append(bool(value % 2))
        return name

    def computation(self, scope: _Scope) -> None:
        """Adds an op that computes something of its operands."""
        op, takes, gives, count = self.random.choice(
            (
                ("Identity", INT, INT, 1),
                ("Identity", BOOL, BOOL, 1),
                ("Neg", INT, INT, 1),
                ("AddV2", INT, INT, 2),
                ("Mul", INT, INT, 2),
                ("Less", INT, BOOL, 2),
                ("LogicalNot", BOOL, BOOL, 1),
                ("LogicalAnd", BOOL, BOOL, 2),
            )
        )
        inputs = self.operands(scope, takes, count)
        name = self.node(op, inputs, scope, None if op.startswith("Logical") else takes)
        scope.add(Value(name, gives, self._guarded_by(name, inputs, scope)))

    def switch(self, scope: _Scope) -> None:
        """Adds a Switch on any predicate."""
        element = self.random.choice((INT, INT, BOOL))
        inputs = [*self.operands(scope, element, 1), *self.operands(scope, BOOL, 1)]
        name = self.node("Switch", inputs, scope, element)
        guarded = self._guarded_by(name, inputs, scope)
        scope.add(Value(name, element, guarded), Value(f"{name}:1", element, guarded))
        scope.switched.append((scope.values[-2], scope.values[-1]))

    def switch_n(self, scope: _Scope) -> None:
        """Adds a _SwitchN on any index, out of range as often as not."""
        inputs = self.operands(scope, INT, 2)
        inputs[1] = self._scalar(inputs[1])
        count = self.random.randint(1, 4)
        name = self.node("_SwitchN", inputs, scope, INT, num_outs=count)
        guarded = self._guarded_by(name, inputs, scope)
        scope.add(Value(name, INT, guarded), *(Value(f"{name}:{at}", INT, guarded) for at in range(1, count)))

    def _scalar(self, value: Value) -> Value:
        """Returns an integer whose shape is recorded: the text of _SwitchN has no place for another type of index."""
        name = self.node("Identity", [value], None, INT)
        self.graph.node[-1].attr["_output_shapes"].list.shape.add()
        return replace(value, name=name)

    def merge(self, scope: _Scope) -> None:
        """Adds a Merge, of a Switch's sides or of values that have nothing to do with each other."""
        if scope.switched and self.random.random() < 0.75:
            inputs = [self._somewhat_later(value, scope) for value in self.random.choice(scope.switched)]
            self.random.shuffle(inputs)
            element = inputs[0].type
        else:
            element = self.random.choice((INT, INT, BOOL))
            inputs = self.operands(scope, element, self.random.choice((1, 2, 2, 2, 3)))
        name = self.node("Merge", inputs, scope, element, N=len(inputs))
        guarded = all(value.is_guarded for value in inputs)
        scope.add(Value(name, element, guarded), Value(f"{name}:1", INT, guarded))

    def _somewhat_later(self, value: Value, scope: _Scope) -> Value:
        """Returns a value, or one that is computed from it alone."""
        if self.random.random() < 0.5:
            return value
        op = self.random.choice(("Identity", "Neg" if value.type == INT else "LogicalNot"))
        name = self.node(op, [value], scope, None if op == "LogicalNot" else value.type)
        scope.add(Value(name, value.type, self._guarded_by(name, [value], scope)))
        return scope.values[-1]

    def point(self, scope: _Scope) -> None:
        """Adds a node that has control edges only, and a constant that shows whether it ran."""
        op = self.random.choice(("NoOp", "ControlTrigger"))
        name = self.node(op, (), None)
        controls = self._add_controls(self.graph.node[-1], scope)
        guarded = op == "NoOp" and any(value.is_guarded for value in controls)
        scope.controls.append(Value(name, INT, guarded))
        scope.add(Value(self._constant(INT, 1, name), INT, guarded))

    def loop(self, outside: _Scope, size: int, depth: int) -> None:
        """Adds a loop with a counter and other variables, whose Exits can be used outside."""
        frame: dict[str, int | str] = {
            "frame_name": f"frame{len(self.graph.node)}",
            "parallel_iterations": self.random.choice((1, 2, 10)),
        }
        counter, limit = self._counter(outside), self._counter(outside)
        variables = [counter, *self._choose(outside.values, self.random.randint(0, 3))]
        entered = [self._enter(value, frame, outside) for value in variables]
        inside = _Scope(is_root=False)
        for value in (limit, *self._choose(outside.values, self.random.randint(0, 2))):
            invariant = self._enter(value, frame, outside, constant=True)
            # A Merge that takes a dead Enter is dead at once, and would run again when a live input comes.
            inside.add(Value(self.node("Identity", [invariant], None, invariant.type), invariant.type))
        bound = inside.values[0]
        merges = []
        for value in entered:
            # Without control edges: which comes first, one of them or a dead Enter, would decide whether it runs.
            name = self.node("Merge", [value, value], None, value.type, N=2)
            merges.append((self.graph.node[-1], Value(name, value.type)))
            inside.add(merges[-1][1], Value(f"{name}:1", INT))
        inside.add(Value(self.node("Identity", [merges[0][1]], None, INT), INT))
        self.fill(inside, self.random.randint(0, size // 4), depth)
        switches = self._condition(inside, bound, [value for _, value in merges])
        exits = [self._exit(value, outside, inside) for value in switches if self.random.random() < 0.8]
        self._body(inside, switches, merges, size, depth)
        outside.add(*(replace(value, is_guarded=counter.is_guarded) for value in exits))

    def _counter(self, outside: _Scope) -> Value:
        """Returns a small number, perhaps a dead one."""
        self.constant(outside, INT)
        return outside.values[-1]

    def _enter(self, value: Value, frame: dict[str, int | str], outside: _Scope, *, constant: bool = False) -> Value:
        name = self.node("Enter", [value], outside, value.type, is_constant=constant, **frame)
        return Value(name, value.type)

    def _condition(self, inside: _Scope, bound: Value, merged: Sequence[Value]) -> list[Value]:
        """Adds the loop's condition and its Switches; returns their false sides."""
        condition = Value(self.node("Less", [merged[0], bound], None, INT), BOOL)
        inside.add(condition)
        if self.random.random() < 0.3:
            also = self.operands(inside, BOOL, 1)
            condition = Value(self.node("LogicalAnd", [condition, *also], None), BOOL)
        condition = Value(self.node("LoopCond", [condition], None), BOOL)
        inside.add(condition)
        return [Value(self.node("Switch", [value, condition], None, value.type), value.type) for value in merged]

    def _exit(self, value: Value, outside: _Scope, inside: _Scope) -> Value:
        if self.random.random() < 0.2:
            value = Value(self.node("Identity", [value], None, value.type), value.type)
        return Value(self.node("Exit", [value], None, value.type), value.type)

    def _body(
        self,
        inside: _Scope,
        switches: Sequence[Value],
        merges: Sequence[tuple[pb.NodeDef, Value]],
        size: int,
        depth: int,
    ) -> None:
        """Adds the loop's body and the values of the next iteration: guarded values, or the loop wouldn't end."""
        body = [Value(f"{value.name}:1", value.type, is_guarded=True) for value in switches]
        inside.values += body
        one = self.node("Identity", [body[0]], None, INT)
        step = self._constant(INT, self.random.randint(1, 2), one)
        inside.add(Value(one, INT, is_guarded=True))
        self.fill(inside, self.random.randint(0, size // 2), depth)
        forward = self.node("AddV2", [Value(one, INT), Value(step, INT)], None, INT)
        inside.add(Value(forward, INT, is_guarded=True))
        for at, (merge, value) in enumerate(merges):
            choices = [other for other in inside.values if other.type == value.type and other.is_guarded]
            following = self.random.choice(choices) if at else Value(forward, INT)
            merge.input[1] = self.node("NextIteration", [following], None, value.type)
