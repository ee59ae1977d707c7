"""Finds differences that rounding explains: the reference shows them too if rounding errors disturb it.

Disturbed integers, booleans and strings have to be identical to the other output; floats need an error of equal size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.validation.comparison import tolerance
from tfconvert.converter.validation.inputs import ReferenceRun
from tfconvert.ops.call import Array, Results
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

# Ops whose results are not computed.
_NOT_COMPUTED = frozenset(("tf.Const", "tf.ReadVariableOp"))

# Ops that may order -0 before 0, which LiteRT takes as equal. Disturbed runs do too.
_ORDERING = frozenset(("stablehlo.sort",))

# The relative errors of alternating runs: of sums in another order, and of longer sums.
_SHARES = (1e-6, 1e-5)

_MAX_RUNS = 24
# Maximum number of consecutive runs that explain nothing new.
_PATIENCE = 4

# Maximum error, relative to that of disturbed runs: few runs don't find the largest.
_MARGIN = 10.0


def unexplained(
    module: ModuleOp, function: str, run: ReferenceRun, got: Sequence[Array], suspects: Sequence[int]
) -> frozenset[int]:
    """Returns the outputs whose differences rounding does not explain.

    Args:
        module: The model.
        function: The function that ran.
        run: The run of the witness, which may be another than the executor.
        got: The other outputs.
        suspects: The outputs that differ.
    """
    if Executor(module).problems(function):
        return frozenset(suspects)
    try:
        exact = Executor(module).run(function, run.inputs)
    except ConversionError:
        return frozenset(suspects)
    known = {number: _Suspect(run.outputs[number], got[number], exact[number]) for number in suspects}
    left, since = sum(each.left for each in known.values()), 0
    for outputs in _disturbed(module, function, run.inputs):
        for number, suspect in known.items():
            suspect.see(outputs[number])
        now = sum(each.left for each in known.values())
        since = 0 if now < left else since + 1
        left = now
        if not left or since == _PATIENCE:
            break
    return frozenset(number for number, each in known.items() if each.left)


def _disturbed(module: ModuleOp, function: str, values: Sequence[Array]) -> Iterator[Sequence[Array]]:
    for seed in range(_MAX_RUNS):
        shaken = Shaken(module, share=_SHARES[seed % len(_SHARES)], random=np.random.default_rng(seed))
        try:
            yield shaken.run(function, values)
        except ConversionError:
            continue  # The disturbed numbers are invalid for an op.


class _Suspect:
    """An output that differs, and the errors of disturbed runs.

    Attributes:
        left: The number of elements that differ without an explanation.

    Args:
        want: What the witness returns.
        have: The other output.
        exact: What the executor returns if it is not disturbed, which the errors are measured from.
    """

    def __init__(self, want: Array, have: Array, exact: Array) -> None:
        self._want, self._have, self._exact = want, have, exact
        self._is_float = want.dtype.kind in "fc" or want.dtype.name == "bfloat16"
        self._spread: Array = np.zeros(want.shape)
        is_alike = want.shape == have.shape == exact.shape
        self._seen = [np.asarray(each == exact) if is_alike else np.False_ for each in (want, have)]
        self.left = max(want.size, 1)

    def see(self, other: Array) -> None:
        """Adds the output of a disturbed run."""
        want, have, exact = self._want, self._have, self._exact
        if want.dtype != have.dtype or not self.left or want.shape != exact.shape:
            return
        if other.shape != want.shape:  # Rounding determines the shape.
            self.left = 0
        elif have.shape == want.shape:
            if self._is_float:
                self._spread = np.maximum(self._spread, _distance(exact, other))
            else:
                self._seen = [seen | (other == each) for seen, each in zip(self._seen, (want, have), strict=True)]
            self.left = int(np.count_nonzero(~self._is_near()))

    def _is_near(self) -> Array:
        """Returns the elements that are as expected, or as far from it as disturbed runs can be."""
        want, have = self._want, self._have
        if not self._is_float:
            return np.asarray((have == want) | (self._seen[0] & self._seen[1]))
        sizes = np.abs(_wide(want))
        scale = float(np.max(sizes, where=np.isfinite(sizes), initial=0))
        return np.asarray(_distance(want, have) <= np.maximum(tolerance(want.dtype) * scale, _MARGIN * self._spread))


def _distance(one: Array, other: Array) -> Array:
    """Returns absolute differences; infinite where only one is a number."""
    one, other = _wide(one), _wide(other)
    with np.errstate(invalid="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        return np.asarray(np.where(same, 0, np.nan_to_num(np.abs(one - other), nan=np.inf)))


def _wide(value: Array) -> Array:
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


@dataclass(slots=True)
class Shaken(Executor):
    """Rounds differently: every computed number is off by a few random units in the last place, and -0 equals 0.

    This changes only results that rounding decides: the larger of two nearly equal numbers, small differences of large
    numbers, and everything that depends on them.
    """

    share: float = 1e-6  # The largest relative error, for 32-bit floats.
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))  # The source of the errors.

    def execute(self, op: Operation, inputs: Results) -> Results:
        if op.name in _ORDERING:
            inputs = tuple(each + each.dtype.type(0) if each.dtype.kind == "f" else each for each in inputs)
        results = Executor.execute(self, op, inputs)
        return results if op.name in _NOT_COMPUTED else tuple(map(self._off, results))

    def _off(self, value: Array) -> Array:
        if value.dtype.kind != "f":
            return value
        share = max(self.share, 2 * float(np.finfo(value.dtype).eps)) if value.dtype.itemsize < 4 else self.share
        with np.errstate(over="ignore"):  # What is nearly infinite may become so.
            return np.asarray(value * (1 + share * self.random.uniform(-1, 1, value.shape)), value.dtype)
