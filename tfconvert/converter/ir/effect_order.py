"""The order that ops have to keep because of the states that they read and write."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from tfconvert.schema.dialects.tf_effects import ANY, Effects
from tfconvert.schema.ir.operation import Operation


class EffectOrder:
    """Walks ops in program order and returns for each the ops that it has to follow.

    A read follows the last write of its state, a write what has read the state since, or the last write if nothing has.
    What may touch any state follows everything that touches one, and everything later that touches one follows it.
    """

    __slots__ = ("_any", "_effects", "_reads", "_writes")

    def __init__(self, effects: Callable[[Operation], Effects]) -> None:
        """Starts before the first op.

        Args:
            effects: Returns the states that an op reads and writes.
        """
        self._effects = effects
        self._any: Operation | None = None
        self._reads: dict[Hashable, list[Operation]] = {}
        self._writes: dict[Hashable, Operation] = {}

    def before(self, op: Operation) -> list[Operation]:
        """Returns the earlier ops that an op has to follow, without those that they follow themselves."""
        effects = self._effects(op)
        if ANY in effects.writes or ANY in effects.reads:
            return self._barrier(op)
        found: dict[Operation, None] = {}
        for state in effects.writes:
            found.update(dict.fromkeys(self._reads.pop(state, ()) or self._last(state)))
            self._writes[state] = op
        for state in effects.reads:
            if state not in effects.writes:
                found.update(dict.fromkeys(self._last(state)))
                self._reads.setdefault(state, []).append(op)
        return list(found)

    def _last(self, state: Hashable) -> Iterable[Operation]:
        """Returns the op that last wrote a state, or may have."""
        last = self._writes.get(state, self._any)
        return () if last is None else (last,)

    def _barrier(self, op: Operation) -> list[Operation]:
        """Returns the ops that nothing of the same state follows yet; from here on all of them precede `op`."""
        open_writes = [write for state, write in self._writes.items() if state not in self._reads]
        found = dict.fromkeys([read for reads in self._reads.values() for read in reads] + open_writes)
        if not found and self._any is not None:
            found[self._any] = None
        self._any = op
        self._reads, self._writes = {}, {}
        return list(found)
