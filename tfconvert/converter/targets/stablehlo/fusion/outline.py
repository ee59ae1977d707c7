"""Moves a group of ops into a private function, and calls it in their place."""

from __future__ import annotations

import math

from tfconvert.converter.targets.stablehlo.fusion.groups import Group
from tfconvert.converter.targets.stablehlo.fusion.places import PLACE
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import CallOp, FuncOp, ReturnOp
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value

FUSION = "dhlo.fusion"
"""The attribute of functions that are kernels, and of their calls: which kind."""

_CONSTANT = "stablehlo.constant"
# Constants of up to so many elements are in the function, so that they are numbers in the kernel.
_MAX = 8


def outline(group: Group, name: str) -> FuncOp:
    """Returns the function that has a group's ops, which a call replaces."""
    root = group.ops[-1]
    inside: set[Operation] = set(group.ops)
    constants: dict[Value, Operation] = {}
    operands: dict[Value, None] = {}
    for op in group.ops:
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner in inside:
                continue
            if isinstance(owner, Operation) and owner.name == _CONSTANT and _is_small(owner):
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
    return math.prod(types.shape_of(op.results[0].type) or ()) <= _MAX
