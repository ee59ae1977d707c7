"""Decides branches and loops from constants and pass-through (loop-invariant) arguments."""

from __future__ import annotations

from collections.abc import Iterable

from tfconvert.converter.control_flow.constructs import Construct, returned
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.call_interfaces import IFS, Kind
from tfconvert.schema.dialects.tf_traits import IDENTITIES, full_names
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, OpResult, Value

_IDENTITIES = full_names(IDENTITIES)


def decided_branch(found: Construct) -> int | None:
    """Returns which of an `If`'s or `Case`'s branches is taken, `None` if that isn't known."""
    if len(set(found.functions)) == 1:
        return 0
    constant = tensor_data.constant_of(found.op.operands[0])
    return None if constant is None else branch_of(found, tensor_data.to_array(constant))


def branch_of(found: Construct, value: tensor_data.Array) -> int | None:
    """Returns which branch the value of a condition or an index chooses.

    Returns:
        `None` if it is neither a number nor a truth value: what it means depends on whether it has elements.
    """
    if value.shape != () or value.dtype.kind not in "biuf":
        return None
    if found.op.name in IFS:
        return 0 if value else 1
    index, count = int(value), len(found.functions)
    return index if 0 <= index < count else count - 1


def origin(value: Value) -> Value:
    """Returns a value's source, looking through identities."""
    while isinstance(value, OpResult) and value.op.name in _IDENTITIES:
        value = value.op.operands[value.index]
    return value


def invariants(block: Block) -> frozenset[int]:
    """Returns the arguments of a loop's body that it returns at their own places."""
    found = set()
    for index, value in enumerate(map(origin, returned(block))):
        if isinstance(value, BlockArgument) and value.block is block and value.index == index:
            found.add(index)
    return frozenset(found)


def pass_through_operands(found: Construct) -> dict[int, Value]:
    """Returns the results that are operands, whichever branch is taken and however often a loop runs."""
    if found.kind is Kind.LOOP:
        return {index: found.given[index] for index in invariants(found.functions[1].body.block)}
    ways = [[_argument(value, body) for value in returned(body)] for body in found.bodies]
    return {
        index: found.given[place]
        for index, place in enumerate(ways[0])
        if place is not None and all(way[index] == place for way in ways)
    }


def _argument(value: Value, block: Block) -> int | None:
    value = origin(value)
    return value.index if isinstance(value, BlockArgument) and value.block is block else None


def sink_constants(found: Construct) -> int:
    """Sinks constant operands into the callees; returns how many.

    A loop still forwards the variable, as long as the variable exists.
    """
    places: Iterable[int] = range(len(found.given))
    kept: frozenset[Operation | None] = frozenset()
    if found.kind is Kind.LOOP:
        body = found.functions[1].body.block
        places, kept = sorted(invariants(body)), frozenset({body.last_op})
    count = 0
    for index in places:
        constant = tensor_data.constant_of(found.given[index])
        if constant is not None:
            count += sum(_sink(block, index, constant, kept) for block in found.bodies)
    return count


def _sink(block: Block, index: int, constant: tensor_data.Constant, kept: frozenset[Operation | None]) -> bool:
    uses = [use for use in block.args[index].uses if use.operation not in kept]
    if not uses:
        return False
    made = TFBuilder.at_block_begin(block).constant(constant)
    for use in uses:
        use.operation.set_operand(use.index, made)
    return True
