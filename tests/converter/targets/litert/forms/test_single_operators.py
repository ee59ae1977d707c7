"""Rewrites of single operators for the GPU: the tables take what they make, and it computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.kernel_probe import child
from tests.support.gpu_forms import forms
from tfconvert.converter.targets.litert.accelerator_check import check
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.tflite.accelerators.acceptance import verdict

# The parts of a number by which formulas may differ from kernels.
_TOLERANCE = 2e-6

_FORMS = forms()


@pytest.fixture(scope="module")
def rewritten() -> list[tuple[str, bool, bool, child.Answer, child.Answer]]:
    """Returns for each form the rewrites, whether the GPU takes it before and after, and the results."""
    first = child.run([child.Job(trial.build()[0], trial.inputs) for _, trial in _FORMS])
    found, jobs = [], []
    for (_, trial), answer in zip(_FORMS, first, strict=True):
        assert not answer.problem, (trial, answer.problem)
        file, call = trial.build([each.shape for each in answer.results])
        module = import_tflite(file)
        applied = FitAccelerators(["gpu"]).apply(module).counts
        obstacles = [each for each in check(module, "gpu").obstacles if not _is_border(each.reason)]
        was_taken = verdict("gpu", trial.operator, call).is_ok
        jobs.append(child.Job(export(module).to_bytes(), trial.inputs))
        found.append((" ".join(applied), was_taken, not obstacles, answer))
    return [(*each, second) for each, second in zip(found, child.run(jobs), strict=True)]


def _is_border(reason: str) -> bool:
    """Returns whether an operator is left because the form has a high rank, or nothing but a copy."""
    return "a rank above 4" in reason or reason == "an output is an input"


@pytest.mark.parametrize("index", range(len(_FORMS)), ids=[f"{name}-{at}" for at, (name, _) in enumerate(_FORMS)])
def test_rewritten(index: int, rewritten: list[tuple[str, bool, bool, child.Answer, child.Answer]]) -> None:
    applied, was_taken, is_taken, before, after = rewritten[index]
    assert not was_taken
    assert _FORMS[index][0] in applied.split()
    assert is_taken
    assert not after.problem
    for one, other in zip(before.results, after.results, strict=True):
        assert one.dtype == other.dtype
        # Borders of infinity become those of the largest number.
        finite = np.clip(one.astype(float), *(np.finfo(np.float32).min, np.finfo(np.float32).max))
        np.testing.assert_allclose(other.astype(float), finite, rtol=_TOLERANCE, atol=_TOLERANCE)
