"""Recognises normalizations by what they compute: layer norms, group norms, instance norms and RMS norms.

(x - mean(x)) / sqrt(variance(x) + epsilon) * scale + bias
x / sqrt(mean(square(x)) + epsilon) * scale
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_ints, constant_number
from tfconvert.converter.ir.tf_builder import TFLBuilder
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.odml.outline import Body, Recognized, activation_fits, constant, given
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_MAX_RANK = 4
_CHANNELS = 3  # The axis of channels in rank 4.
_PLANE = frozenset((1, 2))

RMS_NORM = "odml.rms_norm"
GROUP_NORM = "odml.group_norm"


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean of a value over axes."""

    value: Value
    axes: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Normalized:
    """A normalized value.

    Attributes:
        value: What is normalized.
        axes: The axes that it is normalized over.
        epsilon: What is added to the variance.
        is_centered: Whether the mean is subtracted.
        result: The result so far.
        scale: The constant that it was multiplied by.
        bias: The constant that was added.
        activation: The activation that the last operator applies.
        groups: The number of groups of channels, if these have means of their own.
    """

    value: Value
    axes: frozenset[int]
    epsilon: float
    is_centered: bool
    result: Value
    scale: Value | None = None
    bias: Value | None = None
    activation: str = "NONE"
    groups: int = 0


def recognize(op: Operation) -> Recognized | None:
    """Returns the normalization whose scaling by the deviation an op is."""
    core = _core(op)
    found = _joined(op) if core is None else _with_constants(core)
    if found is None:
        return None
    dims = found.value.shape
    if dims is None or dims[-1] < 1 or not activation_fits(found.activation):
        return None
    if found.axes == {len(dims) - 1} and 2 <= len(dims) <= _MAX_RANK:
        return _layer_norm(found, dims) if found.is_centered else _rms_norm(found, dims)
    if not found.is_centered:
        return None
    if len(dims) == _MAX_RANK and _PLANE <= found.axes <= {*_PLANE, _CHANNELS}:
        return _group_norm(found, dims, found.groups or (1 if _CHANNELS in found.axes else dims[-1]))
    return _grouped(found)


def _core(op: Operation) -> _Normalized | None:
    """Matches a value, or its distance from its mean, times the inverse of the deviation."""
    for value, factor in _quotients(op):
        deviation, scale = _inverse_deviation(factor) if op.name == "tfl.mul" else (_deviation(factor), None)
        if deviation is None:
            continue
        variance, epsilon = deviation
        for x, mean in (*_differences(value), (value, None)):
            axes, groups = _variance_axes(variance, x, mean), 0
            if axes is not None and not _keeps(variance, x, axes):
                axes = None
            if axes is None and mean is not None:
                axes, groups = _group_axes(variance, x, mean)
            if axes is not None:
                result, is_centered = op.results[0], mean is not None
                activation = questions.activation(op)
                return _Normalized(x, axes, epsilon, is_centered, result, scale, None, activation, groups)
    return None


def _joined(op: Operation) -> _Normalized | None:
    """Matches `x * factor + (bias - mean * factor)`."""
    if op.name != "tfl.add" or not questions.is_float(op.results[0]):
        return None
    for scaled, rest in (op.operands, op.operands[::-1]):
        product, sub = scaled.producer("tfl.mul"), rest.producer("tfl.sub")
        moved = None if sub is None else sub.operands[1].producer("tfl.mul")
        if product is None or sub is None or moved is None or not all(map(questions.is_plain, (product, sub, moved))):
            continue
        for (x, factor), (mean, other) in itertools.product(*map(_factors, (product, moved))):
            deviation, scale = _inverse_deviation(factor)
            axes = None if deviation is None or factor is not other else _variance_axes(deviation[0], x, mean)
            if axes is None or deviation is None or not _keeps(deviation[0], x, axes) or not _keeps(mean, x, axes):
                continue
            bias, activation = sub.operands[0], questions.activation(op)
            if tensor_data.constant_of(bias) is not None:
                return _Normalized(x, axes, deviation[1], True, op.results[0], scale, bias, activation)
    return None


def _factors(product: Operation) -> Iterator[tuple[Value, Value]]:
    left, right = product.operands
    return iter(((left, right), (right, left)))


def _keeps(value: Value, x: Value, axes: frozenset[int]) -> bool:
    """Returns whether a value has the shape of `x` with sizes of 1 along axes."""
    dims, own = x.shape, value.shape
    if dims is None or own is None or len(own) > len(dims):
        return False
    return (1,) * (len(dims) - len(own)) + own == tuple(1 if axis in axes else n for axis, n in enumerate(dims))


def _group_axes(variance: Value, x: Value, mean: Value) -> tuple[frozenset[int] | None, int]:
    """Matches the variance of groups of channels, which is repeated for each channel.

    Returns:
        The axes of `x` that groups reach over, and the number of groups.
    """
    dims, one, other = questions.known_shape(x), _unrepeated(mean, x), _unrepeated(variance, x)
    center = None if one is None else _mean(one)
    split = None if center is None else center.value.producer("tfl.reshape")
    if dims is None or one is None or other is None or center is None or split is None or split.operands[0] is not x:
        return None, 0
    inner = questions.known_shape(center.value) or ()
    axes = _variance_axes(other, center.value, one)
    is_split = len(dims) == _MAX_RANK and len(inner) > 2 and inner[0] == dims[0] and math.prod(inner[-2:]) == dims[-1]
    if not is_split or axes != frozenset(range(1, len(inner))) - {len(inner) - 2}:
        return None, 0
    return frozenset((*_PLANE, _CHANNELS)), inner[-2]


def _unrepeated(value: Value, x: Value) -> Value | None:
    """Returns the values of groups that a value repeats for each channel."""
    dims = questions.known_shape(x)
    moved = value.producer("tfl.reshape")
    inside = value if moved is None else moved.operands[0]
    gather = inside.producer("tfl.gather")
    places = None if gather is None else constant_ints(gather.operands[1])
    groups = None if gather is None else questions.known_shape(gather.operands[0])
    if dims is None or gather is None or places is None or groups is None or not _keeps(value, x, _PLANE):
        return None
    count = groups[-1]
    is_repeat = count > 0 and places == tuple(place * count // len(places) for place in range(len(places)))
    return gather.operands[0] if is_repeat and len(groups) == 2 and len(places) == dims[-1] else None


def _quotients(op: Operation) -> Iterator[tuple[Value, Value]]:
    if op.name in ("tfl.mul", "tfl.div") and questions.is_float(op.results[0]):
        left, right = op.operands
        yield from _factors(op) if op.name == "tfl.mul" else ((left, right),)


def _differences(value: Value) -> Iterator[tuple[Value, Value]]:
    sub = value.producer("tfl.sub")
    if sub is not None and questions.is_plain(sub):
        yield sub.operands[0], sub.operands[1]


def _inverse_deviation(value: Value) -> tuple[tuple[Value, float] | None, Value | None]:
    """Matches `1 / sqrt(variance + epsilon)`, and the constant that it was multiplied by, if any."""
    product = value.producer("tfl.mul")
    if product is not None and questions.is_plain(product) and (split := questions.with_constant(product)) is not None:
        scale = next(operand for operand in product.operands if operand is not split[0])
        return _inverse_deviation(split[0])[0], scale
    root = value.producer("tfl.rsqrt")
    if root is not None:
        return _shifted(root.operands[0]), None
    quotient = value.producer("tfl.div")
    if quotient is not None and questions.is_plain(quotient) and constant_number(quotient.operands[0]) == 1:
        return _deviation(quotient.operands[1]), None
    return None, None


def _deviation(value: Value) -> tuple[Value, float] | None:
    root = value.producer("tfl.sqrt")
    return None if root is None else _shifted(root.operands[0])


def _shifted(value: Value) -> tuple[Value, float] | None:
    """Matches a value plus a small number."""
    add = value.producer("tfl.add")
    split = None if add is None or not questions.is_plain(add) else questions.with_constant(add)
    if add is None or split is None:
        return None
    number = next(constant_number(operand) for operand in add.operands if operand is not split[0])
    return None if number is None or not 0 < number < 1 else (split[0], number)


def _variance_axes(value: Value, x: Value, mean: Value | None) -> frozenset[int] | None:
    """Returns the axes that a value is the variance of `x` over, or the mean of squares if there is no mean."""
    if mean is None:
        squares = _mean(value)
        return squares.axes if squares is not None and _square(squares.value) is x else None
    center = _mean(mean)
    if center is None or center.value is not x:
        return None
    spread = _mean(value)
    if spread is not None and spread.axes == center.axes and _is_squared_distance(spread.value, x, mean):
        return center.axes
    return center.axes if _is_difference_of_squares(value, x, mean, center.axes) else None


def _is_squared_distance(value: Value, x: Value, mean: Value) -> bool:
    op = value.producer("tfl.squared_difference")
    distances = [tuple(op.operands)] if op is not None else _differences(_square(value) or value)
    return any(one is x and _flat(other) is _flat(mean) for one, other in distances)


def _is_difference_of_squares(value: Value, x: Value, mean: Value, axes: frozenset[int]) -> bool:
    """Returns whether a value is `mean(square(x)) - square(mean)`, perhaps not below zero."""
    bound = _flat(value).producer(frozenset(("tfl.maximum", "tfl.relu")))
    if bound is not None:
        operands = [operand for operand in bound.operands if constant_number(operand) != 0]
        value = operands[0] if operands else value
    sub = _flat(value).producer("tfl.sub")
    if sub is None or questions.activation(sub) not in ("NONE", "RELU"):
        return False
    squares, square = _mean(sub.operands[0]), _square(sub.operands[1])
    return (
        squares is not None
        and square is not None
        and squares.axes == axes
        and _square(squares.value) is x
        and _flat(square) is _flat(mean)
    )


def _square(value: Value) -> Value | None:
    op = _flat(value).producer(frozenset(("tfl.square", "tfl.mul")))
    if op is None or not questions.is_plain(op) or op.operands[0] is not op.operands[-1]:
        return None
    return op.operands[0]


def _flat(value: Value) -> Value:
    """Returns what a reshape that only adds or removes sizes of 1 reshapes."""
    op = value.producer("tfl.reshape")
    if op is None:
        return value
    dims, source = questions.known_shape(value), questions.known_shape(op.operands[0])
    if dims is None or source is None or [n for n in dims if n != 1] != [n for n in source if n != 1]:
        return value
    return op.operands[0]


def _mean(value: Value) -> _Mean | None:
    op = _flat(value).producer("tfl.mean")
    if op is not None:
        return _reduction(op)
    scaled = _flat(value).producer(frozenset(("tfl.mul", "tfl.div")))
    if scaled is None or not questions.is_plain(scaled):
        return None
    for total, number in (scaled.operands, scaled.operands[::-1]):
        op = _flat(total).producer("tfl.sum")
        factor = constant_number(number)
        reduced = None if op is None or not factor else _reduction(op)
        dims = None if reduced is None else questions.known_shape(reduced.value)
        if reduced is None or dims is None or factor is None:
            continue
        count = math.prod(dims[axis] for axis in reduced.axes)
        if scaled.name == "tfl.div" and number is not scaled.operands[1]:
            continue
        if questions.is_close(factor if scaled.name == "tfl.div" else 1 / factor, count, relative=1e-5):
            return reduced
    return None


def _reduction(op: Operation) -> _Mean | None:
    axes = questions.axes(op.operands[1], op.operands[0].shape)
    return None if axes is None else _Mean(op.operands[0], axes)


def _with_constants(found: _Normalized) -> _Normalized:
    """Adds a product with a constant and a sum with one that follow, if they have one value for each channel."""
    for name in ("tfl.mul", "tfl.add"):
        op = sole_user(found.result)
        if found.activation != "NONE" or op is None or op.name != name:
            continue
        split = questions.with_constant(op)
        if split is None or split[0] is not found.result or op.results[0].type != found.result.type:
            continue
        if name == "tfl.mul" and found.scale is not None:
            break
        other = next(operand for operand in op.operands if operand is not found.result)
        if not _may_be_vector(other, found):
            break
        found = replace(found, result=op.results[0], activation=questions.activation(op))
        found = replace(found, scale=other) if name == "tfl.mul" else replace(found, bias=other)
    return found


def _may_be_vector(constant: Value, found: _Normalized) -> bool:
    """Returns whether a constant varies along channels only, which may be split into groups."""
    dims, rank = constant.shape or (), len(found.value.shape or ())
    is_grouped = rank - 1 in found.axes and rank - 2 not in found.axes and len(found.axes) > 1
    return math.prod(dims[: -2 if is_grouped else -1]) == 1


def sole_user(value: Value) -> Operation | None:
    """Returns the op that uses a value, if no other does."""
    return next(iter(value.uses)).operation if value.has_one_use() else None


def _layer_norm(found: _Normalized, dims: types.Shape) -> Recognized | None:
    if found.scale is None and found.bias is None:
        return _norm(found, GROUP_NORM, "layer norms", {"epsilon": found.epsilon}, [])
    vectors = [_vector(found.scale, (dims[-1],), 1), _vector(found.bias, (dims[-1],), 0)]
    return _norm(found, GROUP_NORM, "layer norms", {"epsilon": found.epsilon, "sub_type": 1}, vectors)


def _rms_norm(found: _Normalized, dims: types.Shape) -> Recognized | None:
    scale = _vector(found.scale, (dims[-1],), 1)
    if found.bias is not None:
        bias_op = found.result.owner
        assert isinstance(bias_op, Operation)
        rest = questions.with_constant(bias_op)
        assert rest is not None
        found = replace(found, result=rest[0], bias=None, activation="NONE")
    return _norm(found, RMS_NORM, "RMS norms", {"epsilon": found.epsilon}, [scale])


def _group_norm(
    found: _Normalized, dims: types.Shape, groups: int, grouped: tuple[int, ...] = (), x: Value | None = None
) -> Recognized | None:
    """Returns a group norm.

    Args:
        found: What is normalized.
        dims: The shape of the composite's operand.
        groups: The number of groups.
        grouped: How channels are split into groups, if they are.
        x: The composite's operand, if it isn't what is normalized.
    """
    attributes = {
        "epsilon": found.epsilon,
        "num_groups": groups,
        "channel_axis": _CHANNELS,
        "sub_type": 0,
        "_TENSOR_V1_reduction_axes": {"TENSOR_DATA": [1, 2, 3], "TENSOR_TYPE": "i64"},
    }
    shape = grouped or (dims[-1],)
    vectors = [_vector(found.scale, shape, 1), _vector(found.bias, shape, 0)]
    kind = "instance norms" if groups == dims[-1] else "group norms"
    return _norm(found, GROUP_NORM, kind, attributes, vectors, x)


def _grouped(found: _Normalized) -> Recognized | None:
    """Matches groups of channels that reshapes split off and join again."""
    split, join = found.value.producer("tfl.reshape"), sole_user(found.result)
    if split is None or join is None or join.name != "tfl.reshape":
        return None
    x, result = split.operands[0], join.results[0]
    dims, inner = questions.known_shape(x), questions.known_shape(found.value)
    if dims is None or inner is None or len(dims) != _MAX_RANK or result.shape != dims:
        return None
    grouped = inner[-2:]
    is_split = len(inner) > 2 and math.prod(grouped) == dims[-1] and inner[0] == dims[0]
    if not is_split or found.axes != {*range(1, len(inner))} - {len(inner) - 2}:
        return None
    return _group_norm(replace(found, result=result), dims, grouped[0], grouped, x)


def _vector(value: Value | None, shape: tuple[int, ...], missing: float) -> Array | Constant | None:
    """Returns a constant as a vector of channels; `None` if it has other dimensions.

    Args:
        value: The constant, if there is one.
        shape: Its last dimensions, the number of channels or of groups and their channels.
        missing: The elements of the vector if there is no constant.
    """
    channels = math.prod(shape)
    held = None if value is None else tensor_data.constant_of(value)
    if value is None or held is None:
        return np.full(channels, missing, np.float32)
    dims = questions.dims_of(held)
    if not questions.is_float(value):
        return None
    if math.prod(dims) == 1:
        return np.full(channels, tensor_data.to_array(held).item(), np.float32)
    if math.prod(dims) != channels or dims[-len(shape) :] != shape:
        return None
    return held if dims == (channels,) else tensor_data.defer("reshape", (held,), (channels,), (channels,))


def _norm(
    found: _Normalized,
    name: str,
    kind: str,
    attributes: Mapping[str, Any],
    vectors: Sequence[Array | Constant | None],
    x: Value | None = None,
) -> Recognized | None:
    operands = [constant(vector) for vector in vectors if vector is not None]
    if len(operands) < len(vectors):
        return None
    operand = found.value if x is None else x

    def bind(body: Body) -> None:
        body.bind(operand, body.arguments[0])
        for value, argument in zip((found.scale, found.bias), body.arguments[1:], strict=False):
            dims = () if value is None else value.shape or ()
            if value is None or math.prod(dims) == 1:
                continue  # The constant stays.
            is_vector = len(dims) == 1 or (dims[-1],) == argument.shape
            body.bind(value, argument if is_vector else reshape(body.builder, argument, dims))

    return Recognized(
        name, kind, attributes, found.result, [given(operand), *operands], bind, activation=found.activation
    )


def reshape(builder: TFLBuilder, value: Value, dims: types.Shape) -> Value:
    """Inserts a reshape."""
    kind = types.tensor(value.element, dims)
    return builder.tfl("reshape", (value, builder.ints(dims)), kind, {"new_shape": tuple(dims)})
