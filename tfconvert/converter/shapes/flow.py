"""Interprocedural shape inference: from callers into branches and bodies, and back.

If only one op runs a function, the function's arguments have the facts of that op's operands. A loop's variables start
with the facts of the loop's operands. Then the body is analysed and its results are joined with its arguments, until
nothing changes. Dimensions that differ become unknown, so each can change only once. The facts of a function's
arguments are kept between visits of the op that runs it. Therefore a function in nested loops of any depth is analysed
only a few times more than its arguments change.

The arguments of functions with several or unknown callers, and of exported ones, have the types that they declare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.control_flow.constructs import Construct, body_of, branch_of, construct, invariants, returned
from tfconvert.converter.ir import symbol_table
from tfconvert.converter.ir.edit import erase_dead, update_function_type
from tfconvert.converter.ir.tasks import Task, drive
from tfconvert.converter.shapes.facts import Fact, fact_of, join
from tfconvert.converter.shapes.sweep import Folded, Inferred, Sweep
from tfconvert.ops.operands import Known
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.call_interfaces import IFS, KINDS, Kind, callees
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_executor import ExecutorOp
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.values import Value

# After this many iterations the dimensions of a loop's variables are widened, and after twice as many their ranks.
_MAX_ROUNDS = 8


class _Body:
    """A function, and its facts.

    Attributes:
        function: The function.
        blocks: Its blocks.
        is_fixed: Whether its arguments have exactly their declared types.
        is_loop: Whether it is part of a loop.
        entry: The facts of its arguments; `None` until a caller is analysed.
        is_stale: Whether `entry` has changed since its last analysis.
        is_open: Whether its analysis is in progress.
        results: The known facts of its results.
        folded: The results of its folded ops.
        invariant: The arguments that a loop's body returns at the same index.
    """

    __slots__ = (
        "_invariant",
        "blocks",
        "entry",
        "folded",
        "function",
        "is_fixed",
        "is_loop",
        "is_open",
        "is_stale",
        "results",
    )

    def __init__(
        self,
        function: FuncOp,
        blocks: Sequence[Block],
        is_fixed: bool,
        is_loop: bool = False,
        entry: list[Fact] | None = None,
        is_stale: bool = True,
        is_open: bool = False,
        results: list[Fact] | None = None,
        folded: Folded | None = None,
    ) -> None:
        self.function = function
        self.blocks = blocks
        self.is_fixed = is_fixed
        self.is_loop = is_loop
        self.entry = entry
        self.is_stale = is_stale
        self.is_open = is_open
        self.results = results
        self.folded: Folded = {} if folded is None else folded
        self._invariant: frozenset[int] | None = None

    @property
    def invariant(self) -> frozenset[int]:
        if self._invariant is None:
            self._invariant = invariants(self.blocks[0])
        return self._invariant

    def enter(self, facts: Iterable[Fact]) -> bool:
        """Joins the facts of the arguments with those of a caller's operands; returns whether they changed."""
        if self.is_fixed:
            return False
        joined = list(facts) if self.entry is None else list(map(join, self.entry, facts))
        if joined == self.entry:
            return False
        self.entry, self.is_stale = joined, True
        return True

    def widen(self, *, keeps_ranks: bool) -> None:
        """Widens the variables of a loop that doesn't converge."""
        self.enter(
            fact if index in self.invariant else Fact((-1,) * len(fact.shape) if keeps_ranks and fact.shape else None)
            for index, fact in enumerate(self.entry or ())
        )


def infer(functions: Mapping[str, FuncOp], outside: Iterable[str] = ()) -> None:
    """Refines types and folds constants in all functions.

    Args:
        functions: The module's functions.
        outside: Names that ops outside functions refer to.
    """
    _Flow(functions, outside).run()


class _Flow:
    """The functions of a module during the analysis."""

    def __init__(self, functions: Mapping[str, FuncOp], outside: Iterable[str]) -> None:
        self._functions = functions
        self._known = Known()
        self._inferred: Inferred = {}
        self._bodies: dict[FuncOp, _Body] = {}
        self._entered: list[_Body] = []
        single = _run_by_one(functions, outside) if len(functions) > 1 else {}
        for name, function in functions.items():
            kind = single.get(name)
            self._bodies[function] = _Body(
                function, tuple(function.body.blocks), is_fixed=kind is None, is_loop=kind is Kind.LOOP
            )

    def run(self) -> None:
        """Analyses all functions and updates the IR: callers first, then the functions that they run."""
        for body in self._bodies.values():
            if body.is_fixed and body.is_stale:
                drive(self._task(body, writes=True))
        for body in self._entered:
            drive(self._task(body, writes=True))  # adds functions that this one runs
        for body in self._bodies.values():
            if body.is_stale:
                body.is_fixed = True
                drive(self._task(body, writes=True))

    def _task(self, body: _Body, *, writes: bool) -> Task[Any]:
        """Analyses a function and those that it runs."""
        body.is_open, body.is_stale = True, False
        sweeps: list[Block] = []
        todo = list(reversed(body.blocks))
        while todo:
            block = todo.pop()
            sweeps.append(block)
            yield from self._sweep(body, block, todo if writes else None, writes=writes)
        if len(body.blocks) == 1:
            facts = [fact_of(self._known, value) for value in returned(body.blocks[0])]
            body.results = [fact.without_symbols() for fact in facts] if body.is_fixed else facts
        if writes:
            for block in reversed(sweeps):
                erase_dead(block)
            update_function_type(body.function)
        body.is_open = False

    def _sweep(self, body: _Body, block: Block, inner: list[Block] | None, *, writes: bool) -> Task[Any]:
        """Sweeps one block; the blocks in its ops' regions follow later, except for those of executor graphs."""
        is_outermost = block in body.blocks
        sweep = Sweep(
            block,
            self._known,
            writes=writes,
            tolerates=symbol_table.is_private(body.function),
            folded=None if body.is_fixed else body.folded,
            inferred=self._inferred,
        )
        if body.results is not None and not body.is_fixed:
            self._forget(block)
        sweep.enter(body.entry if is_outermost and not body.is_fixed else None, keeps_returns=body.is_loop)
        for op in tuple(block.ops):
            if op.name in tensor_data.CONSTANT_OPS:
                sweep.note_constant(op)
            elif op.name in KINDS and (found := construct(op, self._functions)) is not None:
                yield from self._run_construct(found, sweep)
            elif op.results:
                sweep.visit(op)
            if op.regions and inner is not None and not isinstance(op, ExecutorOp):
                inner += [block for region in op.regions for block in region.blocks]

    def _forget(self, block: Block) -> None:
        for op in block.ops:
            for result in op.results:
                self._known.forget(result)

    def _run_construct(self, found: Construct, sweep: Sweep) -> Task[Any]:
        """Analyses the functions that an op runs, and records its results."""
        operands = [fact_of(self._known, value) for value in found.given]
        bodies = [self._bodies[function] for function in found.functions]
        if found.kind is Kind.LOOP:
            facts = yield from self._loop(found, bodies, operands)
        else:
            taken = bodies if found.kind is Kind.CALL else self._taken(found, bodies)
            for number, body in enumerate(bodies):
                if body in taken:
                    self._enter(body, _in_branch(found, number, operands))
                    yield from self._settle(body)
            facts = _joined([body.results for body in taken], found.op.results)
        sweep.settle(found.op, facts)

    def _taken(self, found: Construct, bodies: list[_Body]) -> list[_Body]:
        """Returns the branches that may be taken."""
        value = self._known.array(found.op.operands[0])
        choice = None if value is None else branch_of(found, value)
        return bodies if choice is None else [bodies[choice]]

    def _loop(self, found: Construct, bodies: list[_Body], operands: list[Fact]) -> Task[Any]:
        condition, body = bodies
        constant = body.invariant
        operands = [fact if index in constant else fact.without_elements() for index, fact in enumerate(operands)]
        self._enter(body, operands)
        for rounds in range(2 * _MAX_ROUNDS + 2):
            yield from self._settle(body)
            again = body.results or [_declared(value) for value in found.op.results]
            entry = operands if body.entry is None else body.entry
            again = [entry[index] if index in constant else fact.without_elements() for index, fact in enumerate(again)]
            if not body.enter(again):
                break
            if rounds >= _MAX_ROUNDS:
                body.widen(keeps_ranks=rounds < 2 * _MAX_ROUNDS)
        entry = [join(*pair) for pair in zip(operands, again, strict=True)] if body.entry is None else body.entry
        self._enter(condition, entry)
        yield from self._settle(condition)
        return entry

    def _enter(self, body: _Body, facts: Iterable[Fact]) -> None:
        if body.entry is None and not body.is_fixed:
            self._entered.append(body)
        body.enter(facts)

    def _settle(self, body: _Body) -> Task[Any]:
        """Analyses a function if its arguments have changed, except for recursive calls."""
        if body.is_stale and not body.is_open:
            yield self._task(body, writes=body.is_fixed)


def _run_by_one(functions: Mapping[str, FuncOp], outside: Iterable[str]) -> dict[str, Kind]:
    """Returns the private functions that only one op runs, and how."""
    count = Counter(outside)
    kinds: dict[str, Kind] = {}
    for function in functions.values():
        for op in function.body.walk():
            named = set(callees(op)) if op.name in KINDS else ()
            for name in named:
                kinds[name] = KINDS[op.name]
                # The operands of a `func.call` must have exactly the types of the callee's arguments.
                count[name] += 1 if op.name != "func.call" else 2
    return {
        name: kind
        for name, kind in kinds.items()
        if count[name] == 1
        and name in functions
        and symbol_table.is_private(functions[name])
        and body_of(functions[name])
    }


def _declared(value: Value) -> Fact:
    return Fact(value.shape)


def _in_branch(found: Construct, number: int, operands: list[Fact]) -> list[Fact]:
    """Returns the operands' facts in a branch; the condition is true in the first and false in the second."""
    if found.op.name not in IFS or found.op.operands[0].element != types.I1:
        return operands
    decided = Fact((), tensor_data.of_array(np.array(not number), types.I1))
    condition = found.op.operands[0]
    is_scalar = condition.shape == ()
    return [
        decided if is_scalar and value is condition else fact for value, fact in zip(found.given, operands, strict=True)
    ]


def _joined(results: Sequence[Sequence[Fact] | None], declared: Sequence[Value]) -> list[Fact]:
    """Returns the joined facts of the branches' results; an unknown branch has those of the types."""
    ways = [list(map(_declared, declared)) if facts is None else facts for facts in results]
    first, *others = ways
    for other in others:
        first = list(map(join, first, other))
    return list(first)
