"""Recurrent layers: loops over time, and chains of unrolled cells."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from tfconvert.converter.control_flow.constructs import invariants
from tfconvert.converter.ir.constants import constant_array, constant_int, is_enumeration
from tfconvert.converter.recurrence import cells
from tfconvert.converter.recurrence.affine import Sum, Sums, Vector, Weights
from tfconvert.converter.recurrence.cells import Cell, LstmCell
from tfconvert.converter.recurrence.scan import Extents, Scan, SequenceSteps, convolves, fixed_values, steps_of
from tfconvert.converter.rewrite.pattern import Declined, Failure, attempt, need
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps of a layer.

    Attributes:
        steps: The cell of each step, at least two.
        rows: The input of each step.
        initial: The output, and the cell state if it has one, before the first step; `None` for an output of zeros
            whose products have been folded.
    """

    steps: Sequence[Cell]
    rows: Sequence[Value]
    initial: tuple[Value | None, ...]

    @property
    def outputs(self) -> list[Value]:
        return [step.output for step in self.steps]


def chains_of(block: Block) -> list[Chain]:
    """Returns the unrolled layers of a block, in the order of their first steps."""
    sums = Sums(lambda value: tensor_data.constant_of(value) is not None)
    found = [cell for op in block.ops if not isinstance(cell := _cell_of(op, sums), Failure)]
    outputs = {cell.output: cell for cell in found}
    states = {cell.state: cell for cell in found if isinstance(cell, LstmCell)}
    following: dict[Value, Cell] = {}
    later: set[Value] = set()
    for cell in found:
        before = next((one for one in _candidates(cell, outputs, states) if _continues(one, cell)), None)
        if before is not None and before.output not in following:
            following[before.output] = cell
            later.add(cell.output)
    first = [cell for cell in found if cell.output in following and cell.output not in later]
    return [_chain(list(_from(cell, following))) for cell in first]


def narrow_states(chain: Chain, extents: Extents) -> set[Value]:
    """Returns the initial states that may have fewer rows than the batch."""
    batch = extents.dim(chain.rows[0], 0)
    return {value for value in chain.initial if value is not None and (batch is None or extents.dim(value, 0) != batch)}


def inner_ops(chain: Chain) -> set[Operation]:
    """Returns the ops of the steps: from their outputs back to their inputs and states."""
    ends = {*chain.rows, *(value for value in chain.initial if value is not None)}
    found: set[Operation] = set()
    todo = chain.outputs
    while todo:
        value = todo.pop()
        owner = value.owner
        if value not in ends and isinstance(owner, Operation) and owner not in found:
            found.add(owner)
            todo += owner.operands
    return found


def _cell_of(op: Operation, sums: Sums) -> Cell | Failure:
    """Returns the cell whose output an op computes; its products are not checked yet."""
    if op.name == "tf.Mul":
        return attempt(cells.lstm, op.results[0], sums)
    if op.name in cells.ACTIVATIONS:
        return attempt(cells.simple_rnn, op.results[0], sums)
    return Failure("its result is not a cell's output")


def _candidates(cell: Cell, outputs: Mapping[Value, Cell], states: Mapping[Value, Cell]) -> Iterator[Cell]:
    """Yields the cells that may be the previous step."""
    found = (
        [states.get(cell.before)] if isinstance(cell, LstmCell) else [outputs.get(leaf) for leaf in cell.total.leaves]
    )
    yield from (one for one in found if one is not None)


def _gates(cell: Cell) -> Mapping[str, Sum]:
    return cell.gates if isinstance(cell, LstmCell) else {"": cell.total}


def _continues(before: Cell, cell: Cell) -> bool:
    """Returns whether a cell computes the same as another, from the other's output."""
    if isinstance(attempt(cells.check, cell), Failure):
        return False
    gates, last = _gates(cell), _gates(before)
    if type(before) is not type(cell) or before.activation != cell.activation or gates.keys() != last.keys():
        return False
    if isinstance(cell, LstmCell) and isinstance(before, LstmCell) and before.state_clip != cell.state_clip:
        return False
    return all(
        _is_same(last[name], gates[name], before.output) and _has_same_peepholes(name, before, last[name], gates[name])
        for name in gates
    )


def _has_same_peepholes(name: str, before: Cell, last: Sum, total: Sum) -> bool:
    """Returns whether gates have the same peepholes; a gate of the first step may have none for a state of zeros."""
    keys, wanted = ([_key(by) for _, by in each.scaled] for each in (last, total))
    sees_zeros = isinstance(before, LstmCell) and name != cells.OUTPUT and _is_zero(before.before)
    return keys == wanted or (not keys and sees_zeros)


def _is_same(last: Sum, total: Sum, output: Value) -> bool:
    """Returns whether two gates have the same weights; the first step may have none for a previous output."""
    if output not in total.leaves or _keys_of(last.biases) != _keys_of(total.biases):
        return False
    recurrent, own = (_key(by) for leaf, by in sorted(total.products, key=lambda pair: pair[0] is not output))
    keys = [_key(by) for _, by in last.products]
    return recurrent != own and own in keys and set(keys) <= {recurrent, own} and len(set(keys)) == len(keys)


def _key(by: Weights | Vector) -> Hashable:
    """Returns a key that is equal for equal parts of constants."""
    constant = tensor_data.constant_of(by.value)
    if isinstance(by, Weights):
        return constant, by.is_transposed, by.inputs, by.outputs
    return constant, by.elements


def _keys_of(biases: Sequence[Vector]) -> list[Hashable]:
    return [_key(one) for one in biases if not _is_zero(one.value)]


def _is_zero(value: Value) -> bool:
    array = constant_array(value)
    return array is not None and not array.any()


def _from(first: Cell, following: Mapping[Value, Cell]) -> Iterator[Cell]:
    cell: Cell | None = first
    while cell is not None:
        yield cell
        cell = following.get(cell.output)


def _chain(steps: list[Cell]) -> Chain:
    rows = [_other(cell, before.output) for before, cell in pairwise(steps)]
    (own,) = (_key(by) for leaf, by in _products(steps[1]) if leaf is rows[0])
    first = steps[0]
    (row,) = (leaf for leaf, by in _products(first) if _key(by) == own)
    past = next((leaf for leaf, by in _products(first) if _key(by) != own), None)
    initial = (past, first.before) if isinstance(first, LstmCell) else (past,)
    return Chain(steps, [row, *rows], initial)


def _products(cell: Cell) -> tuple[tuple[Value, Weights], ...]:
    """Returns the products of one gate of a cell; those of the other gates have the same operands."""
    return (cell.gates[cells.CELL] if isinstance(cell, LstmCell) else cell.total).products


def _other(cell: Cell, leaf: Value) -> Value:
    (found,) = (one for one, _ in _products(cell) if one is not leaf)
    return found


_STATE_USED = "its last cell state is used, which the operator doesn't return"


@dataclass(frozen=True, slots=True)
class RecurrentLayer:
    """A recurrent layer.

    Attributes:
        cell: Its computation in each step.
        steps: Its input; `None` if that is the output of a previous layer.
        leaf: Its input, as it appears in the cell's sums.
        past: Its last output, as it appears there.
        initial: Its output, and its cell state if it has one, before the first step.
    """

    cell: Cell
    steps: SequenceSteps | None
    leaf: Value
    past: Value
    initial: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """The fused form of a loop.

    Attributes:
        scan: The loop.
        layers: The layers; each one may read the output of a previous one.
        copies: Ops that copy all collected rows in order, as legacy TensorArrays need.
        narrow: Initial states to broadcast to the batch size, because they may have a single row.
    """

    scan: Scan
    layers: Sequence[RecurrentLayer]
    copies: Sequence[Operation]
    narrow: Set[Value]


def plan_of(scan: Scan, extents: Extents) -> LayerPlan:
    """Returns the fused form of a loop."""
    found = _cells(scan, Sums(fixed_values(scan).__contains__))
    layers = _layers(scan, found)
    _check_results(scan, found)
    _check_lengths(scan, layers, extents)
    (count, *_) = map(extents.scalar, scan.bounds)
    stacks = [scan.loop.op.results[index] for index in scan.stacks]
    copies = [use.operation for stack in stacks for use in stack.uses if _takes_all(use.operation, count, extents)]
    return LayerPlan(scan, layers, copies, _narrow(layers, extents))


def _takes_all(op: Operation, count: int | None, extents: Extents) -> bool:
    """Returns whether an op reads all rows in order."""
    if op.name != "tf.GatherV2" or not is_enumeration(op.operands[1]) or constant_int(op.operands[2]) != 0:
        return False
    return extents.dim(op.operands[1], 0) == count


def _cells(scan: Scan, sums: Sums) -> dict[int, Cell]:
    """Returns a loop's cells, by the index of the state that is the output.

    Raises:
        Declined: A state doesn't belong to a cell.
    """
    found: dict[int, Cell] = {}
    failures: dict[int, Failure] = {}
    for index, value in scan.states.items():
        cell = attempt(_cell, value, sums)
        if isinstance(cell, Failure):
            failures[index] = cell
        else:
            found[index] = cell
    inner = {_state_of(scan, cell) for cell in found.values() if isinstance(cell, LstmCell)}
    left = [index for index in failures if index not in inner]
    if left:
        need(not convolves(scan), "its gates are convolutions, not products with matrices")
        # The reason for a state that resembles an LSTM's output is more helpful.
        raise Declined(failures[min(left, key=lambda index: not cells.is_gated(scan.states[index]))].reason)
    need(bool(found), "no state goes from one step to the next")
    return found


def _cell(value: Value, sums: Sums) -> Cell:
    cell = cells.lstm(value, sums) if cells.is_gated(value) else cells.simple_rnn(value, sums)
    cells.check(cell)
    return cell


def _state_of(scan: Scan, cell: LstmCell) -> int:
    """Returns the index of a cell's state.

    Raises:
        Declined: The loop forwards something else.
    """
    for index, value in scan.states.items():
        if scan.state(index) is cell.before and value is cell.state:
            return index
    raise Declined("its cell state is not forwarded to the next step as it is")


def _layers(scan: Scan, found: Mapping[int, Cell]) -> list[RecurrentLayer]:
    """Returns the layers, each after the one whose output it reads."""
    outputs = {cell.output: index for index, cell in found.items()}
    layers = {}
    for index, cell in found.items():
        past = scan.state(index)
        gates = cell.gates[cells.CELL] if isinstance(cell, LstmCell) else cell.total
        need(past in gates.leaves, "its gates don't read its last output")
        (leaf,) = (leaf for leaf in gates.leaves if leaf is not past)
        read = scan.reads.get(leaf)
        need(read is not None or leaf in outputs, "its input is computed in the loop, not read from a sequence")
        steps = None if read is None else steps_of(read.sequence, read.axis)
        places = [index, _state_of(scan, cell)] if isinstance(cell, LstmCell) else [index]
        layers[cell.output.owner] = RecurrentLayer(
            cell, steps, leaf, past, tuple(scan.loop.given[place] for place in places)
        )
    return [layers[op] for op in scan.body.ops if op in layers]


def _check_results(scan: Scan, found: Mapping[int, Cell]) -> None:
    """Checks that the layers compute all results of the loop that are used."""
    inner = {_state_of(scan, cell) for cell in found.values() if isinstance(cell, LstmCell)}
    outputs = {cell.output for cell in found.values()}
    states = {cell.state for cell in found.values() if isinstance(cell, LstmCell)}
    known = invariants(scan.body) | scan.counters | set(found)
    for index, result in enumerate(scan.loop.op.results):
        if result.first_use is None or index in known:
            continue
        row = scan.stacks.get(index, scan.lasts.get(index))
        need(index not in inner and row not in states, _STATE_USED)
        need(row in outputs, "something other than outputs is read from it")


def _check_lengths(scan: Scan, layers: Sequence[RecurrentLayer], extents: Extents) -> None:
    """Checks that all sequences are as long as the loop's number of iterations, and that batches agree."""
    counts = {extents.scalar(bound) for bound in scan.bounds}
    lengths = {extents.dim(layer.steps.value, layer.steps.axis) for layer in layers if layer.steps is not None}
    lengths |= {extents.dim(scan.loop.given[index], 0) for index in scan.stacks}
    need(
        len(counts) == 1 and counts == lengths and None not in counts,
        "its number of iterations may differ from the length of its sequence",
    )
    batches = {layer.steps.batch for layer in layers if layer.steps is not None}
    for layer in layers:
        for state, size in zip(layer.initial, (layer.cell.outputs, layer.cell.units), strict=False):
            need(
                {state.shape} == {(batch, size) for batch in batches},
                "its initial state has another shape than its states",
            )


def _narrow(layers: Sequence[RecurrentLayer], extents: Extents) -> set[Value]:
    """Returns the initial states that may have fewer rows than the batch, and those to broadcast with them."""
    batches: dict[Value, int | None] = {}
    found: set[Value] = set()
    for layer in layers:
        steps = layer.steps
        batch = batches[layer.leaf] if steps is None else extents.dim(steps.value, 1 - steps.axis)
        batches[layer.cell.output] = batch
        known = [batch is not None and extents.dim(state, 0) == batch for state in layer.initial]
        if not all(known):
            # The state of an operator is copied unless a `Fill` makes it; one shape is enough for all copies.
            found.update(
                state
                for state, is_known in zip(layer.initial, known, strict=True)
                if not (is_known and isinstance(state, OpResult) and state.op.name == "tf.Fill")
            )
    return found
