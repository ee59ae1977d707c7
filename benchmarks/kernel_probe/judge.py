"""Judges a kernel's results: compares them with those of the same operator on the same numbers as floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.kernel_probe.case import COPIES, Case
from benchmarks.kernel_probe.child import CRASH, Answer, Job, run
from benchmarks.kernel_probe.tensors import LIMITS, Array, Tensor
from tfconvert.schema.tflite.kernels import CRASHES, OK, REFUSED, WRONG

# By how many of its steps a quantized result may be off; a narrow one has too few for that.
STEPS = 4
NARROW_STEPS = 0.4
_NARROW = frozenset(("i4", "i2"))

# By which part of the maximum number a float result may be off.
PART = 0.06

# Which part of other results may differ: a comparison of two close numbers may go either way.
DIFFERENT = 0.02


# Returns how far a case's answer is from the expected one, in units of what is allowed.
Measure = Callable[[Case, Answer, Answer], float]


class Found:
    """The outcome of a case.

    Attributes:
        case: The case.
        builtin: Its outcome with the builtin kernels, one of `kernels.OUTCOMES`.
        xnnpack: Its outcome with XNNPACK.
        errors: How far the results are off, in units of what is allowed; NaN without results.
        problems: Why there are no results.
    """

    __slots__ = ("builtin", "case", "errors", "problems", "xnnpack")

    def __init__(self, case: Case, expected: Answer, answers: Sequence[Answer], measure: Measure | None = None) -> None:
        self.case = case
        self.errors = [(measure or error_of)(case, answer, expected) for answer in answers]
        self.problems = [answer.problem for answer in answers]
        self.builtin, self.xnnpack = map(_outcome, answers, self.errors)


def _outcome(answer: Answer, error: float) -> str:
    if answer.problem:
        return CRASHES if answer.problem == CRASH else REFUSED
    return OK if error <= 1 else WRONG


def error_of(case: Case, answer: Answer, expected: Answer) -> float:
    """Returns how far results are off, in units of what is allowed.

    Args:
        case: The case.
        answer: The case's answer.
        expected: The answer of the case's twin.
    """
    if answer.problem or expected.problem:
        return float("nan")
    pairs = zip(case.results, answer.results, expected.results, strict=True)
    return max(_error(result, found, wanted) for result, found, wanted in pairs)


def _error(result: Tensor, found: Array, wanted: Array) -> float:
    if result.scales:
        low, high = LIMITS.get(result.type, (-(2**31), 2**31 - 1))
        real, minimum, maximum = (result.to_real(np.array(each)) for each in (found, low, high))
        # Numbers that the result can't express saturate, which is not an error.
        error = np.abs(real - np.clip(wanted, minimum, maximum)).max(initial=0) / result.scales[0]
        return float(error / (NARROW_STEPS if result.type in _NARROW else STEPS))
    if result.type in ("f32", "f16"):
        error = np.abs(found.astype(np.float64) - wanted).max(initial=0)
        return float(np.nan_to_num(error / max(float(np.abs(wanted).max(initial=0)), 1e-9), nan=np.inf) / PART)
    return float(np.mean(found != wanted) / DIFFERENT)


def probe(cases: Sequence[Case]) -> list[Found]:
    """Runs cases and returns what became of them.

    Raises:
        ValueError: The runtime can't run an operator on floats either, so that there is nothing to compare with.
    """
    plain = [Job(case.file, case.inputs) for case in cases]
    jobs = [each for job in plain for each in (job, replace(job, has_delegates=True))]
    twins = [case.twin for case in cases if case.operator not in COPIES]
    answers = run([*jobs, *[Job(twin.file, twin.inputs) for twin in twins]])
    expected = iter(answers[len(jobs) :])
    result = []
    for index, case in enumerate(cases):
        (first, *_) = case.operands
        wanted = next(expected) if case.operator not in COPIES else _copy(first)
        found = Found(case, wanted, answers[2 * index : 2 * index + 2])
        if wanted.problem and not all(found.problems):
            raise ValueError(f"{case.key} has no twin: {wanted.problem}")
        result.append(found)
    return result


def _copy(operand: Tensor | None) -> Answer:
    assert operand is not None
    return Answer([operand.real])
