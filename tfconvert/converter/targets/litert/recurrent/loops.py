"""Replaces a loop by its layers."""

from __future__ import annotations

from tfconvert.converter.control_flow.constructs import invariants
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.recurrence.cells import LstmCell
from tfconvert.converter.recurrence.layers import LayerPlan
from tfconvert.converter.recurrence.scan import SequenceSteps
from tfconvert.converter.recurrence.unrolled import takes
from tfconvert.converter.targets.litert.recurrent.operators import Operators
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value


def replace_loop(plan: LayerPlan) -> list[str]:
    """Replaces a loop by the operators of its layers; returns which kinds of layers these are."""
    scan, loop = plan.scan, plan.scan.loop.op
    fixed = {index: scan.loop.given[index] for index in invariants(scan.body)}
    for copy in plan.copies:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        erase(copy)
    insert = Operators(loop, {scan.body.args[index]: value for index, value in fixed.items()})
    rows = _Rows(insert)
    spread: dict[Value, Value] = {}
    for layer in plan.layers:
        steps = layer.steps or rows.outputs[layer.leaf]
        for state in layer.initial:
            if state in plan.narrow and state not in spread:
                spread[state] = insert.spread(state, steps)
        initial = [spread.get(state, state) for state in layer.initial]
        rows.outputs[layer.cell.output] = insert.layer(layer.cell, steps, layer.past, initial)
    for index, result in enumerate(loop.results):
        if result.first_use is None:
            continue
        if index in fixed:
            result.replace_all_uses_with(fixed[index])
        elif index in scan.counters:
            result.replace_all_uses_with(insert.number(scan.bounds[0], result))
        elif index in scan.stacks:
            rows.replace_stack(result, scan.stacks[index])
        else:
            row = scan.states.get(index) or scan.lasts[index]
            initial_state = scan.loop.given[index]
            may_be_empty = _may_be_empty(plan, rows.outputs[row])
            rows.replace_last(result, row, spread.get(initial_state, initial_state) if may_be_empty else None)
    erase(loop)
    return ["lstm" if isinstance(layer.cell, LstmCell) else "rnn" for layer in plan.layers]


def _may_be_empty(plan: LayerPlan, steps: SequenceSteps) -> bool:
    """Returns whether a loop may run zero times without TensorFlow failing.

    Where rows are collected in a list, TensorFlow stacks an empty one only if it knows the shape of the rows.
    """
    collects = plan.scan.stacks or plan.scan.lasts
    return steps.length < 0 and not (steps.batch < 0 and collects)


class _Rows:
    """Reads of layers' outputs.

    Attributes:
        outputs: The sequences of rows, by the value of an iteration.
    """

    def __init__(self, insert: Operators) -> None:
        self.outputs: dict[Value, SequenceSteps] = {}
        self._insert = insert
        self._lasts: dict[tuple[Value, Value | None], Value] = {}

    def replace_stack(self, result: Value, row: Value) -> None:
        """Replaces all rows, steps first; ops that read the last one only get just that."""
        self._replace_readers(result, (-1,), row, None)
        if result.first_use is not None:
            result.replace_all_uses_with(self._insert.along(self.outputs[row], 0))

    def replace_last(self, result: Value, row: Value, before: Value | None) -> None:
        """Replaces the last row, which may be the only one of a tensor.

        Args:
            result: The replaced value.
            row: The row, as an iteration computes it.
            before: Its value without any iteration, if that may happen.
        """
        if len(types.shape_of(result.type) or ()) == 2:
            result.replace_all_uses_with(self._last(row, before))
            return
        self._replace_readers(result, (0, -1), row, before)
        if result.first_use is not None:
            result.replace_all_uses_with(self._insert.widened(self._last(row, before)))

    def _replace_readers(self, result: Value, places: tuple[int, ...], row: Value, before: Value | None) -> None:
        for op in [use.operation for use in result.uses]:
            if takes(op, result, places):
                op.results[0].replace_all_uses_with(self._last(row, before))
                erase(op)

    def _last(self, row: Value, before: Value | None) -> Value:
        if (row, before) not in self._lasts:
            self._lasts[row, before] = self._insert.row(self.outputs[row], -1, before)
        return self._lasts[row, before]
