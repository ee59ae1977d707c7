"""Executor graphs as data flow: what an op uses, what values need, and an order in which ops can stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import tf, tf_effects
from tfconvert.schema.dialects.locations import node_of, place_of
from tfconvert.schema.dialects.tf_executor import CONTROL, IslandOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# How many nodes an error about many of them names.
_MAX_NAMED = 5


def inputs_of(op: Operation) -> list[Value]:
    """Returns the values, data and control, that an op of a graph takes from outside of itself, in order."""
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
    """Yields the ops of a graph's block that use a value, one a use; those inside an island as the island."""
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op.parent is not block:
            op = op.parent_op()
        if op is not None:
            yield op


def has_effects(op: Operation) -> bool:
    """Returns whether an op of a graph does more than compute its results."""
    return any(map(tf.has_side_effects, _held(op)))


def is_constant(op: object) -> bool:
    """Returns whether an op of a graph is a constant that waits for nothing: a branch or a body has one of its own."""
    if not isinstance(op, IslandOp) or op.operands:
        return False
    first = op.body.first_op
    return first is not None and first.name == "tf.Const" and op.wrapped is first


def is_pure(op: Operation) -> bool:
    """Returns whether an op of a graph is a function of its operands."""
    return all(map(tf_effects.is_pure, _held(op)))


def is_repeatable(op: Operation) -> bool:
    """Returns whether an op of a graph is idempotent: may run twice, one after the other.

    Reading may be repeated, and so may a check; writing may not, nor may drawing random numbers.
    """
    return all(map(_is_repeatable, _held(op)))


def _held(op: Operation) -> list[Operation]:
    """Returns the ops in an island; those of the dialect itself hold nothing and have no effects."""
    return [inner for inner in op.body.ops if inner is not op.terminator] if isinstance(op, IslandOp) else []


def _is_repeatable(op: Operation) -> bool:
    touched = tf_effects.effects(op)
    return tf_effects.is_pure(op) or (not touched.writes and (bool(touched.reads) or tf.has_side_effects(op)))


def controls_of(op: Operation) -> list[Value]:
    """Returns the control operands of an op of a graph."""
    return [value for value in op.operands if value.type == CONTROL]


def control_result(op: Operation) -> Value | None:
    """Returns the control result of an op of a graph."""
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
"""From a value to the one that replaces it, and the control values of what was looked through."""


def slice_back(roots: Iterable[Value], inside: Callable[[Operation], bool], through: Through) -> Slice:
    """Returns the backward slice of some values.

    Args:
        roots: The values, data or control.
        inside: Returns whether an op belongs to the slice; results of other ops come from outside.
        through: Looks through ops that only forward values, as switches do once their branch is decided.
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
    """Returns ops sorted so that each follows what it uses, otherwise in their former order.

    Args:
        ops: The ops.
        position: Each op's former position, or a new op's preferred one.

    Raises:
        ConversionError: They use each other in a cycle (`cyclic-graph`).
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
    """Returns an error about some ops of a graph, which names them.

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
