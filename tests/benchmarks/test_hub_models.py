"""The table of networks of transformers and keras-hub, and what is said about their results; none is built here."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.hub_export import array, past_inputs
from benchmarks.hub_models import Outcome, choose, is_worse
from benchmarks.hub_table import VOCABULARY, Input
from benchmarks.hub_table_keras import NETWORKS


def test_names_are_unique_and_every_open_size_is_given() -> None:
    assert max(Counter(network.name for network in NETWORKS).values()) == 1
    for network in NETWORKS:
        inputs = [*network.inputs.values(), *(past_inputs(network).values() if network.past else ())]
        letters = {dim for each in inputs for dim in each.dims if isinstance(dim, str)}
        assert len(network.sizes) >= 2
        assert all(letters <= sizes.keys() for sizes in network.sizes), network.name


def test_networks_are_chosen_by_name() -> None:
    assert [network.name for network in choose(["t5", "bert"])] == ["bert", "t5"]
    with pytest.raises(ValueError, match="no such network: bort"):
        choose(["bert", "bort"])


def test_ours_is_worse_if_it_is_wrong_or_longer_than_a_right_one() -> None:
    right, longer, wrong, refused = Outcome("", 1e-7, 10), Outcome("", 1e-7, 11), Outcome("", 0.1, 9), Outcome("no")
    assert not is_worse(right, right)
    assert is_worse(longer, right)
    assert is_worse(wrong, refused)
    assert not is_worse(longer, wrong)
    assert not is_worse(right, refused)


def test_inputs_are_of_the_kind_that_is_asked_for() -> None:
    random = np.random.default_rng(0)
    mask = array(Input("mask", ("B", 8)), {"B": 3}, random)
    assert mask.tolist() == [[1] * 8, [1] * 6 + [0] * 2, [1] * 4 + [0] * 4]
    tokens = array(Input("tokens", ("B", "L")), {"B": 2, "L": 5}, random)
    assert tokens.shape == (2, 5)
    assert 0 < tokens.min() <= tokens.max() < VOCABULARY
