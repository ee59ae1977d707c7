"""The driver of rewrites for accelerators: a rewrite is tried, and kept if the verdicts on what it makes are better."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from tfconvert.converter.ir import edit
from tfconvert.converter.rewrite.pattern import Declined, Failure
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.accelerator_check import is_node, verdict_of
from tfconvert.converter.targets.litert.accelerators.builder import PREPARES
from tfconvert.converter.targets.litert.accelerators.rewrites import patterns_for
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, OK, REFUSED, UNKNOWN, WRONG

# How bad an outcome is.
_HARM: Mapping[str, int] = {OK: 0, UNKNOWN: 1, REFUSED: 2, WRONG: 3, CRASHES: 4, LOAD_FAILS: 5}

_MAX_RANK = 4

# Operators of which several copies may be inserted for one operand.
_REPEATED = ("cast", "reshape")


class _Trial(Rewriter):
    """A rewriter that keeps the changes to what was there until they are accepted."""

    __slots__ = ("_changes",)

    def __init__(self, root: Operation) -> None:
        super().__init__()
        self.root = root
        self._changes: list[Callable[[], None]] | None = []

    def replace(self, values: Operation | Value | Sequence[Value]) -> None:
        self._later(lambda: Rewriter.replace(self, values))

    def replace_value(self, old: Value, new: Value) -> None:
        self._later(lambda: Rewriter.replace_value(self, old, new))

    def erase(self, op: Operation) -> None:
        self._later(lambda: Rewriter.erase(self, op))

    def accept(self) -> None:
        """Makes the changes."""
        changes, self._changes = self._changes or [], None
        for change in changes:
            change()

    def reject(self) -> None:
        """Erases what was inserted."""
        for op in reversed(self._changed):
            op.erase()

    def _later(self, change: Callable[[], None]) -> None:
        if self._changes is None:
            change()
        else:
            self._changes.append(change)


def rewrite(region: Region, accelerators: Sequence[str]) -> Counter[str]:
    """Rewrites operators that an accelerator does not take, or computes wrongly, as long as that helps.

    Args:
        region: The body of a function.
        accelerators: Keys of `acceptance.ACCELERATORS`.

    Returns:
        The number of times that each rewrite was applied.
    """
    applied: Counter[str] = Counter()
    made: dict[int, Operation] = {}
    waiting = deque(op for block in region.blocks for op in block.ops if isinstance(op, tfl.TFLOp))
    while waiting:
        op = waiting.popleft()
        if op.parent is None or not is_node(op):
            continue
        found = _better(op, accelerators)
        if found is not None:
            name, changed = found
            applied[name] += 1
            made.update((id(each), each) for each in changed)
            waiting.extendleft(reversed([each for each in changed if isinstance(each, tfl.TFLOp)]))
    for block in region.blocks:
        _merge(block, made)
    return applied


def _merge(block: Block, made: Container[int]) -> None:
    """Merges casts and reshapes of one value to one type that rewrites have inserted.

    Args:
        block: The block.
        made: The ids of the ops that were inserted or changed.
    """
    first: dict[tuple[str, Value, object], Operation] = {}
    for op in block.ops:
        if op.name.removeprefix(tfl.PREFIX) in _REPEATED and id(op) in made:
            before = first.setdefault((op.name, op.operands[0], op.results[0].type), op)
            if before is not op:
                edit.replace_op(op, before.results[0])


def _better(op: tfl.TFLOp, accelerators: Sequence[str]) -> tuple[str, list[Operation]] | None:
    """Applies the first rewrite that helps; returns its name, and the ops that it may have made rewritable."""
    patterns = patterns_for(op.name).for_root(op.name)
    if not patterns:
        return None
    harm = _harm([op], accelerators)
    if not any(harm):
        return None
    for pattern in patterns:
        match = pattern.match(op)
        if isinstance(match, Failure):
            continue
        trial = _Trial(op)
        try:
            pattern.rewrite(op, match, trial)
        except Declined:
            trial.reject()
            continue
        made = [each for each in trial.touched() if isinstance(each, tfl.TFLOp) and is_node(each)]
        after = _harm([each for each in made if not is_border(each)], accelerators)
        is_no_worse = all(new <= old for new, old in zip(after, harm, strict=True))
        if is_no_worse and (after != harm or pattern.benefit >= PREPARES):
            trial.accept()
            changed, _ = trial.finish(tfl.has_side_effects)
            return pattern.name, [*changed, *_users(changed)]
        trial.reject()
    return None


def _users(ops: Iterable[Operation]) -> list[Operation]:
    return [use.operation for op in ops for result in op.results for use in result.uses]


def _harm(ops: Sequence[tfl.TFLOp], accelerators: Sequence[str]) -> list[int]:
    """Returns how bad the worst verdict on ops is, for each accelerator."""
    return [max((_HARM[verdict_of(op, name).outcome] for op in ops), default=0) for name in accelerators]


def is_border(op: tfl.TFLOp) -> bool:
    """Returns whether an op leads to a form that accelerators take, or back to the one that its users expect.

    Where users are rewritten, too, two of them cancel each other out.
    """
    if op.op_name == "reshape":
        return any(len(types.shape_of(value.type) or ()) > _MAX_RANK for value in (op.operands[0], op.results[0]))
    return op.op_name == "cast" and any(
        types.element_of(value.type) == types.I64 for value in (op.operands[0], op.results[0])
    )
