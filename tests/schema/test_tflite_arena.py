"""The arena that the runtime plans, by small schedules whose layout is clear."""

from __future__ import annotations

import pytest

from tfconvert.schema.tflite.arena import ALIGNMENT, ArenaStep, Schedule, bytes_of


def _chain(*sizes: int) -> Schedule:
    steps = [ArenaStep([number], [number + 1]) for number in range(len(sizes) - 1)]
    return Schedule(sizes, steps, [0], [len(sizes) - 1])


@pytest.mark.parametrize(
    ("shape", "name", "expected"),
    [
        ((), "FLOAT32", 64),
        ((3, 100), "FLOAT32", 1216),
        ((-1, 100), "FLOAT16", 256),
        ((3,), "INT4", 64),
        ((0, 8), "INT8", 0),
        ((8,), "STRING", 0),
    ],
)
def test_tensors_take_whole_units(shape: tuple[int, ...], name: str, expected: int) -> None:
    assert bytes_of(shape, name) == expected
    assert expected % ALIGNMENT == 0


def test_the_arena_of_a_chain_holds_two_neighbours_beside_its_input() -> None:
    chain = _chain(64, 640, 1280, 320, 64)
    assert chain.peak() == chain.arena() == 64 + 640 + 1280


def test_a_gap_that_is_too_small_makes_the_arena_larger_than_its_peak() -> None:
    """The second tensor is above the first, which is larger than what is below it later."""
    sizes = [0, 1088, 960, 1024, 960, 0]
    schedule = Schedule(
        sizes, [ArenaStep([0], [1]), ArenaStep([1], [2]), ArenaStep([2], [3, 4]), ArenaStep([3, 4], [5])], [0], [5]
    )
    assert schedule.peak() == 960 + 1024 + 960
    assert schedule.arena() == 1088 + 960 + 960


def test_inputs_and_outputs_keep_their_memory() -> None:
    steps = [ArenaStep([0], [1]), ArenaStep([1], [2]), ArenaStep([2], [3])]
    assert Schedule([1024, 64, 64, 64], steps, [0], [1, 3]).arena() == 1024 + 64 + 64 + 64


def test_tensors_elsewhere_take_nothing() -> None:
    assert _chain(0, 0, 0).arena() == 0
    assert Schedule([], [], [], []).arena() == 0
    assert Schedule([64, 128], [], [0], [0]).arena() == 64


def test_many_long_lives_are_not_planned() -> None:
    """The plan would take time proportional to the square of their number."""
    count = 3000
    steps = [ArenaStep([0], [number + 1]) for number in range(count)]
    steps.append(ArenaStep(range(1, count + 1), [count + 1]))
    schedule = Schedule([64] * (count + 2), steps, [0], [count + 1])
    assert schedule.arena() is None
    assert schedule.peak() == 64 * (count + 2)


def test_a_long_chain_is_planned() -> None:
    assert _chain(*[64] * 20_000).arena() == 3 * 64
