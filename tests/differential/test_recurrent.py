"""Random recurrent networks and near misses; `python -m tests.differential.recurrent` compares any number of them."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from tests.differential import recurrent
from tests.differential.recurrent_programs import random_program


def test_networks_compute_the_same_whether_fused_or_not(tf: ModuleType) -> None:
    summary = recurrent.check_networks(tf, range(90))
    assert summary.problems == []
    assert summary.counts["fused"] + summary.counts["fused in part"] > 25
    assert summary.counts["loop, though mutated"] > 10


def test_a_seed_always_draws_the_same_network(tf: ModuleType) -> None:
    one, other = (random_program(tf, 5) for _ in range(2))
    assert [node.op for node in one.graph.node] == [node.op for node in other.graph.node]
    assert one.inputs == other.inputs


def test_the_comparison_sees_a_difference() -> None:
    values = np.array([1.0, 2.0], np.float32)
    assert recurrent.error_of(values, values) == 0
    assert recurrent.error_of(values, values + np.float32(1e-3)) > recurrent.TOLERANCE
    assert recurrent.error_of(values, values[:1]) == float("inf")
