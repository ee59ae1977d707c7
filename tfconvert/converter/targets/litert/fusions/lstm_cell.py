"""A step of an LSTM cell with a projection, in four shapes: with layer normalization or not, with coupled gates or not.

A cell's operands are `(inputs, weights, bias, projection, ...)`, with layer normalization its scales next. The weights'
rows are the inputs and then the last output, their columns the gates cell, input, forget and output; where the input
gate is coupled to the forget gate it has no columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tfconvert.converter.composites.composite import Composite
from tfconvert.converter.composites.fusion import Body, Fusion, first_of
from tfconvert.converter.recurrence.affine import Sum, Vector, Weights
from tfconvert.converter.recurrence.cells import GATES, WIDE_PROJECTION, LstmFormula
from tfconvert.converter.targets.litert.recurrent.operators import Operators
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.values import Value

_INPUTS, _WEIGHTS, _BIAS, _PROJECTION, _SCALES = range(5)
_COLUMNS = "cifo"
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


def _check(composite: Composite, *, gates: str, is_normalized: bool) -> str | None:
    first_state = _SCALES + is_normalized
    if len(composite.arguments) < first_state:
        return f"it has {len(composite.arguments)} arguments, not {first_state} or more"
    ranks = {_INPUTS: 2, _WEIGHTS: 2, _BIAS: 1, _PROJECTION: 2} | ({_SCALES: 1} if is_normalized else {})
    return first_of(
        composite.counts(len(composite.arguments), 1)
        or composite.ranks(ranks)
        or composite.elements(dict.fromkeys(ranks, "f32"))
        or _check_shapes(composite, gates, is_normalized)
        or _check_state(composite, first_state)
    )


def _check_shapes(composite: Composite, gates: str, is_normalized: bool) -> str | None:
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


def _check_state(composite: Composite, first_state: int) -> str | None:
    if composite.is_run_otherwise:
        return "it is run by something other than a call"
    if composite.runs_in_loop:
        return "it runs in a loop, and the operator's state would last from one iteration to the next"
    for index in range(first_state, len(composite.arguments)):
        if not composite.is_always_zero(index):
            return f"argument {index} is not zeros, the initial state of the operator"
    return None


def _rewrite(composite: Composite, body: Body, *, gates: str, is_normalized: bool) -> Sequence[Value]:
    values = [body.typed(value, kind) for value, kind in zip(body.arguments, composite.arguments, strict=True)]
    cells, outputs = composite.shape(_PROJECTION) or ()
    batch, _ = composite.shape(_INPUTS) or ()
    rows, _ = composite.shape(_WEIGHTS) or ()
    initial = [body.constant(np.zeros((batch, size), np.float32)) for size in (outputs, cells)]
    past, weights = initial[0], values[_WEIGHTS]
    features = rows - outputs
    columns = {_GATES[gate]: (index * cells, cells) for index, gate in enumerate(gates)}
    sums = {}
    for gate, part in columns.items():
        own = values[_INPUTS], Weights(weights, False, (0, features), part)
        recurrent = past, Weights(weights, False, (features, outputs), part)
        sums[gate] = Sum(cells, (own, recurrent), biases=(Vector(values[_BIAS], part),))
    formula = LstmFormula(
        sums,
        state_clip=_CELL_CLIP,
        projection=Weights(values[_PROJECTION], False, (0, cells), (0, outputs)),
        scales={gate: Vector(values[_SCALES], part) for gate, part in columns.items()} if is_normalized else {},
    )
    insert = Operators(body.anchor, {value: value for value in values})
    return [insert.step(formula, values[_INPUTS], past, initial)]


def _fusion(name: str, interface: str, gates: str, is_normalized: bool) -> Fusion:
    scales = ", scales" if is_normalized else ""
    return Fusion(
        name,
        interface,
        f"(inputs, weights, bias, projection{scales}, zeros...) -> outputs; {len(gates)} gates: LSTM",
        partial(_check, gates=gates, is_normalized=is_normalized),
        partial(_rewrite, gates=gates, is_normalized=is_normalized),
        note=lambda composite: _KEEPS_STATE,
    )


_SIMPLE, _NORMALIZED = "LSTMCellSimple", "LayerNormalizedLstmCellSimple"
_COUPLING = ",CoupleInputForgetGates"

FUSIONS = (
    _fusion("lstm-cell", _SIMPLE, _COLUMNS, False),
    _fusion("lstm-cell-coupled", _SIMPLE + _COUPLING, _COUPLED, False),
    _fusion("lstm-cell-normalized", _NORMALIZED, _COLUMNS, True),
    _fusion("lstm-cell-normalized-coupled", _NORMALIZED + _COUPLING, _COUPLED, True),
)
