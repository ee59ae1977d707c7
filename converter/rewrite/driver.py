"""The greedy worklist driver: applies patterns until none matches (design §6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from xdsl.ir import Operation, Region

from converter.rewrite.pattern import Failure, PatternSet
from converter.rewrite.rewriter import Rewriter
from schema.diagnostics import error

_REWRITES_PER_OP = 32
"""A function whose ops are each rewritten this often, on average, is taken to cycle."""

_TRACE = 64
"""How many of the last rewrites the error about a cycle looks at."""


def rewrite_greedily(
    region: Region, patterns: PatternSet, has_side_effects: Callable[[Operation], bool]
) -> Counter[str]:
    """Rewrites a region's ops until no pattern matches, and erases dead ops on the way.

    Ops are taken in program order; new ops, users of new values and producers that lost a use are taken again. Ops in
    nested regions are not entered.

    Args:
        region: What to rewrite; its ops' order is topological and stays so.
        patterns: The patterns.
        has_side_effects: Tells which ops may not be erased although nothing uses them.

    Returns:
        How often each pattern was applied.

    Raises:
        ConversionError: The patterns undo each other for ever (`rewrite-cycle`).
    """
    worklist = [op for block in region.blocks for op in block.ops]
    worklist.reverse()
    waiting = set(map(id, worklist))  # ids are safe: the worklist keeps the ops; hashing an op is a Python call
    limit = _REWRITES_PER_OP * len(worklist) + 1024
    applied: Counter[str] = Counter()
    trace: list[str] = []

    def enqueue(op: Operation) -> None:
        key = id(op)
        if key not in waiting:
            waiting.add(key)
            worklist.append(op)

    rewriter = Rewriter(enqueue)
    buckets = patterns.for_root
    while worklist:
        op = worklist.pop()
        waiting.discard(id(op))
        if op.parent is None:  # erased since it was enqueued
            continue
        if _is_unused(op) and not has_side_effects(op):
            rewriter.erase(op)
            continue
        for pattern in buckets(op.name):
            match = pattern.match(op)
            if isinstance(match, Failure):
                continue
            rewriter.root = op
            pattern.rewrite(op, match, rewriter)
            applied[pattern.name] += 1
            trace.append(pattern.name)
            if len(trace) > limit:
                raise _cycle(op, trace)
            break
    return applied


def _is_unused(op: Operation) -> bool:
    for result in op.results:
        if result.first_use is not None:
            return False
    return bool(op.results)


def _cycle(op: Operation, trace: list[str]) -> Exception:
    names = ", ".join(dict.fromkeys(trace[-_TRACE:]))
    return error("rewrite-cycle", f"rewriting doesn't come to an end; the patterns {names} undo each other", op=op.name,
                 hint="this is a defect of the converter, or of a pattern given to it; please report it")  # fmt: skip
