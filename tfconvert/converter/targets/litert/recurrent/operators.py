"""LiteRT's operators for marked and recognised recurrent layers, and their operands.

Ordinary ops slice and transpose the parts of outside values that a layer reads; they are folded later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.recurrence import cells
from tfconvert.converter.recurrence.affine import Range, Sum, Vector, Weights
from tfconvert.converter.recurrence.cells import LstmFormula, SimpleRnn
from tfconvert.converter.recurrence.scan import SequenceSteps, ordered
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


class Operators:
    """Inserts layers before an op.

    Args:
        anchor: The op.
        outer: The outside values that correspond to values in the layers' cells.
    """

    __slots__ = ("_insert", "_outer", "_transposed")

    def __init__(self, anchor: Operation, outer: Mapping[Value, Value]) -> None:
        self._insert = TFBuilder(anchor)
        self._outer = dict(outer)
        self._transposed: dict[Value, Value] = {}

    def layer(
        self, cell: LstmFormula | SimpleRnn, steps: SequenceSteps, past: Value, initial: Sequence[Value]
    ) -> SequenceSteps:
        """Inserts a layer's operator and the producers of its operands.

        Args:
            cell: The computation of each step.
            steps: Its input: a sequence, or the outputs of the previous layer.
            past: The previous output in the cell's sums; their only other value is the input.
            initial: Its output, and its cell state if any, before the first step.

        Returns:
            The layer's outputs.
        """
        options: dict[str, Any] = {tfl.ACTIVATION: cell.activation, "time_major": steps.axis == 0}
        if isinstance(cell, LstmFormula):
            name, operands = "unidirectional_sequence_lstm", self._lstm(cell, past, initial)
            options |= _limits(cell)
            if past not in cell.gates[cells.CELL].leaves:
                options["diagonal_recurrent_tensors"] = True
        else:
            name, operands = "unidirectional_sequence_rnn", self._simple(cell, past, initial)
        result = types.tensor(types.F32, ordered(steps.axis, steps.length, steps.batch, cell.outputs))
        return SequenceSteps(self._insert.tfl(name, (self._in_order(steps), *operands), result, options), steps.axis)

    def step(self, cell: LstmFormula, row: Value, past: Value, initial: Sequence[Value]) -> Value:
        """Inserts the operator of a single step of an LSTM, whose state is kept between runs.

        Args:
            cell: The computation of the step.
            row: Its input, a matrix.
            past: The previous output in the cell's sums.
            initial: Its output and its cell state in the first run.

        Returns:
            Its output.
        """
        batch = (row.shape or ())[0]
        options: dict[str, Any] = {tfl.ACTIVATION: cell.activation, **_limits(cell), "kernel_type": "FULL"}
        result = types.tensor(types.F32, (batch, cell.outputs))
        return self._insert.tfl("lstm", (row, *self._lstm(cell, past, initial)), result, options)

    def row(self, steps: SequenceSteps, index: int, before: Value | None = None) -> Value:
        """Inserts the read of one step of a sequence.

        Args:
            steps: The sequence.
            index: The index of the step; -1 is the last.
            before: The result for an empty sequence, a matrix or a tensor of one; `None` if it can't be empty.
        """
        axis, rest = steps.axis, 7 - (1 << steps.axis)
        value = steps.value if before is None else self._joined(before, steps)
        begin = [index if place == axis else 0 for place in range(3)]
        masks = {
            "begin_mask": rest,
            "end_mask": rest,
            "ellipsis_mask": 0,
            "new_axis_mask": 0,
            "shrink_axis_mask": 1 << axis,
        }
        bounds = (self._insert.ints(begin), self._insert.ints([0, 0, 0]), self._insert.ints([1, 1, 1]))
        result = types.tensor(types.F32, (steps.batch, steps.features))
        return self._insert.tf("StridedSlice", (value, *bounds), result, masks)

    def _joined(self, row: Value, steps: SequenceSteps) -> Value:
        if len(row.shape or ()) == 2:
            row = self.widened(row, steps.axis)
        elif steps.axis == 1:
            kind = types.tensor(types.F32, ordered(1, 1, steps.batch, steps.features))
            row = self._insert.tf("Transpose", (row, self._insert.ints([1, 0, 2])), kind)
        length = steps.length + 1 if steps.length >= 0 else -1
        joined = types.tensor(types.F32, ordered(steps.axis, length, steps.batch, steps.features))
        return self._insert.tf("ConcatV2", (row, steps.value, steps.axis), joined)

    def along(self, steps: SequenceSteps, axis: int) -> Value:
        """Inserts a transpose that moves the steps of a sequence to an axis, if needed."""
        if steps.axis == axis:
            return steps.value
        result = types.tensor(types.F32, ordered(axis, steps.length, steps.batch, steps.features))
        return self._insert.tf("Transpose", (steps.value, self._insert.ints([1, 0, 2])), result)

    def zeros(self, steps: SequenceSteps, units: int) -> Value:
        return self._insert.zeros([self._insert.size(steps.value, 1 - steps.axis), units], types.F32)

    def broadcast_state(self, state: Value, steps: SequenceSteps) -> Value:
        """Broadcasts a state, which may have one row for all, to a sequence's batch."""
        units = (state.shape or ())[1]
        sizes = self._insert.pack([self._insert.size(steps.value, 1 - steps.axis), units])
        return self._insert.tf("BroadcastTo", (state, sizes), types.tensor(types.F32, (steps.batch, units)))

    def part(self, steps: SequenceSteps, begin: int, size: int) -> SequenceSteps:
        begins, sizes = ordered(steps.axis, begin, 0, 0), ordered(steps.axis, size, -1, -1)
        result = types.tensor(types.F32, ordered(steps.axis, size, steps.batch, steps.features))
        bounds = (self._insert.ints(begins), self._insert.ints(sizes))
        return SequenceSteps(self._insert.tf("Slice", (steps.value, *bounds), result), steps.axis, steps.is_reversed)

    def widened(self, row: Value, axis: int = 0) -> Value:
        """Inserts the expansion of a matrix to a sequence of one step, along an axis."""
        batch, features = row.shape or ()
        return self._insert.tf("ExpandDims", (row, axis), types.tensor(types.F32, ordered(axis, 1, batch, features)))

    def number(self, bound: Value | int, like: Value) -> Value:
        """Inserts the number of iterations of a loop, in the type of its counter."""
        if not isinstance(bound, int):
            return self._insert.cast(bound, like.element)
        return self._insert.scalar(bound, like.element)

    def _in_order(self, steps: SequenceSteps) -> Value:
        if not steps.is_reversed:
            return steps.value
        return self._insert.tf("ReverseV2", (steps.value, self._insert.ints([steps.axis])), steps.value.type)

    def _lstm(self, cell: LstmFormula, past: Value, initial: Sequence[Value]) -> list[Value]:
        """Returns the operator's operands after the first."""
        absent = self._insert.insert(tfl.no_value()).results[0]
        gates = [cell.gates.get(name) for name in cells.GATES]
        of_inputs = [absent if gate is None else self._weights(_of_input(gate, past)) for gate in gates]
        of_outputs = [absent if gate is None else self._recurrent(gate, past) for gate in gates]
        peepholes = [
            next((self._vector(by) for leaf, by in gate.scaled if leaf is not past), absent) if gate else absent
            for gate in (gates[0], gates[1], gates[3])
        ]
        biases = [absent if gate is None else self._bias(gate) for gate in gates]
        projection = absent if cell.projection is None else self._weights(cell.projection)
        scales = [self._vector(cell.scales[name]) if name in cell.scales else absent for name in cells.GATES]
        return [*of_inputs, *of_outputs, *peepholes, *biases, projection, absent, *initial, *scales]

    def _simple(self, cell: SimpleRnn, past: Value, initial: Sequence[Value]) -> list[Value]:
        weights = (self._weights(_of_input(cell.total, past)), self._recurrent(cell.total, past))
        return [*weights, self._bias(cell.total), *initial]

    def _recurrent(self, gate: Sum, past: Value) -> Value:
        """Returns the recurrent weights: a matrix, or a vector for diagonal ones."""
        matrix = dict(gate.products).get(past)
        return self._vector(dict(gate.scaled)[past]) if matrix is None else self._weights(matrix)

    def _weights(self, weights: Weights) -> Value:
        """Returns a matrix whose rows are the outputs."""
        value = self._outside(weights.value)
        if not weights.is_transposed:
            if value not in self._transposed:
                self._transposed[value] = self._insert.transpose(value, (1, 0))
            value = self._transposed[value]
        return self._part(value, (weights.outputs, weights.inputs))

    def _bias(self, total: Sum) -> Value:
        """Returns the sum of all biases, or zeros: the operators always have a bias."""
        vectors = [self._vector(one) for one in total.biases if not one.is_scalar]
        if not vectors:
            vectors = [self._insert.constant(np.zeros(total.width, np.float32))]
        scalars = [self._flat(self._outside(one.value), 1) for one in total.biases if one.is_scalar]
        kind = types.tensor(types.F32, (total.width,))
        return reduce(lambda one, other: self._insert.tf("AddV2", (one, other), kind), (*vectors, *scalars))

    def _vector(self, vector: Vector) -> Value:
        value = self._outside(vector.value)
        shape = value.shape or ()
        return self._part(self._flat(value, shape[-1]), (vector.elements,))

    def _flat(self, value: Value, length: int) -> Value:
        if value.shape == (length,):
            return value
        return self._insert.tf("Reshape", (value, self._insert.ints([length])), types.tensor(types.F32, (length,)))

    def _part(self, value: Value, ranges: Sequence[Range]) -> Value:
        begin, size = zip(*ranges, strict=True)
        if size == value.shape:
            return value
        return self._insert.slice(value, begin, size)

    def _outside(self, value: Value) -> Value:
        """Returns the outside value for one in the body; clones its producers if needed."""
        todo = [value]
        while todo:
            one = todo[-1]
            if one in self._outer:
                todo.pop()
                continue
            assert isinstance(one.owner, Operation)  # an argument that never changes is known
            missing = [operand for operand in one.owner.operands if operand not in self._outer]
            if missing:
                todo += missing
                continue
            copy = one.owner.clone(self._outer)
            copy.location = self._insert.location
            self._insert.insert(copy)
            self._outer.update(zip(one.owner.results, copy.results, strict=True))
        return self._outer[value]


def _of_input(gate: Sum, past: Value) -> Weights:
    (found,) = (by for leaf, by in gate.products if leaf is not past)
    return found


def _limits(cell: LstmFormula) -> dict[str, float]:
    return {"cell_clip": cell.state_clip, "proj_clip": cell.output_clip}
