"""No call depth makes calls expensive, and decorated functions behave as before."""

from __future__ import annotations

import resource
import traceback

import pytest

from tfconvert import api
from tfconvert.converter.process.interpreter import CLAIM, with_room

CALLS = 300
DEEPEST = 250  # in frames; each chunk of CPython's stack holds about a hundred small ones


def _leaf() -> None:
    pass


# Larger than the frames above it: at some depths those still fit into a chunk, and it doesn't.
_leaf.__code__ = _leaf.__code__.replace(co_stacksize=100)


def _faults_beneath(depth: int) -> int:
    """Returns how often calls at a depth have touched new memory."""
    if depth:
        return _faults_beneath(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        _leaf()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_no_depth_takes_new_memory_with_every_call() -> None:
    @with_room
    def worst() -> int:
        return max(_faults_beneath(depth) for depth in range(DEEPEST))

    assert worst() < CALLS // 2


def test_a_conversion_has_room() -> None:
    assert api.convert_source.__code__.co_stacksize == CLAIM


def test_arguments_results_and_errors_go_through() -> None:
    @with_room
    def divide(one: int, *, other: int) -> float:
        return one / other

    assert divide(1, other=2) == 0.5
    with pytest.raises(ZeroDivisionError) as caught:
        divide(1, other=0)
    assert "one / other" in "".join(traceback.format_exception(caught.value))
