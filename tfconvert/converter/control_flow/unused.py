"""Removes dead results, arguments and loop variables of functional control flow."""

from __future__ import annotations

from collections.abc import Iterator

from tfconvert.converter.control_flow.constructs import Construct, change_signature, drop, returned, without
from tfconvert.converter.ir.edit import erase_dead
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.call_interfaces import Kind
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value


def drop_unused(found: Construct) -> Operation | None:
    """Drops dead results, arguments and loop variables.

    Results that nothing uses go, and so do arguments that no function uses afterwards. A loop variable goes if neither
    the condition nor an effect nor a result that is used depends on it, in this iteration or a later one.

    Args:
        found: An op whose functions nothing else runs.

    Returns:
        The op that replaces it, `None` if nothing is dead.
    """
    for body in found.bodies:
        erase_dead(body)
    results, arguments = _of_loop(found) if found.kind is Kind.LOOP else _of_branches(found)
    if not results and not arguments:
        return None
    operands = without(found.given, arguments)
    return change_signature(
        found.op, [*found.op.operands[: len(found.op.operands) - len(found.given)], *operands], results
    )


def _of_branches(found: Construct) -> tuple[set[int], set[int]]:
    """Drops results, then arguments of all branches; returns their places."""
    results = {index for index, result in enumerate(found.op.results) if result.first_use is None}
    functions = dict.fromkeys(found.functions)
    if results:
        for function in functions:
            drop(function, (), results)
            erase_dead(function.body.block)
    arguments = {
        index for index in range(len(found.given)) if all(body.args[index].first_use is None for body in found.bodies)
    }
    if arguments:
        for function in functions:
            drop(function, arguments, ())
    return results, arguments


def _of_loop(found: Construct) -> tuple[set[int], set[int]]:
    """Drops variables; returns their places, among the results and among the arguments."""
    condition, body = found.functions
    live = _live(found, condition.body.block, body.body.block)
    dead = set(range(len(found.given))) - live
    if dead:
        drop(body, (), dead)
        erase_dead(body.body.block)
        drop(body, dead, ())
        drop(condition, dead, ())
    return dead, dead


def _live(found: Construct, condition: Block, body: Block) -> set[int]:
    """Returns the places of the live variables, backwards from what must be computed."""
    live = {
        index
        for index, (argument, result) in enumerate(zip(condition.args, found.op.results, strict=True))
        if argument.first_use is not None or result.first_use is not None
    }
    returns = returned(body)
    todo: list[Value] = [returns[index] for index in live]
    seen: set[Operation] = set()
    for op in body.ops:
        if op is not body.last_op and (not op.results or tf.has_side_effects(op)):
            seen.add(op)
            todo += _used(op)
    while todo:
        value = todo.pop()
        owner = value.owner
        if isinstance(owner, Operation):
            if owner not in seen:
                seen.add(owner)
                todo += _used(owner)
        elif owner is body and isinstance(value, BlockArgument) and value.index not in live:
            live.add(value.index)
            todo.append(returns[value.index])
    return live


def _used(op: Operation) -> Iterator[Value]:
    """Yields the values that an op uses, itself and in its regions."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands
