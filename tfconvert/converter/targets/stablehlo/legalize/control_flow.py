"""Conditions and loops: the functions that they run become regions.

Every function that branches or loops run has one caller, as the pass `unique-callees` ensures.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.control_flow.calls import FunctionCall
from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.schema.dialects import stablehlo, types
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_IF = frozenset({"tf.If", "tf.StatelessIf"})
_CASE = frozenset({"tf.Case", "tf.StatelessCase"})
_WHILE = frozenset({"tf.While", "tf.StatelessWhile"})

HANDLED = _IF | _CASE | _WHILE
"""The ops that become regions."""


def lower(op: Operation, calls: Sequence[FunctionCall], emit: Emit) -> tuple[Sequence[Value], list[Block]]:
    """Emits what replaces an op; returns the values that replace its results, and the blocks that it now holds.

    Raises:
        DeclinedError: There is no such form.
    """
    if op.name in _WHILE:
        return _while(op, calls, emit)
    condition = op.operands[0]
    wanted = types.I1 if op.name in _IF else types.I32
    if types.element_of(condition.type) != wanted or emit.dims(condition):
        raise DeclinedError(f"its condition is not a scalar of {wanted}")
    blocks = [_taken(call) for call in calls]
    for block in blocks:
        for argument, operand in zip(block.args, op.operands[1:], strict=True):
            argument.replace_all_uses_with(operand)
        for argument in reversed(block.args):
            block.erase_arg(argument)
    name = "if" if op.name in _IF else "case"
    return emit.op(name, (condition,), op.result_types, regions=[Region(each) for each in blocks]).results, blocks


def _while(op: Operation, calls: Sequence[FunctionCall], emit: Emit) -> tuple[Sequence[Value], list[Block]]:
    condition, body = calls
    (decision,) = condition.returned
    if types.element_of(decision.type) != types.I1 or types.shape_of(decision.type) not in ((), None):
        raise DeclinedError("its condition is not a scalar boolean")
    blocks = [_taken(call) for call in (condition, body)]
    regions = [Region(block) for block in blocks]
    return emit.op("while", op.operands[:], op.result_types, regions=regions).results, blocks


def _taken(call: FunctionCall) -> Block:
    """Returns a function's body, taken out of it, with a terminator that regions have."""
    block = call.block
    region = block.parent
    assert region is not None
    region.detach_block(block)
    last = block.last_op
    assert last is not None
    block.add_op(stablehlo.build(stablehlo.RETURN, last.operands[:], (), location=last.location))
    last.erase()
    return block
