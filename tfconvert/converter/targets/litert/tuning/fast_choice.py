"""Fast forms that are applied where they were measured to be faster, in more sizes than figures are known for."""

from __future__ import annotations

from typing import Any

from tfconvert.converter.ir.excerpt import excerpt, is_given, with_neighbours
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms.form import measured
from tfconvert.converter.targets.litert.optimize import reshapes
from tfconvert.converter.targets.litert.tuning.tuner import FormPair, Tuner, operators_of
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp, functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult

MARGIN = 0.97
"""The share of the usual form's time that the fast form may take at most: less is within the noise."""

# The number of ops before an op, and behind it, that are copied for a pattern to look at: all would take long.
_BEFORE, _BEHIND = 96, 32

_RESHAPES = frozenset({"tfl.reshape"})
_FORMS = "tfconvert.converter.targets.litert.forms."


class FastChoice:
    """The patterns of fast forms, for sizes in which times say that they are faster.

    Args:
        module: The module that is rewritten.
        tuner: What has the times.
    """

    def __init__(self, module: ModuleOp, tuner: Tuner) -> None:
        self._module, self._tuner = module, tuner
        self._sets: dict[PatternSet, PatternSet] = {}
        self._declined: dict[tuple[str, Operation], Failure] = {}

    def patterns(self, usual: PatternSet) -> PatternSet:
        """Returns a set of patterns that the times decide on."""
        if usual not in self._sets:
            if self._tuner.directory:
                self._collect(usual)
            self._sets[usual] = PatternSet(self._conditional(each) if _is_fast(each) else each for each in usual)
        return self._sets[usual]

    def _conditional(self, pattern: Pattern[Any]) -> Pattern[Any]:
        def match(op: Operation) -> Any:
            known = self._declined.get((pattern.name, op))
            return self._chosen(pattern, op) if known is None else known

        return pattern._replace(match=match)

    def _chosen(self, pattern: Pattern[Any], op: Operation) -> Any:
        """Returns the match of a pattern if its form is the faster one, or a failure."""
        default = pattern.match(op)
        with measured():
            found = pattern.match(op)
            form = None if isinstance(found, Failure) else both_forms(self._module, pattern, op)
        if form is None:
            return default
        times = self._tuner.times(form)
        by_default = not isinstance(default, Failure)
        is_fast = by_default if times is None else times.fast <= MARGIN * times.usual
        self._tuner.decided(form, times, is_fast=is_fast, is_default=is_fast == by_default)
        if is_fast:
            return found
        failure = self._declined[pattern.name, op] = Failure("the usual form was measured to be as fast")
        return failure

    def _collect(self, usual: PatternSet) -> None:
        """Writes the forms of each op that any pattern makes: if one turns out to be slow, another may apply."""
        for op in self._module.walk():
            for pattern in filter(_is_fast, usual.for_root(op.name)):
                with measured():
                    is_form = not isinstance(pattern.match(op), Failure)
                    form = both_forms(self._module, pattern, op) if is_form else None
                if form is not None:
                    self._tuner.times(form)


def _is_fast(pattern: Pattern[Any]) -> bool:
    return pattern.rewrite.__module__.startswith(_FORMS)


def both_forms(module: ModuleOp, pattern: Pattern[Any], op: Operation) -> FormPair | None:
    """Returns the ops that a pattern would replace at an op, and those that it would insert; `None` if it declines.

    The pattern is applied to a copy of the op and of those around it. Both forms get an elementwise operator before and
    after each tensor of floats, as in a network: XNNPACK, which runs these, may also run one of the forms and not the
    other. Reshapes beside them belong to both, since the fast form may make them needless.
    """
    around = excerpt(module, _around(op))
    block, root = _main(around.module).body.block, around.copies[op]
    given = set(block.ops)
    found = pattern.match(root)
    if isinstance(found, Failure):
        return None
    rewriter = Rewriter()
    rewriter.root = root
    pattern.rewrite(root, found, rewriter)
    rewriter.finish(tfl.has_side_effects)
    replaced = [each for each, copy in around.copies.items() if copy.parent is None]
    usual = excerpt(module, with_neighbours(replaced, _RESHAPES))
    fast = excerpt(around.module, with_neighbours([each for each in block.ops if each not in given], _RESHAPES))
    rewrite_greedily(_main(fast.module).body, PatternSet(reshapes.PATTERNS), tfl.has_side_effects)
    becomes = operators_of(fast.module)
    for part in (usual, fast):
        _embed(_main(part.module))
    return FormPair(pattern.name, usual.module, fast.module, becomes)


def _around(op: Operation) -> list[Operation]:
    """Returns an op and those before and behind it in its block, without constants, as far as patterns usually look."""
    before, behind = (_following(op, step, most) for step, most in (("prev_op", _BEFORE), ("next_op", _BEHIND)))
    return [*reversed(before), op, *behind]


def _following(op: Operation, step: str, most: int) -> list[Operation]:
    found: list[Operation] = []
    each: Operation | None = getattr(op, step)
    while each is not None and len(found) < most and not isinstance(each, ReturnOp):
        if not is_given(each):
            found.append(each)
        each = getattr(each, step)
    return found


def _main(module: ModuleOp) -> FuncOp:
    return functions_of(module)["main"]


def _embed(function: FuncOp) -> None:
    """Inserts an operator behind each argument that is a tensor of 32-bit floats, and before each such result."""
    block = function.body.block
    first, last = block.first_op, block.last_op
    assert first is not None
    assert isinstance(last, ReturnOp)
    for argument in block.args:
        if argument.element == types.F32:
            before = tfl.build("abs", [argument], [argument.type])
            argument.replace_all_uses_with(before.results[0])
            before.set_operand(0, argument)
            block.insert_op_before(before, first)
    for index, value in enumerate(tuple(last.operands)):
        if isinstance(value, OpResult) and value.element == types.F32:
            after = tfl.build("neg", [value], [value.type])
            block.insert_op_before(after, last)
            last.set_operand(index, after.results[0])
