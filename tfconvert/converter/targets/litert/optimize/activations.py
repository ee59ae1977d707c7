"""Replaces activations that are composed of several ops by single ops.

    x * relu6(x + 3) / 6, in any order of factors  ->  hard_swish(x)
    maximum(x, 0)                                  ->  relu(x)
    minimum(relu(x), 6), minimum(maximum(x, 0), 6) ->  relu6(x)
    minimum(maximum(x, -1), 1)                     ->  relu_n1_to_1(x)
    maximum(x, x * a), 0 < a < 1                   ->  leaky_relu{a}(x)
    leaky_relu{0}(x)                               ->  relu(x)
    relu(x) + a * relu(-x)                         ->  prelu(x, -a)
    (x + abs(x)) * 0.5 + a * (x - abs(x)) * 0.5    ->  prelu(x, a), leaky_relu{a}(x) for a number

Ops in between must have no other users, otherwise they would remain.

Activations are fused into the previous op, if its kernel can apply them.

    relu6(conv(x, w, b))  ->  conv{RELU6}(x, w, b)

The kernels of concatenation and L2 normalization reject activations; those of the ops listed here clamp their result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.rewrite.declarative import own_rule
from tfconvert.converter.rewrite.dsl import check, computed, number, tfl, value
from tfconvert.converter.rewrite.pattern import Failure, Pattern, need, required
from tfconvert.converter.targets.litert.forms import questions
from tfconvert.converter.targets.litert.forms.form import Emit, planned
from tfconvert.converter.targets.litert.forms.questions import need_floats, option
from tfconvert.schema.dialects import attributes, tensor_data
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators

ACTIVATIONS = ("tfl.relu", "tfl.relu6", "tfl.relu_n1_to_1")

# The result of a recurrent operator is also its next state.
CLAMPING = tuple(f"tfl.{name}" for name in operators.fusing("RELU") if name not in ("rnn", "svdf"))
"""Ops whose float kernels clamp their result."""

# Two successive activations (the first may be `NONE`) as a single one.
_JOINED: Mapping[str, Mapping[str, str]] = {
    "tfl.relu": {"NONE": "RELU", "RELU": "RELU", "RELU6": "RELU6"},
    "tfl.relu6": {"NONE": "RELU6", "RELU": "RELU6", "RELU6": "RELU6"},
    "tfl.relu_n1_to_1": {"NONE": "RELU_N1_TO_1", "RELU_N1_TO_1": "RELU_N1_TO_1"},
}

_CLAMPING = frozenset(CLAMPING)


def _fused(op: Operation) -> Emit:
    source = required(op.operands[0].sole_producer(_CLAMPING), "no op that clamps its result alone is before it")
    need_floats(op.operands[0])
    joined = required(_JOINED[op.name].get(questions.activation(source)), "the activations don't combine into one")
    return lambda build: build.rewriter.extend(source, {questions.ACTIVATION: attributes.string(joined)})


# The maximum depth of nested products.
_MAX_DEPTH = 3

# The ops that apply the other bound, by the op that applies one bound.
_INNER = {"tfl.maximum": frozenset({"tfl.minimum"}), "tfl.minimum": frozenset({"tfl.maximum", "tfl.relu"})}

# Activations by their bounds. RELU_0_TO_1 is left out: XNNPACK doesn't support it, and two bounds are faster.
_BETWEEN = {(0.0, 6.0): "relu6", (-1.0, 1.0): "relu_n1_to_1"}


# The ops that one factor of a hard swish is from at least.
_IN_SWISH = frozenset({"tfl.add", "tfl.mul", "tfl.relu6"})


def _factors(op: Operation, depth: int = _MAX_DEPTH) -> Iterator[Value]:
    """Yields the factors of nested products without other uses."""
    for operand in op.operands:
        inner = operand.sole_producer("tfl.mul")
        if inner is not None and questions.is_plain(inner) and depth:
            yield from _factors(inner, depth - 1)
        else:
            yield operand


_NO_SWISH = Failure("neither factor is relu6(x + 3) of the other")
_NO_PRELU = Failure("it isn't the sum of the positive part of a value and a multiple of its negative part")


def _hard_swish(op: Operation) -> Emit | Failure:
    if all(operand.producer(_IN_SWISH) is None for operand in op.operands):
        return _NO_SWISH
    need(questions.is_plain(op), "an activation follows")
    need_floats(op.results[0])
    factor, values = 1.0, []
    for each in _factors(op):
        known = constant_number(each)
        if known is None:
            values.append(each)
        else:
            factor *= known
    if len(values) != 2 or not questions.is_close(factor, 1 / 6):
        return _NO_SWISH
    swishes = (x for gate, x in (values, values[::-1]) if _is_shifted_relu6(gate, x))
    x = required(next(swishes, None), "neither factor is relu6(x + 3) of the other")
    return lambda build: build.tfl("hard_swish", (x,), op.results[0].type)


def _is_shifted_relu6(gate: Value, value: Value) -> bool:
    """Returns whether a value is `relu6(value + 3)`."""
    relu6 = gate.sole_producer("tfl.relu6")
    add = (gate if relu6 is None else relu6.operands[0]).sole_producer("tfl.add")
    if add is None or questions.activation(add) != ("RELU6" if relu6 is None else "NONE"):
        return False
    split = questions.with_constant(add)
    if split is None or split[0] is not value or len(questions.dims_of(split[1])) > len(value.shape or ()):
        return False
    three = next(operand for operand in add.operands if operand is not value)
    return questions.is_close(constant_number(three), 3)


def _clamped(op: Operation) -> Emit:
    """A maximum or minimum of a value and one number."""
    value, limit = required(_limited(op), "it isn't a limit by one number")
    inner = value.sole_producer(_INNER[op.name])
    before = None if inner is None else (inner.operands[0], 0.0) if inner.name == "tfl.relu" else _limited(inner)
    name = None
    if before is not None:
        # A lower bound above the upper one is not an activation: the last bound wins.
        name = _BETWEEN.get((limit, before[1]) if op.name == "tfl.maximum" else (before[1], limit))
    if name is not None and before is not None:
        value = before[0]
    elif op.name == "tfl.maximum" and limit == 0:
        name = "relu"
    elif op.name == "tfl.minimum" and limit == 6:
        name = "relu6" if isinstance(value.owner, Operation) and questions.activation(value.owner) == "RELU" else None
    activation = required(name, "there is no activation with these limits")
    return lambda build: build.tfl(activation, (value,), op.results[0].type)


def _limited(op: Operation) -> tuple[Value, float] | None:
    split = questions.with_constant(op)
    if split is None or split[0].shape != op.results[0].shape or not questions.is_float(split[0]):
        return None
    limit = constant_number(next(value for value in op.operands if value is not split[0]))
    return None if limit is None else (split[0], limit)


class _Scaled(NamedTuple):
    """A part of a value, times numbers and constants."""

    value: Value
    number: float
    constants: tuple[Constant, ...] = ()


# The operators that scale a part of a PReLU, and those that cut it off.
_SCALING = frozenset({"tfl.mul", "tfl.neg", "tfl.div"})
_CUTTING = frozenset({"tfl.relu", "tfl.minimum", "tfl.mul", "tfl.add", "tfl.sub"})


def _unscaled(value: Value, depth: int = _MAX_DEPTH) -> _Scaled:
    """Returns what a value is a multiple of; operators in between have no other users."""
    number, constants = 1.0, []
    for _ in range(depth):
        op = value.sole_producer(_SCALING)
        if op is None or not questions.is_plain(op):
            break
        if op.name == "tfl.neg":
            value, number = op.operands[0], -number
            continue
        split = questions.with_constant(op)
        if split is None or (op.name == "tfl.div" and split[0] is not op.operands[0]):
            break
        known = constant_number(next(each for each in op.operands if each is not split[0]))
        if known is not None:
            if op.name == "tfl.div" and not known:
                break
            number = number / known if op.name == "tfl.div" else number * known
        elif op.name == "tfl.mul":
            constants.append(split[1])
        else:
            break
        value = split[0]
    return _Scaled(value, number, tuple(constants))


def _positive(value: Value) -> Value | None:
    """Returns the `x` of a value that is `relu(x)`, or `(x + |x|) / 2`."""
    part = _unscaled(value)
    op = part.value.sole_producer(_CUTTING)
    if op is None or part.constants:
        return None
    if op.name == "tfl.relu":
        return op.operands[0] if part.number == 1 else None
    is_half = part.number == 0.5 and op.name == "tfl.add" and questions.is_plain(op)
    return _beside_magnitude(*op.operands) if is_half else None


def _negative(value: Value) -> _Scaled | None:
    """Returns the `x` of a value that is a multiple of `min(x, 0)`, however it is written, and the multiple."""
    part = _unscaled(value)
    op = part.value.sole_producer(_CUTTING)
    if op is None or op.name == "tfl.add":
        return None
    if op.name == "tfl.relu":
        inner = _unscaled(op.operands[0])
        is_minus = inner.number == -1 and not inner.constants
        return part._replace(value=inner.value, number=-part.number) if is_minus else None
    if op.name == "tfl.mul":
        # A relu is part of it by now.
        split = questions.with_constant(op) if questions.activation(op) == "RELU" else None
        is_minus = split is not None and -1 in map(constant_number, op.operands)
        return part._replace(value=split[0], number=-part.number) if split is not None and is_minus else None
    if op.name == "tfl.minimum":
        limited = _limited(op)
        return part._replace(value=limited[0]) if limited is not None and limited[1] == 0 else None
    if not questions.is_plain(op):
        return None
    first, second = op.operands
    x = _beside_magnitude(first, second)
    sign = 2 if x is first else -2
    return None if x is None else part._replace(value=x, number=part.number * sign)


def _beside_magnitude(first: Value, second: Value) -> Value | None:
    """Returns the one of two values of which the other is the magnitude."""
    for x, other in ((first, second), (second, first)):
        magnitude = other.producer("tfl.abs")
        if magnitude is not None and magnitude.operands[0] is x:
            return x
    return None


def _prelu(op: Operation) -> Emit | Failure:
    need(questions.is_plain(op), "an activation follows")
    need_floats(op.results[0])
    first, second = op.operands
    orders = ((first, second), (second, first)) if op.name == "tfl.add" else ((first, second),)
    for one, other in orders:
        x, negative = _positive(one), _negative(other)
        if x is not None and negative is not None and negative.value is x:
            need(x.shape == op.results[0].shape, "the slope widens the value")
            number = negative.number if op.name == "tfl.add" else -negative.number
            return _sloped(op, x, _slope(negative._replace(number=number), x))
    return _NO_PRELU


def _sloped(op: Operation, x: Value, slope: Constant | float) -> Emit:
    kind = op.results[0].type
    if isinstance(slope, float):
        return lambda build: build.tfl("leaky_relu", (x,), kind, {"alpha": slope})
    return lambda build: build.tfl("prelu", (x, build.derived(slope)), kind)


def _slope(part: _Scaled, x: Value) -> Constant | float:
    """Returns the slope without a batch dimension, which the kernel requires; a number if it is one."""
    if not part.constants:
        return part.number
    rank = len(x.shape or ())
    slope, *others = part.constants
    for other in others:
        dims = required(
            questions.broadcast_shape(questions.dims_of(slope), questions.dims_of(other)), "the slopes don't broadcast"
        )
        slope = tensor_data.defer("mul", (slope, other), dims)
    dims = questions.dims_of(slope)
    if len(dims) == rank and dims[:1] == (1,):
        dims = dims[1:]
    need(rank > 1 and len(dims) < rank, "the slope has as many dimensions as the value")
    number = tensor_data.of_array(np.array(part.number, np.float32))
    return tensor_data.defer("mul", (tensor_data.defer("reshape", (slope,), dims, dims), number), dims)


def _without_slope(op: Operation) -> Emit:
    """A leaky ReLU with the slope of a ReLU, which XNNPACK refuses to run on integers."""
    need(option(op, "alpha") == 0, "the slope isn't zero")
    need_floats(op.results[0])
    return lambda build: build.tfl("relu", op.operands, op.results[0].type)


X = value("x").element(np.float32)

_LEAKY_RELU = own_rule(
    "leaky-relu",
    tfl.maximum(X, tfl.mul(X, number("alpha"), **questions.PLAIN).commutative().once()).commutative(),
    tfl.leaky_relu(X, alpha=computed(lambda alpha: alpha)),
    where=[check("the factor isn't between 0 and 1", lambda alpha: 0 < alpha < 1), questions.KEEPS_SHAPE],
    benefit=1,
)


PATTERNS: tuple[Pattern[Any], ...] = (
    *(planned(f"fuse-{root[4:]}", root[4:], _fused, producers={0: _CLAMPING}) for root in ACTIVATIONS),
    planned("hard-swish", "mul", _hard_swish, benefit=15, depth=5),
    planned("clamp-maximum", "maximum", _clamped, benefit=5, depth=2),
    planned("clamp-minimum", "minimum", _clamped, benefit=5, depth=2),
    _LEAKY_RELU,
    planned("leaky-relu-of-zero", "leaky_relu", _without_slope),
    *(planned(f"prelu-of-{root}", root, _prelu, benefit=5, depth=6) for root in ("add", "sub")),
)
