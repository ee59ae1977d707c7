"""Random numbers: those of ops with seeds as operands are TensorFlow's own, bit by bit; others are the engine's.

TensorFlow's generator, Philox with four words of 32 bits and ten rounds, is plain arithmetic on counters: each group of
four numbers has its own one. Written as such it works with open sizes, and is the same in every engine. Distributions
other than uniform and normal without seeds are computed the same way from seeds that the engine draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.ir.constants import constant_int
from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Rewrite
from tfconvert.converter.targets.stablehlo.legalize.gathering import rows_at
from tfconvert.converter.targets.stablehlo.legalize.regions import sort
from tfconvert.converter.targets.stablehlo.legalize.scans import ADD, first, scan
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, part, requested, requested_size, times
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.ops.random_bits import ALGORITHMS
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


def _wide(emit: StableHLOBuilder, value: Value) -> Value:
    return emit.convert(value, UI64)


def _product(emit: StableHLOBuilder, word: Value, multiplier: int) -> tuple[Value, Value]:
    """Emits the high and the low half of a product."""
    whole = emit.binary("multiply", _wide(emit, word), multiplier)
    high = emit.convert(emit.binary("shift_right_logical", whole, 32), UI32)
    return high, emit.binary("multiply", word, multiplier)


def philox(emit: StableHLOBuilder, counter: Words, key: Words) -> Words:
    """Emits four words for each counter.

    Args:
        emit: The emitter.
        counter: Four words, of one shape.
        key: Two scalars.
    """
    words = list(counter)
    for number in range(_ROUNDS):
        if number:
            key = [emit.binary("add", half, step) for half, step in zip(key, _WEYL, strict=True)]
        (high, low), (other_high, other_low) = (
            _product(emit, words[2 * index], multiplier) for index, multiplier in enumerate(_MULTIPLIERS)
        )
        words = [_xor(emit, other_high, words[1], key[0]), other_low, _xor(emit, high, words[3], key[1]), low]
    return words


def _xor(emit: StableHLOBuilder, one: Value, other: Value, key: Value) -> Value:
    return emit.binary("xor", emit.binary("xor", one, other), key)


def halves(emit: StableHLOBuilder, word: Value) -> tuple[Value, Value]:
    """Emits the low and the high half of words of 64 bits."""
    high = emit.binary("shift_right_logical", word, 32)
    return emit.convert(word, UI32), emit.convert(high, UI32)


def _element(emit: StableHLOBuilder, vector: Value, index: int) -> Value:
    return emit.reshape(part(emit, vector, 0, index, index + 1), ())


def joined(emit: StableHLOBuilder, low: Value, high: Value) -> Value:
    """Emits words of 64 bits."""
    return emit.binary("or", emit.binary("shift_left", _wide(emit, high), 32), _wide(emit, low))


def key_and_counter(emit: StableHLOBuilder, seed: Value) -> tuple[Words, Words]:
    """Emits the key and the counter for a seed of two numbers."""
    words: list[Value] = []
    for index in range(2):
        element = _element(emit, seed, index)
        signed = emit.convert(element, types.I64)
        words += halves(emit, emit.one("bitcast_convert", (signed,), element=UI64))
    mixed = philox(emit, words, [emit.scalar(each, UI32) for each in _SCRAMBLER])
    zero = emit.scalar(0, UI32)
    return mixed[:2], (zero, zero, *mixed[2:])


def _get_key_counter(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    key, counter = key_and_counter(emit, op.operands[0])
    pairs = [emit.reshape(joined(emit, key[0], key[1]), (1,))]
    halves = [emit.reshape(joined(emit, counter[index], counter[index + 1]), (1,)) for index in (0, 2)]
    return pairs[0], concatenate(emit, halves, 0)


def given(op: Operation, emit: StableHLOBuilder) -> tuple[Words, Words]:
    """Emits the key and the counter that an op has as operands."""
    key = halves(emit, _element(emit, op.operands[1], 0))
    counter = [half for index in range(2) for half in halves(emit, _element(emit, op.operands[2], index))]
    return key, counter


def groups_of(emit: StableHLOBuilder, dims: Sequence[int]) -> tuple[int, int]:
    """Returns how many numbers a shape has, and how many groups of four they are."""
    numbers = emit.product(dims)
    groups = emit.compute("divide", emit.compute("add", numbers, 3), 4)
    return emit.size_of(numbers), emit.size_of(groups)


def _words(emit: StableHLOBuilder, key: Words, counter: Words, groups: int) -> Words:
    """Emits the four words of every group."""
    start = joined(emit, counter[0], counter[1])
    places = emit.binary("add", emit.iota((groups,), 0, UI64), start)
    overflow = emit.convert(emit.compare("LT", places, start), UI64)
    above = emit.binary("add", overflow, joined(emit, counter[2], counter[3]))
    return philox(emit, (*halves(emit, places), *halves(emit, above)), key)


def ordered(emit: StableHLOBuilder, columns: Words, numbers: int, groups: int, dims: Sequence[int]) -> Value:
    """Emits the numbers of all groups, one group after the other, in a shape."""
    parts = [emit.reshape(column, (groups, 1)) for column in columns]
    total = times(emit, groups, len(columns))
    flat = emit.reshape(concatenate(emit, parts, 1), (total,))
    flat = part(emit, flat, 0, 0, numbers) if numbers >= 0 else first(emit, flat, 0, numbers)
    return emit.reshape(flat, dims)


def _floats(emit: StableHLOBuilder, word: Value) -> Value:
    """Emits floats from 0 to 1 of the lowest bits of words: those of floats from 1 to 2, less 1."""
    bits = emit.binary("or", emit.binary("and", word, 0x7FFFFF), 0x3F800000)
    return emit.binary("subtract", emit.one("bitcast_convert", (bits,), element=types.F32), 1)


def _uniform(emit: StableHLOBuilder, words: Words) -> Words:
    return [_floats(emit, word) for word in words]


def normal(emit: StableHLOBuilder, words: Words) -> Words:
    """Emits two normal numbers of two uniform ones, as a radius and an angle."""
    found: list[Value] = []
    for index in (0, 2):
        first_one = emit.binary("maximum", _floats(emit, words[index]), 1e-7)
        angle = emit.binary("multiply", _floats(emit, words[index + 1]), 2 * math.pi)
        radius = emit.unary("sqrt", emit.binary("multiply", emit.unary("log", first_one), -2))
        found += [emit.binary("multiply", emit.unary(name, angle), radius) for name in ("sine", "cosine")]
    return found


def _stateless(kind: str, *, has_key: bool) -> Rewrite:
    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        element = op.results[0].element
        if element != (types.I32 if kind == "int" else types.F32):
            raise Declined(f"it makes numbers of {element}")
        dims = requested(emit, op, 0)
        numbers, groups = groups_of(emit, dims)
        key, counter = given(op, emit) if has_key else key_and_counter(emit, op.operands[1])
        words = _words(emit, key, counter, groups)
        if kind == "int":
            low, high = op.operands[-2:]
            columns = [_between(emit, word, low, high) for word in words]
        else:
            columns = list((_uniform if kind == "uniform" else normal)(emit, words))
        return ordered(emit, columns, numbers, groups, dims)

    return lower


def _between(emit: StableHLOBuilder, word: Value, low: Value, high: Value) -> Value:
    """Emits integers of a range: remainders of words."""
    span = emit.one("bitcast_convert", (emit.binary("subtract", high, low),), element=UI32)
    rest = emit.binary("remainder", word, span)
    return emit.binary("add", emit.one("bitcast_convert", (rest,), element=types.I32), low)


def _engines_own(distribution: str) -> Rewrite:
    """Returns a lowering with other numbers in each run and in each engine."""

    def lower(op: Operation, emit: StableHLOBuilder) -> Value:
        element = op.results[0].element
        dims = requested(emit, op, 0)
        if element == types.I32:
            bounds: Sequence[Value] = op.operands[1:3]
        else:
            bounds = [emit.scalar(number, element) for number in (0, 1)]
        return drawn(emit, distribution, bounds, dims)

    return lower


def drawn(emit: StableHLOBuilder, distribution: str, bounds: Sequence[Value], dims: Sequence[int]) -> Value:
    """Emits numbers of the engine, `UNIFORM` ones between bounds or `NORMAL` ones by mean and deviation."""
    properties = {"rng_distribution": EnumeratorAttr.get("rng_distribution", distribution)}
    shape = emit.convert(emit.shape(dims), types.I64)
    return emit.one("rng", (*bounds, shape), properties, dims=dims)


def _get_key_counter_algorithm(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    return *_get_key_counter(op, emit), _algorithm(op, emit)


def _algorithm(op: Operation, emit: StableHLOBuilder) -> Value:
    return emit.scalar(1, types.I32)


def _bits(op: Operation, emit: StableHLOBuilder) -> Sequence[Value]:
    """The op itself, which is StableHLO's."""
    number = constant_int(op.operands[0])
    kind = op.results[1].type
    if number is None or number not in range(len(ALGORITHMS)) or not types.is_static(types.shape_of(kind)):
        raise Declined("its algorithm or shape is not known")
    properties = {"rng_algorithm": EnumeratorAttr.get("rng_algorithm", ALGORITHMS[number])}
    return emit.op("rng_bit_generator", (op.operands[1],), (op.operands[1].type, kind), properties).results


RANDOM_NUMBERS: Mapping[str, Rewrite] = {
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
    "XlaRngBitGenerator": _bits,
}


# Normal numbers of a greater magnitude are drawn again.
_LIMIT = 2

# The number of counters that TensorFlow reserves for a group of four truncated numbers.
_RESERVED = 256

# Those that are used here: fewer than four of sixteen numbers within the limits come once in 10^15 groups.
_TRIES = 4


def _own_seed(emit: StableHLOBuilder) -> Value:
    """Emits a seed that is another one in each run."""
    return drawn(emit, "UNIFORM", (emit.scalar(-(1 << 31), types.I32), emit.scalar((1 << 31) - 1, types.I32)), (2,))


def _source(op: Operation, emit: StableHLOBuilder) -> tuple[Words, Words]:
    """Emits the key and the counter of an op, of one without seeds those of a seed of its own."""
    if op.name.endswith("V2"):
        return given(op, emit)
    if op.name.startswith("tf.Stateless"):
        return key_and_counter(emit, op.operands[-1])
    return key_and_counter(emit, _own_seed(emit))


def _counted(emit: StableHLOBuilder, counter: Words, places: Value) -> Words:
    """Emits the counters at offsets from one."""
    start = joined(emit, counter[0], counter[1])
    moved = emit.binary("add", places, start)
    overflow = emit.convert(emit.compare("LT", moved, start), UI64)
    above = emit.binary("add", overflow, joined(emit, counter[2], counter[3]))
    return (*halves(emit, moved), *halves(emit, above))


def _truncated(op: Operation, emit: StableHLOBuilder) -> Value:
    if op.results[0].element != types.F32:
        raise Declined(f"it makes numbers of {op.results[0].element}")
    dims = requested(emit, op, 0)
    numbers, groups = groups_of(emit, dims)
    return ordered(emit, _truncated_columns(emit, *_source(op, emit), groups), numbers, groups, dims)


def _truncated_columns(emit: StableHLOBuilder, key: Words, counter: Words, groups: int) -> Words:
    """Emits four numbers for each group: the first ones that are within the limits."""
    wide = (groups, _TRIES)
    first_one = emit.binary("multiply", emit.iota(wide, 0, UI64), _RESERVED)
    places = emit.binary("add", first_one, emit.iota(wide, 1, UI64))
    columns = normal(emit, philox(emit, _counted(emit, counter, places), key))
    parts = [emit.reshape(column, (*wide, 1)) for column in columns]
    tried = emit.reshape(concatenate(emit, parts, 2), (groups, 4 * _TRIES))
    is_within = emit.compare("LT", emit.unary("abs", tried), _LIMIT)
    numbers = scan(emit, emit.convert(is_within, types.I32), 1, ADD)
    found = []
    for number in range(1, 5):
        is_it = emit.binary("and", is_within, emit.compare("EQ", numbers, number))
        found.append(emit.reduce("add", emit.select(is_it, tried, 0), (1,), 0))
    return found


def _doubles(emit: StableHLOBuilder, high: Value, low: Value) -> Value:
    """Emits doubles from 0 to 1 of the lowest bits of words: those of doubles from 1 to 2, less 1."""
    mantissa = joined(emit, low, emit.binary("and", high, 0xFFFFF))
    bits = emit.binary("or", mantissa, 1023 << 52)
    return emit.binary("subtract", emit.one("bitcast_convert", (bits,), element=types.F64), 1)


def _uniform_doubles(emit: StableHLOBuilder, key: Words, counter: Words, dims: Sequence[int]) -> Value:
    """Emits two doubles from four words."""
    count = emit.product(dims)
    pairs = emit.size_of(emit.compute("divide", emit.compute("add", count, 1), 2))
    words = philox(emit, _counted(emit, counter, emit.iota((pairs,), 0, UI64)), key)
    columns = [_doubles(emit, words[at], words[at + 1]) for at in (0, 2)]
    return ordered(emit, columns, emit.size_of(count), pairs, dims)


def _multinomial(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits how many classes end below a part of the sum of all probabilities, which is drawn."""
    logits = emit.convert(op.operands[0], types.F64)
    dims = emit.dims(logits)
    count = requested_size(emit, op.operands[1])
    is_finite = emit.one("is_finite", (logits,))
    largest = emit.reduce("maximum", emit.select(is_finite, logits, -math.inf), (1,), -math.inf)
    powers = emit.unary("exponential", emit.binary("subtract", logits, emit.broadcast(largest, dims, (0,))))
    sums = scan(emit, emit.select(is_finite, powers, 0), 1, ADD)
    total = emit.reduce("maximum", sums, (1,), 0)
    taken = (dims[0], count)
    drawn_parts = _uniform_doubles(emit, *_source(op, emit), taken)
    parts = emit.binary("multiply", drawn_parts, emit.broadcast(total, taken, (0,)))
    wide = (*taken, dims[1])
    is_below = emit.compare("LE", emit.broadcast(sums, wide, (0, 2)), emit.broadcast(parts, wide, (0, 1)))
    return emit.reduce("add", emit.convert(is_below, op.results[0].element), (2,), 0)


def _full_range(op: Operation, emit: StableHLOBuilder) -> Value:
    element = op.results[0].element
    if element not in (types.I32, UI32):
        raise Declined(f"it makes numbers of {element}")
    dims = requested(emit, op, 0)
    numbers, groups = groups_of(emit, dims)
    key, counter = _source(op, emit)
    words = philox(emit, _counted(emit, counter, emit.iota((groups,), 0, UI64)), key)
    if element != UI32:
        words = [emit.one("bitcast_convert", (word,), element=element) for word in words]
    return ordered(emit, words, numbers, groups, dims)


def _shuffle(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the rows in the order of numbers that are drawn."""
    value = op.operands[0]
    size = emit.dims(value)[0]
    keys = drawn(emit, "UNIFORM", (emit.scalar(0, types.F32), emit.scalar(1, types.F32)), (size,))
    order = sort(emit, (keys, emit.iota((size,), 0, types.I32)), 0, "LT")[1]
    return rows_at(emit, value, order)


def _truncated_normals(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits normal numbers between limits, each row with its own ones, from the parts of all that are below them."""
    dims = requested(emit, op, 0)
    element = op.results[0].element
    mean, deviation, low, high = (_of_rows(emit, operand, dims) for operand in op.operands[1:5])
    uniform = drawn(emit, "UNIFORM", (emit.scalar(0, element), emit.scalar(1, element)), dims)
    ends = []
    for limit in (low, high):
        away = emit.binary("divide", emit.binary("subtract", limit, mean), deviation)
        ends.append(emit.unary("chlo.erf", emit.binary("multiply", away, math.sqrt(0.5))))
    span = emit.binary("subtract", ends[1], ends[0])
    at = emit.binary("add", ends[0], emit.binary("multiply", uniform, span))
    away = emit.binary("multiply", emit.unary("chlo.erf_inv", at), math.sqrt(2))
    found = emit.binary("add", mean, emit.binary("multiply", away, deviation))
    return emit.binary("minimum", emit.binary("maximum", found, low), high)


def _of_rows(emit: StableHLOBuilder, numbers: Value, dims: Sequence[int]) -> Value:
    """Emits a number for each row, or one for all."""
    rank = len(emit.dims(numbers))
    if rank and emit.dims(numbers)[0] == 1:
        numbers, rank = emit.reshape(numbers, ()), 0
    return emit.broadcast(numbers, dims, range(rank))


DISTRIBUTIONS: Mapping[str, Rewrite] = {
    "Multinomial": _multinomial,
    "ParameterizedTruncatedNormal": _truncated_normals,
    "RandomShuffle": _shuffle,
    "StatelessMultinomial": _multinomial,
    "StatelessRandomUniformFullInt": _full_range,
    "StatelessRandomUniformFullIntV2": _full_range,
    "StatelessTruncatedNormal": _truncated,
    "StatelessTruncatedNormalV2": _truncated,
    "TruncatedNormal": _truncated,
}
