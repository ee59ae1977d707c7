"""The numbers of each value that results depend on, which its integers have to represent.

A calibrated range may be far wider: that of `select(mask, scores, -1e9)` is, although a softmax gives the same for
`-1e9` as for a number that is 20 below all scores. So operators say which numbers of an operand matter to them
(`operand_needs`), from the results of a function back to its inputs. All others may be moved to the nearer end of
these, which integers do by themselves:

- An operator that picks from its operands, such as a maximum, gives the same whether the ends apply before or after it:
  `maximum(clip(x), clip(c)) == clip(maximum(x, c))`. So its operands need what its result needs, constants included.
- A term of a sum need not be lower than for the lowest sum that matters, beside the highest number of the other term.
- A function with a limit, such as a softmax or a sigmoid, needs no numbers beyond which its result changes by less
  than half a step.
- A constant that is compared has to lie beyond the numbers that it is compared with, no matter how far.

So results are the same, up to half a step, for all inputs whose values are in the calibrated ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from tfconvert.converter.targets.litert.quantize import operand_needs
from tfconvert.converter.targets.litert.quantize.calls import CALLS
from tfconvert.converter.targets.litert.quantize.candidates import activations, is_constant, is_float
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.operand_needs import EVERYTHING, View
from tfconvert.converter.targets.litert.quantize.parameters import headroom, range_of, range_of_integers, uniform_of
from tfconvert.converter.targets.litert.quantize.rules import RULES, Rule, Scales
from tfconvert.schema.dialects import tfl, types
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import OpResult, Value

# The share of a range that must matter for all of it to be represented: a bit more of precision isn't lost.
_MOST = 0.5

# A term of a sum masks the other one if it is this many times as wide, and a margin for scores that are all alike.
_MASK_WIDTH = 8.0
_MARGIN = 10.0

# The operators that pick the lower or the higher of two numbers.
_LIMITS = frozenset(("tfl.minimum", "tfl.maximum"))

# How many ops to look at before a value for those that compute masks.
_DEPTH = 64

# The smallest difference that floats distinguish: of probabilities that a row shares, and of any numbers.
_FLOAT_SHARES, _FLOATS = 2.0**-24, 2.0**-126

# If the size of a row isn't known.
_ROW = 4096


class Needs:
    """The numbers that matter of a function's values.

    Args:
        ops: The function's ops.
        quantized: Those of them that compute with integers.
        storage: The type of integers.
        constant_range: Returns the range of a constant.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        quantized: Mapping[Operation, Rule],
        storage: IntegerType,
        constant_range: Callable[[Value], Range],
    ) -> None:
        self._quantized, self._storage, self._constant_range = quantized, storage, constant_range
        self._unmasked: dict[Value, Range] = {}
        self._wanted: dict[Value, Range] = {}
        for op in ops:
            self._find_masks(op)
        for op in reversed(ops):
            for index, value in enumerate(op.operands):
                if is_float(value) and not is_constant(value):
                    wanted = self._operand(op, index)
                    known = self._wanted.get(value)
                    self._wanted[value] = wanted if known is None else known.joined(wanted)

    def of(self, value: Value) -> Range | None:
        """Returns the numbers of a computed value that matter, `None` if its range is unknown."""
        seen = range_of(value)
        return None if seen is None else self._covered(seen, self._narrowed(value, seen))

    def of_constant(self, op: Operation, index: int) -> Range:
        """Returns the range of a constant operand without the numbers that don't matter."""
        seen, wanted = self._constant_range(op.operands[index]), self._operand(op, index)
        return self._covered(seen, Range(*(min(max(end, wanted.low), wanted.high) for end in seen)))

    def _narrowed(self, value: Value, seen: Range) -> Range:
        wanted = self._wanted.get(value, EVERYTHING)
        low, high = min(max(seen.low, wanted.low), seen.high), max(min(seen.high, wanted.high), seen.low)
        return Range(low, high) if _width(low, high) < _MOST * _width(*seen) else seen

    def _covered(self, seen: Range, narrowed: Range) -> Range:
        """Returns the range to cover with integers: what is beyond the end of a mask should have the same integer."""
        beyond = headroom(self._storage)
        return Range(*(end if end == old else end / beyond for end, old in zip(narrowed, seen, strict=True)))

    def _operand(self, op: Operation, index: int) -> Range:
        """Returns the numbers of an operand that matter to an op."""
        rule = self._quantized.get(op) or RULES.get(op.name)
        if rule is None or rule.need is None or index not in activations(op, rule):
            return EVERYTHING
        wanted = rule.need(self._view(op, index, rule))
        return EVERYTHING if math.isnan(wanted.low) or math.isnan(wanted.high) else wanted

    def _view(self, op: Operation, index: int, rule: Rule) -> View:
        value = op.operands[index]
        others = [each for at, each in enumerate(op.operands) if at != index and is_float(each)]
        fixed = rule.fixed_type(self._storage) if op in self._quantized else None
        result = range_of_integers(fixed) if fixed is not None else self._result(op)
        levels = 2**self._storage.width
        if fixed is not None:
            step = fixed.scales[0]
        elif op in self._quantized:
            step = max((result.high - result.low) / levels, _FLOATS)
        else:
            step = _FLOAT_SHARES if rule.scales is Scales.FIXED else _FLOATS
        return View(
            index,
            is_constant(value),
            self._visible(value),
            self._seen(others[0]) if len(others) == 1 else EVERYTHING,
            self._step(others[0]) if len(others) == 1 else _FLOATS,
            len(others) == 1 and is_constant(others[0]),
            result,
            step,
            levels,
            _row(value),
            float(tfl.attribute(op, "beta")) if op.name == "tfl.softmax" else 1.0,
        )

    def _result(self, op: Operation) -> Range:
        """Returns the numbers of an op's results that matter."""
        ranges = {result: range_of(result) for result in op.results if is_float(result)}
        found = [self._narrowed(value, seen) if seen is not None else EVERYTHING for value, seen in ranges.items()]
        return reduce(Range.joined, found) if found else EVERYTHING

    def _seen(self, value: Value) -> Range:
        if is_constant(value):
            return self._constant_range(value)
        return range_of(value) or EVERYTHING

    def _visible(self, value: Value) -> Range:
        """Returns the range of a value's numbers that aren't masked."""
        return self._unmasked.get(value) or self._seen(value)

    def _step(self, value: Value) -> float:
        """Returns the step of a value's integers, as far as it isn't masked."""
        visible = self._visible(value)
        return uniform_of(visible, self._storage).scales[0] if visible.is_finite else _FLOATS

    def _find_masks(self, op: Operation) -> None:
        """Finds the range of an op's results without what is masked, if that is smaller."""
        rule = RULES.get(op.name)
        if rule is None or rule.need is None:
            return
        low, high = self._computed(op, rule)
        for result in filter(is_float, op.results):
            seen = self._seen(result)
            found = Range(max(seen.low, low), min(seen.high, high))
            if found.low <= found.high and found != seen:
                self._unmasked[result] = found

    def _computed(self, op: Operation, rule: Rule) -> Range:
        """Returns the range of an op's results from those of its operands, without what is masked."""
        values = [op.operands[index] for index in activations(op, rule)]
        if rule.need is operand_needs.picked:
            return self._picked(op, values)
        if len(values) != 2:
            return EVERYTHING
        first, second = map(self._without_mask, values, reversed(values))
        if rule.need is operand_needs.added:
            return Range(first.low + second.low, first.high + second.high)
        if rule.need is operand_needs.subtracted:
            return Range(first.low - second.high, first.high - second.low)
        if rule.need is operand_needs.multiplied and any(map(is_constant, values)):
            first, second = map(self._visible, values)
            ends = [one * other for one in first for other in second]
            return Range(min(ends), max(ends))
        return EVERYTHING

    def _picked(self, op: Operation, values: Sequence[Value]) -> Range:
        """Returns the range of results that are picked from operands, or padded with zeros, without what is masked.

        A row of nothing but one constant is the same to a softmax, whatever the constant is.
        """
        computed = [value for value in values if not is_constant(value)]
        if op.name in _LIMITS and len(computed) == 2 and self._masks(*computed[::-1]):
            computed.pop()
        low, high = reduce(Range.joined, map(self._visible, computed), Range(0.0, 0.0))
        for value in filter(is_constant, values):
            seen = self._seen(value)
            is_outside = seen.low == seen.high and (seen.high < low or seen.low > high)
            # The lower of two numbers isn't hidden by a minimum.
            if not is_outside or (op.name in _LIMITS and (seen.high < low) == (op.name == "tfl.minimum")):
                low, high = min(low, seen.low), max(high, seen.high)
        return Range(low, high)

    def _without_mask(self, term: Value, other: Value) -> Range:
        """Returns the range of a term of a sum where it doesn't mask the other one."""
        visible = self._visible(term)
        if not self._masks(term, other):
            return visible
        end = min(visible, key=abs)
        return Range(end, end)

    def _masks(self, term: Value, other: Value) -> bool:
        """Returns whether a term of a sum is a mask: next to nothing, or far beyond all other terms."""
        (low, high), visible = self._visible(term), self._visible(other)
        is_wide = high - low > _MASK_WIDTH * (visible.high - visible.low + _MARGIN)
        return is_wide and not _is_product(term)


def _is_product(value: Value) -> bool:
    """Returns whether products with weights or other activations are among the ops that compute a value."""
    pending, done = [value], {value}
    while pending:
        each = pending.pop()
        if not isinstance(each, OpResult):
            continue
        rule = RULES.get(each.op.name)
        if len(done) > _DEPTH or each.op.name in CALLS or (rule is not None and rule.is_product):
            return True
        new = [operand for operand in each.op.operands if is_float(operand) and operand not in done]
        done.update(new)
        pending += new
    return False


def _width(low: float, high: float) -> float:
    """Returns the width of a range of integers, which contains 0."""
    return max(high, 0.0) - min(low, 0.0)


def _row(value: Value) -> int:
    shape = types.shape_of(value.type)
    return shape[-1] if shape and shape[-1] > 0 else _ROW
