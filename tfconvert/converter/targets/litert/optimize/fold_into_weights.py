"""Folds arithmetic and reshapes before and after a weighted op into its weights and bias.

Additions after a convolution or a matrix product go into its bias.

    add(conv(x, w, b), c)  ->  conv(x, w, b + c)

The constant has one value per channel, or one for all, and the product has no other use.

Multiplications after a convolution or a matrix product go into its filter and bias.

    mul(conv(x, w, b), c)  ->  conv(x, w * c, b * c)

The constant has one value per output channel, or one for all. The filter isn't read: the product is a deferred
expression that the exporter computes when it writes the filter. The ranges of a fake-quantized filter are scaled
with it, so that each number is rounded as before:

    mul(conv(x, fake_quant(w), b), c)  ->  conv(x, fake_quant'(w * c), b * c)

Scales and shifts of the input of a convolution or a matrix product go into its filter and bias.

    conv(mul(x, c), w, b)       ->  conv(x, w * c, b)
    conv(add(x, c), w, b)       ->  conv(x, w, b + sum(w * c))            where no padding is involved
    conv(pad(mul(x, c)), w, b)  ->  conv(pad(x), w * c, b)                zeros stay zeros
    conv(pad(add(mul(x, a), c)), w, b)  ->  conv(pad(add(x, c / a)), w * a, b)

Image nets normalize their input like the last one; this saves a multiplication at full resolution.

Where channels of several weighted ops are concatenated, each gets its part of the constant, or the activation:

    mul(concatenation(conv(x, w), conv(y, v)), c)  ->  concatenation(mul(conv(x, w), c1), mul(conv(y, v), c2))

A grouped convolution with one input channel per group is a depthwise convolution, which has its own kernel.

conv_2d(x : NxHxWxC, w : OxKxLx1)  ->  depthwise_conv_2d{depth_multiplier = O / C}(x, w : 1xKxLxO)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Declined, Failure, Pattern, need, required
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import constant_of, need_floats, option, shape_of
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.expressions import Handle
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.operators import Filter

# The tail of a transposed convolution in three dimensions isn't folded.
OPS: Mapping[str, Filter] = {
    f"tfl.{name}": row for name, row in operators.filters().items() if name != "conv_3d_transpose"
}

NAMES = frozenset(OPS)


def filter_shape(op: Operation) -> types.Shape | None:
    """Returns the shape of a weighted op's filter, `None` if it is unknown or invalid."""
    layout = OPS[op.name]
    dims = op.operands[layout.operand].shape
    return dims if dims is not None and len(dims) == len(layout.axes) else None


def channels(op: Operation) -> int | None:
    """Returns the number of a weighted op's output channels, `None` if unknown."""
    dims = filter_shape(op)
    length = -1 if dims is None else dims[OPS[op.name].output_axis]
    return None if length < 0 else length


def float_filter(op: Operation) -> Constant | None:
    """Returns a weighted op's constant filter of 32-bit floats, or `None`."""
    value = op.operands[OPS[op.name].operand]
    return tensor_data.constant_of(value) if questions.is_float(value) else None


def _is_table(op: Operation) -> bool:
    """Returns whether an op's filter is data too, a table of embeddings: scaled, it would be in the file twice."""
    weights = op.operands[OPS[op.name].operand]
    if not all(use.operation.name in NAMES and use.index == OPS[use.operation.name].operand for use in weights.uses):
        return True
    constant = tensor_data.constant_of(weights)
    # The table may be transposed, and so another value. Only long ones are worth the search.
    if not isinstance(constant, tensor_data.TensorData) or not tensor_data.is_table(constant):
        return False
    assert op.parent is not None
    tables = (
        tensor_data.constant_of(each.operands[_TABLES[each.name]]) for each in op.parent.ops if each.name in _TABLES
    )
    return any(_is_same(table, constant) for table in tables if isinstance(table, tensor_data.TensorData))


def _is_same(table: tensor_data.TensorData, other: tensor_data.TensorData) -> bool:
    """Returns whether one is the other or its transpose, or has the same numbers."""
    if _origin(table).fingerprint() == _origin(other).fingerprint():
        return True
    # A block of a transposed table takes all of it to compute, a probe little.
    is_likely = table.nbytes == other.nbytes and tensor_data.probe(table) == tensor_data.probe(other)
    return is_likely and tensor_data.are_equal(table, other)


def _origin(constant: tensor_data.TensorData) -> tensor_data.Source:
    """Returns the source that transposes and reshapes started from."""
    source = constant.source
    while isinstance(source, tensor_data.Deferred) and source.function in ("reshape", "transpose"):
        source = source.arguments[0].source
    return source


# The ops that look up rows, and the index of the table.
_TABLES = {"tfl.embedding_lookup": 1, "tfl.gather": 0}


def _need_weights(op: Operation) -> None:
    need(not _is_table(op), "the filter is a table of data, too")


def bias_of(op: Operation) -> Constant | None:
    """Returns a weighted op's constant bias, `None` without one; declines if it isn't one value per channel."""
    bias = OPS[op.name].bias
    if not dialect.has_operand(op, bias):
        return None
    constant = tensor_data.constant_of(op.operands[bias])
    is_vector = constant is not None and questions.dims_of(constant) == (channels(op),)
    need(is_vector, "the bias is computed, or not one value a channel")
    return constant


def is_zero(constant: Constant) -> bool:
    """Returns whether a constant is known to be zero without reading a file."""
    if isinstance(constant, tensor_data.DenseElementsAttr) and not constant.data.strip(b"\0"):
        return True
    if isinstance(constant, tensor_data.TensorData) and not isinstance(constant.source, tensor_data.BufferSource):
        return False
    return not tensor_data.to_array(constant).any()


def sum_of(bias: Constant | None, vector: Constant, length: int) -> Constant:
    """Returns the bias plus a vector of `length` elements or of one element."""
    if bias is None or is_zero(bias):
        if questions.size_of(vector) == length:
            return vector
        bias = tensor_data.of_array(np.zeros(length, np.float32))
    return tensor_data.defer("add", (bias, vector), (length,))


def _vector(source: Operation, constant: Constant) -> Constant:
    """Returns a constant operand after a weighted op as a vector, one value per channel or one for all."""
    dims, length = source.results[0].shape or (), required(channels(source), "the number of channels is unknown")
    need(dims[-1:] == (length,), "the number of channels is unknown")
    return questions.as_vector(constant, length, len(dims))


def with_operands(op: Operation, changed: Mapping[int, Value], build: FormBuilder) -> list[Value]:
    """Returns an op's operands with some replaced; an absent bias is filled in."""
    operands = [*op.operands]
    while len(operands) <= max(changed):
        operands.append(build.absent())
    for index, value in changed.items():
        operands[index] = value
    return operands


def _extend(build: FormBuilder, source: Operation, changed: Mapping[int, Value]) -> None:
    """Replaces the root by its weighted op with other constants."""
    last, rewriter = max(changed), build.rewriter
    if last >= len(source.operands):
        source.set_operands(with_operands(source, {last: changed[last]}, build))
    for index, value in changed.items():
        rewriter.set_operand(source, index, value)
    # The root's own activation stays.
    rewriter.extend(source, {questions.ACTIVATION: rewriter.root.properties.get(questions.ACTIVATION, questions.NONE)})


_NOT_WEIGHTED = Failure("it isn't of a constant and of a plain op with weights whose result has no other use")


def _weighted(op: Operation) -> tuple[Operation, Value, Constant] | None:
    """Returns the weighted op whose result is one operand of an op, and the constant that is the other one."""
    for value, other in (op.operands, op.operands[::-1]):
        source = value.sole_producer(NAMES)
        constant = None if source is None else tensor_data.constant_of(other)
        if source is not None and constant is not None and questions.is_plain(source):
            need_floats(value)
            return source, other, _vector(source, constant)
    return None


def _added(op: Operation) -> Emit | Failure:
    found = _weighted(op)
    if found is None:
        return _NOT_WEIGHTED
    source, addend, vector = found
    index = OPS[source.name].bias
    bias = sum_of(bias_of(source), vector, channels(source) or 0)
    old = [value for value in source.operands[index : index + 1] if tensor_data.constant_of(value) is not None]
    return lambda build: _extend(build, source, {index: build.derived(bias, *old, addend)})


def _multiplied(op: Operation) -> Emit | Failure:
    found = _weighted(op)
    if found is None:
        return _NOT_WEIGHTED
    source, factor, vector = found
    layout, bias = OPS[source.name], bias_of(source)
    weights = source.operands[layout.operand]
    if float_filter(source) is None:
        need(fake_quant.constant_behind(weights) is not None, "the filter is computed, or quantised")
        is_along = questions.size_of(vector) == 1 or fake_quant.uniform_of(weights).axis in (None, layout.output_axis)
        need(is_along, "the filter is quantized along another dimension")
    _need_weights(source)

    def emit_scaled(build: FormBuilder) -> None:
        scaled, origins = scale_filter(weights, vector, layout.output_axis), (weights, factor)
        if fake_quant.source_of(weights) is None:
            changed = {layout.operand: build.derived(scaled, *origins)}
        else:
            factors = tensor_data.to_array(vector)
            value = fake_quant.scaled(build.insert, weights, scaled, factors, layout.output_axis, origins)
            changed = {layout.operand: value}
        if bias is not None and not is_zero(bias):
            product = tensor_data.defer("mul", (bias, vector), questions.dims_of(bias))
            changed[layout.bias] = build.derived(product, source.operands[layout.bias], factor)
        _extend(build, source, changed)

    return emit_scaled


def scale_filter(weights: Value, scale: Constant, axis: int) -> Constant:
    """Multiplies a constant filter, also a fake-quantized one, by a vector along a dimension or by a number."""
    constant = fake_quant.constant_behind(weights)
    assert constant is not None, "checked by the plan"
    dims, size = questions.dims_of(constant), questions.size_of(scale)
    aligned = tuple(size if index == axis else 1 for index in range(len(dims)))
    factor = tensor_data.defer("reshape", (scale,), aligned, aligned)
    return tensor_data.defer("mul", (constant, factor), dims)


_ROOTS = ("conv_2d", "depthwise_conv_2d", "fully_connected")

_MAX_SHIFT = 1 << 13
# The maximum factor by which a shift may grow before a scale, to keep the precision of 32-bit floats.
_TAME = 1e6


def _input_axis(op: Operation) -> int:
    axis = OPS[op.name].input_axis
    return 3 if axis is None else axis


def _scaled_input(op: Operation) -> Emit:
    layout = OPS[op.name]
    source, weights = op.operands[layout.data], op.operands[layout.operand]
    need(float_filter(op) is not None, "the filter is computed, or quantised")
    _need_weights(op)
    pad = source.sole_producer("tfl.pad")
    value = source if pad is None else pad.operands[0]
    add = None if pad is None else value.sole_producer("tfl.add")
    addend = None if add is None or not questions.is_plain(add) else questions.with_constant(add)
    if addend is not None:
        need(addend[0].shape == value.shape, "the shift broadcasts its input")
        value = addend[0]
    mul = value.sole_producer("tfl.mul")
    if mul is None or not questions.is_plain(mul):
        raise Declined("the input isn't scaled, or used elsewhere too")
    need_floats(value)
    x, factor = _factor(op, mul)
    shift = None if addend is None else _shift_before(factor, addend[1])

    def emit_scaled(build: FormBuilder) -> Operation:
        value = x
        if add is not None and shift is not None:
            before = build.derived(shift, *questions.constants_of(add))
            value = build.insert(rebuild(add, [value, before], [value.type], location=add.location)).results[0]
        if pad is not None:
            value = build.again(pad, [value, *pad.operands[1:]], location=pad.location).results[0]
        scaled = scale_filter(weights, factor, _input_axis(op))
        changed = {layout.data: value, layout.operand: build.derived(scaled, weights, *questions.constants_of(mul))}
        return build.again(op, with_operands(op, changed, build))

    return emit_scaled


def _factor(op: Operation, mul: Operation) -> tuple[Value, Constant]:
    """Returns the operand and the constant of a multiplication that can be folded into the filter of `op`."""
    value, constant = required(questions.with_constant(mul), "the input isn't scaled by a constant")
    dims = shape_of(value)
    need(dims == mul.results[0].shape, "the scaling broadcasts its input")
    vector, weights = questions.as_vector(constant, dims[-1], len(dims)), filter_shape(op)
    is_along = questions.size_of(vector) == 1 or (weights is not None and weights[_input_axis(op)] == dims[-1])
    need(is_along, "the filter's channels aren't the input's")
    return value, vector


def _shift_before(factor: Constant, addend: Constant) -> Array:
    """Returns the addend before a scaling that is equivalent to one after it."""
    scale, shift = tensor_data.to_array(factor), tensor_data.to_array(addend)
    size = np.abs(scale)
    is_tame = shift.nbytes <= _MAX_SHIFT and (size * _TAME > 1).all() and (size < _TAME).all()
    need(bool(is_tame), "the shift is large, or the scale too small to divide by")
    if scale.size == 1:
        scale = scale.reshape(())
    moved: Array = np.asarray(np.divide(shift, scale, dtype=np.float32))  # numpy returns a scalar for scalars
    need(moved.size <= max(shift.size, scale.size), "the shift and the scale broadcast against each other")
    return moved


_NOT_SHIFTED = Failure("no constant is added to the input, or it is used elsewhere too")


def _shifted_input(op: Operation) -> Emit | Failure:
    layout = OPS[op.name]
    source = op.operands[layout.data]
    add = source.sole_producer("tfl.add")
    split = None if add is None or not questions.is_plain(add) else questions.with_constant(add)
    if add is None or split is None:
        return _NOT_SHIFTED
    weights, length, (value, constant) = float_filter(op), channels(op), split
    if weights is None or length is None:
        raise Declined("the filter is computed, or not a tensor of 32-bit floats")
    need_floats(source)
    dims = shape_of(value)
    need(dims == source.shape, "the addition broadcasts its input")
    need(_is_unpadded(op), "padding isn't shifted with the input")
    vector, bias = questions.as_vector(constant, dims[-1], len(dims)), bias_of(op)
    need(questions.dims_of(weights)[-1] == dims[-1], "the filter's channels aren't the input's")
    moved = tensor_data.of_array(_response(weights, vector, op.name == "tfl.depthwise_conv_2d"))
    total, origins = (
        sum_of(bias, moved, length),
        (*op.operands[layout.bias : layout.bias + 1], *questions.constants_of(add)),
    )

    def emit_unshifted(build: FormBuilder) -> Operation:
        changed = {layout.bias: build.derived(total, *origins), layout.data: value}
        return build.again(op, with_operands(op, changed, build))

    return emit_unshifted


def _is_unpadded(op: Operation) -> bool:
    """Returns whether no window of an op crosses the border."""
    padding = op.properties.get("padding")
    if padding is None or padding == questions.VALID:
        return True
    weights = op.operands[OPS[op.name].operand].shape
    return weights is not None and weights[1:3] == (1, 1)


def _response(weights: Constant, vector: Constant, depthwise: bool) -> Array:
    """Returns a filter's response to a uniform input."""
    source, order = _untransposed(tensor_data.as_handle(weights))
    shift = np.broadcast_to(tensor_data.to_array(vector), questions.dims_of(weights)[-1:])
    # A channel of a depthwise filter is one of the input and of the output.
    outer, inner = order[-1 if depthwise else 0], order[-1]
    response = np.zeros(source.shape[outer])
    for box, values in source.source.pieces(source.dtype, source.shape):
        # Not a matrix product: its rounding depends on the number of cores, and the file must not.
        response[box[outer]] += np.einsum(
            values.astype(np.float64), list(range(values.ndim)), shift[box[inner]], [inner], [outer]
        )
        del values  # before the next ones are read
    return response.astype(np.float32)


def _untransposed(constant: tensor_data.TensorData) -> tuple[Handle, Sequence[int]]:
    """Returns what a constant is transposed from, if it is, and where its axes are there."""
    source = constant.source
    axes = range(len(constant.shape))
    if isinstance(source, tensor_data.Deferred) and source.function == "transpose":
        return source.arguments[0], [axes[axis] for axis in source.parameter]
    return constant, axes


_NOT_JOINED = Failure("it isn't of concatenated results")


def _joined(op: Operation) -> Emit | Failure:
    """An elementwise op on concatenated results of weighted ops."""
    joins = [value.sole_producer("tfl.concatenation") for value in op.operands]
    joined = next(filter(None, joins), None)
    if joined is None:
        return _NOT_JOINED
    dims = shape_of(joined.results[0])
    is_of_channels = questions.is_plain(joined) and option(joined, "axis") in (-1, len(dims) - 1)
    need(is_of_channels, "more than channels is concatenated")
    for part in joined.operands:
        source = required(part.sole_producer(NAMES), "it isn't of results of ops with weights")
        is_plain = questions.is_plain(source) and float_filter(source) is not None
        need(is_plain, "an op has an activation, or a filter that is computed")
        bias_of(source)
        need(channels(source) == shape_of(part)[-1], "a number of channels is unknown")
    others = [value for value, join in zip(op.operands, joins, strict=True) if join is not joined]
    need(not others or op.results[0].shape == dims, "the other operand broadcasts it")
    vectors = [tensor_data.to_array(questions.as_vector(constant_of(each), dims[-1], len(dims))) for each in others]

    def emit_parts(build: FormBuilder) -> Operation:
        parts, begin = [], 0
        for part in joined.operands:
            end = begin + shape_of(part)[-1]
            own = [each if each.size == 1 else np.ascontiguousarray(each[begin:end]) for each in vectors]
            operands = [part, *(build.derived(each, other) for each, other in zip(own, others, strict=True))]
            parts.append(build.insert(rebuild(op, operands, [part.type])).results[0])
            begin = end
        return build.again(joined, parts)

    return emit_parts


_ORDER = (3, 1, 2, 0)
_OPTIONS = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor", questions.ACTIVATION)


_IN_FEW_GROUPS = Failure("there isn't one input channel a group")


def _as_depthwise(op: Operation) -> Emit | Failure:
    """A convolution with one input channel a group, which is depthwise."""
    (data, weights, *rest), kind = op.operands, op.results[0].type
    if (weights.shape or ())[3:] != (1,):
        return _IN_FEW_GROUPS
    image, filters = shape_of(data), shape_of(weights)
    need(len(image) == len(filters) == 4, "a shape isn't known")
    if image[3] < 2 or filters[0] % image[3]:
        return _IN_FEW_GROUPS
    need(fake_quant.constant_behind(weights) is not None, "the filter is computed")
    has_one_stride = option(op, "stride_h") == option(op, "stride_w")
    need(has_one_stride, "not every depthwise kernel takes two different strides")
    options = {name: value for name, value in op.properties.items() if name in _OPTIONS}

    def emit_depthwise(build: FormBuilder) -> Value:
        constant = tensor_data.constant_of(weights)
        if constant is None:
            moved = required(fake_quant.transposed(build.insert, weights, _ORDER), "the filter is computed")
        else:
            moved = build.derived(questions.transposed_constant(constant, _ORDER), weights)
        multiplier = {"depth_multiplier": filters[0] // image[3]}
        return build.tfl("depthwise_conv_2d", (data, moved, *rest), kind, {**options, **multiplier})

    return emit_depthwise


PATTERNS: tuple[Pattern[Any], ...] = (
    planned("fold-add-into-bias", "add", _added, benefit=20),
    planned("fold-mul-into-filter", "mul", _multiplied, benefit=20),
    *(
        planned(f"fold-mul-before-{root}", root, _scaled_input, 5, 4, producers={0: ("tfl.mul", "tfl.pad")})
        for root in _ROOTS
    ),
    *(planned(f"fold-add-before-{root}", root, _shifted_input, 4, 2, producers={0: ("tfl.add",)}) for root in _ROOTS),
    *(
        planned(f"{root}-over-concatenation", root, _joined, benefit=2, depth=3)
        for root in ("add", "mul", "relu", "relu6")
    ),
    planned("grouped-to-depthwise", "conv_2d", _as_depthwise, benefit=3),
)
