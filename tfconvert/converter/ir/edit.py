"""Edits of the IR that passes make outside of patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import SymbolRefAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builder import OpBuilder
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

Op = TypeVar("Op", bound=Operation)


def erase(op: Operation, *, is_unused: bool = True) -> None:
    """Detaches an op from its block and drops its operands.

    Args:
        op: The op.
        is_unused: Whether its results must be unused, which is checked; otherwise users are left dangling.
    """
    if is_unused:
        op.erase()
    else:
        op.detach()
        op.drop_all_references()


def replace_op(op: Operation, values: Value | Sequence[Value]) -> None:
    """Replaces an op's results by as many values and erases the op."""
    values = (values,) if isinstance(values, Value) else values
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    erase(op)


def rebuild(
    op: Op,
    operands: Sequence[Value],
    result_types: Sequence[Attribute] | None = None,
    properties: Mapping[str, Attribute] | None = None,
    location: Location = UNKNOWN_LOC,
) -> Op:
    """Returns a detached copy of an op without regions.

    Args:
        op: The op.
        operands: The copy's operands.
        result_types: The types of its results, by default those of the op's.
        properties: Properties that it has beside or instead of the op's.
        location: Its location.
    """
    return type(op)(
        op.name,
        operands,
        [result.type for result in op.results] if result_types is None else result_types,
        {**op.properties, **properties} if properties else op.properties,
        op.attributes,
        location=location,
    )


def update_function_type(function: FuncOp) -> bool:
    """Updates a function's type from its arguments and its return op; returns whether it changed."""
    block = function.body.first_block
    terminator = block.last_op if block is not None else None
    if block is None or terminator is None or terminator.name != "func.return":
        return False
    updated = FunctionType.get(block.arg_types, terminator.operand_types)
    if function.function_type is updated:
        return False
    function.function_type = updated
    return True


def update_function_types(functions: Sequence[FuncOp]) -> None:
    """Updates functions' types from their bodies, and the results of `func.call`s from their callees' types."""
    todo = [function for function in functions if update_function_type(function)]
    if not todo:
        return
    calls: dict[str, list[tuple[Operation, FuncOp]]] = {}
    for function in functions:
        for op in function.walk():
            if op.name == "func.call" and isinstance(callee := op.properties.get("callee"), SymbolRefAttr):
                calls.setdefault(callee.root, []).append((op, function))
    while todo:
        callee_function = todo.pop()
        for call, caller in calls.get(callee_function.sym_name, ()):
            for result, result_type in zip(call.results, callee_function.function_type.results, strict=False):
                result.type = result_type
            if update_function_type(caller):
                todo.append(caller)


def erase_dead(block: Block) -> None:
    """Erases dead ops, from the last to the first."""
    for op in reversed(block.ops):
        if op.results and op.results[0].first_use is None and _is_dead(op):
            op.erase()


def _is_dead(op: Operation) -> bool:
    return all(result.is_unused for result in op.results) and not tf.has_side_effects(op)


def inline_block(op: Operation, block: Block) -> Sequence[Value]:
    """Moves the ops of a block of one of an op's regions before the op; returns what the block's terminator returns."""
    last = block.last_op
    assert last is not None
    values = tuple(last.operands)
    last.erase()
    for inner in tuple(block.ops):
        OpBuilder(op).insert(block.detach_op(inner))
    return values


def take_regions(op: Operation) -> Sequence[Region]:
    """Returns an op's regions, taken out of it to become those of another."""
    regions = op.regions
    op.regions = ()
    for region in regions:
        region.parent = None
    return regions


def yield_instead(terminator: Operation) -> None:
    """Replaces the terminator of a region by `tf.Yield`."""
    OpBuilder(terminator).insert(tf.build("Yield", operands=terminator.operands[:], location=terminator.location))
    terminator.erase()
