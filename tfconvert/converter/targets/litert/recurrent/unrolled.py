"""Replaces the steps of layers without a loop by their operators."""

from __future__ import annotations

from collections.abc import Sequence, Set

from tfconvert.converter.ir.edit import erase
from tfconvert.converter.recurrence.cells import LstmCell
from tfconvert.converter.recurrence.decline import need
from tfconvert.converter.recurrence.layers import Chain, inner_ops
from tfconvert.converter.recurrence.scan import SequenceSteps, steps_of
from tfconvert.converter.recurrence.unrolled import StepPlace, place_of
from tfconvert.converter.targets.litert.recurrent.operators import Operators
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def replace_chain(chain: Chain, places: dict[Value, StepPlace], narrow: Set[Value]) -> str:
    """Replaces the steps of a layer by one operator; returns which kind of layer it is.

    Args:
        chain: The steps.
        places: The new places of the outputs of layers that were replaced before; those of this one are added.
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
        else insert.spread(state, steps)
        if state in narrow
        else state
        for state in chain.initial
    ]
    outputs = insert.layer(chain.steps[1], steps, first.output, initial)
    _replace_outputs(insert, chain, outputs, inner)
    places.update((value, StepPlace(outputs.value, outputs.axis, index)) for index, value in enumerate(chain.outputs))
    return "lstm" if isinstance(first, LstmCell) else "rnn"


def _sequence(taken: Sequence[StepPlace | None]) -> tuple[StepPlace, int, bool]:
    """Returns any of some places, the first one read from the sequence, and whether they are read backwards."""
    found = [place for place in taken if place is not None]
    same = {(place.sequence, place.axis) for place in found}
    need(len(found) == len(taken) and len(same) == 1, "its inputs are not steps of one sequence")
    indices = [place.step for place in found]
    begin = min(indices)
    ascending = list(range(begin, begin + len(indices)))
    need(begin >= 0 and indices in (ascending, ascending[::-1]), "its inputs don't follow each other in the sequence")
    return found[0], begin, indices != ascending


def _steps(insert: Operators, place: StepPlace, begin: int, count: int, is_descending: bool) -> SequenceSteps:
    """Returns the steps that are read from a sequence."""
    found = steps_of(place.sequence, place.axis)
    if found.length == count:
        return SequenceSteps(found.value, found.axis, found.is_reversed != is_descending)
    part = insert.part(SequenceSteps(place.sequence, place.axis), begin, count)
    return SequenceSteps(part.value, part.axis, is_descending)


def _check_initial(chain: Chain, batch: int) -> None:
    """Checks the states before the first step."""
    first = chain.steps[0]
    for state, size in zip(chain.initial, (first.outputs, first.units), strict=False):
        is_state = state is None or types.shape_of(state.type) == (batch, size)
        need(is_state, "its initial state has another shape than its states")


def _replace_outputs(insert: Operators, chain: Chain, steps: SequenceSteps, inner: set[Operation]) -> None:
    """Replaces all uses of the steps' outputs but those in the steps themselves by the operator's."""
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
