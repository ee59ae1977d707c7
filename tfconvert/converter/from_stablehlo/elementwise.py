"""Elementwise ops: arithmetic, comparisons, bits, conversions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfconvert.converter.from_stablehlo import idioms
from tfconvert.converter.from_stablehlo.counters import WORD, lower_word, upper_word
from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.from_stablehlo.ranges import compared, range_of
from tfconvert.converter.from_stablehlo.reductions import mean_of
from tfconvert.converter.from_stablehlo.windows import averaged
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined, need
from tfconvert.ops.complex_numbers import (
    complex_of,
    exponential,
    logarithm,
    parts,
    product,
    quotient,
    sign,
    size,
    unsigned_zero,
)
from tfconvert.schema.dialects import dims, tensor_data
from tfconvert.schema.ir.operation import Operation

Compute = Callable[..., EmittedTensor]


def _op(name: str, **by_kind: str) -> Callable[[RaisedOp], EmittedTensor]:
    """Returns the row of an op that TensorFlow has, too.

    Args:
        name: The op.
        by_kind: Other ops for element types of a kind: `b` booleans, `i` integers, `c` complex numbers.
    """
    return lambda raised: raised.elementwise(partial(_apply, raised, name, by_kind), *raised.operands)


def _apply(raised: RaisedOp, name: str, by_kind: dict[str, str], *operands: EmittedTensor) -> EmittedTensor:
    first = operands[0]
    if first.dtype.kind == "c" and name in _OF_COMPLEX:
        return complex_of(*_OF_COMPLEX[name](*(part for operand in operands for part in parts(operand))))
    name = by_kind.get(_kind(first), name)
    idiom = _IDIOMS.get(name)
    found: EmittedTensor = (idiom and idiom(*operands)) or first.op(name, *operands)
    if name in _OF_SIZES and not found.rank and first.dtype.kind in "iu":
        raised.name_size(name, found, operands)
    return found


_IDIOMS: dict[str, Callable[..., EmittedTensor | None]] = {
    "AddV2": idioms.add,
    "Expm1": idioms.expm1,
    "LogicalAnd": idioms.conjunction,
    "Minimum": idioms.minimum,
    "Mul": idioms.multiply,
}

# Ops that make sizes of sizes, which are never negative.
_OF_SIZES = frozenset({"AddV2", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Mul"})


def _kind(tensor: EmittedTensor) -> str:
    """Returns `b` for booleans, `i` for integers, `c` for complex numbers, `f` for floats."""
    kind = tensor.dtype.kind
    # numpy computes a name on each use, so it is read where it matters: numpy's own kinds are never of 4 bits.
    is_narrow = kind == "V" and tensor.dtype.name in ("int4", "uint4")
    return "i" if kind == "u" or is_narrow else kind if kind in "bic" else "f"


def _logical(name: str, of_integers: str, neutral: bool) -> Callable[[RaisedOp], EmittedTensor]:
    """Returns the row of a conjunction or a disjunction, which one operand may decide."""

    def row(raised: RaisedOp) -> EmittedTensor:
        for operand, other in zip(raised.operands, raised.operands[::-1], strict=True):
            known = raised.only_element(operand)
            if known is not None and known.dtype.kind == "b":
                return other if known == neutral else operand
        if _kind(raised.operands[0]) == "b":
            return _op(name)(raised)
        return raised.elementwise(partial(_combine_bits, raised, of_integers), *raised.operands)

    return row


def _combine_bits(raised: RaisedOp, name: str, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    """Combines bits: the lowest ones are a remainder, those in different places are combined by an exclusive or."""
    if name == "BitwiseOr" and _are_apart(raised, x, y):
        return x.op("BitwiseXor", x, y)  # type: ignore[no-any-return]
    if x.dtype.itemsize == 4:
        one, other = (_bits_as(each, np.int32) for each in (x, y))
        for bits, mask in ((one, raised.known(other)), (other, raised.known(one))):
            if name == "BitwiseAnd" and mask is not None and mask.size == 1 and _is_low_mask(int(mask.item())):
                return _bits_as(bits % (int(mask.item()) + 1), x.dtype)
        return _bits_as(x.op(name, one, other), x.dtype)
    return x.op(name, x, y)  # type: ignore[no-any-return]


def _is_low_mask(mask: int) -> bool:
    """Returns whether a number has ones in its lowest bits only."""
    return 0 < mask < 1 << 30 and not mask & (mask + 1)


def _are_apart(raised: RaisedOp, x: EmittedTensor, y: EmittedTensor) -> bool:
    """Returns whether bits were shifted to the left, others to the right by what remains of the width."""
    for left, right in ((x, y), (y, x)):
        factor, places = _constant_operand(raised, left, "tf.Mul"), _constant_operand(raised, right, "tf.RightShift")
        if factor is not None and places is not None and x.dtype.kind == "u":
            return factor == 1 << (8 * x.dtype.itemsize - places)
    return False


def _constant_operand(raised: RaisedOp, x: EmittedTensor, name: str) -> int | None:
    """Returns the second operand of the op that computes a tensor, if it is that op, and the operand is a number."""
    owner = x.value.owner
    if not isinstance(owner, Operation) or owner.name != name:
        return None
    known = raised.known(raised.tensor(owner.operands[1]))
    return int(known.item()) if known is not None and known.size == 1 else None


def _extreme(name: str, of_booleans: str, neutral: float) -> Callable[[RaisedOp], EmittedTensor]:
    """Returns the row of a maximum or minimum, which an infinity leaves unchanged."""

    def row(raised: RaisedOp) -> EmittedTensor:
        for operand, other in zip(raised.operands, raised.operands[::-1], strict=True):
            known = raised.known(raised.unrepeated([operand, other])[0])
            if known is not None and known.dtype.kind == "f" and (known == neutral).all():
                return other
        return _op(name, b=of_booleans)(raised)

    return row


def _formula(compute: Compute) -> Callable[[RaisedOp], EmittedTensor]:
    """Returns the row of an op with a formula."""
    return lambda raised: raised.elementwise(compute, *raised.operands)


_COMPARISONS = {"EQ": "Equal", "GE": "GreaterEqual", "GT": "Greater", "LE": "LessEqual", "LT": "Less", "NE": "NotEqual"}


def _compare(raised: RaisedOp) -> EmittedTensor:
    direction = raised.text("comparison_direction")
    decided = _compare_sizes(raised, direction)
    if decided is not None:
        return raised.constant(decided)
    x, y = raised.operands
    if x.dtype.kind in "biu":
        decided = compared(direction, x.value, y.value, x.known)
        if decided is not None:
            return raised.filled(decided, x)
    name, kind = _COMPARISONS[direction], _kind(x)
    if kind == "b" and direction not in ("EQ", "NE"):
        return raised.elementwise(partial(_compare_booleans, direction), *raised.operands)
    if kind == "c":
        return raised.elementwise(partial(_compare_complex, direction), *raised.operands)
    if raised.text("compare_type") == "TOTALORDER" and kind == "f":
        return raised.elementwise(lambda x, y: x.op(name, _total_order(x), _total_order(y)), *raised.operands)
    return raised.elementwise(partial(_compared, name), *raised.operands)


def _compared(name: str, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    """Compares; a boolean, also as a number, that is compared with 0 or 1 is that boolean, or its opposite."""
    flag, constant = x if x.dtype.kind == "b" else _flag(x), tensor_data.constant_of(y.value)
    if flag is not None and constant is not None and not constant.shape:
        number = tensor_data.to_array(constant).item()
        if (name, number) in _IS_FLAG:
            return flag
        if (name, number) in _IS_NO_FLAG:
            return ~flag
    return x.op(name, x, y)  # type: ignore[no-any-return]


_IS_FLAG = {("Equal", 1), ("NotEqual", 0), ("GreaterEqual", 1), ("Greater", 0)}
_IS_NO_FLAG = {("Equal", 0), ("NotEqual", 1), ("Less", 1), ("LessEqual", 0)}


def _flag(x: EmittedTensor) -> EmittedTensor | None:
    """Returns the booleans that numbers were made of."""
    owner = x.value.owner
    if not isinstance(owner, Operation) or owner.name not in ("tf.Cast", "tf.Reshape", "tf.ExpandDims"):
        return None
    source, *shape = (EmittedTensor(x.builder, operand, x.known) for operand in owner.operands)
    if owner.name == "tf.Cast":
        return source if source.dtype.kind == "b" else None
    flag = _flag(source)
    return None if flag is None else flag.op(owner.name.removeprefix("tf."), flag, *shape)


def _compare_sizes(raised: RaisedOp, direction: str) -> bool | None:
    """Returns the result for two sizes that is the same for all that they can be, `None` for others."""
    x, y = raised.operands
    if x.rank or not (raised.is_size(x) or raised.is_size(y)):
        return None
    (one,), (other,) = raised.elements(x), raised.elements(y)
    if one == other != dims.UNKNOWN:
        return direction in ("EQ", "GE", "LE")
    if raised.is_size(y):
        one, other = other, one
        direction = direction.translate(str.maketrans("GL", "LG"))
    if other <= dims.UNKNOWN:
        return None
    least = raised.smallest if any(map(raised.is_dimension, raised.operands)) else 0
    if other < least:
        return direction in ("NE", "GE", "GT")
    return direction == "GE" if other == least and direction in ("GE", "LT") else None


def _compare_booleans(direction: str, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    if direction in ("GT", "GE"):
        x, y = y, x
    return ~x & y if direction in ("LT", "GT") else ~x | y


def _compare_complex(direction: str, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    (a, b), (c, d) = parts(x), parts(y)
    return a.equal(c) & b.equal(d) if direction == "EQ" else a.not_equal(c) | b.not_equal(d)


def _total_order(x: EmittedTensor) -> EmittedTensor:
    """Returns integers in the order of floats, with -0 before 0 and NaN at the ends."""
    need(x.dtype == np.float32, "only floats of 32 bits have a total order")
    bits = _bits_as(x, np.int32)
    return (bits < 0).where(bits.op("BitwiseXor", bits, np.int32(0x7FFFFFFF)), bits)


def _select(raised: RaisedOp) -> EmittedTensor:
    condition, x, y = raised.operands
    known = raised.only_element(condition)
    if known is not None or x.value is y.value:
        return y if known is not None and not known else x
    if x.dtype.kind == "c":
        (a, b), (c, d) = parts(x), parts(y)
        return complex_of(raised.elementwise(_chosen, condition, a, c), raised.elementwise(_chosen, condition, b, d))
    return raised.elementwise(_chosen, condition, x, y)


def _chosen(condition: EmittedTensor, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    found: EmittedTensor = idioms.select(condition, x, y) or x.op("SelectV2", condition, x, y)
    return found


def _clamp(raised: RaisedOp) -> EmittedTensor:
    return raised.elementwise(lambda low, x, high: x.maximum(low).minimum(high), *raised.operands)


# Types of which LiteRT makes one-hot vectors.
_ONE_HOT = (np.float32, np.int32, np.int64, np.int8, np.uint8)


def _convert(raised: RaisedOp) -> EmittedTensor:
    dtype = raised.dtype()
    found = _one_hot(raised) if dtype in _ONE_HOT else None
    if dtype == np.uint32 and raised.operands[0].dtype == np.uint64:
        found = lower_word(raised, raised.operands[0])
    return raised.elementwise(lambda x: _converted(x, dtype), *raised.operands) if found is None else found


def _one_hot(raised: RaisedOp) -> EmittedTensor | None:
    """Matches integers that are compared with the numbers from 0 along a new last dimension."""
    (x,) = raised.operands
    owner = x.value.owner
    if not isinstance(owner, Operation) or owner.name != "tf.Equal" or not x.rank:
        return None
    for at, numbers in (pair := [raised.tensor(operand) for operand in owner.operands], pair[::-1]):
        known = raised.known(numbers)
        if known is None or known.dtype not in (np.int32, np.int64) or known.ndim > x.rank or at.rank != x.rank:
            continue
        count = known.size
        made = raised.unsqueezed(at)
        if (
            count > 1
            and known.shape[-1:] == (count,)
            and (known.reshape(-1) == np.arange(count)).all()
            and made is not None
            and made[1] == [x.rank - 1]
        ):
            one, zero = (raised.constant(value) for value in (1, 0))
            return at.op("OneHot", made[0], count, one, zero, axis=-1)  # type: ignore[no-any-return]
    return None


def _converted(x: EmittedTensor, dtype: np.dtype[Any]) -> EmittedTensor:
    if dtype.kind == "c" and x.dtype.kind != "c":
        real = x.cast(np.float32 if dtype == np.complex64 else np.float64)
        return complex_of(real, real * 0)
    if x.dtype.kind == "c" and dtype.kind != "c":
        return parts(x)[0].cast(dtype)
    return x.not_equal(0) if dtype.kind == "b" and x.dtype.kind != "b" else x.cast(dtype)


def _bitcast(raised: RaisedOp) -> EmittedTensor:
    (x,) = raised.operands
    dtype = raised.dtype()
    need("b" not in (x.dtype.kind, dtype.kind), "TensorFlow keeps booleans in other bits")
    if x.dtype.itemsize == dtype.itemsize:
        return raised.elementwise(lambda x: _bits_as(x, dtype), x)
    return _bits_as(x, dtype)


def _bits_as(x: EmittedTensor, dtype: Any) -> EmittedTensor:
    """Returns the bits of a tensor as elements of another type."""
    return x if x.dtype == dtype else x.op("Bitcast", x, type=np.dtype(dtype))


def _multiply(raised: RaisedOp) -> EmittedTensor:
    x, y = raised.operands
    owner = x.value.owner
    if x.value is y.value and x.dtype == np.float32 and isinstance(owner, Operation) and owner.name == "tf.Sub":
        one, other = map(raised.tensor, owner.operands)
        return one.op("SquaredDifference", one, other)  # type: ignore[no-any-return]
    return _op("Mul", b="LogicalAnd")(raised)


def _divide(raised: RaisedOp) -> EmittedTensor:
    return raised.elementwise(partial(_quotient, raised), *raised.operands)


def _quotient(raised: RaisedOp, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    if x.dtype.kind == "c":
        return complex_of(*quotient(*parts(x), *parts(y)))
    if idioms.number(y) == 1:
        return x
    if _kind(x) == "f":
        found = mean_of(raised, x, y) or averaged(raised, x, y)
        return found if found is not None else idioms.divide(x, y) or x / y
    name = "FloorDiv" if _is_natural(raised, x) and _is_natural(raised, y) else "TruncateDiv"
    divisor = _not_zero(raised, y)
    whole: EmittedTensor = x.op(name, x, divisor)
    if name == "FloorDiv":
        raised.name_size(name, whole, (x, y))
    return whole if divisor is y else y.equal(0).where(raised.constant(_all_ones(x), x.dtype), whole)


def _remainder(raised: RaisedOp) -> EmittedTensor:
    return raised.elementwise(partial(_rest, raised), *raised.operands)


def _rest(raised: RaisedOp, x: EmittedTensor, y: EmittedTensor) -> EmittedTensor:
    if _kind(x) == "f":
        return x.op("TruncateMod", x, y)  # type: ignore[no-any-return]
    divisor = _not_zero(raised, y)
    if _is_natural(raised, x) and _is_natural(raised, y):
        rest = x % divisor
        raised.name_size("FloorMod", rest, (x, y))
    else:
        wide = np.int32 if x.dtype.itemsize < 4 else x.dtype
        rest = x.op("TruncateMod", x.cast(wide), divisor.cast(wide)).cast(x.dtype)
    return rest if divisor is y else y.equal(0).where(x, rest)


def _not_zero(raised: RaisedOp, divisor: EmittedTensor) -> EmittedTensor:
    """Returns integers with 1 instead of 0, by which LiteRT doesn't divide, unlike XLA; those without 0 as they are."""
    known = raised.known(divisor)
    is_positive = raised.smallest > 0 and raised.is_size(divisor)
    if (known is not None and bool(known.all())) or is_positive or idioms.is_without_zero(divisor):
        return divisor
    return divisor.equal(0).where(1, divisor)


def _all_ones(x: EmittedTensor) -> Any:
    """Returns the integer of a type all of whose bits are set, -1 if it has a sign."""
    return np.array(-1).astype(x.dtype)


def _is_natural(raised: RaisedOp, x: EmittedTensor) -> bool:
    """Returns whether integers are known to be at least 0: unsigned ones, sizes, constants."""
    if x.dtype.kind == "u":
        return True
    known = raised.known(x)
    return (known is not None and bool((known >= 0).all())) or raised.is_size(x)


def _sign(raised: RaisedOp) -> EmittedTensor:
    (x,) = raised.operands
    if _kind(x) == "i" and not x.rank and range_of(x.value, x.known).low > 0:
        return raised.constant(1)
    if x.dtype.kind == "c":
        return raised.elementwise(partial(_apply, raised, "Sign", {}), x)
    return raised.elementwise(lambda x: x.minimum(1) if x.dtype.kind == "u" else x.sign(), x)


def _atan2(raised: RaisedOp) -> EmittedTensor:
    y, x = raised.operands
    known = raised.known(x)
    if known is not None and known.size and (known == 1).all():
        return raised.elementwise(lambda y: y.op("Atan", y), y)
    if x.dtype.kind == "c":
        raise Declined("angles of complex numbers are no numbers of LiteRT")
    return unsigned_zero(y).atan2(x)


def _cbrt(x: EmittedTensor) -> EmittedTensor:
    return abs(x).power(1 / 3) * x.sign()


def _round_away(x: EmittedTensor) -> EmittedTensor:
    """Rounds halves away from zero: the number below one half makes the next whole number of halves alone."""
    info = np.finfo(np.float64 if x.dtype == np.float64 else np.float32)
    return (abs(x) + float(0.5 - info.epsneg / 2)).floor() * x.sign()


def _shift_left(raised: RaisedOp) -> EmittedTensor:
    return raised.elementwise(partial(_shifted, raised, "LeftShift"), *raised.operands)


def _shift_right_logical(raised: RaisedOp) -> EmittedTensor:
    dtype = raised.dtype()
    unsigned = np.dtype(f"u{dtype.itemsize}")
    if dtype == np.uint64 and raised.only_element(raised.operands[1]) == WORD:
        upper = upper_word(raised, raised.operands[0])
        if upper is not None:
            return upper

    def compute(x: EmittedTensor, count: EmittedTensor) -> EmittedTensor:
        if dtype.kind == "u":
            return _shifted(raised, "RightShift", x, count)
        shifted = _shifted(raised, "RightShift", _bits_as(x, unsigned), _bits_as(count, unsigned))
        return _bits_as(shifted, dtype)

    return raised.elementwise(compute, *raised.operands)


def _shifted(raised: RaisedOp, name: str, x: EmittedTensor, count: EmittedTensor) -> EmittedTensor:
    """Shifts by less than all bits, else returns 0."""
    width = 8 * x.dtype.itemsize
    known = raised.known(count)
    if known is not None and ((known >= 0) & (known < width)).all():
        if name == "LeftShift" and width > 16:
            return x * raised.constant(np.left_shift(np.ones((), x.dtype), known), x.dtype)
        return x.op(name, x, count)  # type: ignore[no-any-return]
    shifted: EmittedTensor = x.op(name, x, count)
    fits = count < width if count.dtype.kind == "u" else (count < width) & (count >= 0)
    return fits.where(shifted, 0)


def _shift_right_arithmetic(raised: RaisedOp) -> EmittedTensor:
    dtype = raised.dtype()
    signed = np.dtype(f"i{dtype.itemsize}")

    def compute(x: EmittedTensor, count: EmittedTensor) -> EmittedTensor:
        x, count = _bits_as(x, signed), _bits_as(count, signed)
        known = raised.known(count)
        last = 8 * dtype.itemsize - 1
        if known is None or not ((known >= 0) & (known <= last)).all():
            count = ((count < 0) | (count > last)).where(last, count)
        return _bits_as(x.op("RightShift", x, count), dtype)

    return raised.elementwise(compute, *raised.operands)


def _popcnt(x: EmittedTensor) -> EmittedTensor:
    """Looks the bits of each byte up."""
    table = np.array([number.bit_count() for number in range(256)], np.int32)
    if x.dtype.itemsize == 1:
        return x.op("GatherV2", table, _bits_as(x, np.uint8).cast(np.int32), 0).cast(x.dtype)  # type: ignore[no-any-return]
    octets = _bits_as(x, np.uint8)
    return x.op("GatherV2", table, octets.cast(np.int32), 0).sum([-1]).cast(x.dtype)  # type: ignore[no-any-return]


def _count_leading_zeros(x: EmittedTensor) -> EmittedTensor:
    """Counts the powers of 2 that are larger, of negative numbers none."""
    dtype, width = x.dtype, 8 * x.dtype.itemsize
    x = _bits_as(x, f"i{dtype.itemsize}")
    powers = np.left_shift(1, np.arange(width - 1), dtype=x.dtype)
    larger = x.op("Less", x.expand_dims(-1), powers).cast(np.int32).sum([-1]) + 1
    return (larger * (x >= 0).cast(np.int32)).cast(dtype)  # type: ignore[no-any-return]


def _reduce_precision(raised: RaisedOp) -> EmittedTensor:
    exponent, mantissa = raised.integer("exponent_bits"), raised.integer("mantissa_bits")
    return raised.elementwise(lambda x: _rounded(x, exponent, mantissa), *raised.operands)


def _rounded(x: EmittedTensor, exponent: int, mantissa: int) -> EmittedTensor:
    """Returns floats with fewer bits; those that are too small for a normal number become 0."""
    own = np.finfo(x.dtype) if x.dtype.kind == "f" else None
    if (own is not None and exponent >= own.nexp and mantissa >= own.nmant) or (
        x.dtype.name == "bfloat16" and exponent >= 8 and mantissa >= 7
    ):
        return x
    need(x.dtype == np.float32, "only floats of 32 bits are rounded to fewer")
    found = x
    if mantissa < 23:
        less = 23 - mantissa
        bits = _bits_as(x, np.int32)
        odd = bits.op("RightShift", bits, np.int32(less)) % 2
        bits = bits + odd + (2 ** (less - 1) - 1)
        bits = bits - bits % 2**less
        found = x.equal(x).where(_bits_as(bits, np.float32), x)
    if exponent < 8:
        bias = 2 ** (exponent - 1) - 1
        found = (abs(found) >= 2.0 ** (bias + 1)).where(x.sign() * np.inf, found)
        found = (abs(found) < 2.0 ** (1 - bias)).where(x * 0, found)
    return found


# What is computed of the parts of complex numbers, which LiteRT hardly computes with.
_OF_COMPLEX: dict[str, Callable[..., tuple[EmittedTensor, EmittedTensor]]] = {
    "AddV2": lambda a, b, c, d: (a + c, b + d),
    "Exp": exponential,
    "Log": logarithm,
    "Mul": product,
    "Sign": sign,
    "Sub": lambda a, b, c, d: (a - c, b - d),
}


def _part(index: int) -> Compute:
    def compute(x: EmittedTensor) -> EmittedTensor:
        if x.dtype.kind == "c":
            return parts(x)[index]
        return x * 0 if index else x

    return compute


def _abs(x: EmittedTensor) -> EmittedTensor:
    if x.dtype.kind == "c":
        return size(x)
    return x if x.dtype.kind == "u" else abs(x)


def _negate(x: EmittedTensor) -> EmittedTensor:
    if x.dtype.kind == "c":
        real, imaginary = parts(x)
        return complex_of(-real, -imaginary)
    return 0 - x if x.dtype.kind == "u" else -x


def _conj(x: EmittedTensor) -> EmittedTensor:
    real, imaginary = parts(x)
    return complex_of(real, -imaginary)


def _is_infinite(x: EmittedTensor) -> EmittedTensor:
    return x.op("IsInf", x)  # type: ignore[no-any-return]


_SAME = {
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "bessel_i1e": "BesselI1e",
    "ceil": "Ceil",
    "cosh": "Cosh",
    "cosine": "Cos",
    "digamma": "Digamma",
    "erf": "Erf",
    "erf_inv": "Erfinv",
    "erfc": "Erfc",
    "exponential": "Exp",
    "exponential_minus_one": "Expm1",
    "floor": "Floor",
    "is_finite": "IsFinite",
    "lgamma": "Lgamma",
    "log": "Log",
    "log_plus_one": "Log1p",
    "logistic": "Sigmoid",
    "next_after": "NextAfter",
    "polygamma": "Polygamma",
    "power": "Pow",
    "round_nearest_even": "Round",
    "rsqrt": "Rsqrt",
    "sine": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "square": "Square",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "zeta": "Zeta",
}

ROWS: Rows = {
    **{name: _op(same) for name, same in _SAME.items()},
    "abs": _formula(_abs),
    "add": _op("AddV2", b="LogicalOr"),
    "atan2": _atan2,
    "and": _logical("LogicalAnd", "BitwiseAnd", neutral=True),
    "bitcast_convert": _bitcast,
    "cbrt": _formula(_cbrt),
    "clamp": _clamp,
    "compare": _compare,
    "complex": _formula(complex_of),
    "conj": _formula(_conj),
    "convert": _convert,
    "count_leading_zeros": _formula(_count_leading_zeros),
    "divide": _divide,
    "imag": _formula(_part(1)),
    "is_inf": _formula(_is_infinite),
    "is_neg_inf": _formula(lambda x: x.equal(-np.inf)),
    "is_pos_inf": _formula(lambda x: x.equal(np.inf)),
    "maximum": _extreme("Maximum", "LogicalOr", -np.inf),
    "minimum": _extreme("Minimum", "LogicalAnd", np.inf),
    "multiply": _multiply,
    "negate": _formula(_negate),
    "not": _op("Invert", b="LogicalNot"),
    "or": _logical("LogicalOr", "BitwiseOr", neutral=False),
    "popcnt": _formula(_popcnt),
    "real": _formula(_part(0)),
    "reduce_precision": _reduce_precision,
    "remainder": _remainder,
    "round_nearest_afz": _formula(_round_away),
    "select": _select,
    "shift_left": _shift_left,
    "shift_right_arithmetic": _shift_right_arithmetic,
    "shift_right_logical": _shift_right_logical,
    "sign": _sign,
    "xor": _op("BitwiseXor", b="NotEqual"),
}
