"""Recurrent layers without a loop: the same step again and again, each from the output of the one before."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.recurrence import cells
from tfconvert.converter.recurrence.affine import Sum, Sums, Vector, Weights
from tfconvert.converter.recurrence.cells import Cell, Lstm
from tfconvert.converter.recurrence.lengths import Extents
from tfconvert.converter.rewrite.pattern import Failure, attempt
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Chain(NamedTuple):
    """The steps of a layer.

    Attributes:
        steps: The cell of each step, at least two.
        rows: The input of each step.
        initial: The output, and the cell state if there is one, before the first step; no output where that
            was zeros, so that the products with it have been folded.
    """

    steps: Sequence[Cell]
    rows: Sequence[Value]
    initial: tuple[Value | None, ...]

    @property
    def outputs(self) -> list[Value]:
        """The output of each step."""
        return [step.output for step in self.steps]


def chains_of(block: Block) -> list[Chain]:
    """Returns the layers whose steps are in a block, in the order of their first steps."""
    sums = Sums(lambda value: tensor_data.constant_of(value) is not None)
    found = [cell for op in block.ops if not isinstance(cell := _cell(op, sums), Failure)]
    outputs = {cell.output: cell for cell in found}
    states = {cell.state: cell for cell in found if isinstance(cell, Lstm)}
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
    """Returns the ops that only the steps need: from their outputs back to their inputs and states."""
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


def _cell(op: Operation, sums: Sums) -> Cell | Failure:
    """Returns the cell whose output an op computes; its products are not checked closely."""
    if op.name == "tf.Mul":
        return attempt(cells.lstm, op.results[0], sums)
    if op.name in cells.ACTIVATIONS:
        return attempt(cells.simple_rnn, op.results[0], sums)
    return Failure("its result is not a cell's output")


def _candidates(cell: Cell, outputs: Mapping[Value, Cell], states: Mapping[Value, Cell]) -> Iterator[Cell]:
    """Yields the cells that may be the step before."""
    found = [states.get(cell.before)] if isinstance(cell, Lstm) else [outputs.get(leaf) for leaf in cell.total.leaves]
    yield from (one for one in found if one is not None)


def _gates(cell: Cell) -> Mapping[str, Sum]:
    return cell.gates if isinstance(cell, Lstm) else {"": cell.total}


def _continues(before: Cell, cell: Cell) -> bool:
    """Returns whether a cell computes the same as another, from the other's output."""
    if isinstance(attempt(cells.check, cell), Failure):
        return False
    gates, last = _gates(cell), _gates(before)
    if type(before) is not type(cell) or before.activation != cell.activation or gates.keys() != last.keys():
        return False
    if isinstance(cell, Lstm) and isinstance(before, Lstm) and before.state_clip != cell.state_clip:
        return False
    return all(
        _is_same(last[name], gates[name], before.output) and _has_same_peepholes(name, before, last[name], gates[name])
        for name in gates
    )


def _has_same_peepholes(name: str, before: Cell, last: Sum, total: Sum) -> bool:
    """Returns whether gates read the state alike; a gate of the first step need not, if it would read zeros."""
    keys, wanted = ([_key(by) for _, by in each.scaled] for each in (last, total))
    sees_zeros = isinstance(before, Lstm) and name != cells.OUTPUT and _is_zero(before.before)
    return keys == wanted or (not keys and sees_zeros)


def _is_same(last: Sum, total: Sum, output: Value) -> bool:
    """Returns whether two gates have the same weights; the first step's may have none for an output before it."""
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
    initial = (past, first.before) if isinstance(first, Lstm) else (past,)
    return Chain(steps, [row, *rows], initial)


def _products(cell: Cell) -> tuple[tuple[Value, Weights], ...]:
    """Returns the products of one of a cell's gates: the others' are of the same."""
    return (cell.gates[cells.CELL] if isinstance(cell, Lstm) else cell.total).products


def _other(cell: Cell, leaf: Value) -> Value:
    (found,) = (one for one, _ in _products(cell) if one is not leaf)
    return found
