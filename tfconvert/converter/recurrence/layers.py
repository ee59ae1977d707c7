"""The recurrent layers that a loop computes: cells, the sources of their inputs, and their requirements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from tfconvert.converter.control_flow.decisions import invariants
from tfconvert.converter.ir.constants import constant_int, is_enumeration
from tfconvert.converter.recurrence import cells
from tfconvert.converter.recurrence.affine import Sums
from tfconvert.converter.recurrence.cells import Cell, Lstm
from tfconvert.converter.recurrence.lengths import Extents
from tfconvert.converter.recurrence.scan import Scan, convolves, fixed_values
from tfconvert.converter.recurrence.sequence import Steps, steps_of
from tfconvert.converter.rewrite.pattern import Declined, Failure, attempt, need
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_STATE_USED = "its last cell state is used, which the operator doesn't return"


class Layer(NamedTuple):
    """A recurrent layer.

    Attributes:
        cell: Its computation in each step.
        steps: Its input; `None` if that is the output of a previous layer.
        leaf: Its input, as it appears in the cell's sums.
        past: Its last output, as it appears there.
        initial: Its output, and its cell state if it has one, before the first step.
    """

    cell: Cell
    steps: Steps | None
    leaf: Value
    past: Value
    initial: tuple[Value, ...]


class Plan(NamedTuple):
    """The fused form of a loop.

    Attributes:
        scan: The loop.
        layers: The layers, each of which may take the output of one before.
        copies: Ops that copy all collected rows in order, as legacy TensorArrays do.
        narrow: Initial states to broadcast to the batch's number of rows, since they may have one row for all.
    """

    scan: Scan
    layers: Sequence[Layer]
    copies: Sequence[Operation]
    narrow: Set[Value]


def plan_of(scan: Scan, extents: Extents) -> Plan:
    """Returns the fused form of a loop."""
    found = _cells(scan, Sums(fixed_values(scan).__contains__))
    layers = _layers(scan, found)
    _check_results(scan, found)
    _check_lengths(scan, layers, extents)
    (count, *_) = map(extents.scalar, scan.bounds)
    stacks = [scan.loop.op.results[index] for index in scan.stacks]
    copies = [use.operation for stack in stacks for use in stack.uses if _takes_all(use.operation, count, extents)]
    return Plan(scan, layers, copies, _narrow(layers, extents))


def _takes_all(op: Operation, count: int | None, extents: Extents) -> bool:
    """Returns whether an op takes as many rows as there are, from the first on."""
    if op.name != "tf.GatherV2" or not is_enumeration(op.operands[1]) or constant_int(op.operands[2]) != 0:
        return False
    return extents.dim(op.operands[1], 0) == count


def _cells(scan: Scan, sums: Sums) -> dict[int, Cell]:
    """Returns a loop's cells, by the place of the state that is the output.

    Raises:
        Declined: A state is not a cell's.
    """
    found: dict[int, Cell] = {}
    failures: dict[int, Failure] = {}
    for index, value in scan.states.items():
        cell = attempt(_cell, value, sums)
        if isinstance(cell, Failure):
            failures[index] = cell
        else:
            found[index] = cell
    inner = {_state_of(scan, cell) for cell in found.values() if isinstance(cell, Lstm)}
    left = [index for index in failures if index not in inner]
    if left:
        need(not convolves(scan), "its gates are convolutions, not products with matrices")
        # The reason of a state that resembles an LSTM's output is the more helpful one.
        raise Declined(failures[min(left, key=lambda index: not cells.is_gated(scan.states[index]))].reason)
    need(bool(found), "no state goes from one step to the next")
    return found


def _cell(value: Value, sums: Sums) -> Cell:
    cell = cells.lstm(value, sums) if cells.is_gated(value) else cells.simple_rnn(value, sums)
    cells.check(cell)
    return cell


def _state_of(scan: Scan, cell: Lstm) -> int:
    """Returns the place of a cell's state.

    Raises:
        Declined: The loop forwards something else.
    """
    for index, value in scan.states.items():
        if scan.state(index) is cell.before and value is cell.state:
            return index
    raise Declined("its cell state is not forwarded to the next step as it is")


def _layers(scan: Scan, found: Mapping[int, Cell]) -> list[Layer]:
    """Returns the layers, each after the one whose output it takes."""
    outputs = {cell.output: index for index, cell in found.items()}
    layers = {}
    for index, cell in found.items():
        past = scan.state(index)
        gates = cell.gates[cells.CELL] if isinstance(cell, Lstm) else cell.total
        need(past in gates.leaves, "its gates don't read its last output")
        (leaf,) = (leaf for leaf in gates.leaves if leaf is not past)
        read = scan.reads.get(leaf)
        need(read is not None or leaf in outputs, "its input is computed in the loop, not read from a sequence")
        steps = None if read is None else steps_of(read.sequence, read.axis)
        places = [index, _state_of(scan, cell)] if isinstance(cell, Lstm) else [index]
        layers[cell.output.owner] = Layer(cell, steps, leaf, past, tuple(scan.loop.given[place] for place in places))
    return [layers[op] for op in scan.body.ops if op in layers]


def _check_results(scan: Scan, found: Mapping[int, Cell]) -> None:
    """Checks that the layers compute all results of the loop that are used."""
    inner = {_state_of(scan, cell) for cell in found.values() if isinstance(cell, Lstm)}
    outputs = {cell.output for cell in found.values()}
    states = {cell.state for cell in found.values() if isinstance(cell, Lstm)}
    known = invariants(scan.body) | scan.counters | set(found)
    for index, result in enumerate(scan.loop.op.results):
        if result.first_use is None or index in known:
            continue
        row = scan.stacks.get(index, scan.lasts.get(index))
        need(index not in inner and row not in states, _STATE_USED)
        need(row in outputs, "something other than outputs is read from it")


def _check_lengths(scan: Scan, layers: Sequence[Layer], extents: Extents) -> None:
    """Checks that all sequences are as long as the loop runs, and that batches agree."""
    counts = {extents.scalar(bound) for bound in scan.bounds}
    lengths = {extents.dim(layer.steps.value, layer.steps.axis) for layer in layers if layer.steps is not None}
    lengths |= {extents.dim(scan.loop.given[index], 0) for index in scan.stacks}
    need(
        len(counts) == 1 and counts == lengths and None not in counts,
        "that it runs as often as its sequence is long can't be seen",
    )
    batches = {layer.steps.batch for layer in layers if layer.steps is not None}
    for layer in layers:
        for state, size in zip(layer.initial, (layer.cell.outputs, layer.cell.units), strict=False):
            need(
                {types.shape_of(state.type)} == {(batch, size) for batch in batches},
                "its initial state has another shape than its states",
            )


def _narrow(layers: Sequence[Layer], extents: Extents) -> set[Value]:
    """Returns the initial states that may have fewer rows than the batch, and those to broadcast with them."""
    batches: dict[Value, int | None] = {}
    found: set[Value] = set()
    for layer in layers:
        steps = layer.steps
        batch = batches[layer.leaf] if steps is None else extents.dim(steps.value, 1 - steps.axis)
        batches[layer.cell.output] = batch
        known = [batch is not None and extents.dim(state, 0) == batch for state in layer.initial]
        if not all(known):
            # The state of an operator is copied, if it isn't filled in for that; one shape is enough for all copies.
            found.update(
                state
                for state, is_known in zip(layer.initial, known, strict=True)
                if not (is_known and isinstance(state, OpResult) and state.op.name == "tf.Fill")
            )
    return found
