"""The tables of what accelerators accept against the real ones, and files that run there."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tfconvert
from benchmarks.accelerator_probe import __main__ as command
from benchmarks.accelerator_probe.judge import probe
from tfconvert.converter.validation.runtimes_check import outcomes, swiftshader
from tfconvert.schema.tflite.accelerators.acceptance import OK, WRONG, table

FORMS = 150

# The share of forms whose verdict may differ: numbers that are within the tolerance by chance.
CHANCE = 0.03

REASONS = {
    "gpu": "" if swiftshader() else "Chromium with SwiftShader is not installed",
    "micro": "" if find_spec("tflite_micro") else "tflite-micro is not installed",
}


@pytest.mark.parametrize("kind", REASONS)
def test_a_sample_of_the_table(kind: str) -> None:
    if REASONS[kind]:
        pytest.skip(REASONS[kind])
    chosen = random.Random(5).sample(list(command.trials()), FORMS)
    found = list(probe(kind, chosen, sys.executable))
    known = table(kind)
    worse = [each for each in found if (known.verdict(each.operator, each.call).outcome, each.outcome) != (WRONG, OK)]
    assert len(command.differing(known, worse)) <= CHANCE * len(found)


@pytest.mark.parametrize("kind", REASONS)
def test_a_network_runs_there_if_its_operators_do(kind: str, digits_model: Path) -> None:
    if REASONS[kind]:
        pytest.skip(REASONS[kind])
    converted = tfconvert.convert(digits_model, batch=1, target=tfconvert.LiteRT(accelerator=[kind]))  # type: ignore[list-item]
    (acceptance,) = converted.report.acceptances
    (found,) = outcomes(bytes(converted), [kind])
    assert bool(found.problem) != acceptance.is_whole
    assert found.error < 1e-3
