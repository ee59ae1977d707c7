"""Judges what an accelerator made of a form."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accelerator_probe import parent
from benchmarks.accelerator_probe.parent import Answer, Job
from benchmarks.accelerator_probe.trial import Trial
from benchmarks.kernel_probe import child as cpu
from benchmarks.kernel_probe.tensors import Array
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, LOAD_FAILS, OK, REFUSED, WRONG
from tfconvert.schema.tflite.accelerators.forms import CallForm
from tfconvert.schema.tflite.versions import Call, Operand

# By which part of the largest number floats may be off; integers that stand for real numbers by so many steps.
_TOLERANCE = 1e-3
# OpenVINO computes convolutions and products in lower precision.
_COARSE = 2e-2
_STEPS = 2

# The CPU kernel ignores zero points.
_CPU_IS_WRONG = frozenset((("NEG", "i8>i8"),))

_LISTED = re.compile(r"^\s*([A-Z][A-Z0-9_]+): ?(.*)$", re.MULTILINE)
_SELECTED = re.compile(r"selected (\d+) ops, from a total of (\d+)")
_NAMES = re.compile(r"\"?\b[xyt]\d+\b\"?|\"arg\d+\"|\bTensor \"[^\"]*\"")


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of a form."""

    operator: str  # The operator.
    call: Call  # The call.
    outcome: str  # The outcome.
    said: str = ""  # What the accelerator said.

    @property
    def form(self) -> CallForm:
        """The form of the call."""
        return CallForm(self.operator, self.call)


def probe(kind: str, trials: Sequence[Trial], python: str) -> Iterator[Found]:
    """Yields the outcomes of the forms that the CPU runs.

    Args:
        kind: The runtime, a key of `child.KINDS`.
        trials: The forms.
        python: The Python that has the runtime.
    """
    answers = cpu.run([cpu.Job(trial.build()[0], trial.inputs) for trial in trials])
    for trial, answer in zip(trials, answers, strict=True):
        if answer.problem == cpu.CRASH and not trial.origins:
            shape = trial.inputs[0].shape
            yield Found(
                trial.operator, trial.build([shape] * len(trial.results))[1], CRASHES, "so does the CPU's kernel"
            )
    valid = [(trial, answer) for trial, answer in zip(trials, answers, strict=True) if not answer.problem]
    jobs, calls = [], []
    for trial, answer in valid:
        file, call = trial.build([each.shape for each in answer.results])
        jobs.append(Job(file, trial.inputs, answer.results))
        calls.append(call)
    answers_on = parent.run(kind, jobs, python)
    for count, ((trial, _), job, call, outcome) in enumerate(zip(valid, jobs, calls, answers_on, strict=True)):
        if count % 500 == 0:
            print(f"{count} of {len(jobs)}", file=sys.stderr, flush=True)
        yield from _judged(kind, trial, call, job, outcome)


def _judged(kind: str, trial: Trial, call: Call, job: Job, answer: Answer) -> Iterator[Found]:
    refused = dict(_refusals(answer.log)) if kind == "gpu" else {}
    if trial.origins:
        # That of f16 is listed only together with the operator that uses it.
        is_refused = "DEQUANTIZE" in refused and any(call.inputs[index].origin != "f16" for index in trial.origins)
        outcome = (REFUSED if is_refused else OK) if kind == "gpu" else _outcome(kind, trial, call, job, answer)
        for index in trial.origins:
            yield Found("DEQUANTIZE", _dequantized(call.inputs[index]), outcome, refused.get("DEQUANTIZE", ""))
    if kind == "gpu":
        if trial.operator in refused:
            yield Found(trial.operator, call, _unless_fails(answer, REFUSED), refused[trial.operator])
            return
    elif trial.origins:
        return
    if kind == "intel":
        counts = [tuple(map(int, pair)) for pair in _SELECTED.findall(answer.log)]
        if not any(taken for taken, _ in counts) and answer.problem != parent.ENDED:
            yield Found(trial.operator, call, REFUSED)
            return
    outcome = _outcome(kind, trial, call, job, answer)
    if outcome:
        yield Found(trial.operator, call, outcome, _said(answer) if outcome != OK else "")


def _dequantized(result: Operand) -> Call:
    """Returns the call that makes an operand of a constant."""
    scales = {"f16": (), "i8": (1.0,), "i8c": (1.0, 1.0)}[result.origin]
    kind = "FLOAT16" if result.origin == "f16" else "INT8"
    constant = result._replace(type=kind, origin="", scales=scales, is_constant=True)
    return Call((constant,), (result._replace(origin=""),), {})


def _unless_fails(answer: Answer, outcome: str) -> str:
    return LOAD_FAILS if _fails(answer) else outcome


def _fails(answer: Answer) -> bool:
    return "Failed to" in answer.problem or "not yet supported" in answer.log


def _refusals(log: str) -> Iterator[tuple[str, str]]:
    """Yields the operators that the GPU refuses, with the reasons."""
    _, _, block = log.partition("Following operations are not supported")
    for name, why in _LISTED.findall(block.partition("will run on the")[0]):
        yield name, normalized(why)


def normalized(text: str) -> str:
    """Returns a message without names of tensors."""
    return " ".join(_NAMES.sub("", text).split())[:90]


def _said(answer: Answer) -> str:
    found = re.search(r"Validation error: (Error while parsing WGSL|Binding size|[^\n]{,40})", answer.log)
    if found:
        return "its shader is not valid"
    if "Failed to modify graph" in answer.problem:
        return "Failed to modify graph with delegate"
    return normalized(answer.problem) if answer.problem not in (parent.ENDED, parent.HANGS) else ""


def _outcome(kind: str, trial: Trial, call: Call, job: Job, answer: Answer) -> str:
    """Returns an outcome, empty if it is not known."""
    if answer.problem in (parent.ENDED, parent.HANGS):
        return "" if kind == "gpu" and any(each.dtype == np.int16 for each in job.inputs) else CRASHES
    if "Unsupported dtype" in answer.problem:
        return ""
    if answer.problem:
        return REFUSED if kind == "micro" else LOAD_FAILS
    if (trial.operator, CallForm(trial.operator, call).signature) in _CPU_IS_WRONG:
        return OK
    is_hybrid = any(each is not None and each.is_constant and bool(each.scales) for each in trial.operands)
    is_coarse = is_hybrid or kind == "intel" or "FLOAT16" in {each.type for each in (*call.inputs, *call.outputs)}
    tolerance = _COARSE if is_coarse else _TOLERANCE
    expected = list(job.expected)
    if kind == "gpu":
        expected = [_masked(trial, each, result) for each, result in zip(expected, answer.results, strict=True)]
    # The CPU's kernels ignore TANH where it is fused; so may others.
    may_differ = trial.options.get("fused_activation_function") == "TANH"
    meant = list(map(np.tanh, expected)) if may_differ else expected
    is_right = any(
        all(
            _agree(a, b, tolerance, bool(out.scale))
            for a, b, out in zip(each, answer.results, trial.results, strict=True)
        )
        for each in (expected, meant)
    )
    return OK if is_right else WRONG


def _masked(trial: Trial, expected: Array, result: Array) -> Array:
    """Returns what is expected; of comparisons of quantized numbers whatever results where these differ by a step."""
    quantized = [each.stored.astype(np.int32) for each in trial.operands if each is not None and each.scales]
    if expected.dtype != np.bool_ or len(quantized) != 2 or result.shape != expected.shape:
        return expected
    is_near = np.abs(quantized[0] - quantized[1]) <= 1
    return np.where(np.broadcast_to(is_near, expected.shape), result, expected)


def _agree(expected: Array, result: Array, tolerance: float, is_quantized: bool) -> bool:
    if result.size != expected.size:
        return False
    a, b = expected.astype(np.float64).ravel(), result.astype(np.float64).ravel()
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not a.size:
        return not a.size
    off = np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)).max()
    if expected.dtype.kind == "f":
        return bool(off <= tolerance * (np.abs(np.where(finite, a, 0)).max() + 1e-9))
    return bool(off <= (_STEPS if is_quantized else 0))
