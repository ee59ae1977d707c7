"""The numbers of each value that results depend on, which its integers have to represent.

A calibrated range may be far wider: that of `select(mask, scores, -1e9)` is, although a softmax gives the same for
`-1e9` as for a number that is 20 below all scores. So operators say which numbers of an operand matter to them
(`operand_needs`), from the results of a function back to its inputs. All others may be moved to the nearer end of
these, which integers do by themselves:

- An operator that picks from its operands, such as a maximum, gives the same whether the ends apply before or after it:
  `maximum(clip(x), clip(c)) == clip(maximum(x, c))`. So its operands need what its result needs, constants included.
- A term of a sum need not be lower than for the lowest sum that matters, beside the highest number of the other term.
- A function with a limit, such as a sigmoid, needs no numbers beyond which its result has the limit's integer;
  a softmax none that are further below the lowest of the largest numbers of rows in the samples (`rows`). Several
  operators may be such a function together (`curves`).
- A number that is compared has to lie beyond those that it is compared with, no matter how far.

So results are the same, up to half a step, for all inputs whose values are in the calibrated ranges. 16-bit integers
reach beyond these (`headroom`), but no further than the numbers that matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from tfconvert.converter.targets.litert.fake_quant import constant_behind
from tfconvert.converter.targets.litert.quantize.candidates import activations, is_constant, is_float
from tfconvert.converter.targets.litert.quantize.curves import Curves
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.operand_needs import (
    EVERYTHING,
    NEEDS,
    OFF,
    STEEPEST,
    Need,
    View,
    added,
    arg_max,
    arg_min,
    picked,
    subtracted,
)
from tfconvert.converter.targets.litert.quantize.parameters import headroom, range_of, range_of_integers, uniform_of
from tfconvert.converter.targets.litert.quantize.rows import rows_of
from tfconvert.converter.targets.litert.quantize.rules import RULES, Rule, Scales
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import OpResult, Value
from tfconvert.schema.tflite import operators

# The share of a range that must matter for all of it to be represented: half a bit of precision isn't lost.
_MOST = 0.7

# The smallest difference that floats distinguish: of probabilities that a row shares, and of any numbers.
_FLOAT_SHARES, _FLOATS = 2.0**-24, 2.0**-126

# If the size of a row isn't known.
_ROW = 4096

# The most steps of a result that one of an operand may be worth.
_BLURRED = 4

_EXTREMES: Mapping[str, Callable[[Iterable[float]], float]] = {"maximum": max, "minimum": min}
_PADDING = Range(0.0, 0.0)

_COMPARING = frozenset(tfl.PREFIX + name for name in operators.having("swapped"))
_SUMS = frozenset(("tfl.sum", "tfl.cumsum", "tfl.mean"))


class Needs:
    """The numbers that matter of a function's values.

    Args:
        block: The function's block.
        quantized: The ops in it that compute with integers.
        storage: The type of integers.
        constant_range: Returns the range of a constant.
        curves: The functions of one value among the ops.
        reach: The factor by which numbers may exceed those of the samples.
    """

    def __init__(
        self,
        block: Block,
        quantized: Mapping[Operation, Rule],
        storage: IntegerType,
        constant_range: Callable[[Value], Range],
        curves: Curves,
        reach: float,
    ) -> None:
        self._quantized, self._storage, self._constant_range = quantized, storage, constant_range
        self._curves, self._reach = curves, reach
        self._limits: dict[Value, Range] = {}
        for op in block.ops if reach > 1 else ():
            if isinstance(op, tfl.TFLOp) and len(op.results) == 1 and is_float(op.results[0]):
                self._limits[op.results[0]] = self._limit(op)
        self._wanted: dict[Value, Range] = {}
        self._differences: dict[Value, float] = {}
        values = [value for op in reversed(tuple(block.ops)) for value in op.results]
        for value in (*values, *block.args):
            if is_float(value) and value.uses and not is_constant(value):
                self._find(value)

    def _find(self, value: Value) -> None:
        """Finds the numbers of a value that matter, after those of the values computed from it."""
        uses = [(use.operation, use.index) for use in value.uses]
        for op, index in sorted(uses, key=lambda use: use[0].name in _COMPARING):
            wanted, known = self._operand(op, index), self._wanted.get(value)
            self._wanted[value] = wanted if known is None else known.joined(wanted)
        self._differences[value] = min(self._difference(op, index) for op, index in uses)

    def _difference(self, op: Operation, index: int) -> float:
        """Returns a difference between two numbers of an operand that its user doesn't tell, 0 if it may tell any."""
        rule, value = self._quantized.get(op), op.operands[index]
        if rule is not None:
            return self._step(value) if index in activations(op, rule) else 0.0
        found = min((self._differences.get(result, 0.0) for result in op.results if is_float(result)), default=0.0)
        if op.name == "tfl.mul":
            other = self._seen(op.operands[1 - index])
            largest = max(-other.low, other.high)
            return found / largest if 0 < largest < math.inf else 0.0
        return found if _need_of(op) in (picked, added, subtracted) else 0.0

    def of(self, value: Value) -> Range | None:
        """Returns the numbers of a computed value that matter, `None` if its range is unknown."""
        seen = self._reached(value)
        return None if seen is None else self._within(self._narrowed(value, seen))

    def blurred(self, value: Value, step: float, *, is_lost: bool) -> list[Operation]:
        """Returns the ops whose results differ by several of their steps for numbers of an operand that differ by one.

        Args:
            value: Their operand, or what it is computed from, by ops that are then among them.
            step: The difference.
            is_lost: Whether ops with floats count.
        """
        found: dict[Operation, None] = {}
        between: dict[Operation, None] = {}
        waiting = [value]
        while waiting:
            each = waiting.pop()
            for use in each.uses:
                op = use.operation
                is_integer = op in self._quantized
                if self._steps(op, use.index, step) > _BLURRED if is_integer else is_lost:
                    found[op] = None
                elif is_integer and op not in between and self._passes_on(op, each):
                    between[op] = None
                    waiting += filter(is_float, op.results)
        pending = list(found)
        while pending:
            producers = [each.op for each in pending.pop().operands if isinstance(each, OpResult)]
            new = [op for op in producers if op in between and op not in found]
            found.update(dict.fromkeys(new))
            pending += new
        return list(found)

    def _passes_on(self, op: Operation, value: Value) -> bool:
        """Returns whether an op moves a value, or computes its result from that alone."""
        return _need_of(op) is picked or len(self._curves.operators(op, value)) == 1

    def _steps(self, op: Operation, index: int, step: float) -> float:
        """Returns how many steps of its result a step of an op's operand is worth."""
        value, need, view = op.operands[index], _need_of(op), self._view(op, index, self._quantized[op])
        if need in (arg_max, arg_min):
            return step * view.levels / view.rows.width if view.rows.width else 0.0
        if need is not None and need in STEEPEST:
            return step * STEEPEST[need] * view.beta / view.step
        return self._curves.steepest(op, value, _moved(view.seen, self._wanted[value]), step) / view.step

    def of_constant(self, op: Operation, index: int) -> Range:
        """Returns the range of a constant operand without the numbers that don't matter."""
        limits = [self._limits.get(value, EVERYTHING) for value in op.operands if not is_constant(value)]
        reached = self._beyond(self._constant_range(op.operands[index]), reduce(Range.joined, limits or [EVERYTHING]))
        return self._within(_moved(reached, self._operand(op, index)))

    def _narrowed(self, value: Value, seen: Range) -> Range:
        moved = _moved(seen, self._wanted.get(value, EVERYTHING))
        return moved if moved.width < _MOST * seen.width else seen

    def _reached(self, value: Value) -> Range | None:
        """Returns the range of a computed value with the numbers beyond the samples', `None` if it is unknown."""
        seen = range_of(value)
        return None if seen is None else self._beyond(seen, self._limits.get(value, EVERYTHING))

    def _beyond(self, seen: Range, limit: Range) -> Range:
        """Returns a range with numbers beyond the samples', up to those that can be."""
        return seen.joined(Range(max(seen.low * self._reach, limit.low), min(seen.high * self._reach, limit.high)))

    def _limit(self, op: tfl.TFLOp) -> Range:
        """Returns a range that an op's result can't exceed, whatever the inputs are."""
        bounds = operators.ranges()
        if op.op_name in bounds:
            return Range(*bounds[op.op_name])
        if tfl.ACTIVATION in tfl.option_fields(op.op_name):
            return Range(*bounds.get(tfl.attribute(op, tfl.ACTIVATION).lower(), EVERYTHING))
        limits = [
            self._constant_range(value) if is_constant(value) else self._limits.get(value, EVERYTHING)
            for value in op.operands
            if is_float(value)
        ]
        if op.op_name in _EXTREMES and limits:
            return Range(*(_EXTREMES[op.op_name](ends) for ends in zip(*limits, strict=True)))
        return reduce(Range.joined, limits, _PADDING) if _need_of(op) is picked and limits else EVERYTHING

    def _within(self, reached: Range) -> Range:
        """Returns a range without the headroom that its integers will have."""
        beyond = headroom(self._storage)
        return Range(reached.low / beyond, reached.high / beyond)

    def _operand(self, op: Operation, index: int) -> Range:
        """Returns the numbers of an operand that matter to an op."""
        rule = self._quantized.get(op) or RULES.get(op.name)
        if rule is not None and index not in activations(op, rule):
            return EVERYTHING
        need, view = _need_of(op), self._view(op, index, rule)
        wanted = need(view) if need is not None else EVERYTHING
        if math.isnan(wanted.low) or math.isnan(wanted.high):
            wanted = EVERYTHING
        chain = self._curves.operators(op, op.operands[index])
        if not view.seen.is_finite or len(chain) == 0 or (len(chain) == 1 and need is not None):
            return wanted
        step = view.step if op in self._quantized else self._differences.get(op.results[0], 0.0)
        curve = self._curves.need(op, op.operands[index], view.seen, view.result, OFF * step)
        return Range(max(wanted.low, curve.low), min(wanted.high, curve.high))

    def _view(self, op: Operation, index: int, rule: Rule | None) -> View:
        value = op.operands[index]
        seen = self._seen(value)
        others = [each for at, each in enumerate(op.operands) if at != index and is_float(each)]
        fixed = rule.fixed_type(self._storage) if rule is not None and op in self._quantized else None
        result = range_of_integers(fixed) if fixed is not None else self._result(op)
        levels = 2**self._storage.width
        if fixed is not None:
            step = fixed.scales[0]
        elif op in self._quantized:
            step = max((result.high - result.low) / levels, _FLOATS)
        else:
            least = _FLOAT_SHARES if rule is not None and rule.scales is Scales.FIXED else _FLOATS
            step = max(least, min((self._differences.get(each, 0.0) for each in op.results), default=0.0))
        known = self._wanted.get(value)
        return View(
            index,
            is_constant(value),
            seen,
            rows_of(op) or EVERYTHING,
            self._seen(others[0]) if len(others) == 1 else EVERYTHING,
            self._step(others[0]) if len(others) == 1 else _FLOATS,
            len(others) == 1 and is_constant(others[0]),
            result,
            step,
            2 * (seen if known is None else _moved(seen, known)).width / levels,
            levels,
            _row(value),
            _terms(op),
            float(tfl.attribute(op, "beta")) if op.name == "tfl.softmax" else 1.0,
        )

    def _result(self, op: Operation) -> Range:
        """Returns the numbers of an op's results that matter."""
        ranges = {result: self._reached(result) for result in op.results if is_float(result)}
        found = [
            self._narrowed(value, seen) if seen is not None else self._wanted.get(value, EVERYTHING)
            for value, seen in ranges.items()
        ]
        return reduce(Range.joined, found) if found else EVERYTHING

    def _seen(self, value: Value) -> Range:
        if is_constant(value):
            return self._constant_range(value)
        return self._reached(value) or EVERYTHING

    def _step(self, value: Value) -> float:
        """Returns the least step that a value's integers may have."""
        seen = self._seen(value)
        needed = seen if is_constant(value) else self._within(self._narrowed(value, seen))
        return uniform_of(needed, self._storage).scales[0] if needed.is_finite else _FLOATS


def _need_of(op: Operation) -> Need | None:
    return NEEDS.get(op.name.removeprefix(tfl.PREFIX))


def _moved(seen: Range, wanted: Range) -> Range:
    """Returns a range without the numbers that don't matter: one wholly beyond those that do is their end."""
    return Range(*(min(max(end, wanted.low), wanted.high) for end in seen))


def _row(value: Value) -> int:
    shape = value.shape
    return shape[-1] if shape and shape[-1] > 0 else _ROW


def _terms(op: Operation) -> int:
    """Returns the number of elements that a sum along constant axes adds up, 0 if that is unknown."""
    shape = op.operands[0].shape if op.name in _SUMS else None
    axes = constant_behind(op.operands[1]) if shape is not None else None
    if shape is None or axes is None:
        return 0
    sizes = [shape[axis] for axis in tensor_data.to_array(axes).reshape(-1)]
    return math.prod(sizes) if min(sizes, default=1) > 0 else 0
