"""Hoists loop-invariant computations out of loops.

A loop can't use values around it, so that a hoisted value comes in as one more variable, which costs a copy an
iteration. That is worth it for products and convolutions, and for what these are made of; anything smaller stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.control_flow.constructs import Construct, change_signature
from tfconvert.converter.control_flow.decisions import invariants
from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.schema.dialects.call_interfaces import Kind
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import BlockArgument, Value

# Ops that are worth a variable.
_HEAVY = frozenset(
    {
        "tf.BatchMatMul",
        "tf.BatchMatMulV2",
        "tf.BatchMatMulV3",
        "tf.Conv2D",
        "tf.Conv3D",
        "tf.DepthwiseConv2dNative",
        "tf.Einsum",
        "tf.MatMul",
    }
)

# Ops that may move along: none of them can fail, so that they may run although the loop never does.
_LIGHT = frozenset(
    {
        "tf.Abs",
        "tf.AddV2",
        "tf.BiasAdd",
        "tf.Cast",
        "tf.Const",
        "tf.Exp",
        "tf.Identity",
        "tf.Maximum",
        "tf.Minimum",
        "tf.Mul",
        "tf.Neg",
        "tf.Relu",
        "tf.Sigmoid",
        "tf.Sqrt",
        "tf.Square",
        "tf.Sub",
        "tf.Tanh",
        "tf.Transpose",
    }
)


def hoist(found: Construct) -> Construct:
    """Moves work out of a loop.

    Args:
        found: A loop whose functions nothing else runs.

    Returns:
        The loop that replaces it, or itself.
    """
    body = found.functions[1].body.block
    if found.kind is not Kind.LOOP or not any(op.name in _HEAVY for op in body.ops):
        return found
    fixed = _fixed_ops(body)
    kept = [op for op in fixed if op.name in _HEAVY and _is_needed_inside(op, fixed)]
    if not kept:
        return found
    outside: dict[Value, Value] = {body.args[index]: found.given[index] for index in invariants(body)}
    for op in _needed_by(kept, fixed):
        copy = op.clone(outside)
        assert found.op.parent is not None
        found.op.parent.insert_op_before(copy, found.op)
        outside.update(zip(op.results, copy.results, strict=True))
    return _with_variables(found, [op.results[0] for op in kept], [outside[op.results[0]] for op in kept])


def _fixed_ops(body: Block) -> dict[Operation, None]:
    """Returns the ops whose results are the same in every iteration and that may move, in order."""
    constant = invariants(body)
    fixed: dict[Operation, None] = {}
    for op in body.ops:
        if (op.name in _HEAVY or op.name in _LIGHT) and all(
            value.owner in fixed or (isinstance(value, BlockArgument) and value.index in constant)
            for value in op.operands
        ):
            fixed[op] = None
    return fixed


def _is_needed_inside(op: Operation, fixed: dict[Operation, None]) -> bool:
    return any(use.operation not in fixed for use in op.results[0].uses)


def _needed_by(roots: Sequence[Operation], fixed: dict[Operation, None]) -> list[Operation]:
    """Returns ops with all that they are computed from, in order."""
    needed: set[Operation] = set()
    todo = list(roots)
    while todo:
        op = todo.pop()
        if op not in needed:
            needed.add(op)
            todo += [value.owner for value in op.operands if isinstance(value.owner, Operation)]
    return [op for op in fixed if op in needed]


def _with_variables(found: Construct, inside: Sequence[Value], outside: Sequence[Value]) -> Construct:
    """Passes values to a loop, which uses them instead of computing them."""
    condition, body = found.functions
    for value, operand in zip(inside, outside, strict=True):
        _add_argument(condition, operand)
        argument = _add_argument(body, operand)
        last, owner = body.body.block.last_op, value.owner
        assert last is not None
        assert isinstance(owner, Operation)
        value.replace_all_uses_with(argument)
        erase(owner)
        last.set_operands([*last.operands, argument])
    update_function_type(condition)
    update_function_type(body)
    made = change_signature(found.op, [*found.op.operands, *outside], (), [value.type for value in outside])
    return Construct(made, found.kind, found.functions)


def _add_argument(function: FuncOp, operand: Value) -> Value:
    for key in ("arg_attrs", "res_attrs"):
        function.properties.pop(key, None)  # nothing reads the value names of a private function
    block = function.body.block
    return block.insert_arg(operand.type, len(block.args))
