"""Calls on numbers that are stored as they are: every operator, element type and rank, judged by the reference.

The reference computes as TensorFlow does, and tests compare it with TensorFlow. So what LiteRT computes otherwise is
wrong for a converted model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.kernel_probe import plain_elementwise, plain_images, plain_movement, plain_reductions
from benchmarks.kernel_probe.case import Case, random
from benchmarks.kernel_probe.child import Answer, Job, run
from benchmarks.kernel_probe.draw import Draw, Family, Plan, dtype_of
from benchmarks.kernel_probe.judge import Found
from benchmarks.kernel_probe.tensors import Array, Tensor
from tfconvert.converter.executor.executor import Executor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tflite.kernels import OK, WRONG

# By which part of the maximum number, or of one, a result may be off.
TOLERANCE: Mapping[str, float] = {
    "f32": 3e-5,
    "f16": 6e-3,
    "bf16": 5e-2,
    "f64": 1e-9,
    "complex64": 3e-5,
    "complex128": 1e-9,
}

# How many calls one process runs at most.
BATCH = 400


def families() -> Iterator[Family]:
    """Yields the operators with their calls."""
    for module in (plain_elementwise, plain_reductions, plain_movement, plain_images):
        yield from module.FAMILIES


def first_rank(family: Family) -> int:
    """Returns the rank that tells whether a kernel takes a type at all."""
    return min(family.ranks, key=lambda rank: (abs(rank - 2), rank))


def cases(family: Family, kind: str, rank: int) -> Iterator[Case]:
    """Yields the calls that the reference can compute, with the results that it computes.

    Args:
        family: The operator.
        kind: The element type.
        rank: The rank.
    """
    for plan in family.plans(Draw(family.operator, kind, rank)):
        case = _case(family.operator, plan)
        if case is not None:
            yield case
            if kind == "f32" and rank == first_rank(family):
                special = _case(family.operator, _special(plan))
                if special is not None:
                    yield replace(special, is_special=True)


def _special(plan: Plan) -> Plan:
    """Returns a call with infinities and NaN among its operands."""
    draw, operands = random(1), list[Tensor | None]()
    for operand in plan.operands:
        if operand is not None and operand.type == "f32":
            value = operand.value.copy()
            at = draw.permutation(value.size)[: max(value.size // 3, 1)]
            value.reshape(-1)[at] = np.resize(np.array([np.nan, np.inf, -np.inf, 0, 1e-40], np.float32), len(at))
            operand = replace(operand, value=value)
        operands.append(operand)
    return plan._replace(operands=operands)


def measure(chosen: Sequence[Family]) -> list[Found]:
    """Tries all calls of some operators; where a kernel takes nothing of a type's, not every rank."""
    pairs = [(family, kind) for family in chosen for kind in family.types]
    found = probe([case for family, kind in pairs for case in cases(family, kind, first_rank(family))])
    taken = {
        (each.case.operator, each.case.operands[index].type)  # type: ignore[union-attr]
        for each in found
        if {each.builtin, each.xnnpack} & {OK, WRONG}
        for index in range(len(each.case.operands))
        if each.case.operands[index] is not None
    }
    others = [
        case
        for family, kind in pairs
        for rank in family.ranks
        if rank != first_rank(family) and (family.operator, kind) in taken
        for case in cases(family, kind, rank)
    ]
    return [*found, *probe(others)]


def _case(operator: str, plan: Plan) -> Case | None:
    """Returns a call with its results, `None` if it can't be computed: TensorFlow has no such call either."""
    unknown = [Tensor(kind, np.zeros((), dtype_of(kind))) for kind in plan.results]
    case = Case(operator, plan.operands, unknown, plan.options)
    with np.errstate(all="ignore"):
        try:
            results = Executor(case.module).run("main", case.inputs)
        except (ConversionError, TypeError, ValueError):
            return None
    expected = [Tensor(kind, value) for kind, value in zip(plan.results, results, strict=True)]
    if any(value.dtype != dtype_of(each.type) for each, value in zip(expected, results, strict=True)):
        return None
    return replace(case, results=expected)


def probe(cases: Sequence[Case]) -> list[Found]:
    """Runs cases and returns what became of them."""
    found = []
    for start in range(0, len(cases), BATCH):
        part = cases[start : start + BATCH]
        plain = [Job(case.file, case.inputs) for case in part]
        answers = run([each for job in plain for each in (job, replace(job, has_delegates=True))])
        for index, case in enumerate(part):
            expected = Answer([result.stored for result in case.results])
            found.append(Found(case, expected, answers[2 * index : 2 * index + 2], error_of))
    return found


def error_of(case: Case, answer: Answer, expected: Answer) -> float:
    """Returns how far results are off, in units of what is allowed."""
    if answer.problem:
        return float("nan")
    pairs = zip(case.results, answer.results, expected.results, strict=True)
    return max((_error(result, found, wanted) for result, found, wanted in pairs), default=0.0)


def _error(result: Tensor, found: Array, wanted: Array) -> float:
    if found.shape != wanted.shape:
        return float("inf")
    if result.type not in TOLERANCE:
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
        largest = np.max(np.abs(b), initial=1, where=np.isfinite(b))
        return float(np.nan_to_num(np.max(distance, initial=0) / largest, nan=np.inf) / TOLERANCE[result.type])
