"""Pass `simplify-control-flow`: folds branches and loops that constants decide, and drops dead values.

A branch that is always taken replaces its `If` or `Case`. A loop of at most `unroll_up_to` iterations is unrolled, and
a loop that never runs is replaced by its operands. Then shapes and constants are inferred again. Pass-through results
are replaced by operands, constants sink into the functions that use them, loop-invariant products are hoisted, and dead
arguments, results and loop variables are dropped.

Before:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0:2 = "tf.If"(%p, %x, %y) <{then_branch = @exp, else_branch = @neg, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      %true = "tf.Const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      %1 = "tf.If"(%true, %x) <{then_branch = @abs, else_branch = @sign, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0#0, %1 : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @exp(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %y : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @neg(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %x : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @abs(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @sign(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Sign"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = "tf.If"(%p, %x) <{then_branch = @exp, else_branch = @neg, is_stateless = true}>
          : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }
    func.func private @exp(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    func.func private @neg(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tfconvert.converter.control_flow.constructs import (
    Construct,
    construct,
    decided_branch,
    inline_body,
    pass_through_operands,
    sink_constants,
    trip_count,
)
from tfconvert.converter.control_flow.loop_variables import drop_unused, hoist
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase, replace_op
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.shapes import flow
from tfconvert.schema.dialects import tf
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import budget


@dataclass(frozen=True, slots=True)
class SimplifyControlFlow:
    """Folds control flow that constants decide, and drops dead values.

    Attributes:
        unroll_up_to: Maximum number of iterations of loops to unroll. In LiteRT a loop costs only about 1.5 us, and
            0.2 us per iteration, so the default doesn't let models grow for it.
        unrolled_ops: Maximum number of ops of an unrolled loop.
        unrolls: Whether to unroll a loop of several iterations; by default, any.
    """

    unroll_up_to: int = 1
    unrolled_ops: int = 1000
    unrolls: Callable[[Construct], bool] | None = None
    name: ClassVar[str] = "simplify-control-flow"

    def apply(self, module: ModuleOp) -> PassResult:
        outside = symbol_table.names_outside(module)
        applied: Counter[str] = Counter()
        while True:
            functions = functions_of(module)
            if len(functions) < 2:
                return PassResult(applied)  # no control flow
            work = _Work(functions, outside, self)
            work.decide()
            while work.prune():
                pass
            applied += work.applied
            if work.applied:
                symbol_table.erase_unreferenced(functions, outside)
            if not work.applied["decide"] + work.applied["unroll"]:
                return PassResult(applied)
            # Folding may expose more to fold.
            flow.infer(functions_of(module), outside)


class _Work:
    """The constructs of a module; those in callers come before those in callees.

    Attributes:
        applied: How often each simplification was applied.
    """

    def __init__(self, functions: dict[str, FuncOp], outside: Sequence[str], limits: SimplifyControlFlow) -> None:
        self.applied: Counter[str] = Counter()
        self._functions = functions
        self._limits = limits
        self._references = Counter(outside)
        self._references.update(name for name, function in functions.items() if not symbol_table.is_private(function))
        self._inside: dict[str, list[Operation]] = {}
        for name, function in functions.items():
            self._inside[name] = [op for op in function.body.walk() if op.name in KINDS]
            for op in self._inside[name]:
                self._references.update(set(symbol_table.names(op)))
        self._ops: list[Operation] = []

    def _is_own(self, found: Construct) -> bool:
        """Returns whether a construct's functions have no other users."""
        return all(self._references[function.sym_name] == 1 for function in found.functions)

    def decide(self) -> None:
        """Folds and forwards, callers first; the replacements of a construct are visited, too."""
        seen: set[str] = set()
        todo = [op for name in reversed(self._inside) if self._is_root(name) for op in reversed(self._inside[name])]
        while todo:
            op = todo.pop()
            found = construct(op, self._functions)
            if found is None:
                continue
            placed = self._place(found)
            if placed is not None:
                todo += reversed(placed)
                continue
            self._ops.append(self._hoisted(found).op)
            for function in found.functions:
                name = function.sym_name
                if name not in seen:
                    seen.add(name)
                    todo += reversed(self._inside[name])

    def _is_root(self, name: str) -> bool:
        return not symbol_table.is_private(self._functions[name]) or not self._references[name]

    def _place(self, found: Construct) -> list[Operation] | None:
        """Replaces a construct that constants decide; returns the new constructs, `None` if nothing changed."""
        if found.kind is Kind.LOOP:
            return self._unroll(found)
        choice = decided_branch(found) if found.kind is Kind.BRANCHES else None
        if choice is None:
            self._forward(found)
            return None
        self.applied["decide"] += 1
        placed, values = self._inlined(found.functions[choice], found.given, found.op, is_last=self._is_own(found))
        replace_op(found.op, values)
        return placed

    def _unroll(self, found: Construct) -> list[Operation] | None:
        body = found.functions[1]
        count = trip_count(found, self._limits.unroll_up_to)
        made = count * sum(1 for _ in body.body.walk()) if count is not None and count > 1 else 0
        unrolls = self._limits.unrolls
        is_too_large = made > min(self._limits.unrolled_ops, budget().operations)
        if count is None or is_too_large or (made and unrolls is not None and not unrolls(found)):
            self._forward(found)
            return None
        budget().take_operations(made, found.op.name)
        self.applied["unroll"] += 1
        values: list[Value] = list(found.given)
        placed: list[Operation] = []
        for left in reversed(range(count)):
            inside, values = self._inlined(body, values, found.op, is_last=not left and self._is_own(found))
            placed += inside
        replace_op(found.op, values)
        return placed

    def _inlined(
        self, function: FuncOp, operands: Sequence[Value], before: Operation, *, is_last: bool
    ) -> tuple[list[Operation], list[Value]]:
        """Inlines a function; returns the constructs among its ops, and what it returns."""
        previous = before.prev_op
        values = inline_body(function.body.block, operands, before, moves=is_last)
        if is_last:
            return self._inside[function.sym_name], values
        placed: list[Operation] = []
        block = before.parent
        assert block is not None
        op = block.first_op if previous is None else previous.next_op
        while op is not None and op is not before:
            placed += [inner for inner in op.walk() if inner.name in KINDS]
            op = op.next_op
        for inner in placed:
            self._references.update(set(symbol_table.names(inner)))
        return placed, values

    def _forward(self, found: Construct) -> None:
        for index, value in pass_through_operands(found).items():
            result = found.op.results[index]
            if result.first_use is not None:
                self.applied["forward"] += 1
                result.replace_all_uses_with(value)
        if self._is_own(found):
            self.applied["sink"] += sink_constants(found)
            self.applied = +self.applied

    def _hoisted(self, found: Construct) -> Construct:
        """Returns a construct, or the loop that replaces it after hoisting."""
        if found.kind is not Kind.LOOP or not self._is_own(found):
            return found
        made = hoist(found)
        self.applied["hoist"] += made is not found
        self.applied = +self.applied
        return made

    def prune(self) -> bool:
        """Drops dead values, callers first and then callees first; returns whether there were any."""
        before = self.applied["drop"]
        self._ops = [op for op in map(self._pruned, self._ops) if op is not None]
        if self.applied["drop"] != before:
            self._ops = [op for op in map(self._pruned, reversed(self._ops)) if op is not None]
            self._ops.reverse()
        changed = self.applied["drop"] != before
        self.applied = +self.applied
        return changed

    def _pruned(self, op: Operation) -> Operation | None:
        """Returns the rest of a construct, or `None`."""
        if op.parent is None:
            return None
        if all(result.first_use is None for result in op.results) and not tf.has_side_effects(op):
            self.applied["drop"] += 1
            erase(op)
            return None
        found = construct(op, self._functions)
        if found is None or not self._is_own(found):
            return op
        made = drop_unused(found)
        if made is None:
            return op
        self.applied["drop"] += 1
        return made
