"""Simplifies arithmetic with constants to fewer kinds of ops, and chains to one op.

    sub(x, c)            ->  add(x, -c)      unless c is large and no vector: it can't be merged, and may be shared
    div(x, c)            ->  mul(x, 1 / c)   *
    add(add(x, c), d)    ->  add(x, c + d)   *
    mul(mul(x, c), d)    ->  mul(x, c * d)   *
    add(x, 0), mul(x, 1) ->  x
    mul(x, 0)            ->  0       where x is the result of an activation with bounds, like gates of a state of zeros
    pow(x, 2 or 0.5 or -0.5 or 1)  ->  square(x), sqrt(x), rsqrt(x), x

After the first two, all other patterns need to match additions and multiplications only.
* These round otherwise, so not where the last bit may decide an integer, as in floor(x / 3); powers of two are exact.

Removes ops that return their operand unchanged.

    slice(x, 0, shape of x), strided_slice(x) of all of x, tile(x, 1), broadcast_to(x, shape of x),
    concatenation(x), split{1}(x), cast(x) to its own type, max_pool_2d{1x1}(x), resize(x, size of x),
    logical_and(x, x), logical_or(x, x), maximum(x, x), minimum(x, x)  ->  x

Unknown dimensions are assumed to change unless the op certainly keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import Check, Op, array, attr, check, computed, constant, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import need_floats
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects.tensor_data import Array, Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators

# Ops that are folded if all operands are constant.
_FOLDED: Mapping[str, Callable[..., Any]] = {
    "tfl.add": np.add,
    "tfl.sub": np.subtract,
    "tfl.mul": np.multiply,
    "tfl.div": np.divide,
    "tfl.neg": np.negative,
    "tfl.abs": np.abs,
    "tfl.square": np.square,
    "tfl.maximum": np.maximum,
    "tfl.minimum": np.minimum,
    "tfl.rsqrt": lambda x: 1 / np.sqrt(x),
    "tfl.sqrt": np.sqrt,
    "tfl.exp": np.exp,
}

# Ops that compute powers, by exponent; `None` for the first power.
_POWERS: Mapping[float, str] = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", 1.0: ""}

_BOUNDED = frozenset(f"tfl.{name}" for name, limits in operators.ranges().items() if all(map(math.isfinite, limits)))
_MAX_MOVES = 3

_NEUTRAL: Mapping[str, float] = {"tfl.add": 0.0, "tfl.mul": 1.0}

_DECIDES = "the last bit of its results may decide an integer"


def _folded(op: Operation) -> Emit:
    values = [
        required(constant_array(operand), "an operand is computed, or too large to read") for operand in op.operands
    ]
    need(questions.is_plain(op), "it has an activation")
    need_floats(op.results[0])
    dims = questions.broadcast_shape(*(array.shape for array in values))
    is_small = dims is not None and 4 * math.prod(dims) <= tensor_data.MAX_READ_BYTES
    need(is_small and dims == op.results[0].shape, "the result has another shape, or would be large")
    with np.errstate(all="ignore"):
        result = np.asarray(_FOLDED[op.name](*values), np.float32)
    return lambda build: build.derived(result)


def _negative(c: Constant) -> Constant | Failure:
    dims = questions.dims_of(c)
    if not tensor_data.is_small(c) and sum(dim > 1 for dim in dims) > 1:
        return Failure("the constant is large, so its uses should share it")
    minus = tensor_data.of_array(np.array(-1, np.float32))
    return tensor_data.defer("mul", (c, minus), dims)


def _reciprocal(c: Array, root: Operation) -> Array | Failure:
    with np.errstate(all="ignore"):
        inverse: Array = np.divide(np.float32(1), c, dtype=np.float32)
    # A subnormal or infinite reciprocal would lose digits that the division keeps.
    if not np.isfinite(inverse).all() or (np.abs(inverse) < np.finfo(np.float32).tiny).any():
        return Failure("the divisor has no good reciprocal")
    # Only those of powers of two are exact.
    if (np.frexp(c)[0] % 0.5).any() and questions.decides_integers(root.results[0]):
        return Failure(_DECIDES)
    return np.asarray(inverse)


# Most additions and products are declined for one of these reasons.
_NOT_ONE_CONSTANT = Failure("not exactly one operand is constant")
_NO_CHAIN = Failure("the other operand is not such an op, or is used elsewhere too")
_NOT_NEUTRAL = Failure("it changes its operand")
_NOT_ZERO = Failure("no factor is zeros of the result's shape")


def _chain(op: Operation) -> Emit | Failure:
    split = questions.with_constant(op)
    if split is None:
        return _NOT_ONE_CONSTANT
    value, constant = split
    source = value.sole_producer(op.name)
    if source is None:
        return _NO_CHAIN
    first, inner = required(questions.with_constant(source), "the other operand is without a constant")
    need(questions.is_plain(source), "an activation is in between")
    need_floats(value)
    dims = questions.broadcast_shape(questions.dims_of(constant), questions.dims_of(inner))
    is_no_larger = dims is not None and math.prod(dims) <= max(questions.size_of(constant), questions.size_of(inner))
    need(is_no_larger, "the constants broadcast against each other")
    need(not questions.decides_integers(op.results[0]), _DECIDES)
    # Deferred expressions use the ops' names.
    joined = tensor_data.defer(op.name[4:], (inner, constant), dims or ())
    origins = [*questions.constants_of(source), *questions.constants_of(op)]
    return lambda build: build.again(op, (first, build.derived(joined, *origins)))


def _neutral(op: Operation) -> Emit | Failure:
    split = questions.with_constant(op)
    if split is None:
        return _NOT_ONE_CONSTANT
    (value, constant), neutral = split, _NEUTRAL[op.name]
    if questions.first_float(constant) not in (None, neutral):
        return _NOT_NEUTRAL
    need(questions.is_plain(op), "an activation follows")
    need(value.shape is not None and value.shape == op.results[0].shape, "it broadcasts")
    is_at_hand = tensor_data.is_small(constant) and not (
        isinstance(constant, tensor_data.TensorData) and not isinstance(constant.source, tensor_data.BufferSource)
    )
    need(is_at_hand, "the constant would have to be read from a file")
    array = tensor_data.to_array(constant)
    # For most constants, the first element decides.
    is_neutral = (not array.size or array.item(0) == neutral) and bool((array == neutral).all())
    return (lambda build: value) if is_neutral else _NOT_NEUTRAL


def _zero(op: Operation) -> Emit | Failure:
    need(questions.is_plain(op), "it has an activation")
    need_floats(op.results[0])
    for factor, other in (op.operands, reversed(op.operands)):
        constant = constant_array(other) if other.shape == op.results[0].shape else None
        if constant is not None and not constant.any():
            need(_is_bounded(factor), "the other factor may be infinite")
            return lambda build: other
    return _NOT_ZERO


def _is_bounded(value: Value) -> bool:
    """Returns whether a value's elements are certainly not infinite; NaN is only possible if an operand has NaN."""
    for _ in range(_MAX_MOVES):
        if not isinstance(value, OpResult) or value.op.name not in questions.MOVES:
            break
        value = value.op.operands[questions.MOVES[value.op.name]]
    return isinstance(value, OpResult) and value.op.name in _BOUNDED


X, Y, C = value("x"), value("y"), constant("c")
_FLOATS = value("x").element(np.float32)
_OPTIONS: Mapping[str, Any] = {questions.ACTIVATION: attr("activation")}
_NEGATIVE, _RECIPROCAL = computed(_negative, "negative"), computed(_reciprocal, "reciprocal")


def _power(exponent: float, name: str) -> Pattern[Any]:
    """Returns the pattern of a power that another op computes, or that is its operand."""
    return own_rule(
        f"power-to-{name or 'operand'}",
        tfl.pow(_FLOATS, exponent),
        op(f"tfl.{name}", _FLOATS) if name else _FLOATS,
        where=[questions.KEEPS_SHAPE],
        benefit=1,
    )


def _takes_all(x: Value, begin: Array, size: Array) -> bool:
    dims = x.shape
    if dims is None or begin.any() or size.size != len(dims):
        return False
    return all(count in (-1, dim) for count, dim in zip(size.ravel(), dims, strict=True))


def _strides_over_all(root: Operation, x: Value, begin: Array, end: Array, strides: Array) -> bool:
    """Returns whether a strided slice covers each dimension from begin to end with stride 1."""
    dims = x.shape
    if dims is None or (strides != 1).any() or begin.size != end.size or begin.size > len(dims):
        return False
    open_begin, open_end = dialect.attribute(root, "begin_mask"), dialect.attribute(root, "end_mask")
    return all(
        (open_begin >> index & 1 or first == 0) and (open_end >> index & 1 or 0 < dims[index] <= last)
        for index, (first, last) in enumerate(zip(begin.ravel().tolist(), end.ravel().tolist(), strict=True))
    )


_BEGIN = array("begin")
_ONE_PIXEL = {"filter_height": 1, "filter_width": 1, "stride_h": 1, "stride_w": 1, **questions.PLAIN}
_WHOLE = {"ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

_ALL = check("it takes a part, or may do so", _takes_all)
_ALL_STRIDES = check("it takes a part, or may do so", _strides_over_all)
_ONCE = check("it repeats its operand", lambda multiples: (multiples == 1).all())
_SINGLE = check("it has several results", lambda root: len(root.results) == 1)


def _identity(matched: Op, *conditions: Check) -> Pattern[Any]:
    return own_rule(
        f"identity-{matched.names[0][4:]}", matched, X, where=[questions.KEEPS_TYPE, *conditions], benefit=20
    )


PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        planned(f"fold-{root[4:]}", root[4:], _folded, benefit=30, producers={0: tensor_data.CONSTANT_OPS})
        for root in _FOLDED
    ),
    *(_power(exponent, name) for exponent, name in _POWERS.items()),
    own_rule(
        "sub-to-add",
        tfl.sub(X.varying(), C.element(np.float32), **_OPTIONS),
        tfl.add(X, _NEGATIVE, **_OPTIONS),
        where=[_NEGATIVE],
        benefit=10,
    ),
    own_rule(
        "div-to-mul",
        tfl.div(X.varying(), array("c").element(np.float32), **_OPTIONS),
        tfl.mul(X, _RECIPROCAL, **_OPTIONS),
        where=[_RECIPROCAL],
        benefit=10,
    ),
    *(planned(f"neutral-{root[4:]}", root[4:], _neutral, benefit=25) for root in _NEUTRAL),
    planned("zero-mul", "mul", _zero, benefit=25, depth=_MAX_MOVES),
    *(planned(f"chain-{root[4:]}", root[4:], _chain, benefit=8, depth=2) for root in _NEUTRAL),
    _identity(tfl.slice(X, _BEGIN, array("size")), _ALL),
    _identity(tfl.strided_slice(X, _BEGIN, array("end"), array("strides"), **_WHOLE), _ALL_STRIDES),
    _identity(tfl.tile(X, array("multiples")), _ONCE),
    _identity(tfl.broadcast_to(X.static(), Y)),
    _identity(tfl.concatenation(X, **questions.PLAIN)),
    _identity(tfl.split(Y, X), _SINGLE),
    _identity(tfl.cast(X)),
    _identity(tfl.logical_and(X, X)),
    _identity(tfl.logical_or(X, X)),
    _identity(tfl.maximum(X, X)),
    _identity(tfl.minimum(X, X)),
    _identity(tfl.max_pool_2d(X, **_ONE_PIXEL)),
    _identity(tfl.average_pool_2d(X, **_ONE_PIXEL)),
    _identity(tfl.resize_bilinear(X.static(), Y)),
    _identity(tfl.resize_nearest_neighbor(X.static(), Y)),
)
