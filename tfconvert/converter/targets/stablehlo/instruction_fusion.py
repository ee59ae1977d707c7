"""Fuses ops that one kernel can compute: a root, and the producers that nothing else uses.

A `loop` computes each element of its root from elements of its operands; an `input` reduces the result of such a loop.
A producer joins if all its uses are in the group, so that nothing is computed twice and groups have no cycles. A group
becomes a private function, and a call replaces it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfconvert.converter.executor.stablehlo import elementwise
from tfconvert.converter.targets.stablehlo.buffers.host import CONSTANT, FUSION
from tfconvert.converter.targets.stablehlo.places import PLACE
from tfconvert.converter.targets.stablehlo.shape_functions import is_small
from tfconvert.schema.dialects.func import CallOp, FuncOp, ReturnOp
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

LOOP, INPUT = "loop", "input"

# Ops whose elements are elements of an operand, or a constant.
_MOVING = frozenset(
    {
        f"stablehlo.{name}"
        for name in (
            "broadcast_in_dim",
            "concatenate",
            "dynamic_broadcast_in_dim",
            "dynamic_iota",
            "dynamic_pad",
            "dynamic_reshape",
            "dynamic_slice",
            "iota",
            "pad",
            "real_dynamic_slice",
            "reshape",
            "reverse",
            "slice",
            "transpose",
        )
    }
)

# Ops that use an element more than once or with others; the values that they repeat are computed before.
_REPEATING = frozenset(
    {"stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.dynamic_pad", "stablehlo.pad"}
)

_REDUCING = "stablehlo.reduce"


class Group(NamedTuple):
    """Ops that one kernel computes.

    Attributes:
        kind: `LOOP` or `INPUT`.
        ops: The ops in their order; the last one is the root.
    """

    kind: str
    ops: Sequence[Operation]


def is_loop_op(op: Operation) -> bool:
    """Returns whether an op computes each element from some of its operands' elements."""
    return op.name in elementwise.KERNELS or op.name in _MOVING


def is_shape_value(op: Operation) -> bool:
    """Returns whether an op computes a few integers, such as sizes, which need no kernel."""
    return bool(op.results) and all(is_small(result.type) for result in op.results)


def _may_join(producer: Operation, members: Mapping[Operation, None], block: Block) -> bool:
    if producer.parent is not block or not is_loop_op(producer) or is_shape_value(producer):
        return False
    users = [use.operation for result in producer.results for use in result.uses]
    if not users or not all(user in members for user in users):
        return False
    return _is_cheap(producer) or all(user.name not in _REPEATING for user in users)


def _is_cheap(op: Operation) -> bool:
    """Returns whether an op only moves elements, so that repeating it costs no arithmetic."""
    return op.name in _MOVING


def groups(block: Block) -> list[Group]:
    """Returns the groups of a block that have at least two ops, in the order of their roots."""
    taken: set[Operation] = set()
    found: list[Group] = []
    order = {op: number for number, op in enumerate(block.ops)}
    for root in reversed(list(order)):
        if root in taken or not (is_loop_op(root) or root.name == _REDUCING) or is_shape_value(root):
            continue
        members = dict.fromkeys((root,))
        # Visits producers from the last one on, after all of their users in the block.
        while joining := _next(members, block, taken, order):
            members[joining] = None
        if len(members) > 1:
            taken.update(members)
            kind = INPUT if root.name == _REDUCING else LOOP
            found.append(Group(kind, sorted(members, key=order.__getitem__)))
    return found[::-1]


def _next(
    members: Mapping[Operation, None], block: Block, taken: set[Operation], order: Mapping[Operation, int]
) -> Operation | None:
    owners = {operand.owner for member in members for operand in member.operands}
    producers = [
        each
        for each in owners
        if isinstance(each, Operation) and each not in members and each not in taken and _may_join(each, members, block)
    ]
    return max(producers, key=order.__getitem__, default=None)


def launches(block: Block) -> int:
    """Returns the number of kernels that a block runs: one for each op or call that computes more than sizes."""
    quiet = ("stablehlo.constant", "func.return", "stablehlo.return")
    return sum(op.name not in quiet and bool(op.results) and not is_shape_value(op) for op in block.ops)


# Maximum number of elements of constants that move into the function, where they are numbers in the kernel.
_MAX = 8


def outline(group: Group, name: str) -> FuncOp:
    """Moves a group's ops into a new function, replaces them by a call, and returns the function."""
    root = group.ops[-1]
    inside: set[Operation] = set(group.ops)
    constants: dict[Value, Operation] = {}
    operands: dict[Value, None] = {}
    for op in group.ops:
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner in inside:
                continue
            if isinstance(owner, Operation) and owner.name == CONSTANT and _is_small(owner):
                constants[operand] = owner
            else:
                operands[operand] = None
    block = Block(arg_types=[operand.type for operand in operands])
    call = CallOp.of(name, list(operands), [result.type for result in root.results], root.location)
    call.attributes[FUSION] = StringAttr.get(group.kind)
    if PLACE in root.attributes:
        call.attributes[PLACE] = root.attributes[PLACE]
    parent = root.parent
    assert parent is not None
    parent.insert_op_before(call, root)
    replaced: dict[Value, Value] = dict(zip(operands, block.args, strict=True))
    for value, owner in constants.items():
        copy = owner.clone()
        block.add_op(copy)
        replaced[value] = copy.results[0]
    for old, new in zip(root.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    for op in group.ops:
        op.detach()
        block.add_op(op)
        op.set_operands([replaced.get(operand, operand) for operand in op.operands])
    block.add_op(ReturnOp.create(operands=list(root.results), result_types=()))
    kind = FunctionType.get(block.arg_types, [result.type for result in root.results])
    attributes = {FUSION: StringAttr.get(group.kind)}
    return FuncOp.of(name, kind, Region([block]), "private", attributes=attributes, location=root.location)


def _is_small(op: Operation) -> bool:
    return math.prod(op.results[0].shape or ()) <= _MAX
