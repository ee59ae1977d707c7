"""LSTM layers, as Keras marks them: one UNIDIRECTIONAL_SEQUENCE_LSTM instead of a loop.

Keras passes `(inputs, h, c, kernel, recurrent kernel, bias)` and reads `(last output, outputs, h, c, runtime)`. The
kernel's columns are the gates input, forget, cell and output.

Keras doesn't clip the cell state, so the operator's clip is 0. The operator updates its state operands in place; the
pass `separate-state` ensures that they are created anew at each run, and of the batch's size. A layer whose last cell
state is used stays a loop: the operator leaves that state in its operand, and no other operator may read it there,
since the runtime knows neither that it is written nor when.

A sequence without any steps leaves `h` as it was, but TensorFlow's last output is zeros then: the place that a step
would have written. Where the batch is dynamic too, TensorFlow fails, and need not be imitated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.composites.marks import API_IMPLEMENTS
from tfconvert.converter.recurrence.affine import Range, Sum, Vector, Weights
from tfconvert.converter.recurrence.cells import CELL, FORGET, INPUT, OUTPUT, LstmFormula
from tfconvert.converter.recurrence.scan import SequenceSteps, ordered
from tfconvert.converter.targets.litert.recurrent.operators import Operators
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

_INPUTS, _H, _C, _KERNEL, _RECURRENT, _BIAS = range(6)
_LAST, _OUTPUTS, _LAST_H, _LAST_C, _RUNTIME = range(5)
_COLUMNS = (INPUT, FORGET, CELL, OUTPUT)


def check_lstm(composite: Composite) -> str | None:
    """Returns why a layer can't be fused, `None` if it can."""
    return _check(composite, is_diagonal=False)


def check_indy_lstm(composite: Composite) -> str | None:
    """Returns why a layer whose units see only their own past can't be fused, `None` if it can."""
    return _check(composite, is_diagonal=True)


def _check(composite: Composite, *, is_diagonal: bool) -> str | None:
    if len(composite.arguments) == _BIAS + 2:
        return "it takes a mask"
    return first_of(
        composite.counts(_BIAS + 1, _RUNTIME + 1)
        or composite.ranks({_INPUTS: 3, _H: 2, _C: 2, _KERNEL: 2, _RECURRENT: 2, _BIAS: 1})
        or composite.elements(dict.fromkeys(range(_BIAS + 1), "f32"))
        or _check_shapes(composite, is_diagonal)
        or _check_attributes(composite)
        or _check_results(composite)
        or _check_state(composite)
    )


def _check_shapes(composite: Composite, is_diagonal: bool) -> str | None:
    shapes = [composite.shape(index) for index in range(_BIAS + 1)]
    if not all(types.is_static(shape) for shape in shapes[_KERNEL:]) or (shapes[_H] or (-1,))[-1] < 0:
        return "the shapes of its weights are not all known"
    batch, units = shapes[_H] or ()
    columns = len(_COLUMNS) * units
    features = (shapes[_KERNEL] or (0,))[0]
    expected = ((batch, units), (batch, units), (features, columns), (1 if is_diagonal else units, columns), (columns,))
    if tuple(shapes[1:]) != expected:
        return "the shapes of its state and weights don't fit together"
    inputs = shapes[_INPUTS] or ()
    axis = 1 if composite.get("time_major") else 0
    if (inputs[axis] != batch and min(inputs[axis], batch) > 0) or inputs[2] not in (-1, features):
        return "the shape of its inputs doesn't fit its weights"
    return None


def _check_attributes(composite: Composite) -> str | None:
    if not isinstance(composite.get("time_major"), bool):
        return "the attribute 'time_major' is missing"
    if not isinstance(composite.get("go_backwards", False), bool):
        return "the attribute 'go_backwards' is not a boolean"
    return None


def _check_results(composite: Composite) -> str | None:
    if types.shape_of(composite.results[_OUTPUTS]) is None:
        return "the rank of its outputs is not known"
    sizes = _sizes_of(composite)
    state = (sizes.batch, sizes.units)
    length = 1 if _gives_last_alone(composite, sizes) else sizes.length
    return first_of(
        *(composite.gives(result, types.F32, state) for result in (_LAST, _LAST_H, _LAST_C)),
        composite.gives(_OUTPUTS, types.F32, ordered(sizes.axis, length, *state)),
        composite.gives(_RUNTIME, types.F32, ()),
    )


def _check_state(composite: Composite) -> str | None:
    if composite.is_run_otherwise:
        return "it is run by something other than a call"
    for result, what in ((_LAST_C, "last cell state"), (_RUNTIME, "runtime")):
        if composite.is_used(result):
            return f"its {what} is used, which the operator doesn't return"
    return None


class _Sizes(NamedTuple):
    """The sizes of a layer; -1 where one is not known.

    Attributes:
        axis: Along which axis of its sequences the steps lie.
        length: How many these are.
        batch: The number of sequences.
        features: The number of elements of an input step.
        units: The number of elements of an output step.
    """

    axis: int
    length: int
    batch: int
    features: int
    units: int


def _sizes_of(composite: Composite) -> _Sizes:
    axis = 0 if composite.get("time_major") else 1
    inputs, (batch, units) = composite.shape(_INPUTS) or (), composite.shape(_H) or ()
    features, _ = composite.shape(_KERNEL) or ()
    return _Sizes(axis, inputs[axis], max(inputs[1 - axis], batch), features, units)


def _gives_last_alone(composite: Composite, sizes: _Sizes) -> bool:
    """Returns whether the outputs are just the last one, as in layers that return no sequences."""
    outputs = types.shape_of(composite.results[_OUTPUTS]) or ()
    return sizes.length != 1 and len(outputs) == 3 and outputs[sizes.axis] == 1


def rewrite_lstm(composite: Composite, body: Body) -> Sequence[Value]:
    """Appends the operator, the producers of its operands and the reads of its result."""
    return _rewrite(composite, body, is_diagonal=False)


def rewrite_indy_lstm(composite: Composite, body: Body) -> Sequence[Value]:
    """Appends the operator with recurrent weights that are vectors."""
    return _rewrite(composite, body, is_diagonal=True)


def _rewrite(composite: Composite, body: Body, *, is_diagonal: bool) -> Sequence[Value]:
    sizes = _sizes_of(composite)
    kinds = list(composite.arguments)
    kinds[_INPUTS] = types.tensor(types.F32, ordered(*sizes[:4]))
    values = [body.typed(value, kind) for value, kind in zip(body.arguments, kinds, strict=True)]
    h, c = values[_H], values[_C]
    insert = Operators(body.anchor, {value: value for value in values})
    sequence = SequenceSteps(values[_INPUTS], sizes.axis, composite.get("go_backwards", False))
    steps = insert.layer(LstmFormula(_gates(values, sizes, is_diagonal)), sequence, h, (h, c))
    last = last_h = insert.row(steps, -1)
    if sizes.length < 0:
        last_h = insert.row(steps, -1, h)
        last = last if sizes.batch < 0 else insert.row(steps, -1, insert.zeros(steps, sizes.units))
    outputs = insert.widened(last, sizes.axis) if _gives_last_alone(composite, sizes) else steps.value
    # The last two are dead.
    return last, outputs, last_h, c, body.constant(np.zeros((), np.float32))


def _gates(values: Sequence[Value], sizes: _Sizes, is_diagonal: bool) -> Mapping[str, Sum]:
    """Returns the gates before their activations, sigmoid or hyperbolic tangent."""
    units, gates = sizes.units, {}
    for index, gate in enumerate(_COLUMNS):
        columns: Range = (index * units, units)
        own = values[_INPUTS], Weights(values[_KERNEL], False, (0, sizes.features), columns)
        bias = (Vector(values[_BIAS], columns),)
        if is_diagonal:
            gates[gate] = Sum(units, (own,), ((values[_H], Vector(values[_RECURRENT], columns)),), bias)
        else:
            past = values[_H], Weights(values[_RECURRENT], False, (0, units), columns)
            gates[gate] = Sum(units, (own, past), biases=bias)
    return gates


FUSIONS = (
    Fusion(
        "keras-lstm",
        "lstm_*",
        "(inputs, h, c, kernel, recurrent kernel, bias) -> (last, outputs, h, c, runtime): "
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        check_lstm,
        rewrite_lstm,
        API_IMPLEMENTS,
        is_recurrent=True,
    ),
    Fusion(
        "keras-indy-lstm",
        "indy_lstm_*",
        "the same with a recurrent kernel of one row: UNIDIRECTIONAL_SEQUENCE_LSTM with diagonal recurrent weights",
        check_indy_lstm,
        rewrite_indy_lstm,
        API_IMPLEMENTS,
        is_recurrent=True,
    ),
)
