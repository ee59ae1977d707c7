"""The calls of a module's functions, and their inlining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import dims, types
from tfconvert.schema.dialects.call_interfaces import INTERFACES, CallInterface, Kind, callees
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import CallSiteLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


class FunctionCall(NamedTuple):
    """One function that an op calls.

    Attributes:
        op: The op.
        block: The function's body.
        is_condition: Whether it is a loop's condition, whose result is not a result of the op.
    """

    op: Operation
    block: Block
    is_condition: bool

    @property
    def is_loop(self) -> bool:
        return INTERFACES[self.op.name].kind is Kind.LOOP

    @property
    def first(self) -> int:
        """The operand that is the function's first argument."""
        return INTERFACES[self.op.name].first_operand

    @property
    def returned(self) -> tuple[Value, ...]:
        """The values that the function returns."""
        terminator = self.block.last_op
        return () if terminator is None else tuple(terminator.operands)

    def same(self) -> Iterator[tuple[Value, Value]]:
        """Yields pairs of values that are forwarded unchanged."""
        yield from zip(self.block.args, islice(self.op.operands, self.first, None), strict=False)
        if not self.is_condition:
            yield from zip(self.op.results, self.returned, strict=False)
        if self.is_loop and not self.is_condition:
            yield from zip(self.block.args, self.returned, strict=False)


class Calls:
    """All calls of a module.

    Attributes:
        functions: The functions that have bodies, by name.
        of: The functions that an op calls.
        to: The calls of a body.
    """

    __slots__ = ("functions", "of", "to")

    def __init__(self, module: ModuleOp) -> None:
        """Collects the calls of a module."""
        self.functions: Mapping[str, FuncOp] = defined_functions(module)
        self.of: dict[Operation, tuple[FunctionCall, ...]] = {}
        self.to: dict[Block, list[FunctionCall]] = {}
        for function in self.functions.values():
            for op in function.body.block.ops:
                interface = INTERFACES.get(op.name)
                if interface is not None:
                    self._note(op, interface)

    def _note(self, op: Operation, interface: CallInterface) -> None:
        names = callees(op)
        if len(names) < (interface.arity or 0):
            raise error_at(op, "bad-operand", "an attribute that should name a function doesn't")
        is_loop = interface.kind is Kind.LOOP
        self.of[op] = tuple(
            FunctionCall(op, self.functions[name].body.block, is_loop and index == 0)
            for index, name in enumerate(names)
            if name in self.functions
        )
        for call in self.of[op]:
            self.to.setdefault(call.block, []).append(call)

    def update_types(self) -> None:
        """Updates the types of functions and the result types of calls after types of values have changed."""
        for function in self.functions.values():
            update_function_type(function)
        for op in self.of:
            op.properties.pop("output_shapes", None)


def inline_call(
    call: Operation, callee: FuncOp, *, is_last: bool, note_call: bool
) -> tuple[list[Operation], list[Value]]:
    """Replaces a call by the callee's body; returns the inlined ops, and the values of the results.

    Args:
        call: The call.
        callee: The called function.
        is_last: Whether the body has no other users: it is moved instead of copied.
        note_call: Whether locations include the call. A function with one caller doesn't need it, unless it declares
            what it implements: such functions have equal names of nodes.
    """
    block = call.parent
    assert block is not None
    body = _body(call, callee)
    values, body = (_opened if is_last else _copied)(body, call.operands[:])
    ops = list(body.ops)
    if note_call:
        for op in ops:
            op.location = CallSiteLoc.get(op.location, call.location)
    block.insert_ops_before(body, call)
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
    """Returns whether caller and callee have compatible types of a value."""
    first, second = one.element, other.element
    if types.dereferenced(first) != types.dereferenced(second):
        return False
    return dims.compatible(one.shape, other.shape)


def _bad_call(call: Operation, message: str) -> ConversionError:
    return error_at(call, "bad-call", message, "the model file is damaged")


def _opened(body: Block, operands: Sequence[Value]) -> tuple[list[Value], Block]:
    """Replaces a body's arguments by operands and erases its terminator; returns its results, and the body."""
    for argument, operand in zip(body.args, operands, strict=True):
        argument.replace_all_uses_with(operand)
    terminator = body.last_op
    assert terminator is not None
    values = list(terminator.operands)
    terminator.erase()
    return values, body


def _copied(body: Block, operands: Sequence[Value]) -> tuple[list[Value], Block]:
    """Returns the results of a copy of a body that has operands for its arguments, and the copy."""
    mapping: dict[Value, Value] = dict(zip(body.args, operands, strict=True))
    *originals, terminator = body.ops
    copy = Block([op.clone(mapping) for op in originals])
    return [mapping.get(value, value) for value in terminator.operands], copy
