"""LiteRT's operators for recurrent layers, in floats; weights' rows are the outputs.

A gate of an LSTM is a sum: of products of the input and of the last output with weights, of the cell state times a
vector if the gate has a peephole, and of a bias. A layer that normalizes does so with the sum before the bias is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call
from tfconvert.ops.declaration import ops_like
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes
from tfconvert.ops.special_functions import sigmoid
from tfconvert.schema.dialects.dims import with_rank

OperandsByName = Mapping[str, Array]
"""An operator's operands that are present, by their names in the table of operators."""

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "TANH": np.tanh,
}
"""Fused activation -> its function."""

# The constant that LiteRT adds to a variance before it divides by its root.
_NEARLY_ZERO = np.float32(1e-8)


class State(NamedTuple):
    """The state that an LSTM forwards from step to step.

    Attributes:
        output: The last output.
        cell: The cell state.
    """

    output: Array
    cell: Array


class _Gate(NamedTuple):
    """The operands of one gate.

    Attributes:
        of_input: A matrix.
        of_output: A matrix, or a vector where each element of the last output is multiplied by its own.
        bias: A vector.
        peephole: A vector, of the output gate by the new cell state, of all others by the last one.
        scale: A vector by which the normalized sum is multiplied.
    """

    of_input: Array
    of_output: Array
    bias: Array
    peephole: Array | None
    scale: Array | None

    def total(self, x: Array, past: Array, cell: Array) -> Array:
        recurrent = past * self.of_output if self.of_output.ndim == 1 else past @ self.of_output.T
        total = x @ self.of_input.T + recurrent
        if self.peephole is not None:
            total = total + cell * self.peephole
        if self.scale is not None:
            total = _normalized(total) * self.scale
        return np.asarray(total + self.bias)


class Lstm:
    """The steps of an LSTM.

    Args:
        call: The operator, for its options.
        operands: Its operands.

    Raises:
        ConversionError: The operands are not those of such a layer (`bad-operand`).
    """

    def __init__(self, call: Call, operands: OperandsByName) -> None:
        if call.text("kernel_type", "FULL") != "FULL":
            raise call.bad("the operator in its basic form has no reference kernel")
        rank = 1 if call.flag("diagonal_recurrent_tensors") else 2
        self._input, self._forget, self._cell, self._output = (
            _gate(call, operands, gate, rank) for gate in ("input", "forget", "cell", "output")
        )
        self._activation = activation_of(call)
        self._projection = operands.get("projection_weights")
        self._projection_bias = operands.get("projection_bias", np.float32(0))
        self._cell_clip, self._output_clip = call.number("cell_clip"), call.number("proj_clip")

    def step(self, x: Array, state: State) -> State:
        """Returns the state after an input, a row for each of the batch."""
        past, cell = state
        assert self._forget is not None
        assert self._cell is not None
        assert self._output is not None
        forget = sigmoid(self._forget.total(x, past, cell))
        kept = 1 - forget if self._input is None else sigmoid(self._input.total(x, past, cell))
        cell = _clipped(forget * cell + kept * self._activation(self._cell.total(x, past, cell)), self._cell_clip)
        output = sigmoid(self._output.total(x, past, cell)) * self._activation(cell)
        if self._projection is not None:
            output = _clipped(output @ self._projection.T + self._projection_bias, self._output_clip)
        return State(output, cell)

    def sequence(self, steps: Sequence[Array], state: State) -> list[Array]:
        """Returns the outputs after each of some inputs."""
        outputs = []
        for x in steps:
            state = self.step(x, state)
            outputs.append(state.output)
        return outputs


def simple_rnn(call: Call, operands: OperandsByName, steps: Sequence[Array]) -> list[Array]:
    """Returns the outputs of a layer without gates after each of some inputs."""
    activation, past = activation_of(call), operands["hidden_state"]
    weights, recurrent = operands["input_to_input_weights"], operands["recurrent_to_input_weights"]
    outputs = []
    for x in steps:
        past = activation(x @ weights.T + past @ recurrent.T + operands["input_gate_bias"])
        outputs.append(past)
    return outputs


def activation_of(call: Call) -> Callable[[Array], Array]:
    """Returns the function of a layer's activation.

    Raises:
        ConversionError: The activation doesn't exist (`bad-operand`).
    """
    name = call.text("fused_activation_function", "NONE")
    if name not in ACTIVATIONS:
        raise call.bad(f"the activation {name!r} has no reference kernel")
    return ACTIVATIONS[name]


def _gate(call: Call, operands: OperandsByName, gate: str, rank: int) -> _Gate | None:
    """Returns a gate's operands; `None` if an LSTM has no input gate, but lets in what the forget gate holds back."""
    bias = operands.get("cell_bias" if gate == "cell" else f"{gate}_gate_bias")
    of_input, of_output = operands.get(f"input_to_{gate}_weights"), operands.get(f"recurrent_to_{gate}_weights")
    if of_input is None or of_output is None or bias is None:
        if gate == "input" and of_input is None:
            return None
        raise call.bad(f"the gate {gate!r} lacks weights or a bias")
    if of_output.ndim != rank:
        raise call.bad(f"the recurrent weights of the gate {gate!r} have {of_output.ndim} dimensions, not {rank}")
    peephole, scale = operands.get(f"cell_to_{gate}_weights"), operands.get(f"{gate}_layer_norm_coefficients")
    return _Gate(of_input, of_output, bias, peephole, scale)


def _normalized(total: Array) -> Array:
    """Returns rows with a mean of 0 and a variance of 1."""
    centred = total - total.mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + _NEARLY_ZERO))


def _clipped(value: Array, limit: float) -> Array:
    return np.clip(value, -limit, limit) if limit > 0 else value


def _sequence_shape(operands: Operands) -> Shapes:
    """Batch and time are those of the input, whichever comes first; a fusion has set the last dimension."""
    batch_and_time = with_rank(operands.shape(0), 3)[:2]
    return [(*batch_and_time, -1) for _ in operands.op.results]


# Fusions insert these long before any other operator of LiteRT.
OPS = ops_like("tfl.unidirectional_sequence_lstm tfl.unidirectional_sequence_rnn", shape=_sequence_shape)
