"""Some random graphs of every kind; `python -m tests.differential.random_graphs` compares as many as one likes."""

from __future__ import annotations

from random import Random
from types import ModuleType

import numpy as np
import pytest

from tests.differential.random_graphs import campaign, compare
from tests.differential.random_graphs.compare import DIFFERS, RECIPES, SAME, difference, judge, random_program, tamed
from tests.differential.random_graphs.known import known_difference
from tests.differential.random_graphs.program import Builder, Program
from tests.differential.random_graphs.shrink import ops_of, shrink
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess


def test_graphs_compute_what_tensorflow_computes(tf: ModuleType) -> None:
    summary = campaign.compare_graphs(tf, range(150), 5)
    assert not summary.failures, "\n\n".join(example for found in summary.failures.values() for example in found[:1])
    assert summary.counts[SAME] > 80


def test_recipes_are_of_ops_that_tensorflow_has(tf: ModuleType) -> None:
    assert all(hasattr(tf.raw_ops, name.partition(".")[0]) for name in RECIPES)
    assert len({name.partition(".")[0] for name in RECIPES}) > 180


def test_programs_are_the_same_for_a_seed(tf: ModuleType) -> None:
    assert str(random_program(tf, Random(3), 6)) == str(random_program(tf, Random(3), 6))


def _tanh_of_a_sum(tf: ModuleType) -> Program:
    build = Builder(tf, Random(0))
    one = build.leaf(np.array([0.25, -0.5], np.float32), 0)
    (two,) = build.op("Neg", x=one)
    (total,) = build.op("AddV2", x=one, y=two)
    build.op("Tanh", x=total)
    (other,) = build.op("Sigmoid", x=two)
    build.op("Exp", x=other)
    return build.program()


def test_a_wrong_number_is_found_and_made_small(tf: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if LiteRT computed another sigmoid."""

    class Wrong(LiteRTProcess):
        def run_file(self, *arguments: object, **named: object) -> list[np.ndarray]:
            results = super().run_file(*arguments, **named)  # type: ignore[arg-type]
            return [result + 1 if index == len(results) - 1 else result for index, result in enumerate(results)]

    program = _tanh_of_a_sum(tf)
    with Wrong() as runtime:
        verdict = judge(tf, program, runtime)
        assert verdict.kind == DIFFERS
        assert "the reference executor agrees with TensorFlow" in verdict.detail
        small = shrink(program, verdict.output, lambda one: judge(tf, one, runtime).kind == DIFFERS)
    assert ops_of(small) == "Exp<float32>"


@pytest.mark.parametrize(
    ("want", "got", "found"),
    [
        (np.array([1, np.nan], np.float32), np.array([1.00001, np.nan], np.float32), ""),
        (np.array([1, np.nan], np.float32), np.array([1.1, np.nan], np.float32), "values"),
        (np.array([1, np.nan], np.float32), np.array([1, 0], np.float32), "values that are not finite"),
        (np.array([1, np.inf], np.float32), np.array([1, -np.inf], np.float32), "values that are not finite"),
        (np.array([1], np.int32), np.array([2], np.int32), "values"),
        (np.array([1], np.int32), np.array([1], np.int64), "type int64, not int32"),
        (np.array([1], np.int32), np.array([[1]], np.int32), "shape [1, 1], not [1]"),
    ],
)
def test_differences(want: np.ndarray, got: np.ndarray, found: str) -> None:
    assert difference(want, got) == found


def test_rounding_differences_are_ignored(tf: ModuleType) -> None:
    build = Builder(tf, Random(0))
    (ten,) = build.op("Exp", x=build.leaf(np.array([0.5, 3.25], np.float32), 0))
    (scaled,) = build.op("Mul", x=ten, y=build.leaf(np.array([1e7, 1e7], np.float32), 1))
    build.op("Sin", x=scaled)
    assert compare._is_unstable(tf, build.program())
    build = Builder(tf, Random(0))
    (half,) = build.op("Sigmoid", x=build.leaf(np.array([0.5, 3.25], np.float32), 0))
    build.op("Exp", x=half)
    assert not compare._is_unstable(tf, build.program())


def _verdict(tf: ModuleType, op: str, x: np.ndarray, constant: float) -> tuple[str, bool]:
    """Returns whether an op of one operand differs, and whether that is known to be LiteRT's own."""
    build = Builder(tf, Random(0))
    build.op(op, x=build.leaf(x, constant))
    program = build.program()
    with LiteRTProcess() as runtime:
        verdict = judge(tf, program, runtime)
        ordinary = tamed(tf, program)
        still = ordinary is None or judge(tf, ordinary, runtime).kind == DIFFERS
    return verdict.kind, known_difference(program, verdict, lambda: still) is not None


def test_odd_numbers_are_known_differences(tf: ModuleType) -> None:
    assert _verdict(tf, "Sin", np.array([1, 3.4e38], np.float32), 0) == (DIFFERS, True)


def test_other_numbers_are_not(tf: ModuleType) -> None:
    """TensorFlow's `Round` makes zeros of integers: not an odd number, so that it would be noticed."""
    assert _verdict(tf, "Round", np.array([1, 3], np.int32), 1) == (DIFFERS, False)
