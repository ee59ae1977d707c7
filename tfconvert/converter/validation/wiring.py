"""Which inputs and outputs of a .tflite file are which of a model's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tfconvert.converter.ir.interface import Interface
from tfconvert.ops.call import Array


class FileEngine(Protocol):
    """A runtime of converted models."""

    name: str
    """Its name in diagnostics."""

    def run_file(self, content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Runs one of a file's signatures; as that of `litert.runtime_process.Runtime`."""


class Wires(NamedTuple):
    """How one function of a model is run in a file.

    Attributes:
        key: The signature; empty for the first subgraph.
        inputs: The signature's names of the model's inputs, in the model's order.
        outputs: The signature's names of the model's outputs, in the model's order.
        order: The first subgraph only: the model's input that each of its inputs is.
        picked: The first subgraph only: its output that each of the model's outputs is.
    """

    key: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    order: Sequence[int] = ()
    picked: Sequence[int] = ()

    def run(self, engine: FileEngine, content: bytes, values: Sequence[Array]) -> list[Array]:
        """Runs the file; returns the outputs in the model's order.

        Args:
            engine: What runs it.
            content: The file's bytes.
            values: The inputs in the model's order.
        """
        if self.key:
            return engine.run_file(content, self.key, dict(zip(self.inputs, values, strict=True)), self.outputs)
        fed = {str(place): values[number] for place, number in enumerate(self.order)}
        results = engine.run_file(content, "", fed, self.outputs)
        return [results[place] for place in self.picked]


Wiring = Callable[[Interface], Wires]
"""Returns how a function of a model is run in a file."""


def own_wiring(interface: Interface) -> Wires:
    """Returns the wires of a file that was converted from the model: the same names, in the same order."""
    inputs, outputs = ([tensor.name for tensor in side] for side in (interface.inputs, interface.outputs))
    key = interface.keys[0] if interface.keys else ""
    return Wires(key, inputs, outputs, range(len(inputs)), range(len(outputs)))
