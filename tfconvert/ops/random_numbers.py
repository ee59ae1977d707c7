"""Random numbers: those that follow from a seed are TensorFlow's own, bit by bit, others are made of the runtime's.

TensorFlow's generator on processors is Philox with four words of 32 bits and ten rounds: each group of four words has a
counter of its own. Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); which words become a
number follows `tensorflow/core/lib/random/random_distributions.h`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tfconvert.ops.call import Call, Results, ints, scalar
from tfconvert.ops.creation import as_shape
from tfconvert.ops.declaration import Decomposition, OpDeclaration, op
from tfconvert.ops.formula import Tensor
from tfconvert.ops.operands import Operands
from tfconvert.ops.random_bits import MULTIPLIERS, PHILOX, ROUNDS, WEYL
from tfconvert.ops.requirements import Requirement, all_of, rank_is_known
from tfconvert.ops.shape_functions import Shapes, same, scalars
from tfconvert.schema.dialects import tensor_data, types
from tfconvert.schema.dialects.dims import dim_of_element, with_rank
from tfconvert.schema.dialects.relations.rules import is_vector
from tfconvert.schema.ir.operation import Operation

_I32, _I64, _UI32, _UI64 = (np.dtype(name) for name in ("int32", "int64", "uint32", "uint64"))
_FLOAT = np.dtype(np.float32)

# The key under which a seed becomes a key and a counter.
_SCRAMBLER = np.array([0x02461E29_3EC8F720])

# TensorFlow's numbers of algorithms: Philox, and what is fastest on the device, which is Philox on processors.
_ALGORITHMS = (1, 3)
_THREEFRY = 2

# The words' lowest bits that become the digits of a float, by its type.
_DIGITS = {"float32": 23, "float16": 10, "bfloat16": 7}

# The smallest uniform number whose logarithm is taken.
_TINY = 1e-7

# Normal numbers of a greater magnitude are drawn again. For that, TensorFlow reserves counters for each group of four
# numbers. Those that are used here leave fewer than four of sixteen numbers once in 10^15 groups.
_LIMIT = 2.0
_RESERVED = 256
_TRIES = 4

_HALF_WORD = 1 << 16

# The cycles by which TensorFlow decides whether rows are drawn in threads: those of a class, and those worth a thread.
_COST = 50
_COST_OF_THREADS = 20_000


def _of_first_shape(operands: Operands) -> Shapes:
    return (as_shape(operands.elements(0)),)


def _key_counter_shape(operands: Operands) -> Shapes:
    return ((1,), (2,), ())[: len(operands.op.results)]


def _multinomial_shape(operands: Operands) -> Shapes:
    logits, number = with_rank(operands.shape(0), 2), operands.partial(1)
    return ((logits[0], dim_of_element(number[0]) if number else -1),)


def _algorithm(call: Call) -> Results:
    return (np.array(_ALGORITHMS[0], np.int32),)


def _gives(names: str) -> Requirement:
    """Returns the requirement that the result has one of some element types."""

    def check(op: Operation) -> str | None:
        element = str(op.results[0].element)
        return None if element in names.split() else f"it makes numbers of {names.replace(' ', ', ')}, not of {element}"

    return check


def _has_known_ranks(op: Operation) -> str | None:
    sizes, *bounds = [operand.shape for operand in op.operands]
    return "ranks are not known" if not types.is_static(sizes) or None in bounds else None


def _is_philox(op: Operation) -> str | None:
    constant = tensor_data.constant_of(op.operands[3])
    number = 0 if constant is None else scalar(tensor_data.to_array(constant))
    if number == _THREEFRY:
        return "its algorithm is ThreeFry, which TensorFlow itself has in functions compiled by XLA only"
    return None if number in _ALGORITHMS else "its algorithm is not known to be Philox, the one of processors"


def _has_range(limit: int) -> Requirement:
    """Returns the requirement that the range of integers of 64 bits is known and within a limit."""

    def check(op: Operation) -> str | None:
        if op.results[0].element != types.I64:
            return None
        bounds = [tensor_data.constant_of(operand) for operand in op.operands[-2:]]
        if None in bounds:
            return "the bounds of its integers of 64 bits are not constant"
        low, high = (scalar(tensor_data.to_array(bound)) for bound in bounds if bound is not None)
        return None if 0 < high - low <= limit else f"the range of its integers of 64 bits is larger than {limit}"

    return check


def _joined(*parts: Tensor) -> Tensor:
    return parts[0].concat(parts[1:], 0)


def _part(x: Tensor, begin: int, size: int) -> Tensor:
    """Returns a part of a vector."""
    return x.op("Slice", x, [begin], [size])  # type: ignore[no-any-return]


def _last(x: Tensor, index: int) -> Tensor:
    """Returns the elements at an index of the last dimension."""
    masks = {"ellipsis_mask": 1, "shrink_axis_mask": 2}
    return x.op("StridedSlice", x, [0, index], [0, index + 1], [1, 1], **masks)  # type: ignore[no-any-return]


def _viewed(x: Tensor, dtype: np.dtype[Any]) -> Tensor:
    return x.op("Bitcast", x, type=dtype)  # type: ignore[no-any-return]


def _of_seed(seed: Tensor) -> Tensor:
    """Returns the state that a seed becomes: a key and a counter of two halves, of which the lower one is 0."""
    mixed = _generated(_joined(seed.of(_SCRAMBLER), seed.cast(_I64)), 4)
    halves = _viewed(mixed.reshape([2, 2]), _I64)
    return _joined(_part(halves, 0, 1), seed.of(np.zeros(1, _I64)), _part(halves, 1, 1))


def _of_key(key: Tensor, counter: Tensor) -> Tensor:
    return _joined(_viewed(key, _I64), _viewed(counter, _I64))


def _generated(state: Tensor, count: int) -> Tensor:
    """Returns a number of words that is known."""
    _, words = state.op("XlaRngBitGenerator", PHILOX, _viewed(state, _UI64), [count], results=2, dtype=_UI32)
    return words  # type: ignore[no-any-return]


def philox(key: Tensor, counters: Tensor) -> Tensor:
    """Returns the four words of each counter.

    Args:
        key: Of one `i64`.
        counters: Their lower and upper halves, pairs of `i64`.
    """
    steps = np.arange(ROUNDS, dtype=np.uint64)[:, None] * np.array(WEYL, np.uint64)
    keys = _viewed(key, _UI32) + key.of(steps.astype(np.uint32))
    halves = _viewed(counters, _UI32)
    words, others = _last(halves, 0), _last(halves, 1)
    for index in range(ROUNDS):
        products = words.cast(_I64) * words.of(np.array(MULTIPLIERS, np.int64))
        halves = _viewed(products.gather([1, 0], -1), _UI32)
        round_key = keys.op("StridedSlice", keys, [index], [index + 1], [1], shrink_axis_mask=1)
        words = words.op("BitwiseXor", words.op("BitwiseXor", _last(halves, 1), others), round_key)
        others = _last(halves, 0)
    return words.op("Pack", words, others, axis=-1).reshape([-1, 4])  # type: ignore[no-any-return]


def _counted(state: Tensor, offsets: Tensor) -> Tensor:
    """Returns the words of counters at offsets from the first one."""
    start, above = _part(state, 1, 1), _part(state, 2, 1)
    low = start + offsets
    carry = ((start < 0) & (low >= 0)).cast(_I64)
    return philox(_part(state, 0, 1), low.op("Pack", low, above + carry, axis=-1))


class _Wanted:
    """The numbers that an op makes: how many, in groups of two or four, and in which shape."""

    def __init__(self, shape: Tensor) -> None:
        self._shape = shape
        self._known = None if shape.constant is None else ints(shape.constant)

    def words(self, state: Tensor, each: int = 1) -> Tensor:
        """Returns words for all numbers, rounded up to whole groups."""
        if self._known is not None:
            return _generated(state, -(-max(math.prod(self._known), 1) * each // 4) * 4)
        return _counted(state, self._groups(each)).reshape([-1])

    def groups(self) -> Tensor:
        """Returns the numbers of the groups of four."""
        if self._known is None:
            return self._groups(1)
        return self._shape.of(np.arange(-(-math.prod(self._known) // 4), dtype=np.int64))

    def _groups(self, each: int) -> Tensor:
        count = self._count()
        groups = (count * each + 3) // 4
        return count.op("Range", 0, groups, 1).cast(_I64)  # type: ignore[no-any-return]

    def _count(self) -> Tensor:
        return self._shape.cast(_I32).reduce("Prod", [0])

    def shaped(self, numbers: Tensor) -> Tensor:
        """Returns the first ones of a vector of numbers in the shape."""
        if self._known is not None:
            count = math.prod(self._known)
            numbers = numbers if numbers.shape == (count,) else _part(numbers, 0, count)
            return numbers.reshape(self._known)
        numbers = numbers.op("Slice", numbers, [0], self._count().reshape([1]))
        return numbers.op("Reshape", numbers, self._shape)  # type: ignore[no-any-return]


def _uniform(words: Tensor, digits: int = 23) -> Tensor:
    """Returns floats from 0 to 1 that have the lowest bits of words as digits."""
    above = words.of(np.array(32 - digits, np.uint32))
    low = words.op("RightShift", words * (1 << 32 - digits), above)
    return low.cast(_FLOAT) * 2.0**-digits  # type: ignore[no-any-return]


def _normal(words: Tensor) -> Tensor:
    """Returns as many normal numbers as there are words, in one dimension: two of a radius and an angle."""
    pairs = _uniform(words).reshape([-1, 2])
    radius = (_last(pairs, 0).maximum(_TINY).log() * -2).sqrt()
    angle = _last(pairs, 1) * (2 * math.pi)
    return radius.op("Pack", angle.sin() * radius, angle.cos() * radius, axis=-1).reshape([-1])  # type: ignore[no-any-return]


def _integers(words: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Returns integers of a range: the remainders of words."""
    wide = words.cast(_I64)
    span = high.cast(_I64) - low.cast(_I64)
    if low.dtype != _I64:
        return low + wide.op("FloorMod", wide, span).cast(low.dtype)  # type: ignore[no-any-return]
    # The remainder of half of the word, which is a signed number, twice that, and the lowest bit.
    pairs = words.reshape([-1, 2])
    lower, bit = _last(pairs, 0), _last(wide.reshape([-1, 2]), 0) % 2
    rest = lower.op("RightShift", lower, words.of(np.array(1, np.uint32)))
    half = (_last(pairs, 1).cast(_I64) * (1 << 31) + rest.cast(_I64)) % span
    twice = (half >= span - half).where(half - (span - half), half + half)
    return low + (twice >= span - bit).where(twice - (span - bit), twice + bit)  # type: ignore[no-any-return]


def _is_drawn_in_order(op: Operation) -> str | None:
    """The requirement that TensorFlow draws all rows by one thread: others start at counters of their own."""
    shape, number = op.operands[0].shape, tensor_data.constant_of(op.operands[1])
    if shape is None or shape[1] < 1 or number is None:
        return "its classes, or how many it draws, are not known"
    rows, classes = shape
    if rows < 0:
        return "the batch, for whose rows it draws, is not known"
    count = scalar(tensor_data.to_array(number))
    cost = rows * _COST * count * (math.log2(classes) + classes)
    return None if rows == 1 or cost < _COST_OF_THREADS else "TensorFlow draws rows in threads, with varying results"


def stateless_multinomial(logits: Tensor, number: Tensor, seed: Tensor, *, output_dtype: Any = _I64) -> Tensor:
    """Returns the classes whose parts of the sum of all exponentials contain what is drawn.

    TensorFlow computes with doubles: where the number is closer to a bound than a float resolves, the class is another.
    """
    (rows, _), count = logits.shape or (), ints(number.constant)[0]  # type: ignore[arg-type]
    words = _part(_generated(_of_seed(seed), -(-rows * count // 2) * 4), 0, rows * count * 2).reshape([rows, count, 2])
    # Those digits of a double, of which the first word has 20, that a float has.
    upper, lower = _last(words, 0) * (1 << 12), _last(words, 1)
    upper = upper.op("RightShift", upper, words.of(np.array(9, np.uint32)))
    drawn = (upper + lower.op("RightShift", lower, words.of(np.array(29, np.uint32)))).cast(_FLOAT) * 2.0**-23
    logits = logits.wide()
    is_finite = abs(logits) < math.inf
    largest = is_finite.where(logits, float(np.finfo(_FLOAT).min)).reduce("Max", [1], keep_dims=True)
    bounds = is_finite.where((logits - largest).exp(), 0)
    bounds = bounds.op("Cumsum", bounds, 1)
    found = drawn * bounds.op("Slice", bounds, [0, bounds.size(1) - 1], [rows, 1])
    below = bounds.expand_dims(1) <= found.expand_dims(2)
    return below.cast(_I32).sum([2]).cast(output_dtype)  # type: ignore[no-any-return]


def _whole(words: Tensor, dtype: np.dtype[Any]) -> Tensor:
    return _viewed(words if dtype.itemsize == 4 else words.reshape([-1, 2]), dtype)


def _truncated(wanted: _Wanted, state: Tensor) -> Tensor:
    """Returns the first four numbers of each group that are within the limits."""
    groups = wanted.groups()
    tried = groups.op("ExpandDims", groups * _RESERVED, -1) + groups.of(np.arange(_TRIES))
    numbers = _normal(_counted(state, tried.reshape([-1])).reshape([-1])).reshape([-1, 4 * _TRIES])
    is_within = abs(numbers) < _LIMIT
    counts = is_within.cast(_I32)
    counts = counts.op("Cumsum", counts, 1)
    found = [(is_within & counts.equal(index)).where(numbers, 0).sum([1]) for index in range(1, 5)]
    return found[0].op("Pack", *found, axis=-1).reshape([-1])  # type: ignore[no-any-return]


def _made(kind: str, shape: Tensor, state: Tensor, bounds: Sequence[Tensor], dtype: np.dtype[Any]) -> Tensor:
    wanted = _Wanted(shape)
    if kind == "truncated":
        return wanted.shaped(_truncated(wanted, state)).cast(dtype)
    words = wanted.words(state, dtype.itemsize // 4 if dtype.kind in "iu" else 1)
    if kind == "uniform":
        numbers = _uniform(words, _DIGITS[dtype.name])
    elif kind == "normal":
        numbers = _normal(words)
    else:
        numbers = _integers(words, *bounds) if bounds else _whole(words, dtype)
    return wanted.shaped(numbers).cast(dtype)


def _of_seeds(kind: str, shape: Tensor, seed: Tensor, *bounds: Tensor, dtype: Any = _FLOAT) -> Tensor:
    return _made(kind, shape, _of_seed(seed), bounds, np.dtype(dtype))


def _of_keys(
    kind: str, shape: Tensor, key: Tensor, counter: Tensor, alg: Tensor, *bounds: Tensor, dtype: Any = _FLOAT
) -> Tensor:
    return _made(kind, shape, _of_key(key, counter), bounds, np.dtype(dtype))


def key_counter(seed: Tensor) -> Sequence[Tensor]:
    state = _of_seed(seed)
    return _viewed(_part(state, 0, 1), _UI64), _viewed(_part(state, 1, 2), _UI64)


def key_counter_algorithm(seed: Tensor) -> Sequence[Tensor]:
    return *key_counter(seed), seed.of(np.array(_ALGORITHMS[0], np.int32))


def _between_zero_and_one(shape: Tensor | list[int], x: Tensor, seed: int, seed2: int) -> Tensor:
    return x.op("RandomUniform", shape, dtype=_FLOAT, seed=seed, seed2=seed2)  # type: ignore[no-any-return]


def random_uniform_int(shape: Tensor, low: Tensor, high: Tensor, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """A float has 23 random bits, so two of them make a word of 32."""
    halves = _between_zero_and_one(_joined(shape.cast(_I32), shape.of(np.array([2], np.int32))), shape, seed, seed2)
    pairs = (halves * _HALF_WORD).cast(_I64)
    rest = (_last(pairs, 0) * _HALF_WORD + _last(pairs, 1)) % (high.cast(_I64) - low.cast(_I64))
    return low + rest.cast(low.dtype)


def truncated_normal(shape: Tensor, *, dtype: Any = _FLOAT, seed: int = 0, seed2: int = 0) -> Tensor:
    """Uniform numbers are parts of all numbers within the limits, in their order."""
    bound = math.erf(_LIMIT * math.sqrt(0.5))
    parts = _between_zero_and_one(shape, shape, seed, seed2) * (2 * bound) - bound
    return (parts.op("Erfinv", parts) * math.sqrt(2)).cast(dtype)  # type: ignore[no-any-return]


def parameterized_truncated_normal(
    shape: Tensor, means: Tensor, deviations: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """Uniform numbers are parts of all numbers within the limits, counted from the limit that is further out."""
    along = [-1, *[1] * ((shape.shape or (1,))[0] - 1)]
    mean, deviation, low, high = (each.reshape(along) if each.rank else each for each in (means, deviations, low, high))
    low, high = (low - mean) / deviation, (high - mean) / deviation
    is_above = low > 0
    first, last = is_above.where(-high, low), is_above.where(-low, high)
    below, above = (bound.op("Erfc", bound * -math.sqrt(0.5)) * 0.5 for bound in (first, last))
    part = below + _between_zero_and_one(shape, mean, 0, 0) * (above - below)
    number = part.op("Ndtri", part.maximum(float(np.finfo(_FLOAT).tiny))).maximum(first).minimum(last)
    return mean + is_above.where(-number, number) * deviation


def random_shuffle(value: Tensor, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Sorts rows by numbers that are drawn."""
    if not value.rank:
        return value
    count = value.size(0)
    sizes = [count] if isinstance(count, int) else count.reshape([1])
    keys = _between_zero_and_one(sizes, value, seed, seed2)
    _, order = keys.op("TopKV2", keys, count, results=2)
    return value.gather(order)


_SEED = ((2,), (2,))
_KEY = ((2,), (1,), (2,), ())
_BOUNDS = ((), ())
_FLOATS = "f32 f16 bf16"


def _stateless(name: str, kind: str, results: str) -> tuple[OpDeclaration, OpDeclaration]:
    """Declares the ops that make numbers of a seed, and of a key and a counter."""
    bounds = _BOUNDS if kind == "integers" else ()
    types_of_bounds = "i32 i64" if bounds else ""
    requires = all_of(_gives(results), _has_range((1 << 63) - 1)) if bounds else _gives(results)
    return (
        op(
            name,
            shape=_of_first_shape,
            decompose=(
                Decomposition(
                    partial(_of_seeds, kind), types_of_bounds, requires, 2 if bounds else 0, (*_SEED, *bounds)
                ),
            ),
        ),
        op(
            f"{name}V2",
            shape=_of_first_shape,
            decompose=(
                Decomposition(
                    partial(_of_keys, kind),
                    types_of_bounds,
                    all_of(requires, _is_philox),
                    4 if bounds else 0,
                    (*_KEY, *bounds),
                ),
            ),
        ),
    )


OPS = (
    op("Multinomial", shape=_multinomial_shape),
    op(
        "ParameterizedTruncatedNormal",
        shape=_of_first_shape,
        decompose=(
            Decomposition(
                parameterized_truncated_normal,
                "f32",
                _has_known_ranks,
                1,
                (np.array([2, 5], np.int32), (2,), (2,), (2,), (2,)),
            ),
        ),
    ),
    op("RandomStandardNormal", shape=_of_first_shape),
    op("RandomShuffle", shape=same, decompose=(Decomposition(random_shuffle, "", rank_is_known),), verified=True),
    op("RandomUniform", shape=_of_first_shape, relations=(is_vector("shape"),)),
    op(
        "RandomUniformInt",
        shape=_of_first_shape,
        decompose=(Decomposition(random_uniform_int, "i32 i64", _has_range(1 << 31), 1, ((2,), (), ())),),
    ),
    op(
        "StatelessMultinomial",
        shape=_multinomial_shape,
        decompose=(
            Decomposition(
                stateless_multinomial, _FLOATS, _is_drawn_in_order, example=((2, 3), np.array(5, np.int32), (2,))
            ),
        ),
    ),
    op("StatelessRandomGetAlg", shape=scalars, compute=_algorithm),
    op(
        "StatelessRandomGetKeyCounter",
        shape=_key_counter_shape,
        decompose=(Decomposition(key_counter, "", example=((2,),)),),
    ),
    op(
        "StatelessRandomGetKeyCounterAlg",
        shape=_key_counter_shape,
        decompose=(Decomposition(key_counter_algorithm, "", example=((2,),)),),
    ),
    *_stateless("StatelessRandomNormal", "normal", _FLOATS),
    *_stateless("StatelessRandomUniform", "uniform", _FLOATS),
    *_stateless("StatelessRandomUniformFullInt", "whole", "i32 ui32 i64 ui64"),
    *_stateless("StatelessRandomUniformInt", "integers", "i32 i64"),
    *_stateless("StatelessTruncatedNormal", "truncated", _FLOATS),
    op(
        "TruncatedNormal",
        shape=_of_first_shape,
        decompose=(Decomposition(truncated_normal, "", _gives(_FLOATS), example=((2,),)),),
    ),
)
