"""One step of a recurrent layer, recognised by its computation.

An LSTM, with `s` the sigmoid, `a` an activation, and sums (`affine`) of the input `x` and the last output `h`:

    c' = s(forget) * c + s(input) * a(cell)         s(input) may be 1 - s(forget)
    h' = s(output) * a(c')                          may be multiplied by a matrix: a projection

The sums of the gates may contain peepholes: `c` times a vector, or `c'` in the output gate. The stored values, `c'` and
a projected `h'`, may be clipped. A simple RNN: `h' = a(sum)`.

Callers decide which value in the sums is the input and which is the last output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.recurrence.affine import Sum, Sums, Vector, Weights, width
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import OpResult, Value

INPUT, FORGET, CELL, OUTPUT = "input", "forget", "cell", "output"

GATES = (INPUT, FORGET, CELL, OUTPUT)
"""An LSTM's gates in the operator's order."""

ACTIVATIONS: Mapping[str, str] = {"tf.Relu": "RELU", "tf.Relu6": "RELU6", "tf.Tanh": "TANH"}
"""Activations that the operators compute exactly like the op."""

WIDE_PROJECTION = "its projection has more elements than its state, which the operator doesn't support"
"""The kernels would write past their scratch memory."""

_ADDITIONS = frozenset({"tf.Add", "tf.AddV2"})
_CHOICES = frozenset({"tf.Select", "tf.SelectV2"})
_NEW_STATE = "its new state is not an LSTM's: sigmoid(forget) * state + sigmoid(input) * activation(cell)"
_NEW_OUTPUT = "its output is not an LSTM's: the sigmoid of products with weights, times activation(state)"


@dataclass(frozen=True, slots=True)
class LstmFormula:
    """The computation of an LSTM in each step.

    Attributes:
        gates: The sums of the gates; without the input gate if it is 1 - forget gate.
        activation: The operator's name of the activation.
        state_clip: The limit to which the cell state is clipped on either side of zero; 0 for none.
        projection: The matrix that multiplies the output.
        output_clip: The limit to which a projected output is clipped on either side of zero; 0 for none.
        scales: Vectors that multiply the normalized sums of gates; empty without normalization.
    """

    gates: Mapping[str, Sum]
    activation: str = "TANH"
    state_clip: float = 0.0
    projection: Weights | None = None
    output_clip: float = 0.0
    scales: Mapping[str, Vector] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """The number of elements of its state."""
        return self.gates[CELL].width

    @property
    def outputs(self) -> int:
        """The number of elements of its output."""
        return self.units if self.projection is None else self.projection.outputs[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmCell(LstmFormula):
    """A step of an LSTM.

    Attributes:
        output: Its output.
        state: Its new cell state.
        before: Its last cell state.
    """

    output: Value
    state: Value
    before: Value


@dataclass(frozen=True, slots=True)
class SimpleRnn:
    """A step of a simple RNN.

    Attributes:
        output: Its output.
        total: The argument of its activation.
        activation: The operator's name of the activation.
    """

    output: Value
    total: Sum
    activation: str

    @property
    def units(self) -> int:
        """The number of elements of its state."""
        return self.total.width

    @property
    def outputs(self) -> int:
        """The number of elements of its output."""
        return self.total.width


Cell = LstmCell | SimpleRnn


def is_gated(value: Value) -> bool:
    """Returns whether a value is a product of two variable values, as all outputs of LSTMs are."""
    _, value = _clipped(value)
    return _defined_by(value, "tf.Mul") is not None or _defined_by(value, "tf.MatMul") is not None


def simple_rnn(value: Value, sums: Sums) -> SimpleRnn:
    """Returns the step of a simple RNN that has this output.

    Raises:
        Declined: The value is not the output of a simple RNN.
    """
    activation, inner = _activated(value)
    total = sums.of(inner)
    if total is None:
        raise Declined(_why_not_simple(value))
    return SimpleRnn(value, total, activation)


def _why_not_simple(value: Value) -> str:
    if _defined_by(value, *_CHOICES) is not None:
        return "its state is kept by a mask, which no operator supports"
    addition = _defined_by(value, *_ADDITIONS)
    if addition is not None and any(map(_factors, addition.op.operands)):
        return "its state is a mix of old and new, as in a GRU, for which there is no operator"
    return "its new state is not an activation (Tanh, Relu, Relu6 or none) of products with weights"


def lstm(value: Value, sums: Sums) -> LstmCell:
    """Returns the step of an LSTM that has this output.

    Raises:
        Declined: The value is not the output of an LSTM.
    """
    output_clip, inner = _clipped(value)
    projection = None
    product = _defined_by(inner, "tf.MatMul")
    if product is not None:
        total = sums.of(inner)
        need(total is not None and len(total.products) == 1, _NEW_OUTPUT)
        assert total is not None
        inner, projection = total.products[0]
    else:
        need(not output_clip, "its output is clipped, but not projected")
    gated = _gated(inner, sums)
    if gated is None:
        raise Declined(_NEW_OUTPUT)
    gate, activated = gated
    activation, state = _activated(activated)
    need(activation != "NONE", "the activation of its state is not one of Tanh, Relu and Relu6")
    state_clip, bare = _clipped(state)
    before, gates = _state_of(bare, sums, activation)
    gates[OUTPUT] = gate
    formula = gates, activation, state_clip, projection, output_clip
    return LstmCell(*formula, output=value, state=state, before=before)


def _state_of(state: Value, sums: Sums, activation: str) -> tuple[Value, dict[str, Sum]]:
    """Returns the last state and the gates of the new one."""
    addition = _defined_by(state, *_ADDITIONS)
    if addition is None:
        raise Declined(_NEW_STATE)
    for kept, entered in (addition.op.operands, addition.op.operands[::-1]):
        found = _entered(entered, kept, sums)
        own, total = _activated(found[1]) if found is not None else ("NONE", entered)
        cell = sums.of(total)
        forget = _gated(kept, sums)
        if found is None or cell is None or forget is None or own == "NONE":
            continue
        need(own == activation, f"it has two activations, {own.capitalize()} and {activation.capitalize()}")
        gates = {FORGET: forget[0], CELL: cell}
        return forget[1], gates if found[0] is None else {INPUT: found[0], **gates}
    raise Declined(_NEW_STATE)


def _entered(value: Value, kept: Value, sums: Sums) -> tuple[Sum | None, Value] | None:
    """Returns the input gate and the candidate for the state; `None` instead of a gate that is 1 - forget gate.

    Args:
        value: The product.
        kept: The other addend, the product of the last state and the forget gate.
        sums: The sums of the function.
    """
    factors = _factors(value)
    sigmoids = [factor for factor in _factors(kept) if _defined_by(factor, "tf.Sigmoid") is not None]
    for gate, other in (factors, factors[::-1]) if factors else ():
        if [_one_less(gate)] == sigmoids:
            return None, other
    return _gated(value, sums)


def _factors(value: Value) -> tuple[Value, ...]:
    product = _defined_by(value, "tf.Mul")
    return () if product is None else tuple(product.op.operands)


def _gated(value: Value, sums: Sums) -> tuple[Sum, Value] | None:
    """Returns the sum whose sigmoid multiplies a value, and this value."""
    factors = _factors(value)
    for gate, other in (factors, factors[::-1]) if factors else ():
        sigmoid = _defined_by(gate, "tf.Sigmoid")
        total = None if sigmoid is None else sums.of(sigmoid.op.operands[0])
        if total is not None:
            return total, other
    return None


def _one_less(value: Value) -> Value | None:
    """Returns `x` of `1 - x`."""
    difference = _defined_by(value, "tf.Sub")
    if difference is None or _number(difference.op.operands[0]) != 1:
        return None
    return difference.op.operands[1]


def _activated(value: Value) -> tuple[str, Value]:
    """Returns the activation that defines a value and its operand, or the value itself."""
    found = _defined_by(value, *ACTIVATIONS)
    return ("NONE", value) if found is None else (ACTIVATIONS[found.op.name], found.op.operands[0])


def _clipped(value: Value) -> tuple[float, Value]:
    """Returns the limit to which a value is clipped on either side of zero (0 for none), and the unclipped value."""
    found = _defined_by(value, "tf.ClipByValue")
    if found is not None:
        inner, minimum, maximum = found.op.operands
        return _limit(minimum, maximum, inner, value)
    found = _defined_by(value, "tf.Maximum", "tf.Minimum")
    inside = found and _defined_by(found.op.operands[0], "tf.Maximum", "tf.Minimum")
    if found is None or inside is None or inside.op.name == found.op.name:
        return 0.0, value
    bounds = {one.op.name: one.op.operands[1] for one in (found, inside)}
    return _limit(bounds["tf.Maximum"], bounds["tf.Minimum"], inside.op.operands[0], value)


def _limit(minimum: Value, maximum: Value, inner: Value, value: Value) -> tuple[float, Value]:
    low, high = _number(minimum), _number(maximum)
    return (high, inner) if low is not None and high is not None and low == -high < 0 else (0.0, value)


def _number(value: Value) -> float | None:
    """Returns a scalar constant."""
    return constant_number(value) if value.type == types.tensor(types.F32, ()) else None


def _defined_by(value: Value, *names: str) -> OpResult | None:
    return value if isinstance(value, OpResult) and value.op.name in names else None


def check(cell: Cell) -> None:
    """Checks that an operator computes the sums of a cell, from one input and the last output."""
    if isinstance(cell, SimpleRnn):
        need(not cell.total.scaled, "each element of its state has its own factor")
        _check_products(cell.total)
        return
    need(cell.outputs <= cell.units, WIDE_PROJECTION)
    leaves = {frozenset(total.leaves) for total in cell.gates.values()}
    need(len(leaves) == 1, "its gates are not all products of the same input and output")
    for name, total in cell.gates.items():
        _check_products(total)
        need(total.width == cell.units == width(cell.before), "its gates don't have as many columns as its state")
        seen = cell.state if name == OUTPUT else cell.before
        need(
            len(total.scaled) <= (name != CELL) and all(leaf is seen for leaf, _ in total.scaled),
            "a gate reads elements of something other than the state",
        )
    peepholes = {bool(total.scaled) for name, total in cell.gates.items() if name != CELL}
    need(len(peepholes) == 1, "some of its gates read the state, some don't")


def _check_products(total: Sum) -> None:
    leaves = [leaf for leaf, _ in total.products]
    need(len(set(leaves)) == len(leaves), "one value is multiplied by two matrices in a gate")
    need(len(leaves) == 2, "its gates are not products of just an input and its last output")
