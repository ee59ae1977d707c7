"""The driver of rewrites: those that are made by default are kept if they add no operator."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import ClassVar

from tfconvert.converter.ir import edit
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.rewrite.rewriter import Rewriter, is_unused
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Rewrite
from tfconvert.converter.targets.litert.forms.questions import RESHAPES, source_of
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

# If the ops of a function are rewritten this many times on average, it counts as a cycle.
_REWRITES_PER_OP = 32

# Operators of which several copies may be inserted for one operand.
_REPEATED = ("cast", "reshape")


def rewrite(
    region: Region, candidate: Callable[[tfl.TFLOp], Candidate], rows_of: Callable[[str], Sequence[Rewrite] | None]
) -> Counter[str]:
    """Rewrites operators as long as that helps.

    Args:
        region: The body of a function.
        candidate: Returns an operator as one that may be rewritten.
        rows_of: Returns the rewrites that start at an op of a name.

    Returns:
        The number of times that each rewrite was applied.
    """
    applied: Counter[str] = Counter()
    made: dict[int, Operation] = {}
    waiting = deque(op for block in region.blocks for op in block.ops if isinstance(op, tfl.TFLOp))
    limit = _REWRITES_PER_OP * len(waiting) + 1024
    while waiting:
        op = waiting.popleft()
        rows = rows_of(op.name)
        if not rows or op.parent is None:
            continue
        found = candidate(op).apply(rows)
        if found is not None:
            name, changed = found
            applied[name] += 1
            if applied.total() > limit:
                raise error_at(op, "rewrite-cycle", f"rewriting for accelerators doesn't terminate at {name}")
            made.update((id(each), each) for each in changed)
            waiting.extendleft(reversed([each for each in changed if isinstance(each, tfl.TFLOp)]))
    for block in region.blocks if made else ():
        _merge(block, made)
    return applied


def _merge(block: Block, made: Container[int]) -> None:
    """Merges casts and reshapes of one value to one type that rewrites have inserted, and reshapes of reshapes.

    Copies stay: they are reshapes to the operand's type.

    Args:
        block: The block.
        made: The ids of the ops that were inserted or changed.
    """
    first: dict[tuple[str, Value, object], Operation] = {}
    for op in block.ops:
        name = op.name.removeprefix(tfl.PREFIX)
        if name not in _REPEATED or id(op) not in made:
            continue
        value, kind = op.operands[0], op.results[0].type
        if name == "reshape" and value.type != kind and (source := source_of(value)) is not value:
            op.set_operand(0, source)
            _erase_unused(value.owner)
            if source.type == kind:
                edit.replace_op(op, source)
                continue
        before = first.setdefault((op.name, op.operands[0], kind), op)
        if before is not op:
            edit.replace_op(op, before.results[0])


def _erase_unused(owner: object) -> None:
    """Erases a chain of reshapes, up to the first one that is used."""
    while isinstance(owner, tfl.TFLOp) and owner.op_name in RESHAPES and is_unused(owner):
        before = owner.operands[0].owner
        owner.erase()
        owner = before


class Trial(Rewriter):
    """A rewriter that keeps the changes to what was there until they are accepted."""

    __slots__ = ("_changes", "_results")

    def __init__(self, root: Operation) -> None:
        super().__init__()
        self.root = root
        self._changes: list[Callable[[], None]] | None = []
        self._results: list[Value] = []

    def replace(self, values: Operation | Value | Sequence[Value]) -> None:
        self._results += (
            values.results if isinstance(values, Operation) else [values] if isinstance(values, Value) else values
        )
        self.later(lambda: Rewriter.replace(self, values))

    def replace_value(self, old: Value, new: Value) -> None:
        self._results.append(new)
        self.later(lambda: Rewriter.replace_value(self, old, new))

    def erase(self, op: Operation) -> None:
        self.later(lambda: Rewriter.erase(self, op))

    def accept(self) -> None:
        """Makes the changes; erases what replaces a result that is not used."""
        changes, self._changes = self._changes or [], None
        for change in changes:
            change()
        for op in reversed(self._changed):
            if op.parent is not None and is_unused(op):
                op.erase()
        self._changed = [op for op in self._changed if op.parent is not None]

    def made(self) -> list[tfl.TFLOp]:
        """Returns the operators that were inserted and are of use; erases the others."""
        for op in reversed(self._changed):
            if all(result.first_use is None and result not in self._results for result in op.results):
                op.erase()
        self._changed = [op for op in self._changed if op.parent is not None]
        return [op for op in self._changed if isinstance(op, tfl.TFLOp) and tfl.is_node(op)]

    def reject(self) -> None:
        """Erases what was inserted."""
        for op in reversed(self._changed):
            op.erase()

    def later(self, change: Callable[[], None]) -> None:
        """Makes a change once the rewrite is accepted."""
        if self._changes is None:
            change()
        else:
            self._changes.append(change)


class Candidate:
    """An operator that is rewritten by default, if that adds no operator.

    Attributes:
        op: The operator.
        as_integers: Whether floats will be quantized.
        is_for_gpu: Whether the file is for GPUs.
    """

    is_default: ClassVar[bool] = True

    def __init__(self, op: tfl.TFLOp, *, as_integers: bool, is_for_gpu: bool = False) -> None:
        self.op = op
        self.as_integers = as_integers
        self.is_for_gpu = is_for_gpu

    def apply(self, rows: Sequence[Rewrite]) -> tuple[str, list[Operation]] | None:
        """Applies the first rewrite that helps; returns its name, and the ops that it may have made rewritable."""
        for row in rows:
            if not self.is_due(row) or not _is_fed(self.op, row.producers):
                continue
            trial = Trial(self.op)
            build = FormBuilder(trial, is_default=self.is_default, as_integers=self.as_integers)
            try:
                trial.replace(row.emit(self.op, build))
            except Declined:
                trial.reject()
                continue
            if self.is_better(row, trial.made()):
                trial.accept()
                changed, _ = trial.finish(tfl.has_side_effects)
                return row.name, [*changed, *_users(changed)]
            trial.reject()
        return None

    def is_due(self, row: Rewrite) -> bool:
        """Returns whether a rewrite is for the operator."""
        element = self.op.results[0].element
        if row.only_for and (row.only_for == "gpu") != self.is_for_gpu:
            return False
        return element in row.default or type(element) in row.default

    def is_better(self, row: Rewrite, made: Sequence[tfl.TFLOp]) -> bool:
        """Returns whether to keep a rewrite, by the operators that it has made."""
        return row.adds or len(made) <= _replaced(self.op)


def _replaced(op: tfl.TFLOp) -> int:
    """Returns the number of operators that nothing uses once an op is replaced, itself included."""
    gone, pending = {op}, [op]
    while pending:
        for value in pending.pop().operands:
            owner = value.owner
            if isinstance(owner, tfl.TFLOp) and owner not in gone and tfl.is_node(owner):
                uses = (use.operation for result in owner.results for use in result.uses)
                if all(each in gone for each in uses) and not tfl.has_side_effects(owner):
                    gone.add(owner)
                    pending.append(owner)
    return len(gone)


def _is_fed(op: Operation, names: frozenset[str]) -> bool:
    """Returns whether an op of one of some names defines an operand; any op does if there are no names."""
    return not names or not names.isdisjoint([value.op.name for value in op.operands if type(value) is OpResult])


def _users(ops: Iterable[Operation]) -> list[Operation]:
    return [use.operation for op in ops for result in op.results for use in result.uses]
