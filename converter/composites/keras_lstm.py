"""LSTM layers, as Keras marks them: one UNIDIRECTIONAL_SEQUENCE_LSTM instead of a loop.

Keras gives `(inputs, h, c, kernel, recurrent kernel, bias)` and takes `(last output, outputs, h, c, runtime)`. The
kernel's columns are the gates input, forget, cell and output.

Keras clips no cell, so the operator is told to clip none. What it begins with are its operands for the state, which it
overwrites: each run of the model copies them there. A layer whose last cell state is used stays a loop, since nothing
may read the state behind the operator's back. So does one with an open batch: LiteRT allots a state once, by the shape
in the file, and what a larger batch writes behind it is not noticed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from converter.composites.body import Body
from converter.composites.composite import Composite
from converter.composites.fusion import Fusion, first_of
from converter.composites.presence import API_IMPLEMENTS
from schema.dialects import types

_INPUTS, _H, _C, _KERNEL, _RECURRENT, _BIAS = range(6)
_LAST, _OUTPUTS, _LAST_H, _LAST_C, _RUNTIME = range(5)
_GATES = 4


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
        or _check_state(composite)
    )


def _check_shapes(composite: Composite, is_diagonal: bool) -> str | None:
    shapes = [composite.shape(index) for index in range(_BIAS + 1)]
    if not all(types.is_static(shape) for shape in shapes[_KERNEL:]) or (shapes[_H] or (-1,))[-1] < 0:
        return "the shapes of its weights are not all known"
    if not types.is_static(shapes[_H]):
        return "its batch is not known, and the runtime can't resize an operator's state"
    batch, units = shapes[_H] or ()
    columns = _GATES * units
    features = (shapes[_KERNEL] or (0,))[0]
    expected = ((batch, units), (batch, units), (features, columns), (1 if is_diagonal else units, columns), (columns,))
    if tuple(shapes[1:]) != expected:
        return "the shapes of its state and weights don't fit together"
    inputs = shapes[_INPUTS] or ()
    axis = 1 if composite.get("time_major") else 0
    if (inputs[axis] != batch and min(inputs[axis], batch) > 0) or inputs[2] not in (-1, features):
        return "the shape of its inputs doesn't fit its weights"
    outputs = types.shape_of(composite.results[_OUTPUTS])
    return "the rank of its outputs is not 3" if outputs is None or len(outputs) != 3 else None


def _check_attributes(composite: Composite) -> str | None:
    if not isinstance(composite.get("time_major"), bool):
        return "the attribute 'time_major' is missing"
    if not isinstance(composite.get("go_backwards", False), bool):
        return "the attribute 'go_backwards' is no boolean"
    return None


def _check_state(composite: Composite) -> str | None:
    if composite.is_run_otherwise:
        return "something else than a call runs it"
    if composite.runs_in_loop:
        return "it runs in a loop, and the operator's state would last from one round to the next"
    for result, what in ((_LAST_C, "last cell state"), (_RUNTIME, "runtime")):
        if composite.is_used(result):
            return f"its {what} is used, which the operator doesn't give"
    return None


def rewrite_lstm(composite: Composite, body: Body) -> Sequence[SSAValue]:
    """Appends the operator, what makes its operands and what is taken out of its result."""
    return _rewrite(composite, body, is_diagonal=False)


def rewrite_indy_lstm(composite: Composite, body: Body) -> Sequence[SSAValue]:
    """Appends the operator with recurrent weights that are vectors."""
    return _rewrite(composite, body, is_diagonal=True)


def _rewrite(composite: Composite, body: Body, *, is_diagonal: bool) -> Sequence[SSAValue]:
    is_time_major = composite.get("time_major")
    batch, units = composite.shape(_H) or ()
    features, _ = composite.shape(_KERNEL) or ()
    inputs = body.arguments[_INPUTS]
    if composite.get("go_backwards", False):
        axis = body.ints([0 if is_time_major else 1])
        inputs = body.tf("ReverseV2", (inputs, axis), composite.arguments[_INPUTS])[0]
    weights = [
        *_gates(body, body.transposed(_typed(body, composite, _KERNEL)), units, features),
        *_recurrent(body, _typed(body, composite, _RECURRENT), units, is_diagonal),
    ]
    bias = [body.part(body.arguments[_BIAS], (gate * units,), (units,)) for gate in range(_GATES)]
    absent = body.absent()
    times = (composite.shape(_INPUTS) or ())[0 if is_time_major else 1]
    shape = (times, batch, units) if is_time_major else (batch, times, units)
    options = {"diagonal_recurrent_tensors": True} if is_diagonal else {}
    sequence = body.tfl(
        "unidirectional_sequence_lstm",
        (inputs, *weights, *[absent] * 3, *bias, absent, absent, *body.arguments[_H : _C + 1], *[absent] * 4),
        types.tensor(types.F32, shape),
        fused_activation_function="TANH",
        cell_clip=0.0,
        proj_clip=0.0,
        time_major=is_time_major,
        **options,
    )[0]
    last = _last(body, sequence, is_time_major)
    outputs = _outputs(body, sequence, composite.results[_OUTPUTS], is_time_major)
    # Nobody uses the last two.
    return last, outputs, last, body.arguments[_C], body.constant(np.zeros((), np.float32))


def _typed(body: Body, composite: Composite, index: int) -> SSAValue:
    """Returns an argument whose type tells the shape that the calls give it."""
    value, known = body.arguments[index], composite.arguments[index]
    return value if value.type == known else body.tf("Identity", (value,), known)[0]


def _gates(body: Body, matrix: SSAValue, units: int, columns: int) -> list[SSAValue]:
    return [body.part(matrix, (gate * units, 0), (units, columns)) for gate in range(_GATES)]


def _recurrent(body: Body, matrix: SSAValue, units: int, is_diagonal: bool) -> list[SSAValue]:
    if not is_diagonal:
        return _gates(body, body.transposed(matrix), units, units)
    vector: Attribute = types.tensor(types.F32, (_GATES * units,))
    flat = body.tf("Reshape", (matrix, body.ints([-1])), vector)[0]
    return [body.part(flat, (gate * units,), (units,)) for gate in range(_GATES)]


def _last(body: Body, sequence: SSAValue, is_time_major: bool, *, keeps_time: bool = False) -> SSAValue:
    """Appends what takes the last step out of a sequence."""
    shape = types.shape_of(sequence.type) or ()
    axis = 0 if is_time_major else 1
    kept = tuple(dim for index, dim in enumerate(shape) if index != axis)
    if keeps_time:
        kept = (*kept[:axis], 1, *kept[axis:])
    others = sum(1 << index for index in range(3) if index != axis)
    begin, end, strides = ([value if index == axis else other for index in range(3)]
                           for value, other in ((-1, 0), (0, 0), (1, 1)))  # fmt: skip
    return body.tf(
        "StridedSlice",
        (sequence, body.ints(begin), body.ints(end), body.ints(strides)),
        types.tensor(types.F32, kept),
        begin_mask=others,
        end_mask=others | 1 << axis,
        ellipsis_mask=0,
        new_axis_mask=0,
        shrink_axis_mask=0 if keeps_time else 1 << axis,
    )[0]


def _outputs(body: Body, sequence: SSAValue, wanted: Attribute, is_time_major: bool) -> SSAValue:
    """Returns the sequence, or its last step alone where the layer returns no sequences."""
    axis = 0 if is_time_major else 1
    shape, given = types.shape_of(wanted) or (), types.shape_of(sequence.type) or ()
    if shape[axis] == 1 and given[axis] != 1:
        return _last(body, sequence, is_time_major, keeps_time=True)
    return sequence


FUSIONS = (
    Fusion(
        "keras-lstm",
        "lstm_*",
        "(inputs, h, c, kernel, recurrent kernel, bias) -> (last, outputs, h, c, runtime): "
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        check_lstm,
        rewrite_lstm,
        API_IMPLEMENTS,
    ),
    Fusion(
        "keras-indy-lstm",
        "indy_lstm_*",
        "the same with a recurrent kernel of one row: UNIDIRECTIONAL_SEQUENCE_LSTM with diagonal recurrent weights",
        check_indy_lstm,
        rewrite_indy_lstm,
        API_IMPLEMENTS,
    ),
)
