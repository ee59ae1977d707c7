"""The numbers of each value that results depend on, which its integers have to represent.

A calibrated range may be far wider: that of `select(mask, scores, -1e9)` is, although a softmax gives the same for
`-1e9` as for a number that is 20 below all scores. So operators say which numbers of an operand matter to them
(`operand_needs`), from the results of a function back to its inputs. All others may be moved to the nearer end of
these, which integers do by themselves:

- An operator that picks from its operands, such as a maximum, gives the same whether the ends apply before or after it:
  `maximum(clip(x), clip(c)) == clip(maximum(x, c))`. So its operands need what its result needs, constants included.
- A term of a sum need not be lower than for the lowest sum that matters, beside the highest number of the other term.
- A function with a limit, such as a sigmoid, needs no numbers beyond which its result has the limit's integer;
  a softmax none that are further below the lowest of the largest numbers of rows in the samples (`rows`).
- A number that is compared has to lie beyond those that it is compared with, no matter how far.

So results are the same, up to half a step, for all inputs whose values are in the calibrated ranges. 16-bit integers
reach beyond these (`headroom`), but no further than the numbers that matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from tfconvert.converter.targets.litert.quantize.candidates import activations, is_constant, is_float
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.operand_needs import EVERYTHING, View
from tfconvert.converter.targets.litert.quantize.parameters import headroom, range_of, range_of_integers, uniform_of
from tfconvert.converter.targets.litert.quantize.rows import rows_of
from tfconvert.converter.targets.litert.quantize.rules import RULES, Rule, Scales
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import IntegerType
from tfconvert.schema.ir.values import Value

# The share of a range that must matter for all of it to be represented: half a bit of precision isn't lost.
_MOST = 0.7

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
        self._wanted: dict[Value, Range] = {}
        for op in reversed(ops):
            for index, value in enumerate(op.operands):
                if is_float(value) and not is_constant(value):
                    wanted = self._operand(op, index)
                    known = self._wanted.get(value)
                    self._wanted[value] = wanted if known is None else known.joined(wanted)

    def of(self, value: Value) -> Range | None:
        """Returns the numbers of a computed value that matter, `None` if its range is unknown."""
        seen = self._reached(value)
        return None if seen is None else self._within(self._narrowed(value, seen))

    def of_constant(self, op: Operation, index: int) -> Range:
        """Returns the range of a constant operand without the numbers that don't matter."""
        seen = self._constant_range(op.operands[index])
        moved = _moved(seen, self._operand(op, index))
        # What is beyond the end of a mask should have the same integer.
        inside = self._within(moved)
        return Range(*(end if end == old else least for end, old, least in zip(moved, seen, inside, strict=True)))

    def _narrowed(self, value: Value, seen: Range) -> Range:
        moved = _moved(seen, self._wanted.get(value, EVERYTHING))
        return moved if moved.width < _MOST * seen.width else seen

    def _reached(self, value: Value) -> Range | None:
        """Returns the range of a computed value with the headroom of its integers, `None` if it is unknown."""
        seen, beyond = range_of(value), headroom(self._storage)
        return None if seen is None else seen.joined(Range(seen.low * beyond, seen.high * beyond))

    def _within(self, reached: Range) -> Range:
        """Returns a range without the headroom that its integers will have."""
        beyond = headroom(self._storage)
        return Range(reached.low / beyond, reached.high / beyond)

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
            rows_of(op) or EVERYTHING,
            self._seen(others[0]) if len(others) == 1 else EVERYTHING,
            self._step(others[0]) if len(others) == 1 else _FLOATS,
            len(others) == 1 and is_constant(others[0]),
            result,
            step,
            2 * self._seen(value).width / levels,
            levels,
            _row(value),
            float(tfl.attribute(op, "beta")) if op.name == "tfl.softmax" else 1.0,
        )

    def _result(self, op: Operation) -> Range:
        """Returns the numbers of an op's results that matter."""
        ranges = {result: self._reached(result) for result in op.results if is_float(result)}
        found = [self._narrowed(value, seen) if seen is not None else EVERYTHING for value, seen in ranges.items()]
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


def _moved(seen: Range, wanted: Range) -> Range:
    """Returns a range without the numbers that don't matter: one wholly beyond those that do is their end."""
    return Range(*(min(max(end, wanted.low), wanted.high) for end in seen))


def _row(value: Value) -> int:
    shape = value.shape
    return shape[-1] if shape and shape[-1] > 0 else _ROW
