"""Replaces recurrent layers, as loops or as repeated steps, by LiteRT's operators, and reports them."""

from __future__ import annotations

from collections.abc import Sequence, Set

from tfconvert.converter.control_flow.constructs import invariants
from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.ir.edit import erase
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.recurrence.cells import LstmCell
from tfconvert.converter.recurrence.layers import Chain, LayerPlan, inner_ops
from tfconvert.converter.recurrence.scan import SequenceSteps, steps_of
from tfconvert.converter.recurrence.unrolled import StepPlace, place_of, takes
from tfconvert.converter.rewrite.pattern import need
from tfconvert.converter.targets.litert.recurrent.operators import Operators
from tfconvert.converter.targets.litert.recurrent.speed import Choice
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects import locations, tf
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

KEPT = "recurrence-kept"
"""Code of the note about a recurrent layer that is not an operator."""
FUSED = "recurrence-fused"
"""Code of the note about a recurrent layer that is an operator because that is faster."""


def kept(loop: Operation, reason: str) -> Diagnostic:
    """Returns the note about a layer that stays a loop."""
    return _finding(KEPT, loop, f"a recurrent layer stays a loop: {reason}")


def not_unrolled(loop: Operation, reason: str, *, fixable: bool = False) -> Diagnostic:
    """Returns the note about a loop that is not unrolled.

    Args:
        loop: The loop.
        reason: Why it stays.
        fixable: Whether fixed input sizes may determine the number of steps.
    """
    hint = "fix the length of the sequence: input_shapes (--input-shape x=1,64,16)" if fixable else ""
    return _finding(KEPT, loop, f"a loop is not unrolled: {reason}", hint)


def chosen(op: Operation, choice: Choice) -> Diagnostic:
    """Returns the note about a layer with two possible forms.

    Args:
        op: The loop, or the first op of unrolled steps.
        choice: The chosen form.
    """
    if choice.fuse:
        return _finding(FUSED, op, f"a recurrent layer became an operator: {choice.reason}")
    message = f"a recurrent layer keeps its steps: {choice.reason}"
    return _finding(KEPT, op, message, "recurrent='fused' (--recurrent fused) makes it one operator all the same")


def _finding(code: str, op: Operation, message: str, hint: str = "") -> Diagnostic:
    place = locations.place_of(op.location)
    return Diagnostic(code, message, op.name, place.node, str(place), hint, NOTE)


_MASKS = ("begin_mask", "ellipsis_mask", "new_axis_mask")


def read_sizes_before(sequence: Value) -> None:
    """Replaces sizes read from a sequence's transpose by sizes of the sequence, so that the transpose may die."""
    for use in list(sequence.uses):
        transpose = use.operation
        order = constant_array(transpose.operands[1]) if transpose.name == "tf.Transpose" else None
        if order is None:
            continue
        shapes = [each.operation for each in transpose.results[0].uses]
        if not all(op.name == "tf.Shape" for op in shapes):
            continue
        for op in shapes:
            _read(op, sequence, [int(axis) for axis in order])
            erase(op)
        erase(transpose)


def _read(op: Operation, sequence: Value, order: list[int]) -> None:
    """Replaces the shape of a sequence's transpose."""
    insert = TFBuilder(op)
    element = op.results[0].element
    whole = insert.cast(insert.shape(sequence), element)
    for user in {use.operation: None for use in op.results[0].uses}:
        index = _index_picked(user)
        if index is not None:
            user.results[0].replace_all_uses_with(insert.pick(whole, order[index]))
            erase(user)
    if op.results[0].first_use is not None:
        permuted = insert.tf("GatherV2", (whole, insert.ints(order), 0), op.results[0].type, {"batch_dims": 0})
        op.results[0].replace_all_uses_with(permuted)


def _index_picked(op: Operation) -> int | None:
    """Returns the index of the element that an op reads from a vector, or `None`."""
    begin = constant_array(op.operands[1]) if op.name == "tf.StridedSlice" else None
    if begin is None or begin.size != 1 or int(tf.get(op, "shrink_axis_mask", 0)) != 1:
        return None
    return None if any(tf.get(op, name, 0) for name in _MASKS) else int(begin[0])


def replace_loop(plan: LayerPlan) -> list[str]:
    """Replaces a loop by the operators of its layers; returns the kinds of layers."""
    scan, loop = plan.scan, plan.scan.loop.op
    fixed = {index: scan.loop.given[index] for index in invariants(scan.body)}
    for copy in plan.copies:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        erase(copy)
    insert = Operators(loop, {scan.body.args[index]: value for index, value in fixed.items()})
    rows = _Rows(insert)
    broadcasts: dict[Value, Value] = {}
    for layer in plan.layers:
        steps = layer.steps or rows.outputs[layer.leaf]
        for state in layer.initial:
            if state in plan.narrow and state not in broadcasts:
                broadcasts[state] = insert.broadcast_state(state, steps)
        initial = [broadcasts.get(state, state) for state in layer.initial]
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
            rows.replace_last(result, row, broadcasts.get(initial_state, initial_state) if may_be_empty else None)
    erase(loop)
    return ["lstm" if isinstance(layer.cell, LstmCell) else "rnn" for layer in plan.layers]


def _may_be_empty(plan: LayerPlan, steps: SequenceSteps) -> bool:
    """Returns whether a loop may run zero times without TensorFlow failing.

    If rows are collected in a list, TensorFlow stacks an empty one only if it knows the shape of the rows.
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
        """Replaces all rows, steps first; ops that only read the last row get only that row."""
        self._replace_readers(result, (-1,), row, None)
        if result.first_use is not None:
            result.replace_all_uses_with(self._insert.along(self.outputs[row], 0))

    def replace_last(self, result: Value, row: Value, before: Value | None) -> None:
        """Replaces the last row, which may be the only one of a tensor.

        Args:
            result: The replaced value.
            row: The row in an iteration.
            before: Its value after zero iterations, if that is possible.
        """
        if len(result.shape or ()) == 2:
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


def replace_chain(chain: Chain, places: dict[Value, StepPlace], narrow: Set[Value]) -> str:
    """Replaces the steps of a layer by one operator; returns the kind of layer.

    Args:
        chain: The steps.
        places: The new places of the outputs of already replaced layers; those of this one are added.
        narrow: Initial states that may have one row for the whole batch.
    """
    inner = inner_ops(chain)
    for step in chain.steps:
        if isinstance(step, LstmCell):
            need(all(use.operation in inner for use in step.state.uses), "a cell state is used by something else")
    taken = [places.get(row) or place_of(row) for row in chain.rows]
    sequence, begin, is_descending = _sequence(taken)
    _check_initial(chain, SequenceSteps(sequence.sequence, sequence.axis).batch)
    first = chain.steps[0]
    assert isinstance(first.output.owner, Operation)
    insert = Operators(first.output.owner, {})
    steps = _steps(insert, sequence, begin, len(taken), is_descending)
    initial = [
        insert.zeros(steps, first.outputs)
        if state is None
        else insert.broadcast_state(state, steps)
        if state in narrow
        else state
        for state in chain.initial
    ]
    outputs = insert.layer(chain.steps[1], steps, first.output, initial)
    _replace_outputs(insert, chain, outputs, inner)
    places.update((value, StepPlace(outputs.value, outputs.axis, index)) for index, value in enumerate(chain.outputs))
    return "lstm" if isinstance(first, LstmCell) else "rnn"


def _sequence(taken: Sequence[StepPlace | None]) -> tuple[StepPlace, int, bool]:
    """Returns one of the places, the first one in the sequence, and whether they are read backwards."""
    found = [place for place in taken if place is not None]
    same = {(place.sequence, place.axis) for place in found}
    need(len(found) == len(taken) and len(same) == 1, "its inputs are not steps of one sequence")
    indices = [place.step for place in found]
    begin = min(indices)
    ascending = list(range(begin, begin + len(indices)))
    need(begin >= 0 and indices in (ascending, ascending[::-1]), "its inputs don't follow each other in the sequence")
    return found[0], begin, indices != ascending


def _steps(insert: Operators, place: StepPlace, begin: int, count: int, is_descending: bool) -> SequenceSteps:
    found = steps_of(place.sequence, place.axis)
    if found.length == count:
        return SequenceSteps(found.value, found.axis, found.is_reversed != is_descending)
    part = insert.part(SequenceSteps(place.sequence, place.axis), begin, count)
    return SequenceSteps(part.value, part.axis, is_descending)


def _check_initial(chain: Chain, batch: int) -> None:
    """Checks the states before the first step."""
    first = chain.steps[0]
    for state, size in zip(chain.initial, (first.outputs, first.units), strict=False):
        is_state = state is None or state.shape == (batch, size)
        need(is_state, "its initial state has another shape than its states")


def _replace_outputs(insert: Operators, chain: Chain, steps: SequenceSteps, inner: set[Operation]) -> None:
    """Replaces the uses of the steps' outputs outside the steps by the operator's output."""
    outputs = chain.outputs
    for op in {use.operation: None for use in outputs[-1].uses}:
        axis = int(tf.get(op, "axis", 0)) % 3 if op.name == "tf.Pack" else -1
        if axis in (0, 1) and list(op.operands) == outputs:
            op.results[0].replace_all_uses_with(insert.along(steps, axis))
            erase(op)
    for index, output in enumerate(outputs):
        if any(use.operation not in inner for use in output.uses):
            row = insert.row(steps, -1 if index == len(outputs) - 1 else index)
            output.replace_uses_with_if(row, lambda use: use.operation not in inner)
