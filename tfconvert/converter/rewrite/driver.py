"""The greedy worklist driver: applies patterns until none matches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter, is_unused, ops_within
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.locations import error_at
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.operation import Operation

# If the ops of a function are rewritten this many times on average, it counts as a cycle.
_REWRITES_PER_OP = 32

# Number of recent rewrites that the error about a cycle considers.
_TRACE = 1024

# Number of repetitions of the last rewrites that count as a cycle.
_REPEATED = 3

Effects = Callable[[Operation], bool]


def rewrite_greedily(region: Region, patterns: PatternSet, has_side_effects: Effects) -> Counter[str]:
    """Rewrites a region's ops until no pattern matches, and erases dead ops on the way.

    Ops are visited in program order, those in nested regions before the enclosing op. Ops that may match after a
    rewrite are visited again: new ops, users of new values, the last user of a value that lost one, and the ops that
    these feed, up to the depth of the patterns.

    Args:
        region: The region; its ops are in topological order, and stay so.
        patterns: The patterns.
        has_side_effects: Returns whether an op must not be erased although nothing uses it.

    Returns:
        The number of times that each pattern was applied.

    Raises:
        ConversionError: The patterns undo each other indefinitely (`rewrite-cycle`).
    """
    worklist = _Worklist(region, patterns)
    limit = _REWRITES_PER_OP * worklist.size + 1024
    applied: Counter[str] = Counter()
    trace: deque[str] = deque(maxlen=_TRACE)
    rewriter = Rewriter()
    ops, waiting, match = worklist.ops, worklist.waiting, patterns.match
    unvisited = len(ops)
    while ops:
        op = ops.pop()
        waiting.discard(op)
        # On the first visit, the ops that this one feeds are still waiting, if all others were inserted before roots.
        rewriter.users_wait = len(ops) < unvisited and not rewriter.inserts_anywhere
        if rewriter.users_wait:
            unvisited = len(ops)
        if op.parent is None:  # erased since it was enqueued
            continue
        results = op.results
        if results and results[0].first_use is None and is_unused(op) and not has_side_effects(op):
            rewriter.root = op
            rewriter.erase(op)
            worklist.push(*rewriter.finish(has_side_effects))
            continue
        found = match(op)
        if found is None:
            continue
        pattern, matched = found
        rewriter.root = op
        pattern.rewrite(op, matched, rewriter)
        worklist.push(*rewriter.finish(has_side_effects), with_fed=not rewriter.users_wait)
        applied[pattern.name] += 1
        limit -= 1
        if limit < _TRACE:
            trace.append(pattern.name)
            if limit < 0:
                raise _cycle(op, list(trace))
    return applied


class _Worklist:
    """The ops to visit, the next one last: those that a pattern may start at, and unused ones.

    Attributes:
        ops: The ops.
        size: The initial number of ops, including those that aren't visited.
        waiting: The same ops, as a set.
    """

    __slots__ = ("_farthest", "_reach", "ops", "size", "waiting")

    def __init__(self, region: Region, patterns: PatternSet) -> None:
        reach = self._reach = patterns.reach
        self._farthest = max(reach.values(), default=0)
        self.size = 0
        self.ops: list[Operation] = []
        for block in region.blocks:
            op = block.first_op
            while op is not None:
                if op.regions:
                    inner = [*ops_within(op)]
                    self.size += len(inner)
                    self.ops += [each for each in inner if each.name in reach or is_unused(each)]
                self.size += 1
                if op.name in reach or ((results := op.results) and results[0].first_use is None and is_unused(op)):
                    self.ops.append(op)
                op = op.next_op
        self.ops.reverse()
        self.waiting = set(self.ops)

    def push(self, changed: list[Operation], dropped: list[Operation], with_fed: bool = True) -> None:
        """Adds ops to visit.

        Args:
            changed: New ops, and ops whose operands changed or lost another user. Ops that they feed may also match.
            dropped: Ops whose results lost a use.
            with_fed: Whether ops that changed ones feed may not be waiting.
        """
        if with_fed and self._farthest > 1:
            self._add(reversed(self._fed_by(changed)))
        self._add(changed)
        if dropped:
            self._add(dropped)

    def _add(self, ops: Iterable[Operation]) -> None:
        waiting, reach = self.waiting, self._reach
        for op in ops:
            if op not in waiting and (
                op.name in reach or ((results := op.results) and results[0].first_use is None and is_unused(op))
            ):
                waiting.add(op)
                self.ops.append(op)

    def _fed_by(self, ops: list[Operation]) -> list[Operation]:
        """Returns the ops fed by changed ones whose patterns look as far as the change, nearest first.

        The changed ops are the producers of operands of `changed`, one step farther away than those.
        """
        seen = set(ops)
        found: list[Operation] = []
        for distance in range(2, self._farthest + 1):
            ops = _users(ops, seen)
            found.extend(op for op in ops if self._reach.get(op.name, 0) >= distance)
        return found


def _users(ops: list[Operation], seen: set[Operation]) -> list[Operation]:
    """Returns the users of ops' results that are not in `seen`, and adds them."""
    users: list[Operation] = []
    for op in ops:
        for result in op.results:
            use = result.first_use
            while use is not None:
                user = use.operation
                if user not in seen:
                    seen.add(user)
                    users.append(user)
                use = use.next
    return users


def _cycle(op: Operation, trace: list[str]) -> ConversionError:
    names = _period(trace)
    return error_at(
        op,
        "rewrite-cycle",
        f"rewriting doesn't terminate; these patterns undo each other: {' -> '.join([*names, names[0]])}",
        "this is a defect of the converter, or of a pattern passed to it; please report it",
    )


def _period(trace: list[str]) -> list[str]:
    """Returns the shortest repeated sequence at the end of a trace, or all names in it."""
    for length in range(1, len(trace) // _REPEATED + 1):
        if trace[-length:] * _REPEATED == trace[-length * _REPEATED :]:
            return trace[-length:]
    return list(dict.fromkeys(trace))
