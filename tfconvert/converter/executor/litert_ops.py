"""LiteRT's operators that passes insert among TensorFlow's ops, before legalization converts the rest.

Only these are here: modules of nothing but operators run in LiteRT itself. What they compute is what LiteRT does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.converter.executor.variables import Simple
from tfconvert.converter.kernels import recurrent, registry
from tfconvert.converter.kernels.call import Array, Call, Kernel, Results, boxed, scalar
from tfconvert.converter.kernels.special_functions import erfc
from tfconvert.converter.kernels.suppression import overlaps_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import sequences, tensor_data, tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite import operators

OUTSIDE = "outside-of-domain"
"""Code of the error of an operator that accepts less than the function that it replaces."""

_ROOT = np.float32(np.sqrt(0.5))
_SLOPE = np.float32(np.sqrt(2 / np.pi))


def _call_of(op: Operation, inputs: Results) -> Call:
    """Returns a kernel's attributes of an operator: all of its options, by name."""
    name = op.name.removeprefix(tfl.PREFIX)
    return Call(name, inputs, {option: tfl.attribute(op, option) for option in tfl.option_fields(name)})


def _operands(call: Call) -> recurrent.Operands:
    """Returns the operands that are present by their names in the table of operators."""
    operator = operators.lookup(call.op)
    assert operator is not None
    pairs = zip(operator.operands, call.inputs, strict=False)
    return {operand.name: value for operand, value in pairs if value.dtype.kind != "O"}


def _gelu(call: Call) -> Results:
    (x,) = call.inputs
    if call.flag("approximate"):
        return (x * np.float32(0.5) * (1 + np.tanh(_SLOPE * (x + np.float32(0.044715) * x * x * x))),)
    return ((x * np.float32(0.5) * erfc(-x * _ROOT)).astype(x.dtype),)


def _embedding_lookup(call: Call) -> Results:
    ids, table = call.inputs
    if np.any((ids < 0) | (ids >= len(table))):
        raise error(OUTSIDE, f"an id is not within the table's {len(table)} rows", op=call.op)
    return (table[ids],)


def _suppression(call: Call) -> Results:
    """Runs `tfl.non_max_suppression_v4` on boxes that are some, and candidates that have an order."""
    boxes, scores, limit = call.inputs[0], call.inputs[1], scalar(call.inputs[2])
    overlap, least = (value.reshape(-1)[0] for value in call.inputs[3:])
    order = [box for box in np.argsort(-scores, kind="stable").tolist() if scores[box] > least]
    if np.any(boxes[:, :2] >= boxes[:, 2:]) or np.any(boxes.max(axis=1) <= 0):
        raise error(OUTSIDE, "a box has no area, swapped corners or no positive coordinate", op=call.op)
    if len(set(scores[order].tolist())) < len(order):
        raise error(OUTSIDE, "two boxes have the same score", op=call.op)
    if overlap > 1 or limit < 0:
        raise error(OUTSIDE, "the overlap threshold is over 1, or the number of boxes is negative", op=call.op)
    areas, chosen = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1), list[int]()
    for box in order:
        if len(chosen) < limit and (overlaps_of(boxes, areas, box, chosen) < overlap).all():
            chosen.append(box)
    padding = [0] * (limit - len(chosen))
    return np.array([*chosen, *padding], np.int32), np.array(len(chosen), np.int32)


def _sequence_lstm(call: Call) -> Results:
    operands = _operands(call)
    state = recurrent.State(operands["input_activation_state"], operands["input_cell_state"])
    return _joined(call, recurrent.Lstm(call, operands).sequence(_steps(call), state), state.output)


def _lstm(call: Call) -> Results:
    operands = _operands(call)
    state = recurrent.State(operands["input_activation_state"], operands["input_cell_state"])
    return recurrent.Lstm(call, operands).step(call.inputs[0], state)


def _sequence_rnn(call: Call) -> Results:
    operands = _operands(call)
    return _joined(call, recurrent.simple_rnn(call, operands, _steps(call)), operands["hidden_state"])


def _steps(call: Call) -> Sequence[Array]:
    return list(call.inputs[0] if call.flag("time_major") else call.inputs[0].swapaxes(0, 1))


def _joined(call: Call, outputs: Sequence[Array], state: Array) -> Results:
    """Returns the steps' outputs as one value; a state determines the shape of each where there are none."""
    axis = 0 if call.flag("time_major") else 1
    return (np.stack(outputs, axis) if outputs else np.expand_dims(state, axis).take([], axis),)


def _no_value(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (boxed(None),)


def _constant(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (tensor_data.to_array(op.properties["value"]),)


def _run(kernel: Kernel, machine: Machine, op: Operation, inputs: Results) -> Results:
    try:
        return registry.apply(kernel, _call_of(op, inputs))
    except KeyError as absent:
        raise bad(op, f"the operand {absent} is absent") from absent


def _step(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs `tfl.lstm`: a step, after which the state stays for the next run unless the model sets it before each."""
    operands = list(inputs)
    for index, value in zip(sequences.state_operands(op), machine.states.get(op, ()), strict=False):
        if sequences.keeps_state(op, op.operands[index]):
            operands[index] = value
    state = machine.states[op] = _run(_lstm, machine, op, tuple(operands))
    return state[:1]


_KERNELS: Mapping[str, Kernel] = {
    "embedding_lookup": _embedding_lookup,
    "gelu": _gelu,
    "non_max_suppression_v4": _suppression,
    "unidirectional_sequence_lstm": _sequence_lstm,
    "unidirectional_sequence_rnn": _sequence_rnn,
}

OPS: Mapping[str, Simple] = {
    "tfl.lstm": _step,
    "tfl.no_value": _no_value,
    "tfl.pseudo_const": _constant,
    **{tfl.PREFIX + name: partial(_run, kernel) for name, kernel in _KERNELS.items()},
}
"""Op -> its handler."""
