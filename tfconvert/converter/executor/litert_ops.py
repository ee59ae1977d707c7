"""LiteRT's operators: those that passes insert among TensorFlow's ops, and those of converted models.

They compute floats like LiteRT. If LiteRT is installed, modules of only operators run there, many times faster. Most
operators have a row in `litert_table.py`. Quantized operators are not supported, except for conversions from and to
floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tfconvert.converter.executor import litert_table, resources
from tfconvert.converter.executor.resources import Simple
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops import recurrent, registry
from tfconvert.ops.call import Array, Call, Kernel, Results, boxed, highest, lowest, scalar, typed
from tfconvert.ops.special_functions import erfc
from tfconvert.ops.suppression import overlaps_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite import operators

OUTSIDE = "outside-of-domain"
"""Code of the error of an operator that doesn't support operands of the function that it replaces."""

_ROOT = np.float32(np.sqrt(0.5))
_SLOPE = np.float32(np.sqrt(2 / np.pi))


def _call_of(op: Operation, inputs: Results) -> Call:
    """Returns the call of an operator's kernel, with all of its options and the dtype of its first result."""
    name = op.name.removeprefix(tfl.PREFIX)
    options = {option: tfl.attribute(op, option) for option in tfl.option_fields(name)}
    return Call(name, inputs, {**options, "result": _dtype(op.results[0].type)})


def _dtype(tensor: Attribute) -> np.dtype[np.generic]:
    return types.numpy_dtype(quant.storage_of(types.element_of(tensor)))


def _operands(call: Call) -> recurrent.OperandsByName:
    """Returns the present operands by name."""
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
    """Runs `tfl.non_max_suppression_v4`; refuses degenerate boxes and equal scores."""
    boxes, scores, limit = call.inputs[0], call.inputs[1], scalar(call.inputs[2])
    overlap, minimum = (value.reshape(-1)[0] for value in call.inputs[3:])
    order = [box for box in np.argsort(-scores, kind="stable").tolist() if scores[box] > minimum]
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
    """Stacks the outputs of the steps; without steps, a state determines the shape."""
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


def evaluate(op: Operation, inputs: Results) -> Results:
    """Computes a stateless operator of floats, integers or booleans.

    Raises:
        ConversionError: It has no kernel (`no-reference-kernel`), or its operands don't fit it (`bad-operand`).
    """
    kernel = _KERNELS.get(op.name.removeprefix(tfl.PREFIX))
    if kernel is None:
        raise error("no-reference-kernel", "the op has no reference kernel", op=op.name)
    return registry.apply(kernel, _call_of(op, inputs))


def _step(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Runs a step, `tfl.lstm`. Its state persists unless the model sets it before each step."""
    operands = list(inputs)
    for index, value in zip(tfl.state_operands(op), machine.states.get(op, ()), strict=False):
        if tfl.keeps_state(op, op.operands[index]):
            operands[index] = value
    state = machine.states[op] = _run(_lstm, machine, op, tuple(operands))
    return state[:1]


def _dequantize(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Returns the real numbers of quantized integers, or 16-bit floats as 32-bit floats."""
    (x,) = inputs
    element = types.element_of(op.operands[0].type)
    wide = x.astype(np.float32)
    if not isinstance(element, UniformType):
        return (wide,)
    scales, zeros = _scales(element, x.ndim)
    return ((wide - zeros) * scales,)


def _quantize(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Quantizes floats, or requantizes integers."""
    (x,) = inputs
    source, element = (types.element_of(value.type) for value in (op.operands[0], op.results[0]))
    if isinstance(source, UniformType):
        (x,) = _dequantize(machine, op, inputs)
    if not isinstance(element, UniformType):
        raise bad(op, "the result has no scale")
    scales, zeros = _scales(element, x.ndim)
    dtype = _dtype(op.results[0].type)
    scaled = x / scales
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # Ties go away from zero.
    return (typed(np.clip(rounded + zeros, lowest(dtype), highest(dtype)), dtype),)


def _scales(element: UniformType, rank: int) -> tuple[Array, Array]:
    """Returns scales and zero points that can be broadcast to a tensor of a rank."""
    uniform = element.data
    shape = [1] * rank
    if uniform.axis is not None:
        shape[uniform.axis] = -1
    scales, zeros = (np.array(each, np.float32).reshape(shape) for each in (uniform.scales, uniform.zero_points))
    return scales, zeros


def _handle(machine: Machine, op: Operation, inputs: Results) -> Results:
    return (resources.handle_of(machine, str(tfl.attribute(op, "shared_name"))),)


def stands_for_floats(op: Operation) -> bool:
    """Returns whether an operator computes with integers that represent real numbers."""
    if op.name in _CONVERSIONS:
        return False
    values = (*op.operands, *op.results)
    return any(quant.storage_of(element) is not element for element in (types.element_of(each.type) for each in values))


_CONVERSIONS = frozenset(("tfl.dequantize", "tfl.pseudo_qconst", "tfl.quantize"))

_KERNELS: Mapping[str, Kernel] = {
    **litert_table.KERNELS,
    "embedding_lookup": _embedding_lookup,
    "gelu": _gelu,
    "non_max_suppression_v4": _suppression,
    "unidirectional_sequence_lstm": _sequence_lstm,
    "unidirectional_sequence_rnn": _sequence_rnn,
}

OPS: Mapping[str, Simple] = {
    "tfl.assign_variable": resources.OPS["tf.AssignVariableOp"],
    "tfl.dequantize": _dequantize,
    "tfl.lstm": _step,
    "tfl.no_value": _no_value,
    "arith.constant": _constant,
    "tfl.pseudo_const": _constant,
    "tfl.pseudo_qconst": _constant,
    "tfl.quantize": _quantize,
    "tfl.read_variable": resources.OPS["tf.ReadVariableOp"],
    "tfl.var_handle": _handle,
    **{tfl.PREFIX + name: partial(_run, kernel) for name, kernel in _KERNELS.items()},
}
"""Op -> its handler."""
