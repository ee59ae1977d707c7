"""The recurrent zoo's names of networks, and its verdicts on files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.recurrent import File, Outcome, summary
from benchmarks.recurrent_table import SHAPES, TIME, Case, cases

CASES = {case.name: case for case in cases()}
CASE = CASES["k3/lstm/seq+mask/dynamic"]
LOOP = {"WHILE": 1, "ADD": 9}


def file(operators: dict[str, int], errors: Sequence[float] = (0.0,) * 6) -> File:
    """Returns a file that has been run and judged."""
    made = File("", Counter(operators), list(errors))
    made.judge(CASE)
    return made


def test_a_name_is_one_networks() -> None:
    assert len(CASES) == len(cases()) > 200
    assert {case.shape for case in cases()} == set(SHAPES)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_inputs_fit_the_dynamic_dimensions(case: Case) -> None:
    specs = case.specs()
    for inputs in case.inputs():
        assert inputs.keys() == specs.keys()
        for name, (shape, dtype) in specs.items():
            assert inputs[name].dtype == dtype
            assert all(dim in (None, size) for dim, size in zip(shape, inputs[name].shape, strict=True))


def test_masked_steps_are_zeros() -> None:
    inputs = [each["x"] for each in CASE.inputs()]
    assert [array.shape[:2] for array in inputs] == CASE.sizes()
    assert all((array[:, TIME // 3] == 0).all() for array in inputs if array.shape[1] == TIME)
    assert np.array_equal(inputs[0], next(CASE.inputs())["x"])


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (file(LOOP), ""),
        (file({"FlexWhile": 1}), "not builtin: FlexWhile"),
        (file(LOOP, [0, 0, 0, 1e-3, float("inf"), 0]), "wrong at runs of 3x13 2x1: inf"),
    ],
)
def test_a_file_is_judged_by_its_operators_and_runs(made: File, problem: str) -> None:
    assert made.problem == problem


@pytest.mark.parametrize(
    ("official", "is_good"),
    [
        (None, True),
        (file({"WHILE": 1, "ADD": 9}), True),
        (file({"WHILE": 1, "ADD": 8}), False),
        (file({"WHILE": 1}, [1.0] * 6), True),
        (File("it can't be converted"), True),
    ],
    ids=["none", "equal", "fewer", "wrong", "missing"],
)
def test_only_an_official_file_that_is_right_is_a_bar(official: File | None, is_good: bool) -> None:
    outcome = Outcome(CASE, file(LOOP), official)
    assert outcome.is_good is is_good
    assert outcome.line().startswith("ok" if is_good else "FAIL")
    assert summary([outcome]).splitlines()[-1].split()[:5] == ["all", "1", "1", "0", "1"]


@pytest.mark.parametrize(
    ("operators", "form"),
    [
        ({"REVERSE_SEQUENCE": 1}, "plain"),
        (LOOP, "loop"),
        ({"UNIDIRECTIONAL_SEQUENCE_LSTM": 1}, "fused"),
        ({"BIDIRECTIONAL_SEQUENCE_RNN": 1, "WHILE": 1}, "part"),
        ({}, ""),
    ],
)
def test_operators_show_the_form_of_a_network(operators: dict[str, int], form: str) -> None:
    assert Outcome(CASE, file(operators), None).form == form
