"""Random numbers: those of ops with seeds as operands are TensorFlow's own, bit by bit; others are the engine's.

TensorFlow's generator, Philox with four words of 32 bits and ten rounds, is plain arithmetic on counters: each group of
four numbers has its own one. Written as such it works with open sizes, and is the same in every engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.targets.stablehlo.legalize.emit import DeclinedError, Emit
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, requested, times
from tfconvert.converter.targets.stablehlo.legalize.sorting import first
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.stablehlo import EnumeratorAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType, Signedness
from tfconvert.schema.ir.values import Value

UI32, UI64 = (IntegerType.get(width, Signedness.UNSIGNED) for width in (32, 64))
"""The element types of words and of pairs of them."""

_ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
# The key under which seeds become keys and counters.
_SCRAMBLER = 0x3EC8F720, 0x02461E29

Words = Sequence[Value]
"""Tensors of `ui32`."""


def _wide(value: Value, emit: Emit) -> Value:
    return emit.convert(value, UI64)


def _product(word: Value, multiplier: int, emit: Emit) -> tuple[Value, Value]:
    """Emits the high and the low half of a product."""
    whole = emit.binary("multiply", _wide(word, emit), multiplier)
    high = emit.convert(emit.binary("shift_right_logical", whole, 32), UI32)
    return high, emit.binary("multiply", word, multiplier)


def philox(counter: Words, key: Words, emit: Emit) -> Words:
    """Emits four words for each counter.

    Args:
        counter: Four words, of one shape.
        key: Two scalars.
        emit: The emitter.
    """
    words = list(counter)
    for number in range(_ROUNDS):
        if number:
            key = [emit.binary("add", half, step) for half, step in zip(key, _WEYL, strict=True)]
        (high, low), (other_high, other_low) = (
            _product(words[2 * index], multiplier, emit) for index, multiplier in enumerate(_MULTIPLIERS)
        )
        words = [_xor(other_high, words[1], key[0], emit), other_low, _xor(high, words[3], key[1], emit), low]
    return words


def _xor(one: Value, other: Value, key: Value, emit: Emit) -> Value:
    return emit.binary("xor", emit.binary("xor", one, other), key)


def halves(word: Value, emit: Emit) -> tuple[Value, Value]:
    """Emits the low and the high half of words of 64 bits."""
    high = emit.binary("shift_right_logical", word, 32)
    return emit.convert(word, UI32), emit.convert(high, UI32)


def _element(vector: Value, index: int, emit: Emit) -> Value:
    return emit.reshape(part(vector, 0, index, index + 1, emit), ())


def joined(low: Value, high: Value, emit: Emit) -> Value:
    """Emits words of 64 bits."""
    return emit.binary("or", emit.binary("shift_left", _wide(high, emit), 32), _wide(low, emit))


def key_and_counter(seed: Value, emit: Emit) -> tuple[Words, Words]:
    """Emits what two numbers of a seed become: a key and a counter."""
    words: list[Value] = []
    for index in range(2):
        element = _element(seed, index, emit)
        signed = emit.convert(element, types.I64)
        words += halves(emit.one("bitcast_convert", (signed,), UI64, ()), emit)
    mixed = philox(words, [emit.scalar(each, UI32) for each in _SCRAMBLER], emit)
    zero = emit.scalar(0, UI32)
    return mixed[:2], (zero, zero, *mixed[2:])


def _get_key_counter(op: Operation, emit: Emit) -> Sequence[Value]:
    key, counter = key_and_counter(op.operands[0], emit)
    pairs = [emit.reshape(joined(key[0], key[1], emit), (1,))]
    halves = [emit.reshape(joined(counter[index], counter[index + 1], emit), (1,)) for index in (0, 2)]
    return pairs[0], concatenate(halves, 0, emit)


def given(op: Operation, emit: Emit) -> tuple[Words, Words]:
    """Emits the key and the counter that an op has as operands."""
    key = halves(_element(op.operands[1], 0, emit), emit)
    counter = [half for index in range(2) for half in halves(_element(op.operands[2], index, emit), emit)]
    return key, counter


def groups_of(dims: Sequence[int], emit: Emit) -> tuple[int, int]:
    """Returns how many numbers a shape has, and how many groups of four they are."""
    numbers = emit.product(dims)
    groups = emit.compute("divide", emit.compute("add", numbers, 3), 4)
    first_one, other = (each if isinstance(each, int) else emit.sizes.fresh(each) for each in (numbers, groups))
    return first_one, other


def _words(key: Words, counter: Words, groups: int, emit: Emit) -> Words:
    """Emits the four words of every group."""
    start = joined(counter[0], counter[1], emit)
    places = emit.binary("add", emit.iota((groups,), 0, UI64), start)
    overflow = emit.convert(emit.compare("LT", places, start), UI64)
    above = emit.binary("add", overflow, joined(counter[2], counter[3], emit))
    return philox((*halves(places, emit), *halves(above, emit)), key, emit)


def ordered(columns: Words, numbers: int, groups: int, dims: Sequence[int], emit: Emit) -> Value:
    """Emits the numbers of all groups, one group after the other, in a shape."""
    parts = [emit.reshape(column, (groups, 1)) for column in columns]
    total = times(groups, len(columns), emit)
    flat = emit.reshape(concatenate(parts, 1, emit), (total,))
    flat = part(flat, 0, 0, numbers, emit) if numbers >= 0 else first(flat, 0, numbers, emit)
    return emit.reshape(flat, dims)


def _floats(word: Value, emit: Emit) -> Value:
    """Emits floats from 0 to 1 of the lowest bits of words: those of floats from 1 to 2, less 1."""
    bits = emit.binary("or", emit.binary("and", word, 0x7FFFFF), 0x3F800000)
    return emit.binary("subtract", emit.one("bitcast_convert", (bits,), types.F32, emit.dims(word)), 1)


def _uniform(words: Words, emit: Emit) -> Words:
    return [_floats(word, emit) for word in words]


def normal(words: Words, emit: Emit) -> Words:
    """Emits two normal numbers of two uniform ones, as a radius and an angle."""
    found: list[Value] = []
    for index in (0, 2):
        first_one = emit.binary("maximum", _floats(words[index], emit), 1e-7)
        angle = emit.binary("multiply", _floats(words[index + 1], emit), 2 * math.pi)
        radius = emit.unary("sqrt", emit.binary("multiply", emit.unary("log", first_one), -2))
        found += [emit.binary("multiply", emit.unary(name, angle), radius) for name in ("sine", "cosine")]
    return found


def _stateless(kind: str, *, has_key: bool) -> Lowering:
    def lower(op: Operation, emit: Emit) -> Value:
        element = types.element_of(op.results[0].type)
        if element != (types.I32 if kind == "int" else types.F32):
            raise DeclinedError(f"it makes numbers of {element}")
        dims = requested(op, 0, emit)
        numbers, groups = groups_of(dims, emit)
        key, counter = given(op, emit) if has_key else key_and_counter(op.operands[1], emit)
        words = _words(key, counter, groups, emit)
        if kind == "int":
            low, high = op.operands[-2:]
            columns = [_between(word, low, high, emit) for word in words]
        else:
            columns = list((_uniform if kind == "uniform" else normal)(words, emit))
        return ordered(columns, numbers, groups, dims, emit)

    return lower


def _between(word: Value, low: Value, high: Value, emit: Emit) -> Value:
    """Emits integers of a range: remainders of words."""
    span = emit.one("bitcast_convert", (emit.binary("subtract", high, low),), UI32, ())
    rest = emit.binary("remainder", word, span)
    return emit.binary("add", emit.one("bitcast_convert", (rest,), types.I32, emit.dims(rest)), low)


def _engines_own(distribution: str) -> Lowering:
    """Returns a lowering whose numbers are other ones in each run, and in each engine."""

    def lower(op: Operation, emit: Emit) -> Value:
        element = types.element_of(op.results[0].type)
        dims = requested(op, 0, emit)
        if element == types.I32:
            bounds: Sequence[Value] = op.operands[1:3]
        else:
            bounds = [emit.scalar(number, element) for number in (0, 1)]
        return drawn(distribution, bounds, dims, emit)

    return lower


def drawn(distribution: str, bounds: Sequence[Value], dims: Sequence[int], emit: Emit) -> Value:
    """Emits numbers of the engine, `UNIFORM` ones between bounds or `NORMAL` ones by mean and deviation."""
    properties = {"rng_distribution": EnumeratorAttr.get("rng_distribution", distribution)}
    shape = emit.convert(emit.shape(dims), types.I64)
    return emit.one("rng", (*bounds, shape), types.element_of(bounds[0].type), dims, properties)


def _get_key_counter_algorithm(op: Operation, emit: Emit) -> Sequence[Value]:
    return *_get_key_counter(op, emit), _algorithm(op, emit)


def _algorithm(op: Operation, emit: Emit) -> Value:
    return emit.scalar(1, types.I32)


LOWERINGS: Mapping[str, Lowering] = {
    "RandomStandardNormal": _engines_own("NORMAL"),
    "RandomUniform": _engines_own("UNIFORM"),
    "RandomUniformInt": _engines_own("UNIFORM"),
    "StatelessRandomGetAlg": _algorithm,
    "StatelessRandomGetKeyCounter": _get_key_counter,
    "StatelessRandomGetKeyCounterAlg": _get_key_counter_algorithm,
    "StatelessRandomNormal": _stateless("normal", has_key=False),
    "StatelessRandomNormalV2": _stateless("normal", has_key=True),
    "StatelessRandomUniform": _stateless("uniform", has_key=False),
    "StatelessRandomUniformInt": _stateless("int", has_key=False),
    "StatelessRandomUniformIntV2": _stateless("int", has_key=True),
    "StatelessRandomUniformV2": _stateless("uniform", has_key=True),
}
