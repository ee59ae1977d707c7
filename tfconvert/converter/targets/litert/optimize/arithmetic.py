"""Simplifies arithmetic with constants to fewer kinds of ops, and chains to one op.

    sub(x, c)            ->  add(x, -c)      unless c is large and no vector: it can't be merged, and may be shared
    div(x, c)            ->  mul(x, 1 / c)
    add(add(x, c), d)    ->  add(x, c + d)
    mul(mul(x, c), d)    ->  mul(x, c * d)
    add(x, 0), mul(x, 1) ->  x
    mul(x, 0)            ->  0       where x is the result of an activation with bounds, like gates of a state of zeros
    pow(x, 2 or 0.5 or -0.5 or 1)  ->  square(x), sqrt(x), rsqrt(x), x

After the first two, all other patterns need to match additions and multiplications only.

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
from tfconvert.converter.ir.edit import rebuild
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import Check, Op, array, attr, check, computed, constant, op, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.optimize import matching
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


# The ops that define constants.
_KNOWN = tensor_data.CONSTANT_OPS

_NOT_CONSTANT = Failure("an operand is computed, or too large to read")
_NOT_ONE_CONSTANT = Failure("not exactly one operand is constant")
_NOT_NEUTRAL = Failure("it changes its operand")
_NO_CHAIN = Failure("the other operand is not such an op with a constant, or is used elsewhere too")
_NOT_ZERO = Failure("no factor is zeros of the result's shape")


def _match_constant(op: Operation) -> Array | Failure:
    values = []
    for operand in op.operands:
        array = constant_array(operand)
        if array is None:
            return _NOT_CONSTANT
        values.append(array)
    if not matching.is_plain(op) or not matching.is_float(op.results[0]):
        return Failure("it has an activation, or elements other than 32-bit floats")
    dims = matching.broadcast(*(array.shape for array in values))
    if dims is None or dims != op.results[0].shape or 4 * math.prod(dims) > tensor_data.MAX_READ_BYTES:
        return Failure("the result has another shape, or would be large")
    with np.errstate(all="ignore"):
        result: Array = np.asarray(_FOLDED[op.name](*values), np.float32)
    return result


def _rewrite_constant(op: Operation, match: Array, rewriter: Rewriter) -> None:
    rewriter.replace(matching.insert_constant(rewriter, match))


def _negative(c: Constant) -> Constant | Failure:
    dims = matching.dims_of(c)
    if not tensor_data.is_small(c) and sum(dim > 1 for dim in dims) > 1:
        return Failure("the constant is large, so its uses should share it")
    minus = tensor_data.of_array(np.array(-1, np.float32))
    return tensor_data.defer("mul", (c, minus), dims)


def _reciprocal(c: Array) -> Array | Failure:
    with np.errstate(all="ignore"):
        inverse: Array = np.divide(np.float32(1), c, dtype=np.float32)
    # A subnormal or infinite reciprocal would lose digits that the division keeps.
    if not np.isfinite(inverse).all() or (np.abs(inverse) < np.finfo(np.float32).tiny).any():
        return Failure("the divisor has no good reciprocal")
    return np.asarray(inverse)


def _match_chain(op: Operation) -> tuple[Operation, Constant] | Failure:
    split = matching.with_constant(op)
    if split is None:
        return _NOT_ONE_CONSTANT
    value, constant = split
    source = value.sole_producer(op.name)
    inner = None if source is None else matching.with_constant(source)
    if source is None or inner is None:
        return _NO_CHAIN
    if not matching.is_plain(source) or not matching.is_float(value):
        return Failure("an activation is in between, or the elements aren't 32-bit floats")
    dims = matching.broadcast(matching.dims_of(constant), matching.dims_of(inner[1]))
    if dims is None or math.prod(dims) > max(matching.size_of(constant), matching.size_of(inner[1])):
        return Failure("the constants broadcast against each other")
    # Deferred expressions use the ops' names.
    return source, tensor_data.defer(op.name[4:], (inner[1], constant), dims)


def _rewrite_chain(op: Operation, match: tuple[Operation, Constant], rewriter: Rewriter) -> None:
    source, constant = match
    split = matching.with_constant(source)
    assert split is not None, "checked by the match"
    value = matching.insert_constant(rewriter, constant, *matching.constants_of(source), *matching.constants_of(op))
    rewriter.replace(rewriter.insert(rebuild(op, [split[0], value])))


def _match_neutral(op: Operation) -> Value | Failure:
    split = matching.with_constant(op)
    if split is None:
        return _NOT_ONE_CONSTANT
    value, constant = split
    neutral = _NEUTRAL[op.name]
    if matching.first_float(constant) not in (None, neutral):
        return _NOT_NEUTRAL
    if not matching.is_plain(op):
        return Failure("an activation follows")
    dims = value.shape
    if dims is None or dims != op.results[0].shape:
        return Failure("it broadcasts")
    if not tensor_data.is_small(constant):
        return Failure("the constant is too large to read")
    if isinstance(constant, tensor_data.TensorData) and not isinstance(constant.source, tensor_data.BufferSource):
        return Failure("the constant would have to be read from a file")
    array = tensor_data.to_array(constant)
    # For most constants, the first element decides.
    if array.size and array.item(0) != neutral:
        return _NOT_NEUTRAL
    return value if (array == neutral).all() else _NOT_NEUTRAL


def _rewrite_neutral(op: Operation, match: Value, rewriter: Rewriter) -> None:
    rewriter.replace(match)


def _match_zero(op: Operation) -> Value | Failure:
    if not matching.is_plain(op) or not matching.is_float(op.results[0]):
        return Failure("it has an activation, or elements other than 32-bit floats")
    for factor, other in (op.operands, reversed(op.operands)):
        if other.shape != op.results[0].shape:
            continue
        constant = constant_array(other)
        if constant is not None and not constant.any():
            return other if _is_bounded(factor) else Failure("the other factor may be infinite")
    return _NOT_ZERO


def _is_bounded(value: Value) -> bool:
    """Returns whether a value's elements are certainly not infinite; NaN is only possible if an operand has NaN."""
    for _ in range(_MAX_MOVES):
        if not isinstance(value, OpResult) or value.op.name not in matching.MOVES:
            break
        value = value.op.operands[matching.MOVES[value.op.name]]
    return isinstance(value, OpResult) and value.op.name in _BOUNDED


X, Y, C = value("x"), value("y"), constant("c")
_FLOATS = value("x").element(np.float32)
_OPTIONS: Mapping[str, Any] = {matching.ACTIVATION: attr("activation")}
_NEGATIVE, _RECIPROCAL = computed(_negative, "negative"), computed(_reciprocal, "reciprocal")


def _power(exponent: float, name: str) -> Pattern[Any]:
    """Returns the pattern of a power that another op computes, or that is its operand."""
    return own_rule(
        f"power-to-{name or 'operand'}",
        tfl.pow(_FLOATS, exponent),
        op(f"tfl.{name}", _FLOATS) if name else _FLOATS,
        where=[matching.KEEPS_SHAPE],
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
_ONE_PIXEL = {"filter_height": 1, "filter_width": 1, "stride_h": 1, "stride_w": 1, **matching.PLAIN}
_WHOLE = {"ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}

_ALL = check("it takes a part, or may do so", _takes_all)
_ALL_STRIDES = check("it takes a part, or may do so", _strides_over_all)
_ONCE = check("it repeats its operand", lambda multiples: (multiples == 1).all())
_SINGLE = check("it has several results", lambda root: len(root.results) == 1)


def _identity(matched: Op, *conditions: Check) -> Pattern[Any]:
    return own_rule(
        f"identity-{matched.names[0][4:]}", matched, X, where=[matching.KEEPS_TYPE, *conditions], benefit=20
    )


PATTERNS: tuple[Pattern[Any], ...] = (
    *(
        Pattern(f"fold-{root[4:]}", root, _match_constant, _rewrite_constant, 30, producers={0: _KNOWN})
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
    *(Pattern(f"neutral-{root[4:]}", root, _match_neutral, _rewrite_neutral, benefit=25) for root in _NEUTRAL),
    Pattern("zero-mul", "tfl.mul", _match_zero, _rewrite_neutral, benefit=25, depth=_MAX_MOVES),
    *(Pattern(f"chain-{root[4:]}", root, _match_chain, _rewrite_chain, benefit=8, depth=2) for root in _NEUTRAL),
    _identity(tfl.slice(X, _BEGIN, array("size")), _ALL),
    _identity(tfl.strided_slice(X, _BEGIN, array("end"), array("strides"), **_WHOLE), _ALL_STRIDES),
    _identity(tfl.tile(X, array("multiples")), _ONCE),
    _identity(tfl.broadcast_to(X.static(), Y)),
    _identity(tfl.concatenation(X, **matching.PLAIN)),
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
