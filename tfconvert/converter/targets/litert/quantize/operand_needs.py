"""The numbers of an operand that an operator's result depends on; see `needs`.

A formula gets what is known about an operand and returns the range of these numbers: any others may be moved to the
nearer end, which changes the result by less than half a step. `NEEDS` has the formulas. Of other elementwise operators,
and of several that together compute a function of one value, `curves` finds the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.schema.tflite import operators

EVERYTHING = Range(-math.inf, math.inf)

# The largest factor of scores; those that make masks of zeros and ones are larger.
_SCALING = 256.0

OFF = 0.35
"""The share of a step that a function may be off its limit. With a half, it would round away from it where integers of
the operand end a step before their range."""


# Kernels compare what they have rounded to multiples of it, whatever the scales.
_COMPARED = 2.0**-8


class View(NamedTuple):
    """Facts about an operand.

    Attributes:
        position: The operand's index.
        is_constant: Whether it is a constant.
        seen: Its range in the samples.
        rows: The range of the largest numbers of its rows, if it is known; see `rows`.
        other: The range of the other operand of two, `EVERYTHING` if it is unknown.
        other_step: The step of that operand's integers, or less.
        is_other_constant: Whether that is a constant.
        result: The numbers of the result that matter.
        step: The difference between two numbers that the result distinguishes.
        apart: Two steps of the integers that others of its users need, or more.
        levels: The number of integers.
        row: The number of elements in the last dimension.
        terms: The number of elements that are added up, 0 if it is unknown.
        beta: The factor of a softmax.
    """

    position: int
    is_constant: bool
    seen: Range
    rows: Range
    other: Range
    other_step: float
    is_other_constant: bool
    result: Range
    step: float
    apart: float
    levels: int
    row: int
    terms: int
    beta: float


Need = Callable[[View], Range]


def picked(view: View) -> Range:
    """An operator that picks or moves numbers needs those that its result needs."""
    return view.result


def top(view: View) -> Range:
    """Numbers below those that are chosen must remain so: their positions are a result, too."""
    return Range(view.result.low - 2 * view.result.width / (view.levels - 3), view.result.high)


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


def squared_difference(view: View) -> Range:
    furthest = math.sqrt(max(view.result.high, 0.0))
    return Range(view.other.low - furthest, view.other.high + furthest)


def divided(view: View) -> Range:
    """Only the dividend is limited: by the result times the divisor, unless that may be 0."""
    least, most = view.other
    if view.position == 1 or least <= 0 <= most:
        return EVERYTHING
    ends = [end * divisor for end in view.result for divisor in (least, most)]
    return Range(min(ends), max(ends))


def summed(view: View) -> Range:
    """A term need not be lower than for the lowest sum that matters, if all others are highest."""
    others = view.terms - 1
    if others < 0:
        return EVERYTHING
    return Range(
        view.result.low - others * max(view.seen.high, 0.0), view.result.high - others * min(view.seen.low, 0.0)
    )


def averaged(view: View) -> Range:
    return summed(view._replace(result=Range(view.result.low * view.terms, view.result.high * view.terms)))


def compared(view: View) -> Range:
    """A number may lie anywhere beyond those that it is compared with, but not on them."""
    apart = 0.0 if view.is_constant else view.apart
    beyond = max(2 * (view.other.high - view.other.low) / view.levels, apart, 2 * _COMPARED)
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
    furthest = math.log(1 / (OFF * view.step))
    return Range(-furthest, furthest)


def tanh(view: View) -> Range:
    furthest = math.log(2 / (OFF * view.step)) / 2
    return Range(-furthest, furthest)


def exp(view: View) -> Range:
    return Range(math.log(OFF * view.step), math.inf)


def elu(view: View) -> Range:
    return Range(min(math.log(OFF * view.step), 0.0), math.inf)


def arg_max(view: View) -> Range:
    """Numbers below the largest of a row must remain so."""
    return Range(view.rows.low - _apart(view), math.inf)


def arg_min(view: View) -> Range:
    return Range(-math.inf, view.rows.high + _apart(view))


def _apart(view: View) -> float:
    """Returns two steps of integers for the numbers that are chosen from rows."""
    return 2 * view.rows.width / view.levels


# The formulas with their operator's name.
_NAMED = (squared_difference, hard_swish, exp, elu, logistic, tanh, softmax, log_softmax, arg_max, arg_min)

NEEDS: Mapping[str, Need] = {
    **{need.__name__: need for need in _NAMED},
    **dict.fromkeys((*operators.having("moves"), *operators.having("picks")), picked),
    **dict.fromkeys(("unsorted_segment_max", "unsorted_segment_min"), picked),
    "topk_v2": top,
    "add": added,
    "sub": subtracted,
    "mul": multiplied,
    "div": divided,
    "sum": summed,
    "cumsum": summed,
    "mean": averaged,
    **dict.fromkeys(operators.having("swapped"), compared),
    "relu": rectified(0.0),
    "relu6": rectified(0.0, 6.0),
    "relu_n1_to_1": rectified(-1.0, 1.0),
    "relu_0_to_1": rectified(0.0, 1.0),
}
"""The formulas by operator. All numbers of other operators' operands matter."""

STEEPEST: Mapping[Need, float] = {softmax: 0.25, log_softmax: 1.0, added: 1.0, subtracted: 1.0}
"""By how much results change at most if one of several numbers that they are computed from changes by 1."""
