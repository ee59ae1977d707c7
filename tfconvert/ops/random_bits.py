"""XLA's generators of random bits, Threefry and Philox, whose numbers follow from a key and a counter.

Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011); the order of the numbers in a tensor, and
the state that is left, are XLA's (`xla/hlo/builder/lib/prng.cc`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfconvert.ops.call import Array, Call, Results, ints
from tfconvert.ops.creation import as_shape
from tfconvert.ops.declaration import op
from tfconvert.ops.operands import Operands
from tfconvert.ops.shape_functions import Shapes

DEFAULT, THREEFRY, PHILOX = range(3)
"""The numbers of XLA's algorithms. The default one is Philox, as on processors."""
ALGORITHMS = "DEFAULT", "THREE_FRY", "PHILOX"
"""Their names in StableHLO."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
ROUNDS = 10
"""Philox' multipliers, the steps of its key, and how often both are applied."""

_WORD = np.uint64(32)


class Halves(NamedTuple):
    """Where Threefry's pairs of words are in a tensor: along one dimension, one after the other.

    Attributes:
        sizes: The sizes of the first words' tensor.
        axis: The dimension, which has half as many of them, rounded up.
    """

    sizes: tuple[int, ...]
    axis: int

    @property
    def is_flat(self) -> bool:
        """Whether both words of a pair are neighbours in memory."""
        return math.prod(self.sizes[self.axis + 1 :]) == 1


def halves(shape: Sequence[int]) -> Halves:
    """Returns how a shape is divided: at its first even dimension, else at the longest one."""
    sizes = list(shape) or [1]
    even = [axis for axis, size in enumerate(sizes) if size % 2 == 0]
    axis = even[0] if even else sizes.index(max(sizes))
    sizes[axis] = -(-sizes[axis] // 2)
    return Halves(tuple(sizes), axis)


def _words(numbers: Array) -> tuple[Array, Array]:
    """Returns the low and the high words of numbers of 64 bits."""
    return numbers.astype(np.uint32), (numbers >> _WORD).astype(np.uint32)


def _threefry(key: Array, counters: Array) -> tuple[Array, Array]:
    keys = [*_words(key)]
    keys.append(keys[0] ^ keys[1] ^ _PARITY)
    one, other = _words(counters)
    one, other = one + keys[0], other + keys[1]
    for number in range(5):
        for count in _ROTATIONS[number % 2]:
            one = one + other
            other = ((other << np.uint32(count)) | (other >> np.uint32(32 - count))) ^ one
        one = one + keys[(number + 1) % 3]
        other = other + keys[(number + 2) % 3] + np.uint32(number + 1)
    return one, other


def _philox(key: Array, counters: Sequence[Array]) -> Sequence[Array]:
    keys = _words(key)
    a, b, c, d = (word for counter in counters for word in _words(counter))
    for _ in range(ROUNDS):
        first, second = (word.astype(np.uint64) * by for word, by in zip((a, c), MULTIPLIERS, strict=True))
        (low, high), (other_low, other_high) = _words(first), _words(second)
        a, b, c, d = other_high ^ b ^ keys[0], other_low, high ^ d ^ keys[1], low
        keys = (keys[0] + WEYL[0], keys[1] + WEYL[1])
    return a, b, c, d


def generate(algorithm: int, state: Array, shape: Sequence[int]) -> tuple[Array, Array]:
    """Returns the state that is left, and words of 32 bits.

    Args:
        algorithm: The number of the algorithm.
        state: A key and a counter, of one `ui64` each; Philox' counter may have a second one, the upper half.
        shape: The shape of the words.
    """
    key, count, new = state[:1], math.prod(shape), state.copy()
    with np.errstate(over="ignore"):
        if algorithm == THREEFRY:
            sizes, axis = halves(shape)
            groups = math.prod(sizes)
            pair = _threefry(key, state[1] + np.arange(groups, dtype=np.uint64))
            full = [size * 2 if at == axis else size for at, size in enumerate(sizes)]
            bits = np.stack([word.reshape(sizes) for word in pair], axis + 1).reshape(full)
            bits = bits[tuple(map(slice, shape or (1,)))].reshape(shape)
        else:
            groups = -(-count // 4)
            low = state[1] + np.arange(groups, dtype=np.uint64)
            # The key is the upper half of a counter that has none.
            high = (state[2] if len(state) > 2 else key) + (low < state[1]).astype(np.uint64)
            bits = np.stack(_philox(key, (low, high)), 1).reshape(-1)[:count].reshape(shape)
        new[1] += np.uint64(groups)
        if len(state) > 2:
            new[2] += np.uint64(new[1] < state[1])
    return new, bits


def _generate(call: Call) -> Results:
    algorithm, state, shape = int(call.inputs[0]), call.inputs[1], ints(call.inputs[2])
    dtype = call.dtype("dtype")
    if dtype.itemsize != 4 or (state.shape != (2,) and (state.shape != (3,) or algorithm == THREEFRY)):
        raise call.bad(f"it makes {dtype} of a state of shape {state.shape}")
    new, bits = generate(algorithm, state, shape)
    return new, bits.view(dtype)


def _shape(operands: Operands) -> Shapes:
    return operands.shape(1), as_shape(operands.elements(2))


OPS = (op("XlaRngBitGenerator", shape=_shape, compute=_generate),)
