"""Random numbers of other distributions than uniform and normal: truncated, of classes, and permutations.

With seeds they are TensorFlow's own; without, they are made the same way from seeds that the engine draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tfconvert.converter.rewrite.pattern import Declined
from tfconvert.converter.targets.stablehlo.legalize.entry import Lowering
from tfconvert.converter.targets.stablehlo.legalize.gathering import rows_at
from tfconvert.converter.targets.stablehlo.legalize.random import (
    UI32,
    UI64,
    Words,
    drawn,
    given,
    groups_of,
    halves,
    joined,
    key_and_counter,
    normal,
    ordered,
    philox,
)
from tfconvert.converter.targets.stablehlo.legalize.regions import sort
from tfconvert.converter.targets.stablehlo.legalize.scans import ADD, scan
from tfconvert.converter.targets.stablehlo.legalize.shaping import concatenate, requested, requested_size
from tfconvert.converter.targets.stablehlo.legalize.stablehlo_builder import StableHLOBuilder
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

# Normal numbers of a greater magnitude are drawn again.
_LIMIT = 2

# How many counters TensorFlow reserves for a group of four truncated numbers.
_RESERVED = 256

# How many of those are used here: fewer than four of sixteen numbers within the limits come once in 10^15 groups.
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
    """Emits the counters at places behind one."""
    start = joined(emit, counter[0], counter[1])
    moved = emit.binary("add", places, start)
    overflow = emit.convert(emit.compare("LT", moved, start), UI64)
    above = emit.binary("add", overflow, joined(emit, counter[2], counter[3]))
    return (*halves(emit, moved), *halves(emit, above))


def _truncated(op: Operation, emit: StableHLOBuilder) -> Value:
    if types.element_of(op.results[0].type) != types.F32:
        raise Declined(f"it makes numbers of {types.element_of(op.results[0].type)}")
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
    return emit.binary("subtract", emit.one("bitcast_convert", (bits,), types.F64, emit.dims(bits)), 1)


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
    is_finite = emit.one("is_finite", (logits,), types.I1, dims)
    largest = emit.reduce("maximum", emit.select(is_finite, logits, -math.inf), (1,), -math.inf)
    powers = emit.unary("exponential", emit.binary("subtract", logits, emit.broadcast(largest, dims, (0,))))
    sums = scan(emit, emit.select(is_finite, powers, 0), 1, ADD)
    total = emit.reduce("maximum", sums, (1,), 0)
    taken = (dims[0], count)
    drawn_parts = _uniform_doubles(emit, *_source(op, emit), taken)
    parts = emit.binary("multiply", drawn_parts, emit.broadcast(total, taken, (0,)))
    wide = (*taken, dims[1])
    is_below = emit.compare("LE", emit.broadcast(sums, wide, (0, 2)), emit.broadcast(parts, wide, (0, 1)))
    return emit.reduce("add", emit.convert(is_below, types.element_of(op.results[0].type)), (2,), 0)


def _full_range(op: Operation, emit: StableHLOBuilder) -> Value:
    element = types.element_of(op.results[0].type)
    if element not in (types.I32, UI32):
        raise Declined(f"it makes numbers of {element}")
    dims = requested(emit, op, 0)
    numbers, groups = groups_of(emit, dims)
    key, counter = _source(op, emit)
    words = philox(emit, _counted(emit, counter, emit.iota((groups,), 0, UI64)), key)
    if element != UI32:
        words = [emit.one("bitcast_convert", (word,), element, emit.dims(word)) for word in words]
    return ordered(emit, words, numbers, groups, dims)


def _shuffle(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits the rows in the order of numbers that are drawn."""
    value = op.operands[0]
    size = emit.dims(value)[0]
    keys = drawn(emit, "UNIFORM", (emit.scalar(0, types.F32), emit.scalar(1, types.F32)), (size,))
    order = sort(emit, (keys, emit.iota((size,), 0, types.I32)), 0, "LT")[1]
    return rows_at(emit, value, order)


def _between(op: Operation, emit: StableHLOBuilder) -> Value:
    """Emits normal numbers between limits, each row with its own ones, from the parts of all that are below them."""
    dims = requested(emit, op, 0)
    element = types.element_of(op.results[0].type)
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


LOWERINGS: Mapping[str, Lowering] = {
    "Multinomial": _multinomial,
    "ParameterizedTruncatedNormal": _between,
    "RandomShuffle": _shuffle,
    "StatelessMultinomial": _multinomial,
    "StatelessRandomUniformFullInt": _full_range,
    "StatelessRandomUniformFullIntV2": _full_range,
    "StatelessTruncatedNormal": _truncated,
    "StatelessTruncatedNormalV2": _truncated,
    "TruncatedNormal": _truncated,
}
