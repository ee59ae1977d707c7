"""Verifies a module, and reports the op that breaks a rule so that it can be repaired.

The walk has a stack of its own, sees the innermost broken op first, and checks what is true of all ops (operands are
defined before they are used, in the same block or in one around it; blocks end in terminators; calls name functions)
in addition to what each op's definition requires.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter
from typing import NamedTuple

from tfconvert.ops import relations
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects.func import CallOp
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.dialects.stablehlo import StableHLOOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import SymbolTable
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.printer import Printer
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.values import Value

_MAX_LINES = 12
_MAX_COLUMNS = 160
_MAX_TEXT = 2_000

_TYPE = attrgetter("type")

# The exceptions of verifiers: their own, and Python's for ops too malformed to inspect.
_RULE_BROKEN = (VerifyError, ValueError, LookupError, TypeError, AttributeError, AssertionError)


class Broken(NamedTuple):
    """An op that breaks a rule.

    Attributes:
        op: The innermost op concerned.
        reason: The broken rule.
    """

    op: Operation
    reason: str

    def diagnostic(self, code: str, introduction: str = "", hint: str = "") -> Diagnostic:
        """Returns the finding with the op's place and its shortened text.

        Args:
            code: The diagnostic's code.
            introduction: The text before the reason.
            hint: What the user can do.
        """
        place = place_of(self.op.location)
        message = f"{introduction}{self.reason}\n{excerpt(self.op)}"
        return Diagnostic(code, message, op=self.op.name, node=place.node, location=str(place), hint=hint)


def first_broken(root: Operation, *, with_elements: bool = True) -> Broken | None:
    """Returns the first op, innermost first, that breaks a rule; `None` if the module is valid.

    Args:
        root: The op to check, with everything inside it.
        with_elements: Whether `tfl` ops may only have element types that the dialect lists.
    """
    return _Walk(root, with_relations=True, with_elements=with_elements).run()


def verify(root: Operation, *, with_relations: bool = True) -> None:
    """Checks an op and everything inside it.

    Args:
        root: The op.
        with_relations: Whether to check that shapes and types of operands, results and options agree.

    Raises:
        VerifyError: An op breaks a rule.
    """
    broken = _Walk(root, with_relations).run()
    if broken is not None:
        raise VerifyError(f"{broken.op.name}: {broken.reason}")


class _Leave(NamedTuple):
    """Marks the end of the ops inside an op or a region."""

    what: Operation | Region


class _Walk:
    """A walk over all ops in program order, with the values that are visible at each."""

    def __init__(self, root: Operation, with_relations: bool, with_elements: bool = True) -> None:
        self._with_relations = with_relations
        self._with_elements = with_elements
        self._pending: list[Operation | Region | _Leave] = [root]
        # The operands of the root itself are defined elsewhere.
        self._visible: set[Value] = set(root.operands)
        self._trail: list[Value] = []
        self._marks: list[int] = []
        self._symbols: SymbolTable | None = None
        # What determines whether ops of StableHLO keep to their rules, of those that do.
        self._valid: set[Hashable] = set()

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
        if not self._visible.issuperset(op.operands):
            number, operand = next(each for each in enumerate(op.operands) if each[1] not in self._visible)
            name = f" (%{operand.name_hint})" if operand.name_hint else ""
            return Broken(op, f"operand {number}{name} is not defined before its use")
        if not op.regions:
            return self._leave(op)
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
                # Dominance between blocks is not checked, only the scope.
                for op in block.ops:
                    self._define(op.results)
            elif parent is not None and block.last_op is None and not parent.has_trait(Trait.NO_TERMINATOR):
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
        # Most ops are inside of a block and don't end one.
        if what.next_op is None or what.successors or what.has_trait(Trait.TERMINATOR):
            misplaced = _misplaced(what)
            if misplaced:
                return Broken(what, misplaced)
        form = None if what.regions or not isinstance(what, StableHLOOp) else _form(what)
        if form in self._valid:
            return None
        try:
            what.verify_()
            if isinstance(what, CallOp):
                what.verify_symbols(self._symbols_around(what))
            if self._with_relations:
                relations.check(what, lambda: self._symbols_around(what), with_elements=self._with_elements)
        except _RULE_BROKEN as problem:
            return Broken(what, str(problem).strip() or f"its verifier failed with {type(problem).__name__}")
        if form is not None:
            self._valid.add(form)
        return None

    def _symbols_around(self, op: Operation) -> SymbolTable:
        """Returns the nearest symbol table around an op."""
        around = op.parent_op()
        while around is not None and not around.has_trait(Trait.SYMBOL_TABLE):
            around = around.parent_op()
        if around is None:
            raise VerifyError("it is not in a symbol table")
        if self._symbols is None or self._symbols.op is not around:
            self._symbols = SymbolTable(around)
        return self._symbols

    def _define(self, values: Sequence[Value]) -> None:
        self._visible.update(values)
        self._trail += values


def _form(op: StableHLOOp) -> Hashable:
    """Returns all that the rules of an op without regions depend on: its name, types and properties."""
    return (op.name, *map(_TYPE, op.operands), None, *map(_TYPE, op.results), *op.properties, *op.properties.values())


def _misplaced(op: Operation) -> str:
    """Returns the problem with an op's position in its block, or an empty string."""
    block = op.parent
    if block is None:
        return f"{op.name} has successors, but is in no block" if op.successors else ""
    is_last = op.next_op is None
    if op.has_trait(Trait.TERMINATOR):
        return "" if is_last else f"'{op.name}' must be the last operation in its parent block"
    if op.successors:
        return "" if is_last else f"{op.name} has successors, but is not the last op of its block"
    region = block.parent
    if not is_last or region is None or region.parent is None:
        return ""
    if len(region.blocks) == 1 and region.parent.has_trait(Trait.NO_TERMINATOR):
        return ""
    return f"{op.name} ends its block, but is not a terminator"


def _reversed_ops(block: Block) -> list[Operation]:
    ops = list(block.ops)
    ops.reverse()
    return ops


class _Full(Exception):  # noqa: N818 - no error, but the end of an excerpt
    """Enough has been printed."""


def excerpt(op: Operation) -> str:
    """Returns an op's text in the generic form, indented and cut to a dozen lines."""
    pieces: list[str] = []
    size = 0

    def write(text: str) -> None:
        nonlocal size
        pieces.append(text)
        size += len(text)
        if size > _MAX_TEXT:
            raise _Full

    try:
        Printer(write, generic=True).operation(op)
        whole = True
    except _Full:
        whole = False
    lines = "".join(pieces).splitlines()
    shown = [line if len(line) <= _MAX_COLUMNS else f"{line[: _MAX_COLUMNS - 3]}..." for line in lines[:_MAX_LINES]]
    if len(lines) > _MAX_LINES or not whole:
        shown.append("...")
    return "\n".join(f"    {line}" for line in shown)
