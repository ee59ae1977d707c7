"""Edits of the IR that passes make outside of patterns."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation


def erase(op: Operation, *, is_unused: bool = True) -> None:
    """Takes an op out of its block and drops what it refers to.

    Args:
        op: The op.
        is_unused: Whether nothing may use its results any more, which is checked; otherwise users are left dangling.
    """
    op.detach()
    op.erase(safe_erase=is_unused)


def restate_results(function: FuncOp) -> bool:
    """Lets a function's type say what its return says, and tells whether it has said something else before."""
    block = function.body.blocks.first
    terminator = block.last_op if block is not None else None
    if terminator is None or terminator.name != "func.return":
        return False
    outputs = [operand.type for operand in terminator.operands]
    if list(function.function_type.outputs.data) == outputs:
        return False
    function.function_type = FunctionType.from_lists(function.function_type.inputs.data, outputs)
    return True
