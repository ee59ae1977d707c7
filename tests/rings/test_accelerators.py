"""The tables of what accelerators accept against the real ones, and files that run there."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from benchmarks.accelerator_probe import __main__ as command
from benchmarks.accelerator_probe import parent, vela
from benchmarks.accelerator_probe.judge import probe
from benchmarks.kernel_probe import child
from tests.support.gpu_forms import forms
from tfconvert.converter.targets.litert.passes.fit_accelerators import FitAccelerators
from tfconvert.converter.validation.runtimes_check import outcomes, swiftshader
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.tflite.accelerators.acceptance import CRASHES, OK, REFUSED, WRONG, table

FORMS = 300

# The file that Intel's plugin links is that of one release of OpenVINO.
REASONS = {
    "gpu": "" if swiftshader() else "Chromium with SwiftShader is not installed",
    "intel": "" if find_spec("openvino") else "OpenVINO is not installed",
    "micro": "" if find_spec("tflite_micro") else "tflite-micro is not installed",
    "ethos-u": "" if find_spec("ethosu") else "Arm's compiler is not installed",
}
RUNTIMES = ("gpu", "micro")

# Forms that are wrong for some numbers only; a sample may draw others.
BY_CHANCE = {(WRONG, OK)}

# What Arm's compiler refuses with one set of numbers, it may crash at with another; it takes neither.
NOT_TAKEN = {(REFUSED, CRASHES), (CRASHES, REFUSED)}


@pytest.mark.parametrize("kind", REASONS)
def test_a_sample_of_the_table(kind: str) -> None:
    if REASONS[kind]:
        pytest.skip(REASONS[kind])
    every = list(command.trials())
    chosen = random.Random(5).sample(every, FORMS if kind != "ethos-u" else 60)
    found = list(vela.probe(chosen, sys.executable) if kind == "ethos-u" else probe(kind, chosen, sys.executable))
    assert found
    known = table("npu" if kind == "intel" else kind)
    same = BY_CHANCE | (NOT_TAKEN if kind == "ethos-u" else set())
    certain = [each for each in found if (known.verdict(each.operator, each.call).outcome, each.outcome) not in same]
    assert command.differing(known, certain) == []


@pytest.mark.parametrize("kind", RUNTIMES)
def test_a_network_runs_there_if_its_operators_do(kind: str, digits_model: Path) -> None:
    if REASONS[kind]:
        pytest.skip(REASONS[kind])
    converted = tfconvert.convert(digits_model, batch=1, target=tfconvert.LiteRT(accelerator=[kind]))  # type: ignore[list-item]
    (acceptance,) = converted.report.acceptances
    (found,) = outcomes(bytes(converted), [kind])
    assert bool(found.problem) != acceptance.is_whole
    assert found.error < 1e-3
    if kind == "gpu":
        assert found.is_whole is acceptance.is_whole


def test_rewritten_operators_run_on_the_gpu() -> None:
    if REASONS["gpu"]:
        pytest.skip(REASONS["gpu"])
    known = forms()
    answers = child.run([child.Job(trial.build()[0], trial.inputs) for _, trial in known])
    jobs = []
    for (_, trial), answer in zip(known, answers, strict=True):
        module = import_tflite(trial.build([each.shape for each in answer.results])[0])
        FitAccelerators(["gpu"]).apply(module)
        jobs.append(parent.Job(export(module).to_bytes(), trial.inputs, answer.results))
    wrong = [
        name
        for (name, _), job, answer in zip(known, jobs, parent.run("gpu", jobs), strict=True)
        if answer.problem or not all(map(_is_near, job.expected, answer.results))
    ]
    assert not wrong


def _is_near(one: np.ndarray, other: np.ndarray) -> bool:
    # Borders of infinity become those of the largest number.
    largest = np.finfo(np.float32).max
    return np.allclose(np.clip(one.astype(float), -largest, largest), other.astype(float), rtol=1e-3, atol=1e-4)
