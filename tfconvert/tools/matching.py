"""Which signature, inputs and outputs of a .tflite file, anybody's, are those of a model's function."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.validation.wiring import Wires
from tfconvert.importers.tflite.outline import Outline, Signature, Tensor
from tfconvert.schema.diagnostics import ConversionError, error


class Matching:
    """The wires between a file and a model.

    Names come first; where they are not the same, inputs and outputs go by their order if their number is.

    Args:
        outline: The file's outline.
    """

    def __init__(self, outline: Outline) -> None:
        self._signatures = outline.signatures

    def signature(self, interface: Interface) -> Signature:
        """Returns the file's signature for a function of the model.

        Raises:
            ConversionError: There is none (`no-such-signature`).
        """
        keys = {each.key: each for each in self._signatures}
        for key in interface.keys:
            if key in keys:
                return keys[key]
        if len({each.subgraph for each in self._signatures}) == 1:
            return self._signatures[0]
        listed = ", ".join(repr(key) for key in keys)
        raise error(
            "no-such-signature",
            f"the file has no signature {interface.keys[:1] or interface.function!r}",
            hint=f"it has {listed}; choose one with `signatures` (--signature)",
        )

    def __call__(self, interface: Interface) -> Wires:
        """Returns how a function of the model is run in the file."""
        signature = self.signature(interface)
        inputs = _places([tensor.name for tensor in interface.inputs], signature.inputs, "inputs")
        outputs = _places([tensor.name for tensor in interface.outputs], signature.outputs, "outputs")
        return Wires(
            signature.key,
            [signature.inputs[place].name for place in inputs],
            [signature.outputs[place].name for place in outputs],
            [inputs.index(place) for place in range(len(inputs))],
            outputs,
        )


def _places(names: Sequence[str], tensors: Sequence[Tensor], what: str) -> list[int]:
    """Returns the place in the file of each of the model's inputs or outputs."""
    if len(names) != len(tensors):
        raise _unlike(names, tensors, what)
    for known in ([each.name for each in tensors], [_short(each.name) for each in tensors]):
        wanted = [_short(name) for name in names] if known != [each.name for each in tensors] else list(names)
        if len(set(known)) == len(known) and set(known) == set(wanted):
            return [known.index(name) for name in wanted]
    return list(range(len(names)))


def _short(name: str) -> str:
    """Returns a tensor's name as the signature had it: without `serving_default_` and `:0`."""
    head, _, tail = name.rpartition(":")
    return (head if tail.isdigit() else name).removeprefix("serving_default_")


def _unlike(names: Sequence[str], tensors: Sequence[Tensor], what: str) -> ConversionError:
    file = ", ".join(map(str, tensors)) or "none"
    return error(
        "unlike-interface",
        f"the model has the {what} {', '.join(names) or 'none'}, and the file {file}",
        hint="name the signature, or the inputs and outputs of a graph",
    )
