"""Stacks of values that a loop keeps for its gradient, and their form as tensor lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.control_flow.constructs import change_signature
from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.symbol_table import is_private
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.tensor_lists.arrays import HANDLE_TYPE, LIST_TYPE
from tfconvert.converter.tensor_lists.lists import ValueSets, groups_of, merged_shape
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.dialects.tf_traits import UNARY_IDENTITIES, full_names
from tfconvert.schema.dialects.types import Shape
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

PREFIX = "tf.Stack"

NEW, PUSH, POP, CLOSE = "tf.StackV2", "tf.StackPushV2", "tf.StackPopV2", "tf.StackCloseV2"

OPS = frozenset({NEW, PUSH, POP, CLOSE})
"""The supported ops of stacks."""

LEGACY = frozenset({"tf.Stack", "tf.StackPush", "tf.StackPop", "tf.StackClose"})
"""Older versions, without resource handles."""

_CHANGING = frozenset({PUSH, POP})
_FORWARDING = full_names(UNARY_IDENTITIES)


@dataclass(eq=False, slots=True)
class TensorStack:
    """One stack.

    Attributes:
        root: The body of the function that creates it.
        element: The elements' type.
        shape: Their shape, `None` for an unknown rank.
        ops: The ops that push and pop.
        carriers: The bodies of the functions that it is passed to; always all functions of an op.
    """

    root: Block
    element: Attribute
    shape: Shape | None = None
    ops: list[Operation] = field(default_factory=list)
    carriers: set[Block] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class TensorStacks:
    """All stacks of a module.

    Attributes:
        handles: The sets of values that are the same handle.
        of: The stack that an op of `OPS` accesses, in the order of the module.
    """

    handles: ValueSets
    of: Mapping[Operation, TensorStack]


def find(calls: Calls) -> TensorStacks:
    """Returns the stacks of a module.

    Raises:
        ConversionError: A stack can't become a list: its handle can't be followed or may refer to several stacks
            (`stack-escapes`), a loop's condition changes it (`stack-in-condition`), its elements contradict each other
            (`list-elements-differ`) or are handles (`nested-list`), or an op has an unsupported version
            (`stack-version`). One error for all.
    """
    ops = [op for function in calls.functions.values() for op in function.body.block.ops if op.name.startswith(PREFIX)]
    legacy = [_legacy(op) for op in ops if op.name in LEGACY]
    if legacy:
        raise ConversionError(legacy)
    ops = [op for op in ops if op.name in OPS]
    handles = groups_of(calls, _is_handle, _handles)
    by_root: dict[Value, list[Operation]] = {}
    for op in ops:
        by_root.setdefault(handles.find(_handle(op)), []).append(op)
    problems = list(_escapes(calls, handles, by_root))
    of: dict[Operation, TensorStack] = {}
    for group in by_root.values():
        creators = [op for op in group if op.name == NEW]
        if len(creators) == 1:
            stack = TensorStack(_block(creators[0]), creators[0].properties["elem_type"], ops=group)
            problems += [*_describe(stack, creators[0]), *_carry(stack, calls)]
            of.update(dict.fromkeys(group, stack))
        else:
            problems.append(_ambiguous(group[0], len(creators)))
    if problems:
        raise ConversionError(problems)
    return TensorStacks(handles, {op: of[op] for op in ops})


def _is_handle(value: Value) -> bool:
    return isinstance(value.element, types.ResourceType)


def _handle(op: Operation) -> Value:
    return op.results[0] if op.name == NEW else op.operands[0]


def _handles(op: Operation) -> list[Value]:
    if op.name in OPS:
        return [_handle(op)]
    return [op.operands[0], op.results[0]] if op.name in _FORWARDING and _is_handle(op.results[0]) else []


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _describe(stack: TensorStack, creator: Operation) -> Iterator[Diagnostic]:
    """Merges the shapes that ops imply for a stack's elements; yields contradictions."""
    if isinstance(stack.element, types.ResourceType | types.VariantType):
        yield found_at(creator, "nested-list", "the elements of the stack are handles")
        return
    for op in stack.ops:
        if op.name in _CHANGING:
            item = op.operands[1] if op.name == PUSH else op.results[0]
            if item.element != stack.element:
                yield found_at(
                    op, "list-elements-differ", f"the stack has elements of type {stack.element}, this is {item.type}"
                )
            try:
                stack.shape = merged_shape(op, stack.shape, [item.shape], "stack")
            except ConversionError as problem:
                yield from problem.diagnostics


def _carry(stack: TensorStack, calls: Calls) -> Iterator[Diagnostic]:
    """Records the functions that a stack is passed to; yields why it can't be passed."""
    changing = {_block(op) for op in stack.ops if op.name in _CHANGING}
    changed = _reached(changing, stack.root, calls, siblings=False)
    stack.carriers = _reached(changed, stack.root, calls, siblings=True)
    for block in stack.carriers:
        function, to = block.parent_op(), calls.to.get(block, ())
        assert isinstance(function, FuncOp)
        if not to or not is_private(function):
            yield found_at(stack.ops[0], "stack-escapes", "the stack is used outside of the function that creates it")
            return
        kinds = {call.is_condition for call in to}
        if kinds == {True, False} or (True in kinds and block in changed):
            yield found_at(stack.ops[0], "stack-in-condition", "a loop's condition pushes to the stack, or pops")
            return


def _reached(blocks: Iterable[Block], root: Block, calls: Calls, *, siblings: bool) -> set[Block]:
    """Returns bodies and their callers, up to a body.

    Args:
        blocks: The first bodies.
        root: The body at which the walk stops.
        calls: The calls.
        siblings: Whether reaching one body of an op reaches all of its bodies.
    """
    found: set[Block] = set()
    todo = list(blocks)
    while todo:
        block = todo.pop()
        if block is not root and block not in found:
            found.add(block)
            for call in calls.to.get(block, ()):
                todo.append(_block(call.op))
                if siblings:
                    todo += [other.block for other in calls.of[call.op]]
    return found


def _escapes(calls: Calls, handles: ValueSets, stacks: Collection[Value]) -> Iterator[Diagnostic]:
    """Yields the ops and functions through which handles escape."""

    def is_one(value: Value) -> bool:
        return _is_handle(value) and handles.find(value) in stacks

    for name, function in calls.functions.items():
        block = function.body.block
        is_called = block in calls.to and is_private(function)
        for op in block.ops:
            if op.name in OPS or op.name in _FORWARDING or calls.of.get(op) or (is_called and op is block.last_op):
                continue
            if any(is_one(value) for value in (*op.operands, *op.results)):
                yield found_at(op, "stack-escapes", "the handle of a stack is used in a way that can't be followed")
        if not is_called and any(is_one(argument) for argument in block.args):
            yield found_at(
                function,
                "stack-escapes",
                f"the handle of a stack is an argument of function {name!r}",
                "create the stack in the graph that uses it",
            )


def _ambiguous(op: Operation, count: int) -> Diagnostic:
    if not count:
        return found_at(op, "stack-escapes", "the stack is not created in this model")
    return found_at(op, "stack-escapes", f"the handle may be that of one of {count} stacks")


def _legacy(op: Operation) -> Diagnostic:
    return found_at(
        op, "stack-version", "this version of the op can't be converted", "export the graph with a newer TensorFlow"
    )


Lists = dict[TensorStack, Value]
"""The current list of each stack."""


def to_lists(calls: Calls, stacks: TensorStacks) -> None:
    """Converts stacks to lists in all functions; handles become unused numbers."""
    stacks.handles.retype({stacks.handles.find(_handle(op)) for op in stacks.of}, HANDLE_TYPE)
    carried: dict[Block, list[TensorStack]] = {}
    for stack in dict.fromkeys(stacks.of.values()):
        for block in stack.carriers:
            carried.setdefault(block, []).append(stack)
    changed = dict.fromkeys([*carried, *(stack.root for stack in stacks.of.values())])
    for block in changed:
        _rewrite(block, stacks, carried, calls)


def _rewrite(block: Block, stacks: TensorStacks, carried: Mapping[Block, Sequence[TensorStack]], calls: Calls) -> None:
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


def _call(op: Operation, taken: Sequence[TensorStack], lists: Lists) -> None:
    """Passes the current lists of stacks to an op; its results become the current lists."""
    if taken:
        op.properties.pop("output_shapes", None)
        made = change_signature(op, [*op.operands, *(lists[stack] for stack in taken)], (), [LIST_TYPE] * len(taken))
        lists.update(zip(taken, made.results[-len(taken) :], strict=True))


def _pad_attributes(block: Block, arguments: int, results: int) -> None:
    """Adds empty attributes for added arguments and results if the others have attributes."""
    function = block.parent_op()
    assert isinstance(function, FuncOp)
    for key, added in (("arg_attrs", arguments), ("res_attrs", results)):
        present = function.properties.get(key)
        if isinstance(present, ArrayAttr):
            function.properties[key] = ArrayAttr.get([*present.data, *[DictionaryAttr.get({})] * added])


def _new(op: Operation, stack: TensorStack, lists: Lists) -> Sequence[Value]:
    insert = TFBuilder(op)
    handle = insert.constant(np.array(0, np.int32))
    kind = types.list_of(types.tensor(stack.element, stack.shape))
    lists[stack] = insert.tf("EmptyTensorList", (_shape(insert, stack), insert.number(-1)), kind)
    return [handle]


def _push(op: Operation, stack: TensorStack, lists: Lists) -> Sequence[Value]:
    lists[stack] = TFBuilder(op).tf("TensorListPushBack", (lists[stack], op.operands[1]), LIST_TYPE)
    return [op.operands[1]]


def _pop(op: Operation, stack: TensorStack, lists: Lists) -> Sequence[Value]:
    insert = TFBuilder(op)
    operands = (lists[stack], _shape(insert, stack))
    made = insert.tf_op("TensorListPopBack", operands, [LIST_TYPE, types.tensor(stack.element, stack.shape)])
    lists[stack] = made.results[0]
    return [made.results[1]]


def _close(op: Operation, stack: TensorStack, lists: Lists) -> Sequence[Value]:
    return []


# Op -> its rewrite for lists, which returns the replacements of the op's results.
_OPS: Mapping[str, Callable[[Operation, TensorStack, Lists], Sequence[Value]]] = {
    CLOSE: _close,
    NEW: _new,
    POP: _pop,
    PUSH: _push,
}


def _shape(insert: TFBuilder, stack: TensorStack) -> Value:
    """Returns the elements' shape as an operand of ops of lists."""
    return insert.constant(np.array(-1 if stack.shape is None else stack.shape, np.int32))
