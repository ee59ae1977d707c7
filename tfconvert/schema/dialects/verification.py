"""Finds the op that breaks a module's rules, and tells it so that somebody can repair it.

`Operation.verify` of xDSL says that something is wrong and calls itself once a nested region. Here the walk has a
stack of its own, sees the innermost broken op first, and also checks what xDSL leaves out: that every operand is
defined before it is used, in the same block or in one around it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import DiagnosticException

from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects.locations import place_of

_MAX_LINES = 12
_MAX_COLUMNS = 160
_MAX_TEXT = 2_000

_RULE_BROKEN = (DiagnosticException, ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What verifiers raise: their own error, and Python's when an op is so wrong that a look at it fails."""


@dataclass(frozen=True, slots=True)
class Broken:
    """An op that breaks a rule.

    Attributes:
        op: The innermost op concerned.
        reason: Which rule, and how.
    """

    op: Operation
    reason: str

    def diagnostic(self, code: str, introduction: str = "", hint: str = "") -> Diagnostic:
        """Returns the finding with the op's place and its shortened text.

        Args:
            code: The diagnostic's code.
            introduction: What comes before the reason.
            hint: What the user can do.
        """
        place = place_of(self.op.location)
        message = f"{introduction}{self.reason}\n{excerpt(self.op)}"
        return Diagnostic(code, message, op=self.op.name, node=place.node, location=str(place), hint=hint)


def first_broken(root: Operation) -> Broken | None:
    """Returns the first op, innermost first, that breaks a rule; `None` if all is well."""
    return _Walk(root).run()


@dataclass(frozen=True, slots=True)
class _Leave:
    """The mark at which all that is inside an op or a region has been seen."""

    what: Operation | Region


class _Walk:
    """A walk over all ops in program order, with the values that are visible at each."""

    def __init__(self, root: Operation) -> None:
        self._pending: list[Operation | Region | _Leave] = [root]
        self._visible: set[SSAValue] = set()
        self._trail: list[SSAValue] = []
        self._marks: list[int] = []

    def run(self) -> Broken | None:
        """Walks until something is broken."""
        while self._pending:
            item = self._pending.pop()
            if isinstance(item, Operation):
                broken = self._enter(item)
            elif isinstance(item, Region):
                broken = self._open(item)
            else:
                broken = self._leave(item.what)
            if broken is not None:
                return broken
        return None

    def _enter(self, op: Operation) -> Broken | None:
        for number, operand in enumerate(op.operands):
            if operand not in self._visible:
                name = f" (%{operand.name_hint})" if operand.name_hint else ""
                return Broken(op, f"operand {number}{name} is not defined before its use")
        self._pending.append(_Leave(op))
        self._pending.extend(reversed(op.regions))
        return None

    def _open(self, region: Region) -> Broken | None:
        self._pending.append(_Leave(region))
        self._marks.append(len(self._trail))
        parent = region.parent_op()
        several = len(region.blocks) > 1
        for block in region.blocks:
            self._define(block.args)
            if several:
                # The order in which blocks run is theirs to decide; only the scope is checked.
                for op in block.ops:
                    self._define(op.results)
            elif parent is not None and block.last_op is None and not parent.has_trait(NoTerminator):
                return Broken(parent, "its block is empty, but must end in a terminator")
        for block in reversed(region.blocks):
            self._pending.extend(_reversed_ops(block))
        return None

    def _leave(self, what: Operation | Region) -> Broken | None:
        if isinstance(what, Region):
            start = self._marks.pop()
            self._visible.difference_update(self._trail[start:])
            del self._trail[start:]
            return None
        self._define(what.results)
        try:
            what.verify(verify_nested_ops=False)
        except _RULE_BROKEN as problem:
            return Broken(what, str(problem).strip() or f"its verifier failed with {type(problem).__name__}")
        return None

    def _define(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            if value not in self._visible:
                self._visible.add(value)
                self._trail.append(value)


def _reversed_ops(block: Block) -> list[Operation]:
    ops = list(block.ops)
    ops.reverse()
    return ops


class _Full(Exception):  # noqa: N818 - no error, but the end of an excerpt
    """Enough has been printed."""


class _Excerpt(io.StringIO):
    """A stream that stops its writer when it has enough, so that a huge op is not printed whole."""

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.tell() > _MAX_TEXT:
            raise _Full
        return written


def excerpt(op: Operation) -> str:
    """Returns an op's text in the generic form, indented and cut to a dozen lines."""
    stream = _Excerpt()
    try:
        Printer(stream, print_generic_format=True).print_op(op)
        whole = True
    except _Full:
        whole = False
    lines = stream.getvalue().splitlines()
    shown = [line if len(line) <= _MAX_COLUMNS else f"{line[: _MAX_COLUMNS - 3]}..." for line in lines[:_MAX_LINES]]
    if len(lines) > _MAX_LINES or not whole:
        shown.append("...")
    return "\n".join(f"    {line}" for line in shown)
