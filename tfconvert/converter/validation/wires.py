"""How the inputs and outputs of a model's functions are those of a file, and how a file is run by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from tfconvert.converter.ir.interface import Interface
from tfconvert.ops.call import Array


class FileEngine(Protocol):
    """A runtime of converted models."""

    name: str
    """Its name in diagnostics."""

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs one of a file's signatures; as that of `litert.runtime_process.Runtime`."""


@runtime_checkable
class StatefulEngine(FileEngine, Protocol):
    """A runtime that can keep the state of a file between calls."""

    def run_in_turn(
        self, content: bytes, key: str, calls: Sequence[Mapping[str, Array]], outputs: Sequence[str]
    ) -> list[list[Array]]:
        """Calls one of a file's signatures in turn, first in the file's initial state."""


class Wires(NamedTuple):
    """The mapping of a model function's inputs and outputs to those of a file."""

    key: str  # The signature; empty for the first subgraph.
    inputs: Sequence[str]  # The signature's names of the model's inputs, in the model's order.
    outputs: Sequence[str]  # The signature's names of the model's outputs, in the model's order.
    order: Sequence[int] = ()  # The first subgraph only: the model's input for each of its inputs.
    picked: Sequence[int] = ()  # The first subgraph only: its output for each of the model's outputs.

    def run(self, engine: FileEngine, content: bytes, values: Sequence[Array]) -> list[Array]:
        """Runs the file; returns the outputs in the model's order.

        Args:
            engine: The runtime.
            content: The file's bytes.
            values: The inputs in the model's order.
        """
        return self._ordered(engine.run_file(content, self.key, self._fed(values), self.outputs))

    def run_in_turn(
        self, engine: StatefulEngine, content: bytes, calls: Sequence[Sequence[Array]]
    ) -> list[list[Array]]:
        """Calls the file in turn; returns the outputs of each call as `run` does."""
        found = engine.run_in_turn(content, self.key, list(map(self._fed, calls)), self.outputs)
        return list(map(self._ordered, found))

    def _fed(self, values: Sequence[Array]) -> dict[str, Array]:
        if self.key:
            return dict(zip(self.inputs, values, strict=True))
        return {str(place): values[number] for place, number in enumerate(self.order)}

    def _ordered(self, results: list[Array]) -> list[Array]:
        return results if self.key else [results[place] for place in self.picked]


Wiring = Callable[[Interface], Wires]
"""Returns the mapping of a model function's inputs and outputs to those of a file."""


def own_wiring(interface: Interface) -> Wires:
    """Returns the mapping for a file that was converted from the model: the same names, in the same order."""
    inputs, outputs = ([tensor.name for tensor in side] for side in (interface.inputs, interface.outputs))
    key = interface.keys[0] if interface.keys else ""
    return Wires(key, inputs, outputs, range(len(inputs)), range(len(outputs)))
