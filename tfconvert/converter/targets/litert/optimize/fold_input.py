"""Scales and shifts of the input of a convolution or a matrix product go into its filter and bias.

    conv(mul(x, c), w, b)       ->  conv(x, w * c, b)
    conv(add(x, c), w, b)       ->  conv(x, w, b + sum(w * c))            where no padding is involved
    conv(pad(mul(x, c)), w, b)  ->  conv(pad(x), w * c, b)                zeros stay zeros
    conv(pad(add(mul(x, a), c)), w, b)  ->  conv(pad(add(x, c / a)), w * a, b)

The last one is how image nets normalize their input; one multiplication less at full resolution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import fold_scale, matching, weighted_ops
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_ROOTS = ("tfl.conv_2d", "tfl.depthwise_conv_2d", "tfl.fully_connected")
_PADS = frozenset({"tfl.pad"})

_MAX_SHIFT = 1 << 13
# A shift is moved before a scale only if it grows by less than this: 32-bit floats have no more digits to spare.
_TAME = 1e6


class _Scaled(NamedTuple):
    """A multiplication found before a weighted op.

    Attributes:
        mul: The multiplication.
        value: The scaled value.
        factor: The constant as a vector, or one number.
        between: Ops between it and the weighted op, from the multiplication on.
        shift: The new addend of an addition in between.
    """

    mul: Operation
    value: Value
    factor: Constant
    between: tuple[Operation, ...]
    shift: Array | None = None


def _match_scale(op: Operation) -> _Scaled | Failure:
    layout = weighted_ops.OPS[op.name]
    source = op.operands[layout.data]
    if weighted_ops.float_filter(op) is None:
        return Failure("the filter is computed, or quantised")
    pad = matching.sole_producer(source, _PADS)
    value = source if pad is None else pad.operands[0]
    add = None if pad is None else matching.sole_producer(value, "tfl.add")
    addend = None if add is None or not matching.is_plain(add) else matching.with_constant(add)
    if addend is not None:
        if matching.shape(addend[0]) != matching.shape(value):
            return Failure("the shift broadcasts its input")
        value = addend[0]
    mul = matching.sole_producer(value, "tfl.mul")
    if mul is None or not matching.is_plain(mul) or not matching.is_float(value):
        return Failure("the input isn't scaled, or used elsewhere too")
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
    """Returns the constant of a multiplication, if it can be folded into the filter of `op`."""
    layout = weighted_ops.OPS[op.name]
    split = matching.with_constant(mul)
    if split is None:
        return Failure("the input isn't scaled by a constant")
    value, constant = split
    dims = matching.shape(value)
    if dims is None or dims != matching.shape(mul.results[0]):
        return Failure("the scaling broadcasts its input")
    vector = matching.as_vector(constant, dims[-1], len(dims))
    if isinstance(vector, Failure) or matching.size_of(vector) == 1:
        return vector
    weights = weighted_ops.filter_shape(op)
    axis = 3 if layout.in_axis is None else layout.in_axis
    if weights is None or weights[axis] != dims[-1]:
        return Failure("the filter's channels aren't the input's")
    return vector


def _shift_before(factor: Constant, addend: Constant) -> Array | Failure:
    """Returns the addend before a scaling that replaces one after it."""
    scale, shift = tensor_data.to_array(factor), tensor_data.to_array(addend)
    size = np.abs(scale)
    if shift.nbytes > _MAX_SHIFT or not (size * _TAME > 1).all() or not (size < _TAME).all():
        return Failure("the shift is large, or the scale too small to divide by")
    if scale.size == 1:
        scale = scale.reshape(())
    moved: Array = np.asarray(np.divide(shift, scale, dtype=np.float32))  # of scalars numpy returns a scalar
    if moved.size > max(shift.size, scale.size):
        return Failure("the shift and the scale broadcast against each other")
    return moved


def _rewrite_scale(op: Operation, match: _Scaled, rewriter: Rewriter) -> None:
    layout = weighted_ops.OPS[op.name]
    axis = 3 if layout.in_axis is None else layout.in_axis
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
    weights = op.operands[layout.filter]
    scaled = fold_scale.scale_filter(weights, match.factor, axis)
    filter_value = matching.insert_constant(rewriter, scaled, weights, *matching.constants_of(match.mul))
    operands = weighted_ops.with_operands(op, {layout.data: value, layout.filter: filter_value}, rewriter)
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


class _Shifted(NamedTuple):
    """An addition found before a weighted op, and the bias that takes its place."""

    add: Operation
    value: Value
    bias: Constant


def _match_shift(op: Operation) -> _Shifted | Failure:
    layout = weighted_ops.OPS[op.name]
    source = op.operands[layout.data]
    add = matching.sole_producer(source, "tfl.add")
    split = None if add is None or not matching.is_plain(add) else matching.with_constant(add)
    if add is None or split is None:
        return Failure("no constant is added to the input, or it is used elsewhere too")
    weights, length = weighted_ops.float_filter(op), weighted_ops.channels(op)
    if weights is None or length is None or not matching.is_float(source):
        return Failure("the filter is computed, or not a tensor of 32-bit floats")
    value, constant = split
    dims = matching.shape(value)
    if dims is None or dims != matching.shape(source):
        return Failure("the addition broadcasts its input")
    if not _is_unpadded(op):
        return Failure("padding isn't shifted with the input")
    vector = matching.as_vector(constant, dims[-1], len(dims))
    if isinstance(vector, Failure):
        return vector
    bias = weighted_ops.bias_of(op)
    if isinstance(bias, Failure):
        return bias
    if matching.dims_of(weights)[-1] != dims[-1]:
        return Failure("the filter's channels aren't the input's")
    moved = tensor_data.of_array(_response(weights, vector, op.name == "tfl.depthwise_conv_2d"))
    return _Shifted(add, value, weighted_ops.sum_of(bias, moved, length))


def _is_unpadded(op: Operation) -> bool:
    """Returns whether no window of an op reaches over the border."""
    padding = op.properties.get("padding")
    if padding is None or padding == matching.VALID:
        return True
    weights = matching.shape(op.operands[weighted_ops.OPS[op.name].filter])
    return weights is not None and weights[1:3] == (1, 1)


def _response(weights: Constant, vector: Constant, depthwise: bool) -> Array:
    """Returns a filter's response to an input that is the same everywhere."""
    array, shift = _view(weights), tensor_data.to_array(vector)
    spatial = tuple(range(array.ndim - 1))[1:]
    summed: Array = array.sum(axis=spatial) if any(array.shape[axis] > 1 for axis in spatial) else _squeezed(array)
    shift = np.broadcast_to(shift, summed.shape[-1:])
    # A product of matrices would be rounded as it is shared among cores; the file must not depend on their number.
    response: Array = summed[0] * shift if depthwise else np.einsum("oi,i->o", summed, shift, dtype=np.float64)
    if isinstance(weights, tensor_data.TensorData):
        weights.source.release()
    return response.astype(np.float32)


def _squeezed(array: Array) -> Array:
    return array.reshape(array.shape[0], array.shape[-1])


def _view(constant: Constant) -> Array:
    """Returns a constant's value; a transposed one as a view, since only its sums are read."""
    if isinstance(constant, tensor_data.TensorData):
        source = constant.source
        if isinstance(source, tensor_data.Deferred) and source.function == "transpose":
            assert isinstance(source.parameter, tuple), "a transpose's parameter is a permutation"
            return source.arguments[0].array().transpose(*source.parameter)
    return tensor_data.to_array(constant)


def _rewrite_shift(op: Operation, match: _Shifted, rewriter: Rewriter) -> None:
    layout = weighted_ops.OPS[op.name]
    old = op.operands[layout.bias : layout.bias + 1]
    bias = matching.insert_constant(rewriter, match.bias, *old, *matching.constants_of(match.add))
    operands = weighted_ops.with_operands(op, {layout.bias: bias, layout.data: match.value}, rewriter)
    rewriter.replace(rewriter.insert(rebuild(op, operands)))


PATTERNS: tuple[Pattern[_Scaled] | Pattern[_Shifted], ...] = (
    *(
        Pattern(f"fold-mul-before-{root[4:]}", root, _match_scale, _rewrite_scale, benefit=5, depth=4)
        for root in _ROOTS
    ),
    *(
        Pattern(f"fold-add-before-{root[4:]}", root, _match_shift, _rewrite_shift, benefit=4, depth=2)
        for root in _ROOTS
    ),
)
