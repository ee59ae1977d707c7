"""Fusions of marked LSTM layers and LSTM cells.

LSTM layers that Keras marks: one UNIDIRECTIONAL_SEQUENCE_LSTM instead of a loop.

Keras passes `(inputs, h, c, kernel, recurrent kernel, bias)` and reads `(last output, outputs, h, c, runtime)`. The
kernel's columns are the gates input, forget, cell and output.

Keras doesn't clip the cell state, so the operator's clip is 0. The operator updates its state operands in place; the
pass `separate-state` creates them again at each run, in the batch's size. A layer whose last cell state is used stays a
loop: the operator leaves that state in its operand, where no other operator may read it, since the runtime doesn't know
that the operator writes it.

An empty sequence leaves `h` unchanged, but TensorFlow's last output is zeros then. If the batch is dynamic too,
TensorFlow fails, so that case doesn't matter.

A step of an LSTM cell with a projection, in four variants: with or without layer normalization and coupled gates.

A cell's operands are `(inputs, weights, bias, projection, ...)`, with layer normalization its scales next. The weights'
rows are the inputs and then the last output, their columns the gates cell, input, forget and output. An input gate that
is coupled to the forget gate has no columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.composites.marks import API_IMPLEMENTS
from tfconvert.converter.recurrence.affine import Range, Sum, Vector, Weights
from tfconvert.converter.recurrence.cells import CELL, FORGET, GATES, INPUT, OUTPUT, WIDE_PROJECTION, LstmFormula
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
    """Returns why a layer with diagonal recurrent weights can't be fused, `None` if it can."""
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
    """The sizes of a layer; -1 if unknown.

    Attributes:
        axis: The axis of the steps in its sequences.
        length: The number of steps.
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
    """Returns whether the outputs are only the last one, as in layers that return no sequences."""
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


_KERAS_FUSIONS = (
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


_CELL_INPUTS, _WEIGHTS, _CELL_BIAS, _PROJECTION, _SCALES = range(5)
_CELL_COLUMNS = "cifo"
# The order of the gates in the weights' columns, with and without an input gate.
_COUPLED = "cfo"
_GATES = {gate[0]: gate for gate in GATES}

# The interface's own limit of a cell's state.
_CELL_CLIP = 10.0

# A note for those who run the model.
_KEEPS_STATE = (
    "each run of the model is a step of a sequence, and the operator's state lasts to the next: before each new "
    "sequence reset the interpreter's variables (reset_all_variables)"
)


def _check_cell(composite: Composite, *, gates: str, is_normalized: bool) -> str | None:
    first_state = _SCALES + is_normalized
    if len(composite.arguments) < first_state:
        return f"it has {len(composite.arguments)} arguments, not {first_state} or more"
    ranks = {_CELL_INPUTS: 2, _WEIGHTS: 2, _CELL_BIAS: 1, _PROJECTION: 2} | ({_SCALES: 1} if is_normalized else {})
    return first_of(
        composite.counts(len(composite.arguments), 1)
        or composite.ranks(ranks)
        or composite.elements(dict.fromkeys(ranks, "f32"))
        or _check_cell_shapes(composite, gates, is_normalized)
        or _check_cell_state(composite, first_state)
    )


def _check_cell_shapes(composite: Composite, gates: str, is_normalized: bool) -> str | None:
    inputs, weights, bias, projection = (composite.shape(index) or () for index in range(_SCALES))
    known = (inputs[:1], weights, bias, projection, (composite.shape(_SCALES) or ()) if is_normalized else ())
    if not all(types.is_static(shape) for shape in known):
        return "the shapes of its weights, or the batch, are not known"
    cells, outputs = projection
    columns = len(gates) * cells
    if weights[1] != columns or bias != (columns,) or (is_normalized and composite.shape(_SCALES) != (columns,)):
        return f"its weights don't have the {columns} columns of {len(gates)} gates for {cells} cells"
    if outputs > cells:
        return WIDE_PROJECTION
    features = weights[0] - outputs
    if features < 1 or inputs[1] not in (-1, features):
        return f"its weights have {weights[0]} rows, which are not the inputs and {outputs} outputs"
    return composite.gives(0, types.F32, (inputs[0], outputs))


def _check_cell_state(composite: Composite, first_state: int) -> str | None:
    if composite.is_run_otherwise:
        return "it is run by something other than a call"
    if composite.runs_in_loop:
        return "it runs in a loop, and the operator's state would last from one iteration to the next"
    for index in range(first_state, len(composite.arguments)):
        if not composite.is_always_zero(index):
            return f"argument {index} is not zeros, the initial state of the operator"
    return None


def _rewrite_cell(composite: Composite, body: Body, *, gates: str, is_normalized: bool) -> Sequence[Value]:
    values = [body.typed(value, kind) for value, kind in zip(body.arguments, composite.arguments, strict=True)]
    cells, outputs = composite.shape(_PROJECTION) or ()
    batch, _ = composite.shape(_CELL_INPUTS) or ()
    rows, _ = composite.shape(_WEIGHTS) or ()
    initial = [body.constant(np.zeros((batch, size), np.float32)) for size in (outputs, cells)]
    past, weights = initial[0], values[_WEIGHTS]
    features = rows - outputs
    columns = {_GATES[gate]: (index * cells, cells) for index, gate in enumerate(gates)}
    sums = {}
    for gate, part in columns.items():
        own = values[_CELL_INPUTS], Weights(weights, False, (0, features), part)
        recurrent = past, Weights(weights, False, (features, outputs), part)
        sums[gate] = Sum(cells, (own, recurrent), biases=(Vector(values[_CELL_BIAS], part),))
    formula = LstmFormula(
        sums,
        state_clip=_CELL_CLIP,
        projection=Weights(values[_PROJECTION], False, (0, cells), (0, outputs)),
        scales={gate: Vector(values[_SCALES], part) for gate, part in columns.items()} if is_normalized else {},
    )
    insert = Operators(body.anchor, {value: value for value in values})
    return [insert.step(formula, values[_CELL_INPUTS], past, initial)]


def _fusion(name: str, interface: str, gates: str, is_normalized: bool) -> Fusion:
    scales = ", scales" if is_normalized else ""
    return Fusion(
        name,
        interface,
        f"(inputs, weights, bias, projection{scales}, zeros...) -> outputs; {len(gates)} gates: LSTM",
        partial(_check_cell, gates=gates, is_normalized=is_normalized),
        partial(_rewrite_cell, gates=gates, is_normalized=is_normalized),
        note=lambda composite: _KEEPS_STATE,
    )


_SIMPLE, _NORMALIZED = "LSTMCellSimple", "LayerNormalizedLstmCellSimple"
_COUPLING = ",CoupleInputForgetGates"

_CELL_FUSIONS = (
    _fusion("lstm-cell", _SIMPLE, _CELL_COLUMNS, False),
    _fusion("lstm-cell-coupled", _SIMPLE + _COUPLING, _COUPLED, False),
    _fusion("lstm-cell-normalized", _NORMALIZED, _CELL_COLUMNS, True),
    _fusion("lstm-cell-normalized-coupled", _NORMALIZED + _COUPLING, _COUPLED, True),
)

FUSIONS = (*_KERAS_FUSIONS, *_CELL_FUSIONS)
