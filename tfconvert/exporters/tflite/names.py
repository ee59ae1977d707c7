"""Names of tensors: those that the user knows, unique in a file."""

from __future__ import annotations


class Names:
    """The names that are taken in a subgraph, or in a file."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        """Returns a name, with a number appended if it is taken, and reserves it."""
        name = wanted
        while name in self._taken:
            number = self._next[wanted] = self._next.get(wanted, 0) + 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
