"""Which differences rounding explains: the reference, disturbed by rounding errors, gives them too.

Of integers, truth values and texts it has to give the very same; of floats, an error of the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfconvert.converter.validation.comparison import tolerance
from tfconvert.converter.validation.inputs import Run
from tfconvert.converter.validation.probe import Shaken
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp

# The errors of the runs, in turn: those of sums in another order, and of longer sums.
_SHARES = (1e-6, 1e-5)

_RUNS = 24
# How many runs there are at most, and how many that explain nothing more are enough.
_PATIENCE = 4

# How many times the error that a disturbance made an error may be: few runs don't find the largest.
_MARGIN = 10.0


def unexplained(
    module: ModuleOp, function: str, run: Run, got: Sequence[Array], suspects: Sequence[int]
) -> frozenset[int]:
    """Returns which outputs differ in a way that rounding does not explain.

    Args:
        module: The model.
        function: The function that ran.
        run: The reference's run.
        got: The other outputs.
        suspects: The outputs that differ.
    """
    known = {number: _Suspect(run.outputs[number], got[number]) for number in suspects}
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
    for seed in range(_RUNS):
        shaken = Shaken(module, share=_SHARES[seed % len(_SHARES)], random=np.random.default_rng(seed))
        try:
            yield shaken.run(function, values)
        except ConversionError:
            continue  # The disturbed numbers don't suit an op any more.


class _Suspect:
    """An output that differs, and how far disturbed runs are from the expected one.

    Attributes:
        left: How many elements differ without an explanation.
    """

    def __init__(self, want: Array, have: Array) -> None:
        self._want, self._have = want, have
        self._is_float = want.dtype.kind in "fc" or want.dtype.name == "bfloat16"
        self._spread: Array = np.zeros(want.shape)
        self._seen: Array = np.zeros(want.shape, np.bool_)
        self.left = max(want.size, 1)

    def see(self, other: Array) -> None:
        """Takes the output of one disturbed run."""
        want, have = self._want, self._have
        if want.dtype != have.dtype or not self.left:
            return
        if other.shape != want.shape:  # Rounding decides how much comes out.
            self.left = 0
        elif have.shape == want.shape:
            if self._is_float:
                self._spread = np.maximum(self._spread, _distance(want, other))
            else:
                self._seen |= other == have
            self.left = int(np.count_nonzero(~self._is_near()))

    def _is_near(self) -> Array:
        """Returns which elements are as expected, or as far from it as disturbed runs can be."""
        want, have = self._want, self._have
        if not self._is_float:
            return np.asarray((have == want) | self._seen)
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
