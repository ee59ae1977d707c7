"""Random bits are those that XLA makes of a key and a counter, in the order of its tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tfconvert.ops.call import Call
from tfconvert.ops.random_bits import DEFAULT, PHILOX, THREEFRY
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

STATE = np.array([1 + (2 << 32), 3 + (4 << 32)], np.uint64)

# What XLA makes of this state.
OF_PHILOX = [512747620, 1298009047, 1267190206, 761827841, 1383286907, 1639995030, 2756207988, 2154813423, 2586587831]
OF_THREEFRY = [1576285164, 2249660814, 740599976, 2425682526, 2436392515]

# The second group follows the end of the counter. Its upper half is the key if the state has no other.
LAST = np.array([1 + (2 << 32), 0xFFFFFFFFFFFFFFFE], np.uint64)
OF_LAST = [2440199171, 2734589407, 1297845474, 626431447, 875035680, 2457449792, 952865925, 536199321, 67759320]


def generated(algorithm: int, shape: Sequence[int], state: np.ndarray = STATE) -> tuple[np.ndarray, np.ndarray]:
    operands = np.int32(algorithm), state, np.array(shape, np.int32)
    new, bits = evaluate(Call("XlaRngBitGenerator", operands, {"dtype": np.dtype("uint32")}))  # type: ignore[arg-type]
    return new, bits


@pytest.mark.parametrize("algorithm", [DEFAULT, PHILOX])
@pytest.mark.parametrize("shape", [(9,), (3, 3)])
def test_philox(algorithm: int, shape: Sequence[int]) -> None:
    new, bits = generated(algorithm, shape)
    np.testing.assert_array_equal(bits, np.reshape(OF_PHILOX, shape))
    np.testing.assert_array_equal(new, STATE + np.array([0, 3], np.uint64))


def test_the_counter_overflows() -> None:
    new, bits = generated(PHILOX, (9,), LAST)
    np.testing.assert_array_equal(bits, OF_LAST)
    np.testing.assert_array_equal(new, [LAST[0], 1])


@pytest.mark.parametrize(
    ("shape", "expected", "groups"),
    [
        ((5,), OF_THREEFRY, 3),
        ((), OF_THREEFRY[0], 1),
        # Pairs lie along the first even dimension, else along the longest one.
        ((2, 2), [OF_THREEFRY[0:3:2], OF_THREEFRY[1:4:2]], 2),
        ((1, 4), [OF_THREEFRY[:4]], 2),
        ((3, 1), [[each] for each in OF_THREEFRY[:3]], 2),
    ],
)
def test_threefry(shape: Sequence[int], expected: object, groups: int) -> None:
    new, bits = generated(THREEFRY, shape)
    np.testing.assert_array_equal(bits, np.asarray(expected, np.uint32))
    np.testing.assert_array_equal(new, STATE + np.array([0, groups], np.uint64))


def test_other_states_are_refused() -> None:
    with pytest.raises(ConversionError, match="it makes uint32 of a state of shape"):
        generated(THREEFRY, (4,), np.zeros(3, np.uint64))
