"""Pass `inline`: replaces calls by the bodies of the functions they call, and drops functions that nothing calls.

A body with one caller is moved before the calls in it are inlined. A body with several callers is copied, after its own
calls have been inlined. A function that calls itself, directly or through others, is an error.

Before:

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.PartitionedCall"(%arg0) <{f = @relu}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @relu(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from tfconvert.converter.composites.marks import is_marked
from tfconvert.converter.control_flow.calls import inline_call
from tfconvert.converter.ir.edit import update_function_type
from tfconvert.converter.ir.op_counts import count_operations
from tfconvert.converter.ir.symbol_table import erase_unreferenced, is_private, names, names_outside
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.call_interfaces import CALLS, callees
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.limits import budget


class Inline:
    """Inlines every call of a function of the module."""

    __slots__ = ()

    name: ClassVar[str] = "inline"

    def apply(self, module: ModuleOp) -> PassResult:
        """Inlines calls and erases private functions without uses; returns how many ops of each name are left."""
        functions = functions_of(module)
        inside = {name: list(function.body.walk()) for name, function in functions.items()}
        calls = {name: _calls(ops) for name, ops in inside.items()}
        if not any(calls.values()) and not any(map(is_private, functions.values())):
            return NOTHING_DONE._replace(operations=count_operations(module))
        outside = names_outside(module)
        references = _count_references(functions, inside.values()) + Counter(outside)
        shared = {name for name, count in references.items() if count > 1}
        order = _callees_first(functions, calls)
        moved, spending = _moved(functions, calls, references), budget()
        for name in order:
            if name in moved or not calls[name]:
                continue
            pending = calls[name][::-1]
            while pending:
                call = pending.pop()
                callee_name = _callee(call)
                callee, is_last = functions[callee_name], references[callee_name] == 1
                if not is_last:
                    spending.take_operations(_size(callee), f"the function {callee_name!r}")
                inline_call(call, callee, is_last=is_last, note_call=callee_name in shared or is_marked(callee))
                references[callee_name] -= 1
                if callee_name in moved:
                    pending += reversed(calls[callee_name])
            update_function_type(functions[name])
        erase_unreferenced(functions, outside)
        return NOTHING_DONE._replace(operations=count_operations(module))


def _calls(ops: list[Operation]) -> list[Operation]:
    if CALLS.isdisjoint([op.name for op in ops]):
        return []
    return [op for op in ops if op.name in CALLS]


def _callee(call: Operation) -> str:
    return next(iter(callees(call)), "")


def _moved(functions: dict[str, FuncOp], calls: dict[str, list[Operation]], references: Counter[str]) -> set[str]:
    """Returns the functions whose bodies are moved to their only callers before the calls in them are inlined.

    So an op at the end of a chain of calls is moved once, not once for each call.
    """
    called = {_callee(call) for ops in calls.values() for call in ops}
    return {name for name in called if references[name] == 1 and not is_marked(functions[name])}


def _count_references(functions: dict[str, FuncOp], inside: Iterable[list[Operation]]) -> Counter[str]:
    """Returns the number of references to each function; being exported counts as one more."""
    count = Counter(name for ops in inside for op in ops if op.properties or op.attributes for name in names(op))
    for name, function in functions.items():
        if not is_private(function):
            count[name] += 1
    return count


def _callees_first(functions: dict[str, FuncOp], calls: dict[str, list[Operation]]) -> list[str]:
    order: list[str] = []
    state: dict[str, str] = {}
    stack = [(name, False) for name in reversed(functions)]
    while stack:
        name, is_ready = stack.pop()
        if is_ready:
            state[name] = "done"
            order.append(name)
            continue
        if state.get(name) == "done":
            continue
        state[name] = "open"
        stack.append((name, True))
        for call in calls[name]:
            callee = _callee(call)
            if callee not in functions:
                raise error(
                    "missing-function",
                    f"there is no function {callee!r}",
                    op=call.name,
                    hint="the model file is damaged",
                )
            if state.get(callee) == "open":
                raise error(
                    "recursive-function",
                    f"the function {callee!r} calls itself",
                    op=call.name,
                    hint="LiteRT has no recursion; write it as a loop",
                )
            if callee not in state:
                stack.append((callee, False))
    return order


def _size(function: FuncOp) -> int:
    return sum(1 for _ in function.body.walk())
