"""How values flow into functions and out of them: pairs of operands, arguments and results that are one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from tfconvert.converter.ir.edit import update_function_type
from tfconvert.schema.dialects.call_interfaces import INTERFACES, CallInterface, Kind, callees
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Call(NamedTuple):
    """One function that an op calls.

    Attributes:
        op: The op.
        block: The function's body.
        is_condition: Whether it is a loop's condition, whose result is none of the op's.
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
        """Yields pairs of values of which one is forwarded as the other."""
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
        self.of: dict[Operation, tuple[Call, ...]] = {}
        self.to: dict[Block, list[Call]] = {}
        for function in self.functions.values():
            for op in function.body.block.ops:
                interface = INTERFACES.get(op.name)
                if interface is not None:
                    self._note(op, interface)

    def _note(self, op: Operation, interface: CallInterface) -> None:
        names = callees(op)
        if len(names) < (interface.arity or 0):
            raise error_at(op, "bad-operand", "an attribute that should name a function names none")
        is_loop = interface.kind is Kind.LOOP
        self.of[op] = tuple(
            Call(op, self.functions[name].body.block, is_loop and index == 0)
            for index, name in enumerate(names)
            if name in self.functions
        )
        for call in self.of[op]:
            self.to.setdefault(call.block, []).append(call)

    def update_types(self) -> None:
        """Updates the types of functions, and the result types of calls, after values' types have changed."""
        for function in self.functions.values():
            update_function_type(function)
        for op in self.of:
            op.properties.pop("output_shapes", None)
