"""GELU, written out in the ways that frameworks write it, becomes one op.

Matched before anything is legalized, on `tf` ops: the decomposition of the error function would never be
recognised again. A product is flattened to a number and a list of factors first, so that the order and nesting of
multiplications don't matter:

    0.5 * x * (1 + erf(x / sqrt(2)))
    0.5 * x * erfc(-x * sqrt(1/2))
    0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tfconvert.converter.ir.constants import constant_number
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

GATES = frozenset({"tf.Erf", "tf.Erfc", "tf.Tanh"})
"""The ops that compute it, one of which a model has if it has such a unit."""

_HALF_ROOT = math.sqrt(0.5)
_TANH_SCALE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_MAX_FACTORS = 8
# Products of more multiplications do not match.
_MAX_STEPS = 32
_TOLERANCE = 1e-4
_SUMS = ("tf.AddV2", "tf.Add")
_PRODUCTS = ("tf.Mul", "tf.RealDiv", "tf.Neg")
# One factor at least is from one of these ops.
_INSIDE = frozenset((*_SUMS, *_PRODUCTS, "tf.Erfc"))


class _Gelu(NamedTuple):
    """A match."""

    x: Value  # The operand.
    approximate: bool  # Whether it is the form with tanh.


_Product = tuple[float, list[Value]]


def _step(value: Value) -> _Product | None:
    """Returns a product's number and factors, one multiplication, division or negation deep; `None` for others."""
    owner = value.owner
    name = owner.name if isinstance(owner, Operation) else ""
    if name not in _PRODUCTS:
        return None
    assert isinstance(owner, Operation)
    if name == "tf.Neg":
        return -1.0, [owner.operands[0]]
    if name == "tf.RealDiv":
        divisor = constant_number(owner.operands[1])
        return (1 / divisor, [owner.operands[0]]) if divisor else None
    coefficient, factors = 1.0, []
    for operand in owner.operands:
        number = constant_number(operand)
        if number is None:
            factors.append(operand)
        else:
            coefficient *= number
    return coefficient, factors


def _product(value: Value, whole: Value | None = None) -> _Product:
    """Returns a value as a number times factors; `whole`, though a product itself, is not taken apart."""
    coefficient, factors, pending = 1.0, list[Value](), [value]
    for _ in range(_MAX_STEPS):
        if not pending or len(factors) > _MAX_FACTORS:
            break
        value = pending.pop()
        step = None if value is whole else _step(value)
        if step is None:
            factors.append(value)
        else:
            coefficient *= step[0]
            pending += step[1]
    return coefficient, factors + pending


def _scaled(value: Value, scale: float) -> Value | None:
    """Returns `x` if a value is `scale * x`."""
    coefficient, factors = 1.0, [value]
    for _ in range(_MAX_STEPS):
        if len(factors) != 1 or _close(coefficient, scale):
            break
        step = _step(factors[0])
        if step is None:
            return None
        coefficient, factors = coefficient * step[0], step[1]
    return factors[0] if len(factors) == 1 and _close(coefficient, scale) else None


def _exponent(value: Value, x: Value) -> tuple[float, int] | None:
    """Returns `c` and `n` if a value is `c * x ** n`."""
    coefficient, factors = _product(value, x)
    exponent = 0
    for factor in factors:
        base, times = _power(factor)
        if factor is x:
            exponent += 1
        elif base is x:
            exponent += times
        else:
            return None
    return coefficient, exponent


def _power(value: Value) -> tuple[Value, int]:
    """Returns `x` and `n` if a value is written as a power `x ** n`, else itself and one."""
    owner = value.owner
    if isinstance(owner, Operation):
        if owner.name == "tf.Square":
            return owner.operands[0], 2
        power = constant_number(owner.operands[1]) if owner.name == "tf.Pow" else None
        if power is not None and power.is_integer():
            return owner.operands[0], int(power)
    return value, 1


def _close(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=_TOLERANCE)


def _one_plus(value: Value) -> Value | None:
    """Returns `y` if a value is `1 + y`."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in _SUMS:
        for one, other in ((0, 1), (1, 0)):
            if constant_number(owner.operands[one]) == 1.0:
                return owner.operands[other]
    return None


def _tanh_argument(value: Value) -> Value | None:
    """Returns `x` if a value is `sqrt(2/pi) * (x + 0.044715 * x**3)`, or the same with an `x` taken out."""
    for factor in _product(value)[1]:
        owner = factor.owner
        if not isinstance(owner, Operation) or owner.name not in _SUMS:
            continue
        square = _one_plus(factor)
        candidates = list(owner.operands) if square is None else [_power(each)[0] for each in _product(square)[1]]
        for x in candidates:
            if square is None:
                rest = owner.operands[1] if x is owner.operands[0] else owner.operands[0]
                is_cubic = _is_monomial(rest, x, _CUBIC, 3) and _scaled(value, _TANH_SCALE) is factor
            else:
                coefficient, factors = _product(value, x)
                outer = _close(coefficient, _TANH_SCALE) and len(factors) == 2 and x in factors and factor in factors
                is_cubic = outer and _is_monomial(square, x, _CUBIC, 2)
            if is_cubic:
                return x
    return None


def _is_monomial(value: Value, x: Value, coefficient: float, exponent: int) -> bool:
    found = _exponent(value, x)
    return found is not None and _close(found[0], coefficient) and found[1] == exponent


def _gate(value: Value) -> tuple[Value, bool] | None:
    """Returns `x` if a value is twice the normal distribution's function of `x`, and whether it is approximated."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "tf.Erfc":
        x = _scaled(owner.operands[0], -_HALF_ROOT)
        return None if x is None else (x, False)
    inner = _one_plus(value)
    defining_op = None if inner is None else inner.owner
    if not isinstance(defining_op, Operation) or defining_op.name not in ("tf.Erf", "tf.Tanh"):
        return None
    approximate = defining_op.name == "tf.Tanh"
    x = _tanh_argument(defining_op.operands[0]) if approximate else _scaled(defining_op.operands[0], _HALF_ROOT)
    return None if x is None else (x, approximate)


_NO = Failure("it is not a gaussian error linear unit")


def _match(op: Operation) -> _Gelu | Failure:
    owners = [operand.op.name for operand in op.operands if type(operand) is OpResult]
    if _INSIDE.isdisjoint(owners) or op.results[0].element != types.F32:
        return _NO
    for gate in _product(op.results[0])[1]:
        found = _gate(gate)
        if found is not None:
            x, approximate = found
            coefficient, factors = _product(op.results[0], x)
            if _close(coefficient, 0.5) and len(factors) == 2 and gate in factors and x in factors:
                return _Gelu(x, approximate)
    return _NO


def _rewrite(op: Operation, match: _Gelu, rewriter: Rewriter) -> None:
    options = {"approximate": match.approximate}
    rewriter.replace(rewriter.insert(tfl.build("gelu", (match.x,), (op.results[0].type,), options)))


PATTERNS = (Pattern("fuse-gelu", "tf.Mul", _match, _rewrite),)
