"""Inlining of one call: the callee's body, moved or copied, takes its place."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.ir.edit import erase
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import dims, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.locations import CallSiteLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


def inline_call(
    call: Operation, callee: FuncOp, *, is_last: bool, note_call: bool
) -> tuple[list[Operation], list[Value]]:
    """Replaces a call by the callee's body; returns the ops that took its place, and the values of its results.

    Args:
        call: The call.
        callee: The called function.
        is_last: Whether nothing else needs the body: it is moved instead of copied.
        note_call: Whether locations include the call; for a function with one caller they needn't, unless it names what
            it implements: the nodes in all these have the same names.
    """
    block = call.parent
    assert block is not None
    body = _body(call, callee)
    values, ops = (_move if is_last else _copy)(body, call.operands[:])
    for op in ops:
        if note_call:
            op.location = CallSiteLoc.get(op.location, call.location)
        block.insert_op_before(op, call)
    for result, value in zip(call.results, values, strict=True):
        if value.type != result.type and isinstance(value, OpResult):
            # More specific shapes of the call's results are kept.
            value.type = types.most_specific(value.type, result.type)
        result.replace_all_uses_with(value)
    erase(call)
    return ops, values


def _body(call: Operation, callee: FuncOp) -> Block:
    """Returns the only block of a function whose arguments and results match a call."""
    name = callee.sym_name
    blocks = list(callee.body.blocks)
    if len(blocks) != 1:
        what = "has no body" if not blocks else "has branches"
        raise _bad_call(call, f"the function {name!r} {what}, so that it can't be inlined")
    terminator = blocks[0].last_op
    returned = () if terminator is None else terminator.operands
    for verb, own, values in (("takes", blocks[0].args, call.operands), ("returns", returned, call.results)):
        if len(own) != len(values):
            raise _bad_call(call, f"the function {name!r} {verb} {len(own)} values, not {len(values)}")
        for number, (one, other) in enumerate(zip(own, values, strict=True)):
            if one.type != other.type and not _agree(one, other):
                raise _bad_call(call, f"the function {name!r} {verb} {one.type} as number {number}, not {other.type}")
    return blocks[0]


def _agree(one: Value, other: Value) -> bool:
    """Returns whether caller and callee agree on a value's element type and shape, as far as they must."""
    first, second = types.element_of(one.type), types.element_of(other.type)
    if types.dereferenced(first) != types.dereferenced(second):
        return False
    return dims.compatible(types.shape_of(one.type), types.shape_of(other.type))


def _bad_call(call: Operation, message: str) -> ConversionError:
    return error_at(call, "bad-call", message, "the model file is damaged")


def _move(body: Block, operands: Sequence[Value]) -> tuple[list[Value], list[Operation]]:
    """Moves the ops out of a body, replacing arguments by operands; returns its results, and the ops."""
    for argument, operand in zip(body.args, operands, strict=True):
        argument.replace_all_uses_with(operand)
    ops = list(body.ops)
    for op in ops:
        body.detach_op(op)
    terminator = ops.pop()
    values = list(terminator.operands)
    terminator.erase()
    return values, ops


def _copy(body: Block, operands: Sequence[Value]) -> tuple[list[Value], list[Operation]]:
    """Copies the ops of a body, as `_move` moves them."""
    mapping: dict[Value, Value] = dict(zip(body.args, operands, strict=True))
    *originals, terminator = body.ops
    ops = [op.clone(mapping) for op in originals]
    return [mapping.get(value, value) for value in terminator.operands], ops
