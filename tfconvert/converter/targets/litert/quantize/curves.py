"""Functions of one value, computed at many numbers: which of these its integers have to represent.

Elementwise operators that are computed from one value and constants are such a function, as `x * sigmoid(x)` is, or a
prelu made of two relus:

    %0 = "tfl.logistic"(%x)
    %1 = "tfl.mul"(%x, %0)

Far below 0 this product is 0, although neither of its operands alone is limited. The function is computed for the whole
range of the value, densely at small numbers. Numbers beyond which the result stays within a tolerance may be moved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tfconvert.converter.executor import litert_ops
from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators

# Periodic functions are the same at numbers far apart, and differ between them.
_ELEMENTWISE = (operators.elementwise(1, 2, 3) | {"prelu"}) - {"sin", "cos", "floor_mod"}

# How many operators make a function at most, and how many elements their constants have together.
_OPERATORS, _ELEMENTS = 24, 1024

# The numbers on each side of 0: the smallest, if not all are below 1, how many in a decade, and how many between two.
_SMALLEST, _IN_A_DECADE, _BETWEEN = 1e-6, 12, 32

# At how many numbers slopes are looked for at most.
_SLOPES = 4096

# The smallest difference of floats to 1.
_FLOATS = 2.0**-24


class Curves:
    """The functions of one value in a function of the IR; each is looked for once."""

    def __init__(self) -> None:
        self._ops: dict[tuple[Operation, Value], list[Operation] | None] = {}
        self._computed: dict[tuple[Operation, Value, Range], Array | None] = {}

    def operators(self, op: Operation, value: Value) -> list[Operation]:
        """Returns the operators from a value to the result of one of its users; none if others are computed from."""
        if (op, value) not in self._ops:
            self._ops[op, value] = _between(op, value)
        return self._ops[op, value] or []

    def need(self, op: Operation, value: Value, seen: Range, wanted: Range, tolerance: float) -> Range:
        """Returns the numbers of a value that matter to an op's result, which is a function of it.

        Args:
            op: The op.
            value: The value.
            seen: Its range.
            wanted: The range of the result beyond which numbers are the same.
            tolerance: A difference of the result that doesn't matter. Floats near 1 show no smaller ones.
        """
        numbers = _numbers(seen)
        key = op, value, seen
        if key not in self._computed:
            self._computed[key] = self._results(op, value, numbers)
        results = self._computed[key]
        if results is None:
            return seen
        clipped = np.abs(np.clip(results, *wanted)).max()
        tolerance = max(tolerance, _FLOATS * min(float(clipped), 1.0))
        ends = []
        for step in (1, -1):
            at = _last_same(np.clip(results[::step], *wanted), tolerance)
            first, second = numbers[::step][at : at + 2] if at + 1 < len(numbers) else (numbers[::step][at],) * 2
            between = np.linspace(first, second, _BETWEEN, dtype=np.float32)
            finer = self._results(op, value, np.concatenate([numbers[::step][:at], between]))
            last = at if finer is None else _last_same(np.clip(finer, *wanted), tolerance)
            ends.append(float(between[max(last - at, 0)]))
        low, high = ends
        # A function that is the same for all numbers is so at the one next to 0.
        return Range(low, high) if low <= high else Range(*[min(max(0.0, high), low)] * 2)

    def steepest(self, op: Operation, value: Value, needed: Range, step: float) -> float:
        """Returns by how much an op's result changes at most for a step of a value, 0 if it is no function of it.

        Args:
            op: The op.
            value: The value.
            needed: The range of its integers.
            step: Their step.
        """
        count = min(math.ceil((needed.high - needed.low) / step) + 1, _SLOPES) if needed.is_finite else 0
        if count < 2 or not self.operators(op, value):
            return 0.0
        results = self._results(op, value, np.linspace(*needed, count, dtype=np.float32))
        changes = 0.0 if results is None else float(np.abs(np.diff(results, axis=0)).max())
        return changes * step * (count - 1) / (needed.high - needed.low)

    def _results(self, op: Operation, value: Value, numbers: Array) -> Array | None:
        """Returns the results for numbers, each with all elements of the constants; `None` if they aren't numbers."""
        rank = max(len(each.shape or ()) for each in (value, *op.results))
        known: dict[Value, Array] = {value: numbers.reshape(-1, *[1] * rank)}
        try:
            for each in self.operators(op, value):
                operands = tuple(
                    known[operand] if operand in known else _constant(operand) for operand in each.operands
                )
                (known[each.results[0]],) = litert_ops.evaluate(each, operands)
        except ConversionError:
            return None
        found = known[op.results[0]].reshape(len(numbers), -1)
        return None if np.isnan(found).any() else found.astype(np.float64)


def _between(op: Operation, value: Value) -> list[Operation] | None:
    """Returns the elementwise ops that compute an op's result from one value and constants, in order."""
    found: dict[Operation, None] = {}
    elements, waiting = 0, [op]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, tfl.TFLOp) or each.op_name not in _ELEMENTWISE or len(found) == _OPERATORS:
            return None
        found[each] = None
        for operand in each.operands:
            constant = constant_behind(operand)
            if constant is not None:
                elements += math.prod(constant.shape)
            elif operand is value:
                continue
            elif not isinstance(operand, OpResult):
                return None
            elif operand.op not in found:
                waiting.append(operand.op)
        if elements > _ELEMENTS:
            return None
    ordered: dict[Operation, None] = {}
    while len(ordered) < len(found):
        ready = [each for each in found if each not in ordered and _is_ready(each, found, ordered)]
        ordered.update(dict.fromkeys(ready))
    return list(ordered)


def _is_ready(op: Operation, found: Mapping[Operation, None], ordered: Mapping[Operation, None]) -> bool:
    producers = [value.op for value in op.operands if isinstance(value, OpResult)]
    return all(each not in found or each in ordered for each in producers)


def _constant(value: Value) -> Array:
    constant = constant_behind(value)
    assert constant is not None, "the others have been computed"
    return tensor_data.to_array(constant)


def _numbers(seen: Range) -> Array:
    """Returns numbers of a range in ascending order, among them its ends and 0."""
    largest = max(-seen.low, seen.high)
    if largest <= 0:
        return np.zeros(1, np.float32)
    smallest = min(largest, 1.0) * _SMALLEST
    sizes = np.geomspace(smallest, largest, math.ceil(_IN_A_DECADE * math.log10(largest / smallest)))
    with np.errstate(over="ignore"):
        return np.unique(np.clip(np.concatenate([-sizes, [0.0], sizes]), *seen).astype(np.float32))


def _last_same(results: Array, tolerance: float) -> int:
    """Returns the last of the results from which all before it differ by no more than a tolerance."""
    with np.errstate(invalid="ignore"):
        furthest = np.maximum(np.maximum.accumulate(results) - results, results - np.minimum.accumulate(results))
    same = np.flatnonzero(furthest.max(1) <= tolerance)
    return int(same[-1]) if same.size else 0
