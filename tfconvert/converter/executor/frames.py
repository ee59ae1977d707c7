"""The run-time state of a `tf_executor.graph`: frames, and what has arrived in each of their iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tfconvert.converter.executor.tasks import MaybeDead


@dataclass(slots=True, eq=False)
class Iteration:
    """One iteration of a frame.

    Attributes:
        frame: The frame.
        number: Its number, from 0.
        pending: How many edges a node still waits for; a Merge, how many controls. Absent: all of them.
        inputs: The values that have arrived, by node and slot.
        dead: How much of what has arrived at a node is dead.
        merged: The Merges that have got a live value, or none that they could get.
        outstanding: How many nodes are ready, and frames opened, that have not finished.
        children: Frames that were entered from here and have not finished, by name.
    """

    frame: Frame
    number: int
    pending: dict[int, int] = field(default_factory=dict)
    inputs: dict[int, dict[int, MaybeDead]] = field(default_factory=dict)
    dead: Counter[int] = field(default_factory=Counter)
    merged: set[int] = field(default_factory=set)
    outstanding: int = 0
    children: dict[str, Frame] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether nothing more can happen in it: nothing comes from the iteration before or from outside either."""
        if self.outstanding:
            return False
        return self.number - 1 not in self.frame.iterations if self.number else not self.frame.awaited


@dataclass(slots=True, eq=False)
class Frame:
    """A running loop, or the graph itself.

    Attributes:
        name: The frame's name, empty for the graph itself.
        parent: The iteration that it was entered from; `None` for the graph itself.
        awaited: How many Enters have not run yet.
        parallel: How many iterations may be active at once.
        iterations: Those that have not finished, by number.
        newest: The number of the last one that has begun.
        invariants: Constant Enters with their values.
        next_values: Sources with the values of the next iteration, until it begins.
        dead_exits: Exits that had no live value to forward in the newest iteration.
    """

    name: str
    parent: Iteration | None
    awaited: int
    parallel: int = 1
    iterations: dict[int, Iteration] = field(default_factory=dict)
    newest: int = -1
    invariants: list[tuple[int, MaybeDead]] = field(default_factory=list)
    next_values: list[tuple[int, MaybeDead]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether no iteration is active and none can begin."""
        return not (self.iterations or self.awaited or self.next_values)

    @property
    def may_begin(self) -> bool:
        """Whether the next iteration has something to begin with, and room."""
        return bool(self.next_values) and len(self.iterations) < self.parallel

    def begin(self) -> Iteration:
        """Returns a new iteration, the newest one now."""
        self.newest += 1
        self.dead_exits = []
        self.iterations[self.newest] = Iteration(self, self.newest)
        return self.iterations[self.newest]


def frames_in(iteration: Iteration) -> Iterator[Frame]:
    """Yields the frames that were entered from an iteration and have not finished, inner ones after outer ones."""
    waiting = list(iteration.children.values())
    for frame in waiting:
        yield frame
        for each in frame.iterations.values():
            waiting += each.children.values()
