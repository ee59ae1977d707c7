"""The memory that the runtime plans for a subgraph's computed tensors: its arena.

LiteRT places tensors as its `ArenaPlanner` does: those that live during the whole run first, then the largest first,
each in the smallest gap that fits between the tensors that live at the same time. Variables and tensors of open rank
are elsewhere, and kernels may allocate more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tfconvert.schema.dialects.types import ELEMENT_TYPES
from tfconvert.schema.tflite.compiled_model import Table
from tfconvert.schema.tflite.reader import View

ALIGNMENT = 64
"""Alignment of tensors in bytes."""

# Types of which several elements share a byte.
_BITS = {"INT4": 4, "UINT4": 4, "INT2": 2}

# Tensors that live during more operators than this are compared with every tensor.
_SHORT = 16

# Maximum number of comparisons for a tensor, and for small graphs in all.
_MAX_WORK = 100
_FREE_WORK = 500_000


@cache
def bits(type_name: str) -> int:
    """Returns the bits of an element by its `TensorType`; 0 if elements have no fixed size."""
    if type_name in _BITS:
        return _BITS[type_name]
    row = next((row for row in ELEMENT_TYPES if row.tflite == type_name), None)
    return 0 if row is None or row.dtype == object else 8 * row.dtype.itemsize


def bytes_of(shape: Sequence[int], type_name: str, alignment: int = ALIGNMENT) -> int:
    """Returns the bytes that a tensor takes in the arena.

    Args:
        shape: Its sizes; negative ones count as 1.
        type_name: Its `TensorType`.
        alignment: The alignment of tensors.
    """
    count = math.prod([size if size >= 0 else 1 for size in shape])
    return -(-((count * bits(type_name) + 7) // 8) // alignment) * alignment


class ArenaStep(NamedTuple):
    """An operator, by its tensors: indices into `Schedule.sizes`."""

    operands: Sequence[int]
    results: Sequence[int]


class Schedule(NamedTuple):
    """The computed tensors of a subgraph, and its operators in order."""

    sizes: Sequence[int]  # The bytes of each tensor in the arena; 0 if it is elsewhere.
    steps: Sequence[ArenaStep]  # The operators.
    inputs: Sequence[int]  # The subgraph's inputs, which keep their memory.
    outputs: Sequence[int]  # The subgraph's outputs.

    def lifetimes(self) -> tuple[list[int], list[int]]:
        """Returns the numbers of the operators at which each tensor is first and last needed; -1 if never."""
        count = len(self.sizes)
        first, last = [-1] * count, [-1] * count
        for number, step in enumerate(self.steps):
            for tensor in step.operands:
                if first[tensor] < 0:
                    first[tensor] = number
                last[tensor] = number
            for tensor in step.results:
                if first[tensor] < 0:
                    first[tensor] = number
                last[tensor] = number
        end = len(self.steps)
        for tensor in self.outputs:
            first[tensor], last[tensor] = max(first[tensor], 0), end
        for tensor in self.inputs:
            first[tensor], last[tensor] = 0, end
        return first, last

    def peak(self) -> int:
        """Returns the largest sum of the bytes of tensors that live at the same time; no arena is smaller."""
        first, last = self.lifetimes()
        changes = [0] * (len(self.steps) + 2)
        for size, begin, end in zip(self.sizes, first, last, strict=True):
            if size and begin >= 0:
                changes[begin] += size
                changes[end + 1] -= size
        peak = now = 0
        for change in changes:
            now += change
            if now > peak:  # faster than `max`
                peak = now
        return peak

    def arena(self, limit: float = math.inf) -> int | None:
        """Returns the bytes of the arena.

        It returns `None` if they are not below a limit, or if so many tensors live long that finding out takes long.
        """
        first, last = self.lifetimes()
        whole = len(self.steps)
        order = sorted(
            [tensor for tensor, size in enumerate(self.sizes) if size and first[tensor] >= 0],
            key=lambda tensor: (
                (0, 0, tensor)
                if not first[tensor] and last[tensor] == whole
                else (1, -self.sizes[tensor], first[tensor])
            ),
        )
        spans = [last[tensor] - first[tensor] for tensor in order]
        work = sum([span if span <= _SHORT else span + len(order) for span in spans])
        return None if work > _MAX_WORK * len(order) + _FREE_WORK else _placed(self.sizes, first, last, order, limit)


def schedule_of(subgraph: Table, is_constant: Callable[[Table], bool], alignment: int = ALIGNMENT) -> Schedule:
    """Returns the schedule of a subgraph of a file; open sizes are those that are stored.

    Args:
        subgraph: Its table.
        is_constant: Whether a tensor's value is in the file.
        alignment: The alignment of tensors.
    """
    get: Callable[[Any, str], Any] = dict.get if isinstance(subgraph, dict) else View.__getitem__
    known: dict[tuple[object, object], int] = {}
    sizes = [
        0 if get(tensor, "is_variable") or is_constant(tensor) else _size(tensor, get, alignment, known)
        for tensor in get(subgraph, "tensors") or ()
    ]
    steps = []
    for each in get(subgraph, "operators") or ():
        results = _indices(get(each, "outputs"), sizes)
        if (intermediates := get(each, "intermediates")) is not None:
            results = [*results, *_indices(intermediates, sizes)]
        steps.append(ArenaStep(_indices(get(each, "inputs"), sizes), results))
    return Schedule(sizes, steps, _indices(get(subgraph, "inputs"), sizes), _indices(get(subgraph, "outputs"), sizes))


def _size(
    tensor: Table, get: Callable[[Any, str], Any], alignment: int, known: dict[tuple[object, object], int]
) -> int:
    """Returns the bytes of a tensor; `known` has those of other types and shapes."""
    kind, shape = tensor.name("type") if isinstance(tensor, View) else tensor.get("type"), get(tensor, "shape")
    sizes = shape if isinstance(shape, tuple) else () if shape is None else tuple(map(int, shape))
    found = known.get((kind, sizes))
    if found is None:
        found = known[kind, sizes] = bytes_of(sizes, kind or "FLOAT32", alignment)
    return found


def _indices(tensors: Sequence[int] | None, sizes: Sequence[int]) -> Sequence[int]:
    """Returns the tensors in a list, without those that are absent or don't exist."""
    if tensors is None:
        return ()
    found = tensors if isinstance(tensors, tuple) else tuple(map(int, tensors))
    if found and not 0 <= min(found) <= max(found) < len(sizes):
        found = tuple([tensor for tensor in found if 0 <= tensor < len(sizes)])
    return found


_Placed = tuple[int, int, int, int]


def _placed(
    sizes: Sequence[int], first: Sequence[int], last: Sequence[int], order: Sequence[int], limit: float
) -> int | None:
    """Returns the end of the last byte when tensors are placed in some order, or `None` if it is not below a limit."""
    arena = 0
    long: list[_Placed] = []
    short: list[list[_Placed]] = [[] for _ in range(max(last, default=0) + 1)]  # By the operators that they live at.
    for tensor in order:
        size, begin, end = sizes[tensor], first[tensor], last[tensor]
        others = [each for each in long if each[2] <= end and begin <= each[3]] if long else []
        now = short[begin : end + 1]
        for each in now:
            if each:
                others += each
        start = _gap(sorted(others), size) if others else 0  # One that lives longer may be there several times.
        arena = max(arena, start + size)
        if arena >= limit:
            return None
        placed = (start, start + size, begin, end)
        if end - begin > _SHORT:
            long.append(placed)
        else:
            for each in now:
                each.append(placed)
    return arena


def _gap(others: Sequence[_Placed], size: int) -> int:
    """Returns the start of the smallest gap that fits between others, which are sorted, or else their end."""
    position, best, smallest = 0, -1, 0
    for start, end, _, _ in others:
        gap = start - position
        if gap >= size and (best < 0 or gap < smallest):
            best, smallest = position, gap
        if end > position:  # faster than `max`
            position = end
    return position if best < 0 else best
