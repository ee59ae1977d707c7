"""Random structured programs; `python -m tests.differential.programs` compares any number of them."""

from __future__ import annotations

from types import ModuleType

from tests.differential import programs


def test_random_programs_compute_the_same_everywhere(tf: ModuleType) -> None:
    summary = programs.check_programs(tf, range(140))
    assert summary.problems == []
    assert summary.counts["V1 ops"] > 400


def test_a_conditional_that_nothing_uses_any_more_stands_before_the_fetch(tf: ModuleType) -> None:
    assert programs.check_programs(tf, [1685]).problems == []


def test_effects_come_in_the_same_order(tf: ModuleType) -> None:
    summary = programs.check_programs(tf, range(60), statements=6, effects=True)
    assert summary.problems == []


def test_the_comparison_sees_a_difference(tf: ModuleType) -> None:
    one, other = programs.Summary(), programs.Summary()
    values = [tf.constant([1, 2]).numpy()]
    one.compare("same", values, values)
    other.compare("changed", values, [values[0] + 1])
    assert (one.problems, len(other.problems)) == ([], 1)
