"""Searches for the fewest layers to exclude from quantization so that a model is close enough to the float model.

A layer whose result suits its type badly is excluded together with the readers of the result: the result is stored as
integers if any of them reads integers. The layers with the largest loss in the last trial come first. When the fidelity
is sufficient, the search drops exclusions that aren't needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from glob import escape
from typing import NamedTuple

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.fidelity import Exclusions, Fidelity, LayerFidelity


class Trial(NamedTuple):
    """A quantized model with some layers excluded.

    Attributes:
        fidelity: Its fidelity.
        nodes: The nodes that are integers.
        layers: Returns its layers, those with the largest loss first; slow, and rarely called.
    """

    fidelity: Fidelity
    nodes: frozenset[str]
    layers: Callable[[], Sequence[LayerFidelity]]


class _OutOfTimeError(Exception):
    """There is no time left."""


class Search:
    """A search.

    Args:
        measure: Quantizes the model with nodes excluded and measures it; raises an error if that is impossible.
        readers: For each node, those that read its results.
        seconds: The time limit.
        clock: Returns the time.
    """

    def __init__(
        self,
        measure: Callable[[Sequence[str]], Trial],
        readers: Mapping[str, Sequence[str]],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._measure, self._readers, self._clock = measure, readers, clock
        self._end = clock() + seconds
        self._trials = 0

    def run(self, first: Trial) -> Exclusions:
        """Returns the layers to exclude.

        Args:
            first: The model without exclusions.
        """
        try:
            found = self._grown(first)
        except _OutOfTimeError:
            return Exclusions((), trials=self._trials, ran_out=True)
        if found is None:
            return Exclusions((), trials=self._trials)
        nodes, trial, ran_out = self._pruned(*found)
        exclude = tuple(escape(node) for node in nodes)
        return Exclusions(exclude, trial.fidelity.snr, trial.fidelity.agreement, self._trials, ran_out)

    def _grown(self, known: Trial) -> tuple[list[str], Trial] | None:
        """Returns sufficient nodes, perhaps more than needed, and the trial; `None` if no nodes are sufficient."""
        excluded: list[str] = []
        failed: set[str] = set()
        step = 1
        worst = self._worst_first(known)
        while True:
            groups = [group for node in worst if node not in failed and (group := self._group(node, known))]
            if not groups:
                return None
            # Groups that share layers are one step.
            added = list(dict.fromkeys(node for group in groups[:step] for node in group))
            trial = self._trial([*excluded, *added])
            if trial is None:
                failed.update(added)
                continue
            excluded += [node for node in added if node not in excluded]
            if not trial.fidelity.is_low:
                return excluded, trial
            # If one more layer doesn't help, several may; the last step excludes all.
            step = 1 if trial.fidelity.snr > known.fidelity.snr + _GAIN else 2 * step
            known = trial
            worst = self._worst_first(known)

    def _worst_first(self, known: Trial) -> list[str]:
        listed = [layer.node for layer in known.layers() if layer.node]
        return list(dict.fromkeys([*listed, *sorted(known.nodes)]))

    def _group(self, node: str, known: Trial) -> list[str]:
        """Returns a node and the readers of its results, as far as they are integers."""
        return [each for each in (node, *self._readers.get(node, ())) if each in known.nodes]

    def _pruned(self, nodes: list[str], trial: Trial) -> tuple[list[str], Trial, bool]:
        """Removes unnecessary nodes, several at once first; also returns whether time ran out."""
        size = max(1, len(nodes) // 2)
        try:
            while True:
                for start in range(len(nodes) - size, -size, -size):
                    fewer = nodes[: max(start, 0)] + nodes[start + size :]
                    found = self._trial(fewer) if fewer else None
                    if found is not None and not found.fidelity.is_low:
                        nodes, trial = fewer, found
                if size == 1:
                    return nodes, trial, False
                size = (size + 1) // 2
        except _OutOfTimeError:
            return nodes, trial, True

    def _trial(self, nodes: Sequence[str]) -> Trial | None:
        """Returns the model with nodes excluded, or `None` if it can't be made.

        Raises:
            _OutOfTimeError: The time limit is reached.
        """
        if self._clock() >= self._end:
            raise _OutOfTimeError
        self._trials += 1
        try:
            return self._measure([escape(node) for node in nodes])
        except ConversionError:
            return None


# Minimum gain in dB that counts as an improvement.
_GAIN = 0.5
