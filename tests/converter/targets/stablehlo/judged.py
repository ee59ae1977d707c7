"""Groups of cases, judged case by case: a group is converted and compiled once, and each of its cases has a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from tests.converter.targets.stablehlo.group import Group, Input

Verdicts = dict[str, str]
"""Case -> how it differs from TensorFlow; cases that agree are not in it."""


def input_shape(each: Input, sizes: Mapping[str, int] | None) -> list[int | None]:
    """Returns an input's shape with sizes for the letters, or `None` for unknown ones."""
    known = sizes or {}
    return [known.get(dim) if isinstance(dim, str) else dim for dim in each.shape]


def function_of(tf: ModuleType, group: Group, sizes: Mapping[str, int] | None) -> Any:
    """Returns the concrete function that holds the cases of a group, static with sizes and dynamic without."""
    specs = [
        tf.TensorSpec(input_shape(each, sizes), each.dtype, name=f"x{index}") for index, each in enumerate(group.inputs)
    ]

    def model(*inputs: Any) -> dict[str, Any]:
        return {name: run(*inputs) for name, run in group.cases.items()}

    return tf.function(model, autograph=False).get_concrete_function(*specs)


def random_inputs(group: Group, sizes: Mapping[str, int]) -> list[np.ndarray]:
    """Returns numbers for the inputs of a group, the same at each call."""
    draw = np.random.default_rng(7)
    arrays = []
    for each in group.inputs:
        shape = [dim for dim in input_shape(each, sizes) if dim is not None]
        numbers = draw.uniform(each.low, each.high, shape)
        arrays.append(np.asarray(np.round(numbers) if "int" in each.dtype else numbers).astype(_numpy_type(each)))
    return arrays


def _numpy_type(each: Input) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if each.dtype == "bfloat16" else each.dtype)


def differences(names: Sequence[str], found: Sequence[np.ndarray], expected: Mapping[str, Any]) -> Verdicts:
    """Returns which results differ from TensorFlow's, and how."""
    wrong = {}
    for name, own in zip(names, found, strict=True):
        other = expected[name].numpy()
        if own.shape != other.shape or own.dtype != other.dtype:
            wrong[name] = f"{own.dtype}{own.shape} instead of {other.dtype}{other.shape}"
        elif own.dtype.kind in "fcV":
            own, other = (each.astype(np.float32) if each.dtype.itemsize == 2 else each for each in (own, other))
            close = 1e-5 if expected[name].numpy().dtype.itemsize > 2 else 3e-2
            if not np.allclose(own, other, rtol=close, atol=close * max(1, _largest(other))):
                wrong[name] = f"off by {np.abs(own - other).max()}"
        elif not np.array_equal(own, other):
            wrong[name] = f"{own} instead of {other}"
    return wrong


def _largest(array: np.ndarray) -> float:
    """Returns the largest magnitude that is not infinite."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0))


Judge = Callable[[Group], Iterator[tuple[str, Verdicts]]]
"""Runs a group in the rings that it is for; yields each ring's name with its verdicts, once for each set of sizes."""


class Judged:
    """The verdicts of a group in all of its rings.

    What fails for the group as a whole is tried for each of its cases alone, to find the one to blame.

    Args:
        group: The group.
        judge: Runs it.
        failures: The exceptions that are a failure of a group and not of the test.
    """

    def __init__(self, group: Group, judge: Judge, failures: tuple[type[Exception], ...]) -> None:
        self._judge, self._failures = judge, failures
        self._rings: set[str] = set()
        self._problems: dict[str, list[str]] = {}
        if (problem := self._run(group)) is None:
            return
        for name, run in group.cases.items():
            alone = self._run(group._replace(cases={name: run}))
            if alone is not None:
                self._problems.setdefault(name, []).append(alone)
        if not self._problems:
            self._problems = {name: [f"as a part of its group: {problem}"] for name in group.cases}

    def _run(self, group: Group) -> str | None:
        """Notes the verdicts; returns why the group failed as a whole, or `None`."""
        try:
            for ring, verdicts in self._judge(group):
                self._rings.add(ring)
                for name, difference in verdicts.items():
                    self._problems.setdefault(name, []).append(f"{ring}: {difference}")
        except self._failures as problem:
            return f"{type(problem).__name__}: {problem}"
        return None

    def check(self, case: str) -> None:
        """Asserts that a case agrees with TensorFlow wherever it ran."""
        problems = self._problems.get(case, [])
        assert not problems, "\n".join(problems)
        assert self._rings, "nothing was compared"
