"""The numbers of an operand that an operator's result depends on; see `needs`.

A formula gets what is known about an operand and returns the range of these numbers: any others may be moved to the
nearer end, which changes the result by less than half a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from tfconvert.converter.targets.litert.quantize.observers import Range

EVERYTHING = Range(-math.inf, math.inf)

# The largest factor of scores; those that make masks of zeros and ones are larger.
_SCALING = 256.0

# The share of a step that a function may be off its limit. With a half, it would round away from it where the operand's
# integers end a step before their range.
_OFF = 0.35


class View(NamedTuple):
    """Facts about an operand.

    Attributes:
        position: The operand's index.
        is_constant: Whether it is a constant.
        rows: The range of the largest numbers of its rows, if it is known; see `rows`.
        other: The range of the other operand of two, `EVERYTHING` if it is unknown.
        other_step: The step of that operand's integers, or less.
        is_other_constant: Whether that is a constant.
        result: The numbers of the result that matter.
        step: The difference between two numbers that the result distinguishes.
        apart: Two steps of the operand's integers, or more.
        levels: The number of integers.
        row: The number of elements in the last dimension.
        beta: The factor of a softmax.
    """

    position: int
    is_constant: bool
    rows: Range
    other: Range
    other_step: float
    is_other_constant: bool
    result: Range
    step: float
    apart: float
    levels: int
    row: int
    beta: float


Need = Callable[[View], Range]


def picked(view: View) -> Range:
    """An operator that picks or moves numbers needs those that its result needs."""
    return view.result


def top(view: View) -> Range:
    """Numbers below those that are chosen must remain so: their positions are a result, too."""
    return Range(view.result.low - view.apart, view.result.high)


def added(view: View) -> Range:
    return Range(view.result.low - view.other.high, view.result.high - view.other.low)


def subtracted(view: View) -> Range:
    low, high = view.result
    if view.position == 0:
        return Range(low + view.other.low, high + view.other.high)
    return Range(view.other.low - high, view.other.high - low)


def multiplied(view: View) -> Range:
    """A factor must only be so large that the smallest step of the other factor exceeds what the result needs.

    Of two factors, the constant one is limited, unless it only scales the other one, as a factor without 0 does.
    """
    (low, high), (least, most) = view.result, view.other
    if view.is_constant:
        largest = max(-low, high, 0.0) / view.other_step
        return Range(-largest, largest)
    # A state that is 0 in all samples may still be fed back.
    is_scaled = not least <= 0 <= most and max(-least, most) <= _SCALING
    if not is_scaled or low == high:
        return EVERYTHING
    ends = [end / factor for end in (low, high) for factor in (least, most)]
    return Range(min(ends), max(ends))


def compared(view: View) -> Range:
    """A number may lie anywhere beyond those that it is compared with, but not on them."""
    beyond = max(2 * (view.other.high - view.other.low) / view.levels, 0.0 if view.is_constant else view.apart)
    return Range(view.other.low - beyond, view.other.high + beyond)


def rectified(low: float, high: float = math.inf) -> Need:
    """Returns the formula of an operator that limits its operand."""
    return lambda view: Range(max(low, view.result.low), min(high, view.result.high))


def hard_swish(view: View) -> Range:
    return Range(-3.0, math.inf)


def softmax(view: View) -> Range:
    """All that is further below the largest of a row adds less than half a step together."""
    if view.beta <= 0:
        return EVERYTHING
    furthest = math.log(2 * view.row / view.step) / view.beta
    return Range(view.rows.low - furthest, view.rows.high + furthest)


def log_softmax(view: View) -> Range:
    """The kernel's results end at a number."""
    return Range(view.rows.low + view.result.low, math.inf)


def logistic(view: View) -> Range:
    furthest = math.log(1 / (_OFF * view.step))
    return Range(-furthest, furthest)


def tanh(view: View) -> Range:
    furthest = math.log(2 / (_OFF * view.step)) / 2
    return Range(-furthest, furthest)


def exp(view: View) -> Range:
    return Range(math.log(_OFF * view.step), math.inf)


def elu(view: View) -> Range:
    return Range(min(math.log(_OFF * view.step), 0.0), math.inf)


def arg_max(view: View) -> Range:
    """Numbers below the largest of a row must remain so."""
    return Range(view.rows.low - _apart(view), math.inf)


def arg_min(view: View) -> Range:
    return Range(-math.inf, view.rows.high + _apart(view))


def _apart(view: View) -> float:
    """Returns two steps of integers for the numbers that are chosen from rows."""
    return 2 * view.rows.width / view.levels
