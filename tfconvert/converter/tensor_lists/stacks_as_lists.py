"""Stacks as lists: pushing and popping create new lists, which functions take as arguments and return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.control_flow.constructs import change_signature
from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.tensor_lists.arrays import HANDLE_TYPE, LIST_TYPE
from tfconvert.converter.tensor_lists.stacks import CLOSE, NEW, POP, PUSH, Stack, Stacks
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

Lists = dict[Stack, Value]
"""The current list of each stack."""


def to_lists(calls: Calls, stacks: Stacks) -> None:
    """Converts stacks to lists, in all functions; what is left of a handle is a number that nothing reads."""
    stacks.handles.retype({stacks.handles.find(_handle(op)) for op in stacks.of}, HANDLE_TYPE)
    carried: dict[Block, list[Stack]] = {}
    for stack in dict.fromkeys(stacks.of.values()):
        for block in stack.carriers:
            carried.setdefault(block, []).append(stack)
    changed = dict.fromkeys([*carried, *(stack.root for stack in stacks.of.values())])
    for block in changed:
        _rewrite(block, stacks, carried, calls)


def _handle(op: Operation) -> Value:
    return op.results[0] if op.name == NEW else op.operands[0]


def _rewrite(block: Block, stacks: Stacks, carried: Mapping[Block, Sequence[Stack]], calls: Calls) -> None:
    """Rewrites a function, from its first op to its last, with the current list of each stack."""
    own = carried.get(block, ())
    lists: Lists = {stack: block.insert_arg(LIST_TYPE, len(block.args)) for stack in own}
    for op in list(block.ops):
        if op in stacks.of:
            replace_op(op, _OPS[op.name](op, stacks.of[op], lists))
        elif called := calls.of.get(op):
            _call(op, carried.get(called[0].block, ()), lists)
    last, is_condition = block.last_op, any(call.is_condition for call in calls.to.get(block, ()))
    if last is not None and not is_condition:
        last.set_operands([*last.operands, *(lists[stack] for stack in own)])
    _pad_attributes(block, len(own), 0 if is_condition else len(own))


def _call(op: Operation, taken: Sequence[Stack], lists: Lists) -> None:
    """Passes the current lists of stacks to an op as operands, and replaces them by its results."""
    if taken:
        op.properties.pop("output_shapes", None)
        made = change_signature(op, [*op.operands, *(lists[stack] for stack in taken)], (), [LIST_TYPE] * len(taken))
        lists.update(zip(taken, made.results[-len(taken) :], strict=True))


def _pad_attributes(block: Block, arguments: int, results: int) -> None:
    """Adds empty attributes for arguments and results that were added, where the others have some."""
    function = block.parent_op()
    assert isinstance(function, FuncOp)
    for key, added in (("arg_attrs", arguments), ("res_attrs", results)):
        present = function.properties.get(key)
        if isinstance(present, ArrayAttr):
            function.properties[key] = ArrayAttr.get([*present.data, *[DictionaryAttr.get({})] * added])


def _new(op: Operation, stack: Stack, lists: Lists) -> Sequence[Value]:
    insert = TFBuilder(op)
    handle = insert.constant(np.array(0, np.int32))
    kind = types.list_of(types.tensor(stack.element, stack.shape))
    lists[stack] = insert.tf("EmptyTensorList", (_shape(insert, stack), insert.number(-1)), kind)
    return [handle]


def _push(op: Operation, stack: Stack, lists: Lists) -> Sequence[Value]:
    lists[stack] = TFBuilder(op).tf("TensorListPushBack", (lists[stack], op.operands[1]), LIST_TYPE)
    return [op.operands[1]]


def _pop(op: Operation, stack: Stack, lists: Lists) -> Sequence[Value]:
    insert = TFBuilder(op)
    operands = (lists[stack], _shape(insert, stack))
    made = insert.tf_op("TensorListPopBack", operands, [LIST_TYPE, types.tensor(stack.element, stack.shape)])
    lists[stack] = made.results[0]
    return [made.results[1]]


def _close(op: Operation, stack: Stack, lists: Lists) -> Sequence[Value]:
    return []


# Op -> its rewrite for lists, which returns the replacements of the op's results.
_OPS: Mapping[str, Callable[[Operation, Stack, Lists], Sequence[Value]]] = {
    CLOSE: _close,
    NEW: _new,
    POP: _pop,
    PUSH: _push,
}


def _shape(insert: TFBuilder, stack: Stack) -> Value:
    """Returns the elements' shape as ops of lists take it."""
    return insert.constant(np.array(-1 if stack.shape is None else stack.shape, np.int32))
