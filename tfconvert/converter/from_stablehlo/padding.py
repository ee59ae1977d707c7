"""Padding that programs compute from sizes: recognized by its values, for enough sizes that all others follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.ops.call import Array, call_of
from tfconvert.ops.registry import evaluate
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_SAME_ELEMENTS = frozenset({"tf.Cast", "tf.ExpandDims", "tf.Identity", "tf.Reshape", "tf.Squeeze"})

Pair = tuple[EmittedTensor, EmittedTensor]


def amounts(raised: RaisedOp, padding: EmittedTensor) -> list[Pair]:
    """Returns what is added before and after each dimension, as scalars.

    Args:
        raised: The op.
        padding: A matrix with a row for each dimension.
    """
    found = _scalars(raised, padding)
    return list(zip(found[::2], found[1::2], strict=True))


def _scalars(raised: RaisedOp, tensor: EmittedTensor) -> list[EmittedTensor]:
    """Returns the elements of a tensor, row by row."""
    known = raised.known(tensor)
    if known is not None:
        return [raised.constant(number, np.int32) for number in known.reshape(-1)]
    owner = tensor.value.owner
    count = int(np.prod(raised.sizes(tensor)))
    if count == 1:
        return [raised.reshaped(tensor.cast(np.int32), ())]
    if isinstance(owner, Operation):
        operands = [raised.tensor(operand) for operand in owner.operands]
        if owner.name in _SAME_ELEMENTS:
            return _scalars(raised, operands[0])
        if owner.name in ("tf.ConcatV2", "tf.Pack"):
            parts = operands[:-1] if owner.name == "tf.ConcatV2" else operands
            joined = [scalar for part in parts for scalar in _scalars(raised, part)]
            if len(joined) == count and tensor.rank == len(raised.sizes(parts[0])) + (owner.name == "tf.Pack"):
                return joined
    flat = raised.reshaped(tensor.cast(np.int32), [count])
    return [raised.tensor(flat.builder.pick(flat.value, index)) for index in range(count)]


class _Course(NamedTuple):
    """How a formula goes on from some size: it grows by the same in each period, and repeats but for that.

    It is `rise * size / period` and a rest, which is between two numbers.

    Attributes:
        rise: By how much it grows in a period.
        period: The length of the period.
        low: The lower limit of the rest.
        high: The upper limit of the rest; of a number, the same.
        start: The size from which this holds.
    """

    rise: int
    period: int
    low: int
    high: int
    start: int = 0

    @property
    def is_number(self) -> bool:
        return self.rise == 0 and self.low == self.high

    def over(self, period: int) -> _Course:
        """Returns the same in a period that is a multiple of its own."""
        return self._replace(rise=self.rise * (period // self.period), period=period)


def _number(value: int) -> _Course:
    return _Course(0, 1, value, value)


def _together(x: _Course, y: _Course) -> tuple[_Course, _Course]:
    """Returns two courses in one period, from one size on."""
    period, start = math.lcm(x.period, y.period), max(x.start, y.start)
    return x.over(period)._replace(start=start), y.over(period)._replace(start=start)


def _add(x: _Course, y: _Course) -> _Course:
    x, y = _together(x, y)
    return x._replace(rise=x.rise + y.rise, low=x.low + y.low, high=x.high + y.high)


def _negate(x: _Course) -> _Course:
    return x._replace(rise=-x.rise, low=-x.high, high=-x.low)


def _subtract(x: _Course, y: _Course) -> _Course:
    return _add(x, _negate(y))


def _multiply(x: _Course, y: _Course) -> _Course | None:
    x, y = _together(x, y)
    if x.is_number:
        x, y = y, x
    if y.rise or (x.rise and not y.is_number):
        return None
    corners = [one * other for one in (x.low, x.high) for other in (y.low, y.high)]
    return x._replace(rise=x.rise * y.low, low=min(corners), high=max(corners))


def _maximum(x: _Course, y: _Course) -> _Course:
    x, y = _together(x, y)
    if x.rise == y.rise:
        return x._replace(low=max(x.low, y.low), high=max(x.high, y.high))
    more, less = (x, y) if x.rise > y.rise else (y, x)
    return more._replace(start=max(x.start, _ceil((less.high - more.low) * x.period, more.rise - less.rise)))


def _minimum(x: _Course, y: _Course) -> _Course:
    return _negate(_maximum(_negate(x), _negate(y)))


def _ceil(x: int, y: int) -> int:
    return -(-x // y)


def _floor_divide(x: _Course, y: _Course) -> _Course | None:
    if not y.is_number or y.low == 0:
        return None
    x, divisor = (_negate(x), -y.low) if y.low < 0 else (x, y.low)
    if not x.rise:
        return x._replace(low=x.low // divisor, high=x.high // divisor)
    return x._replace(period=x.period * divisor, low=x.low // divisor - 1, high=_ceil(x.high, divisor))


def _floor_mod(x: _Course, y: _Course) -> _Course | None:
    if not y.is_number or y.low == 0:
        return None
    period = x.period * (abs(y.low) if x.rise else 1)
    return _Course(0, period, min(y.low + 1, 0), max(y.low - 1, 0), x.start)


def _truncated(compute: Callable[[_Course, _Course], _Course | None]) -> Callable[[_Course, _Course], _Course | None]:
    """Returns the division that rounds to zero of one that rounds down: the same where nothing is negative."""

    def natural(x: _Course, y: _Course) -> _Course | None:
        if not y.is_number or y.low <= 0 or x.rise < 0 or (x.rise == 0 and x.low < 0):
            return None
        first = _ceil(-x.low * x.period, x.rise) if x.rise else 0
        return compute(x._replace(start=max(x.start, first)), y)

    return natural


def _is_positive(x: _Course) -> _Course:
    """Returns 1 where a course is more than 0, else 0."""
    if not x.rise:
        return x._replace(low=int(x.low > 0), high=int(x.high > 0))
    distance = -x.low if x.rise > 0 else x.high
    return _number(int(x.rise > 0))._replace(start=max(x.start, distance * x.period // abs(x.rise) + 1))


def _is_less(x: _Course, y: _Course) -> _Course:
    return _is_positive(_subtract(y, x))


def _opposite(x: _Course) -> _Course:
    return _subtract(_number(1), x)


def _is_different(x: _Course, y: _Course) -> _Course:
    return _maximum(_is_less(x, y), _is_less(y, x))


def _select(condition: _Course, x: _Course, y: _Course) -> _Course | None:
    x, y = _together(x, y)
    start = max(condition.start, x.start)
    if condition.is_number:
        return (x if condition.low else y)._replace(start=start)
    if x.rise != y.rise:
        return None
    period = math.lcm(condition.period, x.period)
    return x.over(period)._replace(low=min(x.low, y.low), high=max(x.high, y.high), start=start)


# The ops of formulas of sizes -> how their results go on.
_COURSES: Mapping[str, Callable[..., _Course | None]] = {
    "tf.Abs": lambda x: _maximum(x, _negate(x)),
    "tf.AddV2": _add,
    "tf.Equal": lambda x, y: _opposite(_is_different(x, y)),
    "tf.FloorDiv": _floor_divide,
    "tf.FloorMod": _floor_mod,
    "tf.Greater": lambda x, y: _is_less(y, x),
    "tf.GreaterEqual": lambda x, y: _opposite(_is_less(x, y)),
    "tf.Less": _is_less,
    "tf.LessEqual": lambda x, y: _opposite(_is_less(y, x)),
    "tf.LogicalAnd": _minimum,
    "tf.LogicalNot": _opposite,
    "tf.LogicalOr": _maximum,
    "tf.Maximum": _maximum,
    "tf.Minimum": _minimum,
    "tf.Mul": _multiply,
    "tf.Neg": _negate,
    "tf.NotEqual": _is_different,
    "tf.SelectV2": _select,
    "tf.Sub": _subtract,
    "tf.TruncateDiv": _truncated(_floor_divide),
    "tf.TruncateMod": _truncated(_floor_mod),
}

# The number of sizes up to which a formula is tried.
_MAX_SIZES = 1 << 16

# The number of ops up to which a formula is followed.
_MAX_OPS = 128


def equals(
    raised: RaisedOp, amount: EmittedTensor, size: int, expected: Callable[[Array], Array], period: int = 1
) -> bool:
    """Returns whether a scalar has the value that a formula has, for every size.

    Both grow by the same in each period from some size on, if they do so in one. So only the sizes before it, and two
    periods, are tried.

    Args:
        raised: The op.
        amount: The scalar.
        size: The size that the formula is of, as `RaisedOp.sizes` returns it.
        expected: The formula.
        period: The period in which it grows by the same, from the first size on.
    """
    ops: dict[Value, Operation] = {}
    course = _course(raised, amount, size, ops)
    if course is None:
        return False
    count = course.start + 2 * math.lcm(course.period, period) + 1
    if size < 0 and count > _MAX_SIZES:
        return False
    sizes = np.arange(raised.smallest, count + 1, dtype=np.int32) if size < 0 else np.array([size], np.int32)
    return bool((_evaluated(raised, amount, sizes, ops) == expected(sizes)).all())


def _course(raised: RaisedOp, amount: EmittedTensor, size: int, ops: dict[Value, Operation]) -> _Course | None:
    """Returns how a scalar goes on with a size, `None` if it depends on anything else, or isn't known to go on so.

    Args:
        raised: The op.
        amount: The scalar.
        size: The size.
        ops: The ops that compute it, which are added in the order of their use.
    """
    found: dict[Value, _Course] = {}
    pending = [amount]
    while pending:
        scalar = pending[-1]
        value, owner, known = scalar.value, scalar.value.owner, raised.known(scalar)
        if value in found:
            pending.pop()
        elif len(ops) > _MAX_OPS or math.prod(raised.sizes(scalar)) != 1 or scalar.dtype.kind not in "biu":
            return None
        elif known is not None:
            found[value] = _number(int(known.item()))
        elif raised.is_size(scalar) and raised.elements(scalar) == (size,):
            found[value] = _Course(1, 1, 0, 0)
        elif not isinstance(owner, Operation):
            return None
        else:
            operands = [raised.tensor(operand) for operand in _operands_of(owner)]
            missing = [each for each in operands if each.value not in found]
            pending += missing
            if missing:
                continue
            rule = (lambda x: x) if owner.name in _SAME_ELEMENTS else _COURSES.get(owner.name)
            course = None if rule is None else rule(*(found[each.value] for each in operands))
            if course is None or course.period > _MAX_SIZES:
                return None
            found[value], ops[value] = course, owner
    return found[amount.value]


def _operands_of(owner: Operation) -> Sequence[Value]:
    return owner.operands[:1] if owner.name in _SAME_ELEMENTS else owner.operands


def _evaluated(raised: RaisedOp, amount: EmittedTensor, sizes: Array, ops: Mapping[Value, Operation]) -> Array:
    """Returns the values of a scalar for some sizes."""
    found: dict[Value, Array] = {}

    def of(value: Value) -> Array:
        if value in found:
            return found[value]
        known = raised.known(raised.tensor(value))
        return sizes if known is None else known.reshape(())

    for value, owner in ops.items():
        arrays = [of(operand) for operand in _operands_of(owner)]
        is_same = owner.name in _SAME_ELEMENTS
        found[value] = arrays[0].astype(raised.tensor(value).dtype) if is_same else evaluate(call_of(owner, arrays))[0]
    return of(amount.value)


def is_computed_same(raised: RaisedOp, pair: Pair, size: int, extent: int, stride: int) -> bool:
    """Returns whether computed padding of a dimension is what TensorFlow calls `SAME`, for windows of an extent."""

    def total(sizes: Array) -> Array:
        return np.asarray(np.maximum((-(-sizes // stride) - 1) * stride + extent - sizes, 0))

    low, high = pair
    return equals(raised, low, size, lambda sizes: total(sizes) // 2, stride) and equals(
        raised, high, size, lambda sizes: total(sizes) - total(sizes) // 2, stride
    )
