"""The search for layers to exclude, on models that are formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, pairwise
from typing import Any

from tfconvert.converter.validation.quantization_check import ExclusionTrial, Search
from tfconvert.schema.diagnostics import error
from tfconvert.schema.fidelity import Fidelity, LayerFidelity, OutputFidelity

NODES = [f"n{number}" for number in range(20)]
CHAIN = {node: [after] for node, after in pairwise(NODES)}


def _trial(snr: float, excluded: Sequence[str] = (), order: Sequence[str] = NODES) -> ExclusionTrial:
    layers = tuple(LayerFidelity(node, "ADD", snr, snr, 0, 1, 1, 0) for node in order)
    return ExclusionTrial(Fidelity(1, (OutputFidelity("y", snr),)), frozenset(NODES) - set(excluded), lambda: layers)


def _needing(needed: set[str], tried: list[set[str]]) -> Callable[[Sequence[str]], ExclusionTrial]:
    """Returns a model that is near enough if some nodes are excluded, all of them."""

    def measure(excluded: Sequence[str]) -> ExclusionTrial:
        tried.append(set(excluded))
        return _trial(40.0 if needed <= set(excluded) else 0.0, excluded)

    return measure


def test_only_necessary_exclusions_remain() -> None:
    tried: list[set[str]] = []
    found = Search(_needing({"n3", "n4"}, tried), CHAIN, 60).run(_trial(0.0))
    assert (set(found.exclude), found.snr, found.ran_out) == ({"n3", "n4"}, 40.0, False)
    assert found.trials == len(tried) < 20


def test_the_worst_come_first() -> None:
    tried: list[set[str]] = []
    first = _trial(0.0, order=["n12", *NODES])
    found = Search(_needing({"n12"}, tried), CHAIN, 60).run(first)
    assert tried[0] == {"n12", "n13"}
    assert found.exclude == ("n12",)


def test_layers_far_apart_are_found_together() -> None:
    found = Search(_needing({"n0", "n9", "n19"}, []), CHAIN, 60).run(_trial(0.0))
    assert set(found.exclude) == {"n0", "n9", "n19"}


def test_where_nothing_is_enough_nothing_is_proposed() -> None:
    found = Search(_needing({"another"}, []), CHAIN, 60).run(_trial(0.0))
    assert (found.exclude, found.ran_out) == ((), False)
    assert "found none" in str(found)


def test_layers_that_cannot_be_quantized_are_skipped() -> None:
    def measure(excluded: Sequence[str]) -> ExclusionTrial:
        if "n0" in excluded:
            raise error("quantized-kernel", "there is no such kernel")
        return _trial(40.0 if "n5" in excluded else 0.0, excluded)

    found = Search(measure, {}, 60).run(_trial(0.0))
    assert found.exclude == ("n5",)


def _clock() -> Callable[[], float]:
    seconds: Iterator[Any] = count()
    return lambda: float(next(seconds))


def test_time_runs_out_before_anything_is_found() -> None:
    found = Search(_needing({"n19"}, []), CHAIN, 3, _clock()).run(_trial(0.0))
    assert (found.exclude, found.ran_out, found.trials) == ((), True, 2)
    assert "ran out of time" in str(found)


def test_the_time_limit_ends_the_reduction() -> None:
    found = Search(_needing({"n3"}, []), CHAIN, 5, _clock()).run(_trial(0.0))
    assert "n3" in found.exclude
    assert (found.ran_out, len(found.exclude) > 1) == (True, True)
    assert "fewer may do" in str(found)


def test_names_are_no_patterns() -> None:
    def measure(excluded: Sequence[str]) -> ExclusionTrial:
        return _trial(40.0)

    first = _trial(0.0, order=["a[0]*"])._replace(nodes=frozenset({"a[0]*"}))
    assert Search(measure, {}, 60).run(first).exclude == ("a[[]0][*]",)
