"""The driver of rewrites: one for accelerators is tried, and kept if the verdicts on what it makes are better.

One that is made by default is kept if it adds no operator.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from tfconvert.converter.ir import edit
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.rewrite.rewriter import Rewriter, is_unused
from tfconvert.converter.targets.litert.accelerator_check import is_node, verdict_of
from tfconvert.converter.targets.litert.accelerators.builder import (
    MAX_RANK,
    PREPARES,
    AcceleratorBuilder,
    Rewrite,
    source_of,
)
from tfconvert.converter.targets.litert.accelerators.rewrites import made_by_default, rewrites_of
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, OK, REFUSED, UNKNOWN, WRONG

# How bad an outcome is.
_HARM: Mapping[str, int] = {OK: 0, UNKNOWN: 1, REFUSED: 2, WRONG: 3, CRASHES: 4, LOAD_FAILS: 5}

# If the ops of a function are rewritten this many times on average, it counts as a cycle.
_REWRITES_PER_OP = 32

# Operators of which several copies may be inserted for one operand.
_REPEATED = ("cast", "reshape")


class _Trial(Rewriter):
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
        self._later(lambda: Rewriter.replace(self, values))

    def replace_value(self, old: Value, new: Value) -> None:
        self._results.append(new)
        self._later(lambda: Rewriter.replace_value(self, old, new))

    def erase(self, op: Operation) -> None:
        self._later(lambda: Rewriter.erase(self, op))

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
        return [op for op in self._changed if isinstance(op, tfl.TFLOp) and is_node(op)]

    def reject(self) -> None:
        """Erases what was inserted."""
        for op in reversed(self._changed):
            op.erase()

    def _later(self, change: Callable[[], None]) -> None:
        if self._changes is None:
            change()
        else:
            self._changes.append(change)


def rewrite(region: Region, accelerators: Sequence[str] = (), *, as_integers: bool = False) -> Counter[str]:
    """Rewrites operators that an accelerator does not take, or computes wrongly, as long as that helps.

    Args:
        region: The body of a function.
        accelerators: Keys of `acceptance.ACCELERATORS`; if there are none, what is made by default is.
        as_integers: Whether floats will be quantized, so that operators of integers count, too.

    Returns:
        The number of times that each rewrite was applied.
    """
    applied: Counter[str] = Counter()
    made: dict[int, Operation] = {}
    waiting = deque(op for block in region.blocks for op in block.ops if isinstance(op, tfl.TFLOp))
    limit = _REWRITES_PER_OP * len(waiting) + 1024
    rows_of = rewrites_of if accelerators else made_by_default({op.name for op in waiting}).get
    while waiting:
        op = waiting.popleft()
        rows = rows_of(op.name)
        if not rows or op.parent is None:
            continue
        choice = _Better(op, accelerators, as_integers) if accelerators else _Default(op, as_integers)
        found = choice.apply(rows)
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

    Args:
        block: The block.
        made: The ids of the ops that were inserted or changed.
    """
    first: dict[tuple[str, Value, object], Operation] = {}
    for op in block.ops:
        name = op.name.removeprefix(tfl.PREFIX)
        if name not in _REPEATED or id(op) not in made:
            continue
        if name == "reshape" and (source := source_of(op.operands[0])) is not op.operands[0]:
            skipped = op.operands[0].owner
            op.set_operand(0, source)
            while isinstance(skipped, tfl.TFLOp) and is_unused(skipped):
                (value, *_), erased = skipped.operands, skipped
                erased.erase()
                skipped = value.owner
        before = first.setdefault((op.name, op.operands[0], op.results[0].type), op)
        if before is not op:
            edit.replace_op(op, before.results[0])


class _Default:
    """Rewrites an operator by default, if that adds no operator.

    Args:
        op: The operator.
        as_integers: Whether floats will be quantized.
    """

    def __init__(self, op: tfl.TFLOp, as_integers: bool) -> None:
        self.op = op
        self._as_integers = as_integers

    def apply(self, rows: Sequence[Rewrite]) -> tuple[str, list[Operation]] | None:
        """Applies the first rewrite that helps; returns its name, and the ops that it may have made rewritable."""
        for row in rows:
            if not self.is_due(row):
                continue
            trial = _Trial(self.op)
            build = AcceleratorBuilder(trial, is_default=type(self) is _Default, as_integers=self._as_integers)
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
        element = types.element_of(self.op.results[0].type)
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
            if isinstance(owner, tfl.TFLOp) and owner not in gone and is_node(owner):
                uses = (use.operation for result in owner.results for use in result.uses)
                if all(each in gone for each in uses) and not tfl.has_side_effects(owner):
                    gone.add(owner)
                    pending.append(owner)
    return len(gone)


class _Better(_Default):
    """Rewrites an operator if accelerators take what replaces it, or at least compute it right.

    Args:
        op: The operator.
        accelerators: The accelerators.
        as_integers: Whether floats will be quantized.
    """

    def __init__(self, op: tfl.TFLOp, accelerators: Sequence[str], as_integers: bool) -> None:
        super().__init__(op, as_integers)
        self._accelerators = accelerators
        self._harm = _harm([op], accelerators, as_integers)

    def is_due(self, row: Rewrite) -> bool:
        return any(self._harm)

    def is_better(self, row: Rewrite, made: Sequence[tfl.TFLOp]) -> bool:
        after = _harm([each for each in made if not is_border(each)], self._accelerators, self._as_integers)
        is_no_worse = all(new <= old for new, old in zip(after, self._harm, strict=True))
        return is_no_worse and (after != self._harm or row.benefit >= PREPARES)


def _users(ops: Iterable[Operation]) -> list[Operation]:
    return [use.operation for op in ops for result in op.results for use in result.uses]


def _harm(ops: Sequence[tfl.TFLOp], accelerators: Sequence[str], as_integers: bool) -> list[int]:
    """Returns how bad the worst verdict on ops is, for each accelerator."""
    return [max((_harm_of(op, name, as_integers) for op in ops), default=0) for name in accelerators]


def _harm_of(op: tfl.TFLOp, accelerator: str, as_integers: bool) -> int:
    harm = _HARM[verdict_of(op, accelerator).outcome]
    if harm and as_integers:
        return min(harm, _HARM[verdict_of(op, accelerator, as_integers=True).outcome])
    return harm


def is_border(op: tfl.TFLOp) -> bool:
    """Returns whether an op leads to a form that accelerators take, or back to the one that its users expect.

    Where users are rewritten, too, two of them cancel each other out.
    """
    if op.op_name == "reshape":
        return any(len(types.shape_of(value.type) or ()) > MAX_RANK for value in (op.operands[0], op.results[0]))
    return op.op_name == "cast" and any(
        types.element_of(value.type) == types.I64 for value in (op.operands[0], op.results[0])
    )
