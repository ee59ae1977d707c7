"""Softplus and Mish, the hyperbolic tangent of softplus times its operand, with fewer and cheaper operators.

    relu(x) + log(1 + exp(-abs(x)))         ->  maximum(x, log(1 + exp(minimum(x, 30))))
    tanh(relu(x) + log(1 + exp(-abs(x))))   ->  n / (n + 2), n = e * (e + 2), e = exp(minimum(x, 20))

The usual form has no large numbers, so 16-bit floats can represent them. For 32-bit floats it is enough to bound the
exponent: from 20 on, the second is 1, and from 30 on, the logarithm is less than x.
"""

from __future__ import annotations

from typing import Any

from tfconvert.converter.rewrite.pattern import Pattern, need
from tfconvert.converter.targets.litert.accelerators.builder import shape_of
from tfconvert.converter.targets.litert.fast.fast_form import Emit, FastBuilder, fast, is_float, large
from tfconvert.converter.targets.litert.legalize.litert_builder import LiteRTBuilder
from tfconvert.converter.targets.litert.optimize import matching
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_LARGEST, _LARGEST_OF_TANH = 30.0, 20.0


def _operand(op: Operation) -> Value | None:
    """Returns the value whose softplus an addition computes, `None` if it computes something else."""
    for positive, rest in (op.operands, op.operands[::-1]):
        relu, log = matching.producer(positive, "tfl.relu"), matching.sole_producer(rest, "tfl.log")
        if relu is None or log is None or not matching.is_plain(op):
            continue
        exp = _plus_one(log.operands[0])
        power = None if exp is None else matching.sole_producer(exp, "tfl.exp")
        negative = None if power is None else matching.sole_producer(power.operands[0], "tfl.neg")
        absolute = None if negative is None else matching.sole_producer(negative.operands[0], "tfl.abs")
        if absolute is not None and absolute.operands[0] is relu.operands[0]:
            return relu.operands[0]
    return None


def _plus_one(value: Value) -> Value | None:
    """Returns the value to which one is added."""
    op = matching.sole_producer(value, "tfl.add")
    split = None if op is None or not matching.is_plain(op) else matching.with_constant(op)
    is_one = split is not None and matching.size_of(split[1]) == 1 and matching.first_float(split[1]) == 1
    return split[0] if split is not None and is_one else None


def _softplus(op: Operation) -> Emit:
    x = _operand(op)
    need(x is not None, "it isn't softplus")
    assert x is not None
    large(x)
    need(is_float(x), "it isn't of 32-bit floats")
    users = [use.operation.name for use in op.results[0].uses]
    need(users != ["tfl.tanh"], "the tangent has another form")

    def emit_logarithm(emit: LiteRTBuilder) -> Value:
        power = _power(emit, x, _LARGEST)
        build, shape = FastBuilder(emit), shape_of(x)
        logarithm = build.unary("log", build.binary("add", power, emit.scalar(1.0, types.F32), shape))
        return build.binary("maximum", x, logarithm, shape)

    return emit_logarithm


def _tanh(op: Operation) -> Emit:
    add = matching.sole_producer(op.operands[0], "tfl.add")
    x = None if add is None else _operand(add)
    need(x is not None, "it isn't of softplus")
    assert x is not None
    large(x)
    need(is_float(x), "it isn't of 32-bit floats")

    def emit_quotient(emit: LiteRTBuilder) -> Value:
        build, shape, two = FastBuilder(emit), shape_of(x), emit.scalar(2.0, types.F32)
        power = _power(emit, x, _LARGEST_OF_TANH)
        product = build.binary("mul", power, build.binary("add", power, two, shape), shape)
        return build.binary("div", product, build.binary("add", product, two, shape), shape)

    return emit_quotient


def _power(emit: LiteRTBuilder, x: Value, largest: float) -> Value:
    build = FastBuilder(emit)
    return build.unary("exp", build.binary("minimum", x, emit.scalar(largest, types.F32), shape_of(x)))


PATTERNS: tuple[Pattern[Any], ...] = (
    fast("bounded-softplus", "add", _softplus, depth=5),
    fast("tanh-of-softplus", "tanh", _tanh, depth=6),
)
