"""Functions that JAX composes of several ops, and TensorFlow has one op for.

Before:

    %0 = "tf.Greater"(%x, %zero) : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
    %1 = "tf.SelectV2"(%0, %zero, %x) : (tensor<2xi1>, tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = "tf.Expm1"(%1) : (tensor<2xf32>) -> tensor<2xf32>
    %3 = "tf.SelectV2"(%0, %x, %2) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>

After:

    %3 = "tf.Elu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.from_stablehlo.ranges import range_of
from tfconvert.converter.ir.constants import constant_array
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.ops.call import Array, call_of
from tfconvert.ops.registry import evaluate
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


def operands_of(x: EmittedTensor, *names: str) -> Sequence[EmittedTensor]:
    """Returns the operands of the op that computes a tensor, if it is one of these; else nothing."""
    owner = x.value.owner
    if not isinstance(owner, Operation) or owner.name.removeprefix("tf.") not in names:
        return ()
    return [EmittedTensor(x.builder, operand, x.known) for operand in owner.operands]


def number(x: EmittedTensor) -> float | None:
    """Returns the number that all elements of a constant are."""
    (repeated,) = operands_of(x, "BroadcastTo")[:1] or (x,)
    array = constant_array(repeated.value)
    if array is None or not array.size or array.dtype.kind not in "iuf":
        return None
    first = array.flat[0]
    # Most constants of several elements are weights, in which the last one differs.
    return float(first) if array.flat[-1] == first and (array == first).all() else None


# The number of operands up to which ops are compared: those of formulas have three at most.
_MAX_COMPARED = 3


def is_same(x: EmittedTensor, y: EmittedTensor, depth: int = 3) -> bool:
    """Returns whether two tensors are computed by equal ops of the same values."""
    if x.value is y.value:
        return True
    one, other = x.value.owner, y.value.owner
    if not isinstance(one, Operation) or not isinstance(other, Operation) or one.name != other.name or not depth:
        return False
    if number(x) is not None:
        return number(x) == number(y)
    pairs = [operands_of(each, one.name.removeprefix("tf.")) for each in (x, y)]
    if not 0 < len(pairs[0]) == len(pairs[1]) <= _MAX_COMPARED or one.properties != other.properties:
        return False
    return all(is_same(first, second, depth - 1) for first, second in zip(*pairs, strict=True))


def is_without_zero(x: EmittedTensor) -> bool:
    """Returns whether a tensor has another number in the place of each 0."""
    choice = operands_of(x, "SelectV2")
    compared = operands_of(choice[0], "Equal") if choice else ()
    return bool(compared) and number(compared[1]) == 0 and bool(number(choice[1])) and is_same(compared[0], choice[2])


def _guarded(x: EmittedTensor) -> tuple[EmittedTensor, EmittedTensor | None]:
    """Returns what a division is where its divisor isn't 0, and that divisor; any other tensor as it is."""
    choice = operands_of(x, "SelectV2")
    compared = operands_of(choice[0], "Equal") if choice else ()
    return (choice[2], compared[0]) if compared and number(compared[1]) == 0 else (x, None)


def expm1(x: EmittedTensor) -> EmittedTensor | None:
    """Returns `exp(x) - 1` of numbers that are not positive, which elu is."""
    source = _not_positive(x)
    return None if source is None else source.minimum(0).elu()


def _not_positive(x: EmittedTensor) -> EmittedTensor | None:
    """Returns what a tensor is where that isn't positive, if it is 0 elsewhere."""
    below = _with_constant(x, 0, "Minimum")
    if below is not None:
        return below
    choice = operands_of(x, "SelectV2")
    if choice and number(choice[1]) == 0 and _is_positive(choice[0], choice[2]):
        return choice[2]
    return None


def _is_positive(condition: EmittedTensor, x: EmittedTensor) -> bool:
    compared = operands_of(condition, "Greater", "GreaterEqual")
    return bool(compared) and is_same(compared[0], x) and number(compared[1]) == 0


def _with_constant(x: EmittedTensor, constant: float, *names: str) -> EmittedTensor | None:
    """Returns the other operand of a commutative op with a constant."""
    operands = operands_of(x, *names)
    for one, other in (operands, operands[::-1]) if operands else ():
        if number(other) == constant:
            return one
    return None


def multiply(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Returns what is multiplied by 1."""
    return y if number(x) == 1 else x if number(y) == 1 else None


def divide(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Returns the sigmoid that `1 / (1 + exp(-x))` is."""
    exponential = _with_constant(y, 1, "AddV2") if number(x) == 1 else None
    negated = operands_of(exponential, "Exp") if exponential is not None else ()
    source = operands_of(negated[0], "Neg") if negated else ()
    return source[0].sigmoid() if source else None


def add(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Returns the elu that `max(x, 0) + (exp(min(x, 0)) - 1)` is."""
    for one, other in ((x, y), (y, x)):
        elu = operands_of(other, "Elu")
        below = _with_constant(elu[0], 0, "Minimum") if elu else None
        above = None if below is None else _with_constant(one, 0, "Maximum")
        if above is not None and below is not None and is_same(above, below):
            return above.elu()
    return None


def conjunction(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Returns whether integers stay as they are within limits: `low <= x and x <= high`.

    That is as many operators, but a gather with the same limits, whose result is NaN outside of them, shares two.
    """
    below, above = operands_of(x, "GreaterEqual"), operands_of(y, "LessEqual")
    if not below or not above or below[0].value is not above[0].value or below[0].dtype != np.int32:
        return None
    low, high = number(below[1]), number(above[1])
    if low is None or high is None or low > high:
        return None
    limited = below[0].minimum(int(high)).maximum(int(low))
    return limited.op("Equal", limited, below[0])  # type: ignore[no-any-return]


def minimum(x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Returns the relu6 that `min(max(x, 0), 6)` of floats is."""
    if x.dtype != np.float32:
        return None
    for one, other in ((x, y), (y, x)):
        source = _with_constant(one, 0, "Maximum") if number(other) == 6 else None
        if source is not None and source.shape == one.shape:
            return source.op("Relu6", source)  # type: ignore[no-any-return]
    return None


def select(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Returns the one op that a choice is, if it is one."""
    for rule in (_elu, _softplus, _floor_mod, _floor_div, _erfc):
        found = rule(condition, x, y)
        if found is not None:
            return found
    return None


def _elu(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Matches what an elu, or one times a number, is chosen for where `x` isn't positive."""
    if not _is_positive(condition, x):
        return None
    factors = operands_of(y, "Mul")
    scale, elu = next((pair for pair in (factors, factors[::-1]) if pair and number(pair[0]) is not None), (None, y))
    source = operands_of(elu, "Elu")
    below = _with_constant(source[0], 0, "Minimum") if source else None
    if below is None or not is_same(below, x):
        return None
    return x.elu() if scale is None else condition.where(x, x.elu() * scale)


def _softplus(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Matches `log(exp(x) + exp(0))`, where the choice only keeps NaN, which the sum keeps as well."""
    tested, terms = operands_of(condition, "NotEqual"), operands_of(y, "AddV2")
    if not tested or not terms or not is_same(tested[0], tested[1]):
        return None
    above = _with_constant(terms[0], 0, "Maximum")
    for name in ("Log1p", "Exp", "Neg", "Abs"):
        terms = operands_of(terms[-1], name)
        if not terms:
            return None
    difference = operands_of(terms[0], "Sub")
    source = difference[0] if difference and number(difference[1]) == 0 else terms[0]
    if above is None or not is_same(above, source) or not is_same(tested[0], terms[0]):
        return None
    return above.op("Softplus", above)  # type: ignore[no-any-return]


def _floor_mod(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Matches the remainder with the divisor's sign, made of that with the dividend's: `jnp.mod`."""
    rest, guarded = _guarded(y)
    mod, sums = _plain_mod(rest), operands_of(x, "AddV2")
    if not mod or not sums:
        return None
    divisor = mod[1] if guarded is None else guarded
    if not is_same(sums[0], y) or not is_same(sums[1], divisor) or not _differs_in_sign(condition, y, divisor):
        return None
    found = mod[0] % mod[1]
    return found if guarded is None else guarded.equal(0).where(mod[0], found)


def _floor_div(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Matches the integers' quotient rounded down, made of the truncated one: `jnp.floor_divide`."""
    whole, guarded = _guarded(y)
    quotient, less = operands_of(whole, "TruncateDiv"), operands_of(x, "Sub", "AddV2")
    by_one = {"Sub": 1.0, "AddV2": -1.0}
    if not quotient or not less or not is_same(less[0], y) or quotient[0].dtype not in (np.int32, np.int8, np.int16):
        return None
    owner = x.value.owner
    assert isinstance(owner, Operation)
    if number(less[1]) != by_one[owner.name.removeprefix("tf.")]:
        return None
    both = operands_of(condition, "LogicalAnd")
    signs = operands_of(both[0], "NotEqual") if both else ()
    rest = operands_of(both[1], "NotEqual") if both else ()
    mod = _plain_mod(_guarded(rest[0])[0]) if rest else ()
    divisor = quotient[1] if guarded is None else guarded
    if not signs or not mod or number(rest[1]) != 0 or not _are_signs(signs, (quotient[0], divisor)):
        return None
    is_rest = is_same(mod[0], quotient[0]) and is_same(mod[1], quotient[1])
    return quotient[0].op("FloorDiv", *quotient) if is_rest else None


# Where a function is compared with the complementary error function.
_SAMPLES = np.concatenate([np.linspace(-12, 12, 97), np.linspace(-1.1, 1.1, 45), [0.0, 30.0]]).astype(np.float32)


def _erfc(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor | None:
    """Matches the polynomials and their choices that `erfc` is written out as, by what they compute."""
    near = operands_of(condition, "Less")
    size = operands_of(near[0], "Abs") if near and number(near[1]) == 1 else ()
    if not size or x.dtype != np.float32 or not operands_of(x, "Sub") or not operands_of(y, "SelectV2"):
        return None
    at = {size[0].value: _SAMPLES}
    chosen = [_evaluated(each, at) for each in (x, y)]
    if chosen[0] is None or chosen[1] is None:
        return None
    computed = np.where(np.abs(_SAMPLES) < 1, chosen[0], chosen[1])
    expected = np.array([math.erfc(sample) for sample in _SAMPLES.tolist()])
    if not np.allclose(computed, expected, rtol=1e-5, atol=1e-37):
        return None
    return size[0].op("Erfc", size[0])  # type: ignore[no-any-return]


# The ops of functions that are recognized by what they compute.
_COMPUTED = frozenset({"Abs", "AddV2", "Exp", "Less", "Mul", "Neg", "RealDiv", "SelectV2", "Sub"})


def _evaluated(tensor: EmittedTensor, at: dict[Value, Array]) -> Array | None:
    """Returns what elementwise ops compute, `None` if they use more than the values that are given.

    Args:
        tensor: The result.
        at: The values that are known; those that are computed are added.
    """
    pending = [tensor.value]
    while pending:
        value, owner = pending[-1], pending[-1].owner
        if value in at:
            pending.pop()
            continue
        constant = constant_array(value)
        if constant is not None:
            at[value] = constant
            continue
        if not isinstance(owner, Operation) or owner.name.removeprefix("tf.") not in _COMPUTED:
            return None
        missing = [operand for operand in owner.operands if operand not in at]
        if missing:
            pending += missing
            continue
        with np.errstate(all="ignore"):
            (at[value],) = evaluate(call_of(owner, [at[operand] for operand in owner.operands]))
    return at[tensor.value]


def _plain_mod(x: EmittedTensor) -> Sequence[EmittedTensor]:
    """Returns the operands of a remainder, which may be computed in wider integers."""
    wide = operands_of(x, "Cast")
    if not wide:
        return operands_of(x, "TruncateMod")
    narrow = [operands_of(each, "Cast") for each in operands_of(wide[0], "TruncateMod")]
    found = [each[0] for each in narrow if each and each[0].dtype == x.dtype]
    return found if len(found) == 2 else ()


def _are_signs(signs: Sequence[EmittedTensor], of: Sequence[EmittedTensor]) -> bool:
    for sign, x in zip(signs, of, strict=True):
        source = operands_of(sign, "Sign")
        known, value = number(sign), number(x)
        if not (source and is_same(source[0], x)) and (known is None or value is None or known != np.sign(value)):
            return False
    return True


def _differs_in_sign(condition: EmittedTensor, rest: EmittedTensor, divisor: EmittedTensor) -> bool:
    """Returns whether a condition is that a remainder isn't 0 and has another sign than the divisor."""
    both = operands_of(condition, "LogicalAnd")
    for signs, is_rest in (both, both[::-1]) if both else ():
        tested = operands_of(is_rest, "NotEqual")
        if tested and is_same(tested[0], rest) and number(tested[1]) == 0 and _are_opposite(signs, rest, divisor):
            return True
    return False


def _are_opposite(signs: EmittedTensor, rest: EmittedTensor, divisor: EmittedTensor) -> bool:
    """Returns whether a condition is that one of two numbers is negative; the sign of one may be known."""
    compared, opposite = operands_of(signs, "NotEqual"), operands_of(signs, "LogicalNot")
    if compared:
        return _is_negative(compared[0], rest) and _is_negative(compared[1], divisor)
    value = number(divisor)
    if opposite:
        return value is not None and value < 0 and _is_negative(opposite[0], rest)
    is_positive = range_of(divisor.value, divisor.known).low >= 0 if value is None else value >= 0
    return is_positive and _is_negative(signs, rest)


def _is_negative(condition: EmittedTensor, x: EmittedTensor) -> bool:
    less = operands_of(condition, "Less")
    return bool(less) and is_same(less[0], x) and number(less[1]) == 0
