"""LiteRT's operators: those that passes insert among TensorFlow's ops, and those of converted models.

They compute floats like LiteRT. If LiteRT is installed, modules of only operators run there, many times faster. Most
operators have a row in a table, which uses the numpy kernels of TensorFlow's ops. Quantized operators are not
supported, except for conversions from and to floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from tfconvert.converter.executor import resources
from tfconvert.converter.executor.resources import Simple
from tfconvert.converter.executor.tasks import Machine, bad
from tfconvert.ops import recurrent, registry
from tfconvert.ops.call import Array, Call, Function, Kernel, Results, boxed, highest, lowest, scalar, typed
from tfconvert.ops.special_functions import erfc
from tfconvert.ops.suppression import kernel_differs, ordered, overlaps_of
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import quant, tensor_data, tfl, types
from tfconvert.schema.dialects.quant import UniformType
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite import operators

Attributes = dict[str, object]


def convolution(call: Call) -> Call:
    """Transposes a filter to the axes that TensorFlow's op has: in a transposed convolution, outputs before inputs."""
    row = operators.filters()[call.op]
    window = "".join(axis for axis in row.axes if axis in "DHW")
    order = window + ("OI" if row.data else "IO")
    inputs = list(call.inputs)
    inputs[row.operand] = inputs[row.operand].transpose([row.axes.index(axis) for axis in order])
    return call._replace(inputs=tuple(inputs), attributes=_strided(call))


def depthwise(call: Call) -> Call:
    """Reshapes a filter [1, height, width, outputs] to [height, width, inputs, outputs per input]."""
    x, weights = call.inputs
    _, height, width, _ = weights.shape
    return call._replace(inputs=(x, weights.reshape(height, width, x.shape[-1], -1)), attributes=_strided(call))


def pool(call: Call) -> Call:
    """Converts sizes of windows and strides to lists."""
    size = (1, call.integer("filter_height"), call.integer("filter_width"), 1)
    return call._replace(attributes={**_strided(call), "ksize": size})


def fully_connected(call: Call) -> Call:
    """Flattens all dimensions but the last, unless the operator keeps them."""
    x, weights = call.inputs
    rows = x if call.flag("keep_num_dims") else x.reshape(-1, weights.shape[-1])
    return call._replace(inputs=(rows, weights), attributes={"adj_y": True})


def softmax(call: Call) -> Call:
    """Multiplies the logits by `beta`."""
    (x,) = call.inputs
    return call._replace(inputs=(x * typed(call.number("beta", 1.0), x.dtype),))


def reshape(call: Call) -> Call:
    """The shape may be an option."""
    if len(call.inputs) == 2:
        return call
    return call._replace(inputs=(*call.inputs, _integers(call.integers("new_shape"))))


def axis_last(call: Call) -> Call:
    """Appends the axis as an operand."""
    return call._replace(inputs=(*call.inputs, _integers(call.integer("axis"))))


def strided_slice(call: Call) -> Call:
    """Ends may be relative to the begins."""
    x, begin, end, strides = call.inputs
    return call._replace(inputs=(x, begin, begin + end, strides)) if call.flag("offset") else call


def unique(call: Call) -> Call:
    """The dtype of the indices is an option."""
    dtype = np.int64 if call.text("idx_out_type") == "INT64" else np.int32
    return call._replace(attributes={**call.attributes, "out_idx": dtype})


def _strided(call: Call) -> Attributes:
    """Returns the attributes of an operator over images or volumes, with strides and dilations as lists."""
    axes = "dhw" if "stride_d" in call.attributes else "hw"
    strides = (call.integer(f"stride_{axis}", 1) for axis in axes)
    dilations = (call.integer(f"dilation_{axis}_factor", 1) for axis in axes)
    return {**call.attributes, "strides": (1, *strides, 1), "dilations": (1, *dilations, 1)}


def _integers(values: int | tuple[int, ...]) -> Array:
    return np.array(values, np.int32)


# The minimum norm that LiteRT divides by.
_MIN_NORM = np.float32(1e-6)


def _l2_normalization(call: Call) -> Results:
    (x,) = call.inputs
    norm = np.sqrt(np.sum(np.square(x), -1, keepdims=True))
    return (x / np.maximum(norm, _MIN_NORM),)


def _l2_pool(call: Call) -> Results:
    """Runs `tfl.l2_pool_2d`: the root of the mean of squares."""
    squares = call._replace(op="AvgPool", inputs=(np.square(call.inputs[0]),))
    return (np.sqrt(registry.evaluate(pool(squares))[0]),)


def _prelu(call: Call) -> Results:
    x, alpha = call.inputs
    return (np.where(x >= 0, x, x * alpha),)


def _unary(function: Function) -> Kernel:
    def kernel(call: Call) -> Results:
        (x,) = call.inputs
        return (typed(function(x), x.dtype),)

    return kernel


def _clip(limits: tuple[float, float]) -> Kernel:
    return _unary(lambda x: np.clip(x, *limits))


_OWN_KERNELS: Mapping[str, Kernel] = {
    "hard_swish": _unary(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "l2_normalization": _l2_normalization,
    "l2_pool_2d": _l2_pool,
    "prelu": _prelu,
    # Others of this name are ops of TensorFlow.
    **{name: _clip(limits) for name, limits in operators.ranges().items() if name.startswith("relu_")},
}
"""Operator -> kernel."""


# Options, and the attributes of TensorFlow's ops for the dtype of the result, that have other names there.
_RENAMED = {"num_splits": "num_split", "radius": "depth_radius"}
_DTYPES = ("DstT", "out_type", "output_type", "type")

# Operator -> how its operands and attributes become those of the op that computes it, where more than names differ.
_LAYOUTS: Mapping[str, Callable[[Call], Call]] = {
    "average_pool_2d": pool,
    "concatenation": axis_last,
    "conv_2d": convolution,
    "conv_3d": convolution,
    "conv_3d_transpose": convolution,
    "depthwise_conv_2d": depthwise,
    "fully_connected": fully_connected,
    "gather": axis_last,
    "max_pool_2d": pool,
    "reshape": reshape,
    "softmax": softmax,
    "strided_slice": strided_slice,
    "transpose_conv": convolution,
    "unique": unique,
}


def _evaluate(name: str, op: str, call: Call) -> Results:
    """Computes an operator by an op of TensorFlow: the op, the bias, the activation."""
    row, layout = operators.filters().get(name), _LAYOUTS.get(name)
    operands = call.inputs[: row.bias] if row else call.inputs
    attributes = {_RENAMED.get(option, option): value for option, value in call.attributes.items()}
    attributes.update(dict.fromkeys(_DTYPES, call.attributes["result"]))
    inner = call._replace(inputs=operands, attributes=attributes)
    first, *others = registry.evaluate((layout(inner) if layout else inner)._replace(op=op))
    for bias in call.inputs[len(operands) :]:
        if bias.dtype.kind != "O":  # Else it is absent.
            first = first + bias
    if tfl.ACTIVATION in call.attributes:
        first = recurrent.activation_of(call)(first)
    return first, *others


KERNELS: Mapping[str, Kernel] = {
    **{name: partial(_evaluate, name, op) for name, op in operators.tensorflow_ops().items()},
    **_OWN_KERNELS,
}
"""Operator -> kernel for the operator's operands and options."""


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
    """Runs `tfl.non_max_suppression_v4`; refuses boxes without area and equal scores."""
    boxes, scores, limit = call.inputs[0], call.inputs[1], scalar(call.inputs[2])
    overlap, minimum = (value.reshape(-1)[0] for value in call.inputs[3:])
    order = [box for box in np.argsort(-scores, kind="stable").tolist() if scores[box] > minimum]
    corners, areas = ordered(boxes)
    if reason := kernel_differs(boxes, scores, minimum) or ("" if areas.all() else "a box has no area"):
        raise error(OUTSIDE, reason, op=call.op)
    if overlap > 1 or limit < 0:
        raise error(OUTSIDE, "the overlap threshold is over 1, or the number of boxes is negative", op=call.op)
    chosen = list[int]()
    for box in order:
        if len(chosen) < limit and (overlaps_of(corners, areas, box, chosen) < overlap).all():
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
    element = op.operands[0].element
    wide = x.astype(np.float32)
    if not isinstance(element, UniformType):
        return (wide,)
    scales, zeros = _scales(element, x.ndim)
    return ((wide - zeros) * scales,)


def _quantize(machine: Machine, op: Operation, inputs: Results) -> Results:
    """Quantizes floats, or requantizes integers."""
    (x,) = inputs
    source, element = (value.element for value in (op.operands[0], op.results[0]))
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
    return any(quant.storage_of(element) is not element for element in (each.element for each in values))


_CONVERSIONS = frozenset(("tfl.dequantize", "tfl.pseudo_qconst", "tfl.quantize"))

_KERNELS: Mapping[str, Kernel] = {
    **KERNELS,
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
