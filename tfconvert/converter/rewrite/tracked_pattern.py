"""The user's patterns while a pass applies them: errors name the pattern, and the ops that it declines are recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

from tfconvert.converter.process.guard import Guard
from tfconvert.converter.rewrite.pattern import Declaration, Failure, Pattern
from tfconvert.converter.rewrite.program import Program
from tfconvert.converter.rewrite.questions import Found
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.locations import error_at, node_of
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.operation import Operation

BAD, UNUSED = "bad-pattern", "unused-pattern"
"""Codes: an error in a pattern's functions, and a pattern that never matched."""

# Maximum number of nearest misses in the note about a pattern.
_NEAREST = 3


CUSTOM = f"{tfl.PREFIX}{tfl.CUSTOM}"
"""The op that calls a user's custom operator."""


def custom_code(op: Operation) -> str:
    """Returns the name of the custom operator that an op calls, or an empty string."""
    code = op.properties.get(tfl.CUSTOM_CODE) if op.name == CUSTOM else None
    return code.data if isinstance(code, StringAttr) else ""


def not_allowed(name: str, code: str) -> Diagnostic:
    """Returns the error about a pattern that makes a custom operator without permission."""
    message = f"pattern {name!r} makes the custom op {code!r}, and custom ops aren't allowed"
    return Diagnostic("wrong-option", message, hint="pass allow_custom_ops=True, or --allow-custom-ops")


class Miss(NamedTuple):
    """An op that a pattern declines.

    Attributes:
        passed: The number of the pattern's questions with accepted answers.
        node: The op's node.
        reason: Why it declines.
    """

    passed: int
    node: str
    reason: str


class TrackedPattern:
    """A user's pattern.

    Args:
        pattern: The pattern.
        ops: The ops that it could start at before any rewrite.
        codes: The custom operators that it may create; `None` for any.
    """

    __slots__ = ("_codes", "_declaration", "_missed", "_original", "_started", "pattern")

    def __init__(self, pattern: Pattern[Any], ops: Iterable[Operation], codes: Set[str] | None = None) -> None:
        self._original = pattern
        self._codes = codes
        self._declaration = pattern.declaration
        roots = [op for op in ops if op.name == pattern.root]
        self._started = len(roots)
        self._missed = list(_forms(pattern.declaration, roots)) if pattern.declaration is not None else []
        declaration = None if pattern.declaration is None else self
        self.pattern = pattern._replace(match=self._match, rewrite=self._rewrite, declaration=declaration)

    @property
    def programs(self) -> Sequence[Program]:
        """The questions of the pattern's declaration."""
        return () if self._declaration is None else self._declaration.programs

    def conclude(self, program: Program, found: Found) -> Any | Failure:
        """Checks the conditions of the pattern's declaration."""
        assert self._declaration is not None
        with Guard(partial(self._mistake, found[0])):
            result = self._declaration.conclude(program, found)
        return self._noted(found[0], result, len(program.asked))

    def _match(self, op: Operation) -> Any:
        with Guard(partial(self._mistake, op)):
            result = self._original.match(op)
        return self._noted(op, result, 0)

    def _rewrite(self, op: Operation, match: Any, rewriter: Rewriter) -> None:
        with Guard(partial(self._mistake, op)):
            self._original.rewrite(op, match, rewriter)
        if self._codes is not None:
            strange = sorted({custom_code(each) for each in rewriter.touched()} - {*self._codes, ""})
            if strange:
                raise ConversionError([not_allowed(self._original.name, strange[0])])

    def _noted(self, op: Operation, result: Any, passed: int) -> Any:
        if isinstance(result, Failure):
            self._missed.append(Miss(passed, node_of(op.location), result.reason))
        return result

    def _mistake(self, op: Operation, problem: str) -> ConversionError:
        hint = "correct the pattern's functions, or its results"
        return error_at(op, BAD, f"the pattern {self._original.name!r} {problem}", hint)

    def unused(self) -> Diagnostic:
        """Returns the note about a pattern that was never applied, with the nearest misses."""
        name, root = self._original.name, self._original.root
        if not self._started and not self._missed:
            return Diagnostic(
                UNUSED, f"the pattern {name!r} never matched: there is no {root} at that stage", severity=NOTE
            )
        nearest = sorted(dict.fromkeys(self._missed), key=lambda miss: -miss.passed)
        by_reason: dict[str, Miss] = {}
        for miss in nearest:
            by_reason.setdefault(miss.reason, miss)
        counts = Counter(miss.reason for miss in nearest)
        reasons = [_description(miss, counts[miss.reason], self._questions()) for miss in by_reason.values()]
        taken = "" if reasons else "; another pattern went first wherever it fits: give it a higher benefit"
        text = "; ".join(reasons[:_NEAREST])
        return Diagnostic(
            UNUSED, f"the pattern {name!r} never matched{taken}{', nearest: ' + text if reasons else ''}", severity=NOTE
        )

    def _questions(self) -> int:
        return max((len(program.asked) for program in self.programs), default=0)


def _description(miss: Miss, count: int, questions: int) -> str:
    where = f"at {miss.node}" if miss.node else "at an op without a name"
    more = f" and {count - 1} more" if count > 1 else ""
    share = f" ({miss.passed} of {questions} conditions on its form hold)" if miss.passed < questions else ""
    return f"{where}{more}, {miss.reason}{share}"


def _forms(declaration: Declaration, ops: Iterable[Operation]) -> Iterable[Miss]:
    """Yields the ops whose form differs from a pattern's, without calling functions of the user."""
    for op in ops:
        best = Miss(-1, "", "")
        for program in declaration.programs:
            found, passed = program.run(op)
            if passed == len(program.asked):
                break
            if passed > best.passed:
                best = Miss(passed, node_of(op.location), program.reason(found, passed))
        else:
            yield best


def unused(watched: Iterable[TrackedPattern], applied: Mapping[str, int]) -> list[Diagnostic]:
    """Returns notes about patterns that were never applied.

    Args:
        watched: The patterns.
        applied: The number of times that patterns were applied, by name.
    """
    return [each.unused() for each in watched if not applied.get(each.pattern.name)]
