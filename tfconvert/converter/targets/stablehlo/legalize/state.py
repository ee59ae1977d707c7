"""Variables become values: functions get what variables hold, and return what they hold afterwards.

    func.func private @body(%i: tensor<i32>) -> tensor<i32>           // reads and assigns the variable "v"
    func.func private @body(%i: tensor<i32>, %v: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)

Functions are rewritten callees first, so that an op that runs functions knows what they take and return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.control_flow.constructs import change_signature
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, update_function_type
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.resource_ops.initial_values import ASSIGN, HANDLE, variable_name
from tfconvert.schema.dialects.call_interfaces import LOOPS
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import TensorType
from tfconvert.schema.ir.values import BlockArgument, Value

_READ = "tf.ReadVariableOp"
_ASKED = "tf.VarIsInitializedOp"

ACCESSES = frozenset({_READ, ASSIGN, _ASKED})
"""The ops on variables that become values."""


class _Uses(NamedTuple):
    """The variables that functions use, in order, and those of them that are assigned."""

    used: dict[str, None]
    written: dict[str, None]


class Carried(NamedTuple):
    """The variables that a public function reads and writes.

    Attributes:
        function: The function.
        taken: The arguments that it needs, by variable.
        left: What variables hold when it returns, of those that it may have assigned.
    """

    function: FuncOp
    taken: Mapping[str, BlockArgument]
    left: Mapping[str, Value]


class StateCarrier:
    """Replaces the accesses of variables in a module's functions.

    Args:
        module: The module, in which every function that branches and loops run has one caller.
        kinds: The variables' types.
    """

    def __init__(self, module: ModuleOp, kinds: Mapping[str, TensorType]) -> None:
        self._kinds = kinds
        self._calls = Calls(module)
        self._order = [each for each in symbol_table.callees_first(functions_of(module)) if each.body.blocks]
        own: dict[Block, _Uses] = {}
        self._of_op: dict[Operation, _Uses] = {}
        for function in self._order:
            own[function.body.block] = self._collected(function.body.block, own)
        for block, uses in own.items():
            calls = self._calls.to.get(block, ())
            own[block] = self._of_op[calls[0].op] if calls else uses
        self._of_block = own

    def _collected(self, block: Block, known: Mapping[Block, _Uses]) -> _Uses:
        uses = _Uses({}, {})
        for op in block.ops:
            if op.name in ACCESSES and (name := accessed(op) or "") in self._kinds:
                uses.used[name] = None
                if op.name == ASSIGN:
                    uses.written[name] = None
            for call in self._calls.of.get(op, ()):
                group = self._of_op.setdefault(op, _Uses({}, {}))
                group.used.update(known[call.block].used)
                group.written.update(known[call.block].written)
            if op in self._of_op:
                uses.used.update(self._of_op[op].used)
                uses.written.update(self._of_op[op].written)
        return uses

    def run(self) -> list[Carried]:
        """Rewrites all functions; returns the public ones that use variables.

        What these take and leave is not in their signatures yet: arguments are there, to be kept or replaced.
        """
        public = []
        for function in self._order:
            block = function.body.block
            uses = self._of_block[block]
            if not uses.used:
                continue
            taken = {name: block.insert_arg(self._kinds[name], len(block.args)) for name in uses.used}
            held = self._replaced(block, taken)
            if not symbol_table.is_private(function):
                public.append(_carried(function, taken, {name: held[name] for name in uses.written}))
                continue
            for key in ("arg_attrs", "res_attrs"):
                function.properties.pop(key, None)  # nothing reads the names of a private function's values
            self._return(function, [held[name] for name in self._returned(block, uses)])
        return public

    def _returned(self, block: Block, uses: _Uses) -> Iterable[str]:
        call = self._calls.to[block][0]
        if call.is_condition:
            return ()
        return uses.used if call.is_loop else uses.written

    def _return(self, function: FuncOp, values: Sequence[Value]) -> None:
        last = function.body.block.last_op
        assert last is not None
        last.set_operands([*last.operands, *values])
        update_function_type(function)

    def _replaced(self, block: Block, taken: Mapping[str, Value]) -> dict[str, Value]:
        """Replaces the accesses in a block; returns what variables hold at its end."""
        held = dict(taken)
        handles = []
        for op in tuple(block.ops):
            if op.name == HANDLE:
                handles.append(op)
            elif op.name in ACCESSES and (name := accessed(op) or "") in held:
                self._access(op, name, held)
            elif op in self._of_op and self._of_op[op].used:
                uses = self._of_op[op]
                results = list(uses.used if op.name in LOOPS else uses.written)
                operands = [*op.operands, *[held[name] for name in uses.used]]
                made = change_signature(op, operands, (), [self._kinds[name] for name in results])
                held.update(zip(results, made.results[len(made.results) - len(results) :], strict=True))
        for handle in handles:
            if handle.results[0].is_unused:
                erase(handle)
        return held

    def _access(self, op: Operation, name: str, held: dict[str, Value]) -> None:
        if op.name == _READ:
            op.results[0].replace_all_uses_with(held[name])
        elif op.name == ASSIGN:
            value = op.operands[1]
            if value.type != self._kinds[name]:
                # Its shape is the variable's, but not known to be: values that are carried have one type.
                insert = TFBuilder(op)
                value = insert.tf("Reshape", (value, insert.ints(self._kinds[name].shape)), self._kinds[name])
            held[name] = value
        else:
            op.results[0].replace_all_uses_with(TFBuilder(op).constant(np.array(True)))
        erase(op)


def accessed(op: Operation) -> str | None:
    """Returns the name of the variable that an op accesses, `None` if its handle comes from elsewhere."""
    handle = op.operands[0].owner
    return variable_name(handle) if isinstance(handle, Operation) and handle.name == HANDLE else None


def _carried(function: FuncOp, taken: dict[str, BlockArgument], left: Mapping[str, Value]) -> Carried:
    block = function.body.block
    needed = set(left.values())
    for name, argument in reversed(tuple(taken.items())):
        if argument.is_unused and argument not in needed:
            block.erase_arg(argument)
            del taken[name]
    return Carried(function, taken, left)
