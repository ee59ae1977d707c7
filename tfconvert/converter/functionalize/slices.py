"""Executor graphs as data flow: inputs of ops, slices, an order of ops, and slices that become functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfconvert.converter.ir.edit import update_function_type
from tfconvert.converter.ir.symbol_table import FunctionMaker
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tf, tf_effects
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.locations import node_of, place_of
from tfconvert.schema.dialects.tf_executor import CONTROL, FetchOp, GraphOp, IslandOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.locations import Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Maximum number of nodes that an error names.
_MAX_NAMED = 5


def inputs_of(op: Operation) -> list[Value]:
    """Returns the data and control values that an op of a graph uses from outside of its regions, in order."""
    if not op.regions:
        return list(op.operands)
    wrapped = op.wrapped if isinstance(op, IslandOp) else None
    if wrapped is not None and not wrapped.regions:
        return [*wrapped.operands, *op.operands]
    own: set[Value] = set()
    used: dict[Value, None] = {}
    for inner in op.walk():
        own.update(inner.results)
        for region in inner.regions:
            own.update(argument for block in region.blocks for argument in block.args)
        used.update(dict.fromkeys(inner.operands))
    return [value for value in used if value not in own]


def replace_inputs(op: Operation, replaced: Callable[[Value], Value]) -> None:
    """Replaces the operands of an op of a graph, and of the ops inside it."""
    wrapped = op.wrapped if isinstance(op, IslandOp) else None
    inside = (op, wrapped) if wrapped is not None and not wrapped.regions else op.walk() if op.regions else (op,)
    for inner in inside:
        old = tuple(inner.operands)
        new = tuple(replaced(value) for value in old)
        if new != old:
            inner.set_operands(new)


def users_of(value: Value, block: Block) -> Iterator[Operation]:
    """Yields the user in a graph's block for each use of a value; a user inside an island counts as the island."""
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op.parent is not block:
            op = op.parent_op()
        if op is not None:
            yield op


def has_effects(op: Operation) -> bool:
    """Returns whether an op of a graph has side effects."""
    return any(map(tf.has_side_effects, _held(op)))


def is_constant(op: object) -> bool:
    """Returns whether an op of a graph is a constant without controls, which is copied into functions."""
    if not isinstance(op, IslandOp) or op.operands:
        return False
    first = op.body.first_op
    return first is not None and first.name == "tf.Const" and op.wrapped is first


def is_pure(op: Operation) -> bool:
    """Returns whether an op of a graph is a function of its operands."""
    return all(map(tf_effects.is_pure, _held(op)))


def is_repeatable(op: Operation) -> bool:
    """Returns whether an op of a graph may run twice in a row, as reads and checks may.

    Writes and random numbers must not be repeated.
    """
    return all(map(_is_repeatable, _held(op)))


def _held(op: Operation) -> list[Operation]:
    """Returns the ops in an island; other ops of the dialect contain none."""
    return [inner for inner in op.body.ops if inner is not op.terminator] if isinstance(op, IslandOp) else []


def _is_repeatable(op: Operation) -> bool:
    touched = tf_effects.effects(op)
    return tf_effects.is_pure(op) or (not touched.writes and (bool(touched.reads) or tf.has_side_effects(op)))


def controls_of(op: Operation) -> list[Value]:
    return [value for value in op.operands if value.type == CONTROL]


def control_result(op: Operation) -> Value | None:
    last = op.results[-1] if op.results else None
    return last if last is not None and last.type == CONTROL else None


@dataclass(slots=True)
class Slice:
    """The backward slice of some values.

    Attributes:
        ops: The ops inside.
        inputs: The data values from outside, in order of first use.
        controls: The control values from outside.
    """

    ops: dict[Operation, None] = field(default_factory=dict)
    inputs: dict[Value, None] = field(default_factory=dict)
    controls: dict[Value, None] = field(default_factory=dict)


Through = Callable[[Value], tuple[Value, Sequence[Value]]]
"""Maps a value to its source, and the control values of the ops in between."""


def slice_back(roots: Iterable[Value], inside: Callable[[Operation], bool], through: Through) -> Slice:
    """Returns the backward slice of some values.

    Args:
        roots: The values, data or control.
        inside: Returns whether an op belongs to the slice; results of other ops come from outside.
        through: Looks through ops that only forward values, such as switches of a decided branch.
    """
    found = Slice()
    pending = list(roots)
    pending.reverse()
    while pending:
        value, controls = through(pending.pop())
        pending.extend(reversed(controls))
        owner = value.owner
        if isinstance(owner, Operation) and inside(owner):
            if owner not in found.ops:
                found.ops[owner] = None
                pending.extend(reversed(inputs_of(owner)))
        elif value.type == CONTROL:
            found.controls[value] = None
        else:
            found.inputs[value] = None
    return found


def in_order(ops: Iterable[Operation], position: Mapping[Operation, int]) -> list[Operation]:
    """Returns ops in topological order, otherwise in their former order.

    Args:
        ops: The ops.
        position: Each op's former position, or a new op's preferred one.

    Raises:
        ConversionError: The ops form a cycle (`cyclic-graph`).
    """
    waiting = dict.fromkeys(sorted(ops, key=position.__getitem__))
    done: dict[Operation, None] = {}
    opened: set[Operation] = set()
    for first in waiting:
        stack = [first]
        while stack:
            op = stack[-1]
            if op in done:
                stack.pop()
                continue
            needed = [
                value.owner
                for value in inputs_of(op)
                if isinstance(value.owner, Operation) and value.owner in waiting and value.owner not in done
            ]
            if needed:
                if op in opened:
                    raise problem(
                        "cyclic-graph",
                        "the nodes depend on each other in a cycle",
                        [op, *needed],
                        "only NextIteration may lead back",
                    )
                opened.add(op)
                stack.extend(reversed(needed))
            else:
                done[stack.pop()] = None
    return list(done)


def problem(code: str, message: str, ops: Sequence[Operation], hint: str = "") -> ConversionError:
    """Returns an error that names some ops of a graph.

    Args:
        code: The stable code.
        message: What is wrong.
        ops: Where; the first is the error's node.
        hint: What to do.
    """
    names = list(dict.fromkeys(filter(None, (node_of(op.location) for op in ops))))
    shown = ", ".join(repr(name) for name in names[:_MAX_NAMED]) + (", ..." if len(names) > _MAX_NAMED else "")
    first = ops[0]
    wrapped = first.wrapped if isinstance(first, IslandOp) else None
    return ConversionError(
        [
            Diagnostic(
                code,
                f"{message}: {shown}" if len(names) > 1 else message,
                op=(wrapped or first).name,
                node=names[0] if names else "",
                location=str(place_of(first.location)),
                hint=hint,
            )
        ]
    )


def graphs_with(function: FuncOp, kinds: frozenset[type[Operation]]) -> list[GraphOp]:
    """Returns the graphs in a function's body, nested ones too, that have ops of some classes.

    Most models have none.
    """
    found: list[GraphOp] = []
    pending = list(function.body.blocks)
    while pending:
        for op in pending.pop().ops:
            if isinstance(op, GraphOp):
                inside = list(op.body.ops)
                if not kinds.isdisjoint(map(type, inside)):
                    found.append(op)
                pending += [inner.body for inner in inside if type(inner) is IslandOp and _may_nest(inner)]
            elif op.regions:
                pending += [block for region in op.regions for block in region.blocks]
    return found


def _may_nest(island: IslandOp) -> bool:
    """Returns whether an island may contain graphs: it has several ops, or one with regions."""
    first = island.body.first_op
    return first is not None and (bool(first.regions) or first.next_op is not island.body.last_op)


def restore(function: FuncOp, graph: GraphOp, position: Mapping[Operation, int]) -> None:
    """Sorts a graph's ops topologically, and updates types from the fetched values.

    Args:
        function: The function that the graph is in.
        graph: The graph.
        position: Its ops' former positions, or new ops' preferred ones.
    """
    block = graph.body
    fetch = next(op for op in block.ops if isinstance(op, FetchOp))  # not a terminator while new ops follow it
    order = [*in_order((op for op in block.ops if op is not fetch), position), fetch]
    for op in order:
        op.detach()
    block.add_ops(order)
    for result, value in zip(graph.results, fetch.operands, strict=False):
        result.type = value.type
    if graph.parent is function.body.blocks[0]:
        update_function_type(function)


@dataclass(frozen=True, slots=True)
class OutlinedBody:
    """The parts of a new function.

    Attributes:
        name: Its name; a number is added if the name is taken.
        arguments: The values that are its arguments, with the arguments' types.
        ops: Its ops in topological order.
        results: The values that it returns: results of `ops`, or arguments.
        controls: Control results of `ops` that the function waits for.
        stands_for: Maps a value to its replacement in the function, before arguments are substituted.
        location: The function's location.
    """

    name: str
    arguments: Mapping[Value, Attribute]
    ops: Sequence[Operation]
    results: Sequence[Value]
    controls: Iterable[Value]
    stands_for: Callable[[Value], Value]
    location: Location


class Outliner(FunctionMaker):
    """Creates private functions in a module from slices of its graphs."""

    def outline(self, body: OutlinedBody, kept: Callable[[Operation], bool]) -> FuncOp:
        """Adds a function of some ops to the module.

        Args:
            body: The function's parts.
            kept: Returns whether an op has other users: it is copied instead of moved.
        """
        block = Block()
        mapping: dict[Value, Value] = {
            value: block.insert_arg(kind, index) for index, (value, kind) in enumerate(body.arguments.items())
        }
        graph_block = Block()

        def mapped(value: Value) -> Value:
            value = body.stands_for(value)
            return mapping.get(value, value)

        inside = set(body.ops)
        for op in body.ops:
            if kept(op):
                copy = op.clone()
                mapping.update(zip(op.results, copy.results, strict=True))
            else:
                op.detach()
                copy = op
            _drop_outer_controls(copy, inside, body.stands_for)
            replace_inputs(copy, mapped)
            graph_block.add_op(copy)
        results = [mapped(value) for value in body.results]
        controls = [mapped(value) for value in body.controls]
        graph_block.add_op(FetchOp.create(operands=[*results, *controls], location=body.location))
        graph = GraphOp.build(graph_block, body.location)
        block.add_ops([graph, ReturnOp.of(graph.results)])
        return self.functions[self.add(body.name, block, body.location)]


def _drop_outer_controls(op: Operation, inside: set[Operation], stands_for: Callable[[Value], Value]) -> None:
    """Drops control operands from outside, which the function's caller has instead."""
    operands = [value for value in op.operands if value.type != CONTROL or stands_for(value).owner in inside]
    if len(operands) != len(op.operands):
        op.set_operands(operands)


def wrap(op: Operation, controls: Iterable[Value]) -> IslandOp:
    """Returns an island of an op that runs after some controls, without duplicates."""
    return IslandOp.wrap(op, list(dict.fromkeys(controls)), op.location)
