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
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import check, computed, constant, op, rest, tfl
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert import fake_quant
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import attributes, tensor_data, types
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
    return tensor_data.constant_of(value) if matching.is_float(value) else None


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

_TABLE = Failure("the filter is a table of data, too")


def bias_of(op: Operation) -> Constant | Failure | None:
    """Returns a weighted op's constant bias, `None` without one, a failure if it isn't one value per channel."""
    layout = OPS[op.name]
    if len(op.operands) <= layout.bias:
        return None
    bias = op.operands[layout.bias]
    if dialect.is_absent(bias):
        return None
    constant = tensor_data.constant_of(bias)
    if constant is None or matching.dims_of(constant) != (channels(op),):
        return Failure("the bias is computed, or not one value a channel")
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
        if matching.size_of(vector) == length:
            return vector
        bias = tensor_data.of_array(np.zeros(length, np.float32))
    return tensor_data.defer("add", (bias, vector), (length,))


def _vector(source: Operation, c: Constant) -> Constant | Failure:
    """Returns a constant operand after a weighted op as a vector, one value per channel or one for all."""
    dims, length = source.results[0].shape, channels(source)
    if not dims or length is None or dims[-1] != length:
        return Failure("the number of channels is unknown")
    return matching.as_vector(c, length, len(dims))


SOURCE = op(tuple(OPS), rest("operands"), **matching.PLAIN).element(np.float32).once().named("source")
"""A weighted op whose result alone is added to or multiplied by a constant `c`."""

VECTOR = computed(_vector, "vector")
"""The constant `c` as a vector of the source's channels, or of one element."""


def with_operands(op: Operation, changed: Mapping[int, Value], rewriter: Rewriter) -> list[Value]:
    """Returns an op's operands with some replaced; an absent bias is filled in."""
    operands = list(op.operands)
    while len(operands) <= max(changed):
        operands.append(rewriter.insert(dialect.no_value()).results[0])
    for index, value in changed.items():
        operands[index] = value
    return operands


def _extend(source: Operation, changed: Mapping[int, Value], rewriter: Rewriter) -> None:
    """Replaces the root by its weighted op with other constants."""
    last = max(changed)
    if last >= len(source.operands):
        source.set_operands(with_operands(source, {last: changed[last]}, rewriter))
    for index, value in changed.items():
        rewriter.set_operand(source, index, value)
    # The root's own activation stays.
    rewriter.extend(source, {matching.ACTIVATION: rewriter.root.properties.get(matching.ACTIVATION, matching.NONE)})


class _Added(NamedTuple):
    """A constant added to the result of a weighted op, and the bias that replaces it."""

    source: Operation
    addend: Value
    bias: Constant


_NOT_WEIGHTED = Failure("it isn't the sum of a constant and of an op with weights whose result has no other use")


# Written by hand, since networks have as many of these as convolutions.
def _match_added(op: Operation) -> _Added | Failure:
    value, addend = op.operands
    source = value.sole_producer(NAMES)
    if source is None or (constant := tensor_data.constant_of(addend)) is None:
        value, addend = addend, value
        source = value.sole_producer(NAMES)
        if source is None or (constant := tensor_data.constant_of(addend)) is None:
            return _NOT_WEIGHTED
    if not matching.is_plain(source) or not matching.is_float(value):
        return Failure("the op with weights has an activation, or elements other than 32-bit floats")
    vector = _vector(source, constant)
    if isinstance(vector, Failure):
        return vector
    bias, length = bias_of(source), channels(source)
    if isinstance(bias, Failure):
        return bias
    assert length is not None, "the vector's length comes from it"
    return _Added(source, addend, sum_of(bias, vector, length))


def _add_to_bias(op: Operation, match: _Added, rewriter: Rewriter) -> None:
    source, addend, bias = match
    index = OPS[source.name].bias
    old = [value for value in source.operands[index : index + 1] if tensor_data.constant_of(value) is not None]
    _extend(source, {index: matching.insert_constant(rewriter, bias, *old, addend)}, rewriter)


def _can_scale(source: Operation, vector: Constant) -> bool | Failure:
    if float_filter(source) is None:
        reason = _cannot_scale_ranges(source, vector)
        if reason is not None:
            return reason
    if _is_table(source):
        return _TABLE
    bias = bias_of(source)
    return bias if isinstance(bias, Failure) else True


def _cannot_scale_ranges(source: Operation, vector: Constant) -> Failure | None:
    """Returns why the filter isn't a fake-quantized constant with one range per output channel, or one for all."""
    layout = OPS[source.name]
    weights = source.operands[layout.operand]
    if fake_quant.constant_behind(weights) is None:
        return Failure("the filter is computed, or quantised")
    axis = fake_quant.uniform_of(weights).axis
    if matching.size_of(vector) > 1 and axis not in (None, layout.output_axis):
        return Failure("the filter is quantized along another dimension")
    return None


def _scale(rewriter: Rewriter, root: Operation, source: Operation, vector: Constant) -> None:
    layout = OPS[source.name]
    factor = next(value for value in root.operands if value.owner is not source)
    weights = source.operands[layout.operand]
    scaled = scale_filter(weights, vector, layout.output_axis)
    if fake_quant.source_of(weights) is None:
        value = matching.insert_constant(rewriter, scaled, weights, factor)
    else:
        factors = tensor_data.to_array(vector)
        value = fake_quant.scaled(rewriter.insert, weights, scaled, factors, layout.output_axis, [weights, factor])
    changed = {layout.operand: value}
    bias = bias_of(source)
    if bias is not None and not isinstance(bias, Failure) and not is_zero(bias):
        old = source.operands[layout.bias]
        product = tensor_data.defer("mul", (bias, vector), matching.dims_of(bias))
        changed[layout.bias] = matching.insert_constant(rewriter, product, old, factor)
    _extend(source, changed, rewriter)


def scale_filter(weights: Value, scale: Constant, axis: int) -> Constant:
    """Multiplies a constant filter, also a fake-quantized one, by a vector along a dimension or by a number."""
    constant = fake_quant.constant_behind(weights)
    assert constant is not None, "checked by the match"
    dims, size = matching.dims_of(constant), matching.size_of(scale)
    aligned = tuple(size if index == axis else 1 for index in range(len(dims)))
    factor = tensor_data.defer("reshape", (scale,), aligned, aligned)
    return tensor_data.defer("mul", (constant, factor), dims)


_ROOTS = ("tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.fully_connected")
_PADS = frozenset({"tfl.pad"})
_SCALED = frozenset({"tfl.mul", "tfl.pad"})

_NOT_SCALED = Failure("the input isn't scaled, or used elsewhere too")
_NOT_SHIFTED = Failure("no constant is added to the input, or it is used elsewhere too")
_IN_FEW_GROUPS = Failure("there isn't one input channel a group")

_MAX_SHIFT = 1 << 13
# The maximum factor by which a shift may grow before a scale, to keep the precision of 32-bit floats.
_TAME = 1e6


class _Scaled(NamedTuple):
    """A multiplication found before a weighted op.

    Attributes:
        mul: The multiplication.
        value: The scaled value.
        factor: The constant as a vector, or one number.
        between: Ops between it and the weighted op, in order.
        shift: The new addend of an addition in between.
    """

    mul: Operation
    value: Value
    factor: Constant
    between: tuple[Operation, ...]
    shift: Array | None = None


def _match_scale(op: Operation) -> _Scaled | Failure:
    layout = OPS[op.name]
    source = op.operands[layout.data]
    if source.producer(_SCALED) is None:
        return _NOT_SCALED
    if float_filter(op) is None:
        return Failure("the filter is computed, or quantised")
    if _is_table(op):
        return _TABLE
    pad = source.sole_producer(_PADS)
    value = source if pad is None else pad.operands[0]
    add = None if pad is None else value.sole_producer("tfl.add")
    addend = None if add is None or not matching.is_plain(add) else matching.with_constant(add)
    if addend is not None:
        if addend[0].shape != value.shape:
            return Failure("the shift broadcasts its input")
        value = addend[0]
    mul = value.sole_producer("tfl.mul")
    if mul is None or not matching.is_plain(mul) or not matching.is_float(value):
        return _NOT_SCALED
    factor = _factor(op, mul)
    if isinstance(factor, Failure):
        return factor
    between = tuple(each for each in (add if addend else None, pad) if each is not None)
    split = matching.with_constant(mul)
    assert split is not None, "checked by _factor"
    if addend is None:
        return _Scaled(mul, split[0], factor, between)
    shift = _shift_before(factor, addend[1])
    return shift if isinstance(shift, Failure) else _Scaled(mul, split[0], factor, between, shift)


def _factor(op: Operation, mul: Operation) -> Constant | Failure:
    """Returns the constant of a multiplication that can be folded into the filter of `op`."""
    layout = OPS[op.name]
    split = matching.with_constant(mul)
    if split is None:
        return Failure("the input isn't scaled by a constant")
    value, constant = split
    dims = value.shape
    if dims is None or dims != mul.results[0].shape:
        return Failure("the scaling broadcasts its input")
    vector = matching.as_vector(constant, dims[-1], len(dims))
    if isinstance(vector, Failure) or matching.size_of(vector) == 1:
        return vector
    weights = filter_shape(op)
    axis = 3 if layout.input_axis is None else layout.input_axis
    if weights is None or weights[axis] != dims[-1]:
        return Failure("the filter's channels aren't the input's")
    return vector


def _shift_before(factor: Constant, addend: Constant) -> Array | Failure:
    """Returns the addend before a scaling that is equivalent to one after it."""
    scale, shift = tensor_data.to_array(factor), tensor_data.to_array(addend)
    size = np.abs(scale)
    if shift.nbytes > _MAX_SHIFT or not (size * _TAME > 1).all() or not (size < _TAME).all():
        return Failure("the shift is large, or the scale too small to divide by")
    if scale.size == 1:
        scale = scale.reshape(())
    moved: Array = np.asarray(np.divide(shift, scale, dtype=np.float32))  # numpy returns a scalar for scalars
    if moved.size > max(shift.size, scale.size):
        return Failure("the shift and the scale broadcast against each other")
    return moved


def _rewrite_scale(op: Operation, match: _Scaled, rewriter: Rewriter) -> None:
    layout = OPS[op.name]
    axis = 3 if layout.input_axis is None else layout.input_axis
    value = match.value
    for each in match.between:
        if each.name == "tfl.add":
            assert match.shift is not None, "the addition's shift was computed by the match"
            shift = matching.insert_constant(rewriter, match.shift, *matching.constants_of(each))
            moved = rebuild(each, [value, shift], [value.type])
            moved.location = each.location
            value = rewriter.insert(moved).results[0]
        else:
            padded = rebuild(each, [value, *each.operands[1:]])
            padded.location = each.location
            value = rewriter.insert(padded).results[0]
    weights = op.operands[layout.operand]
    scaled = scale_filter(weights, match.factor, axis)
    filter_value = matching.insert_constant(rewriter, scaled, weights, *matching.constants_of(match.mul))
    operands = with_operands(op, {layout.data: value, layout.operand: filter_value}, rewriter)
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


class _Shifted(NamedTuple):
    """An addition found before a weighted op, and the bias that replaces it."""

    add: Operation
    value: Value
    bias: Constant


def _match_shift(op: Operation) -> _Shifted | Failure:
    layout = OPS[op.name]
    source = op.operands[layout.data]
    add = source.sole_producer("tfl.add")
    split = None if add is None or not matching.is_plain(add) else matching.with_constant(add)
    if add is None or split is None:
        return _NOT_SHIFTED
    weights, length = float_filter(op), channels(op)
    if weights is None or length is None or not matching.is_float(source):
        return Failure("the filter is computed, or not a tensor of 32-bit floats")
    value, constant = split
    dims = value.shape
    if dims is None or dims != source.shape:
        return Failure("the addition broadcasts its input")
    if not _is_unpadded(op):
        return Failure("padding isn't shifted with the input")
    vector = matching.as_vector(constant, dims[-1], len(dims))
    if isinstance(vector, Failure):
        return vector
    bias = bias_of(op)
    if isinstance(bias, Failure):
        return bias
    if matching.dims_of(weights)[-1] != dims[-1]:
        return Failure("the filter's channels aren't the input's")
    moved = tensor_data.of_array(_response(weights, vector, op.name == "tfl.depthwise_conv_2d"))
    return _Shifted(add, value, sum_of(bias, moved, length))


def _is_unpadded(op: Operation) -> bool:
    """Returns whether no window of an op crosses the border."""
    padding = op.properties.get("padding")
    if padding is None or padding == matching.VALID:
        return True
    weights = op.operands[OPS[op.name].operand].shape
    return weights is not None and weights[1:3] == (1, 1)


def _response(weights: Constant, vector: Constant, depthwise: bool) -> Array:
    """Returns a filter's response to a uniform input."""
    source, order = _untransposed(tensor_data.as_handle(weights))
    shift = np.broadcast_to(tensor_data.to_array(vector), matching.dims_of(weights)[-1:])
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


def _rewrite_shift(op: Operation, match: _Shifted, rewriter: Rewriter) -> None:
    layout = OPS[op.name]
    old = op.operands[layout.bias : layout.bias + 1]
    bias = matching.insert_constant(rewriter, match.bias, *old, *matching.constants_of(match.add))
    operands = with_operands(op, {layout.bias: bias, layout.data: match.value}, rewriter)
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


class _Joined(NamedTuple):
    """An elementwise op on concatenated results of weighted ops: the concatenation, and the constant if it has one."""

    concatenation: Operation
    vector: Constant | None
    origin: Value | None


_NOT_JOINED = Failure("it isn't of concatenated results of ops with weights")


def _match_joined(op: Operation) -> _Joined | Failure:
    joins = [value.sole_producer("tfl.concatenation") for value in op.operands]
    joined = next((each for each in joins if each is not None), None)
    if joined is None:
        return _NOT_JOINED
    dims = joined.results[0].shape
    if not dims or not matching.is_plain(joined) or dialect.attribute(joined, "axis") not in (-1, len(dims) - 1):
        return Failure("more than channels is concatenated")
    for part in joined.operands:
        source = part.sole_producer(NAMES)
        if source is None or not matching.is_plain(source) or float_filter(source) is None:
            return _NOT_JOINED
        if isinstance(bias_of(source), Failure) or channels(source) != (part.shape or (None,))[-1]:
            return Failure("a bias is computed, or a number of channels is unknown")
    if len(op.operands) == 1:
        return _Joined(joined, None, None)
    origin = op.operands[1 - joins.index(joined)]
    constant = tensor_data.constant_of(origin)
    if constant is None or op.results[0].shape != dims:
        return Failure("the other operand is computed, or broadcasts it")
    vector = matching.as_vector(constant, dims[-1], len(dims))
    return vector if isinstance(vector, Failure) else _Joined(joined, vector, origin)


def _rewrite_joined(op: Operation, match: _Joined, rewriter: Rewriter) -> None:
    parts, begin = [], 0
    vector = None if match.vector is None else tensor_data.to_array(match.vector)
    for part in match.concatenation.operands:
        operands = [part]
        end = begin + (part.shape or ())[-1]
        if vector is not None and match.origin is not None:
            own = vector if vector.size == 1 else np.ascontiguousarray(vector[begin:end])
            operands.append(matching.insert_constant(rewriter, own, match.origin))
        parts.append(rewriter.insert(rebuild(op, operands, [part.type])).results[0])
        begin = end
    rewriter.replace(rewriter.insert(rebuild(match.concatenation, parts)))


_ORDER = (3, 1, 2, 0)
_OPTIONS = ("padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor", matching.ACTIVATION)


def _match(op: Operation) -> int | Failure:
    """Matches a depthwise convolution; returns the number of output channels per input channel."""
    weights = op.operands[1].shape
    if weights is None or len(weights) != 4:
        return Failure("the filter's shape isn't known")
    if weights[3] != 1:
        return _IN_FEW_GROUPS
    dims = op.operands[0].shape
    if dims is None or len(dims) != 4:
        return Failure("the image's shape isn't known")
    if dims[3] < 2 or weights[0] % dims[3]:
        return _IN_FEW_GROUPS
    if fake_quant.constant_behind(op.operands[1]) is None:
        return Failure("the filter is computed")
    if dialect.attribute(op, "stride_h") != dialect.attribute(op, "stride_w"):
        return Failure("not every depthwise kernel takes two different strides")
    return weights[0] // dims[3]


def _rewrite(op: Operation, match: int, rewriter: Rewriter) -> None:
    data, weights, *rest = op.operands
    constant = tensor_data.constant_of(weights)
    if constant is None:
        moved = fake_quant.transposed(rewriter.insert, weights, _ORDER)
        assert moved is not None, "checked by the match"
    else:
        moved = matching.insert_constant(rewriter, matching.transposed_constant(constant, _ORDER), weights)
    options = {name: value for name, value in op.properties.items() if name in _OPTIONS}
    operands = [data, moved, *rest]
    properties = {**options, "depth_multiplier": attributes.int32(match)}
    rewriter.replace(rewriter.insert(dialect.build("depthwise_conv_2d", operands, [op.results[0].type], properties)))


PATTERNS: tuple[Pattern[Any], ...] = (
    Pattern("fold-add-into-bias", "tfl.add", _match_added, _add_to_bias, benefit=20),
    own_rule(
        "fold-mul-into-filter",
        tfl.mul(SOURCE, constant("c")).commutative(),
        _scale,
        where=[VECTOR, check("the filter can't be scaled", _can_scale)],
        benefit=20,
    ),
    *(
        Pattern(f"fold-mul-before-{root[4:]}", root, _match_scale, _rewrite_scale, benefit=5, depth=4)
        for root in _ROOTS
    ),
    *(
        Pattern(f"fold-add-before-{root[4:]}", root, _match_shift, _rewrite_shift, benefit=4, depth=2)
        for root in _ROOTS
    ),
    *(
        Pattern(f"{root}-over-concatenation", f"tfl.{root}", _match_joined, _rewrite_joined, benefit=2, depth=3)
        for root in ("add", "mul", "relu", "relu6")
    ),
    Pattern("grouped-to-depthwise", "tfl.conv_2d", _match, _rewrite, benefit=3),
)
