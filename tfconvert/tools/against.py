"""Compares a .tflite file of any origin with its model."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from tfconvert.converter.ir.interface import Interface, Tensor
from tfconvert.converter.targets.litert.quantize.figures import stored_range
from tfconvert.converter.validation import result_check
from tfconvert.converter.validation.result_check import Quantized, Verification
from tfconvert.converter.validation.wires import Wires
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.outline import Outline, OutlineSignature, OutlineTensor, outline, read_file
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.fidelity import Limits
from tfconvert.settings.verify_options import Verify
from tfconvert.tools.layers import first_difference, layer_table


class Matching:
    """The mapping between the inputs and outputs of a file and a model.

    Inputs and outputs are matched by name, or by order if the names differ and the numbers are equal.

    Args:
        outline: The file's outline.
    """

    def __init__(self, outline: Outline) -> None:
        self._signatures = outline.signatures

    def signature(self, interface: Interface) -> OutlineSignature:
        """Returns the file's signature for a function of the model.

        Raises:
            ConversionError: The file has none (`no-such-signature`).
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
        """Returns the mapping for a function of the model."""
        signature = self.signature(interface)
        inputs = _places([tensor.name for tensor in interface.inputs], signature.inputs, "inputs")
        outputs = _places([tensor.name for tensor in interface.outputs], signature.outputs, "outputs")
        for tensor, place in zip(interface.inputs, inputs, strict=True):
            _check_sizes(tensor, signature.inputs[place])
        return Wires(
            signature.key,
            [signature.inputs[place].name for place in inputs],
            [signature.outputs[place].name for place in outputs],
            [inputs.index(place) for place in range(len(inputs))],
            outputs,
        )


def _check_sizes(wanted: Tensor, found: OutlineTensor) -> None:
    """Checks that an input of a file may have the sizes of the model's, except for the batch, which LiteRT resizes."""
    if wanted.shape is None or not found.shape:
        return
    pairs = zip(wanted.shape[1:], found.shape[1:], strict=False)
    if len(wanted.shape) == len(found.shape) and all(one is None or two in (one, -1) for one, two in pairs):
        return
    raise error(
        "unlike-interface",
        f"the model's input {wanted} is {found} in the file",
        hint="name the model that the file was made from",
    )


def _places(names: Sequence[str], tensors: Sequence[OutlineTensor], what: str) -> list[int]:
    """Returns the index in the file of each of the model's inputs or outputs."""
    if len(names) != len(tensors):
        raise _unlike(names, tensors, what)
    for known in ([each.name for each in tensors], [_short(each.name) for each in tensors]):
        wanted = [_short(name) for name in names] if known != [each.name for each in tensors] else list(names)
        if len(set(known)) == len(known) and set(known) == set(wanted):
            return [known.index(name) for name in wanted]
    return list(range(len(names)))


def _short(name: str) -> str:
    """Returns a tensor's name as in the signature, without `serving_default_` and `:0`."""
    head, _, tail = name.rpartition(":")
    return (head if tail.isdigit() else name).removeprefix("serving_default_")


def _unlike(names: Sequence[str], tensors: Sequence[OutlineTensor], what: str) -> ConversionError:
    file = ", ".join(map(str, tensors)) or "none"
    return error(
        "unlike-interface",
        f"the model has the {what} {', '.join(names) or 'none'}, and the file {file}",
        hint="name the signature, or the inputs and outputs of a graph",
    )


# Types in which float inputs are stored.
_STORED = ("int8", "uint8", "int16")


def check(source: Source, path: str | os.PathLike[str], wanted: Verify) -> Verification:
    """Compares a file's results with the model's.

    A float file has to agree except for rounding. A quantized file needs a minimum fidelity; its inputs and outputs are
    converted with their scales.

    Args:
        source: The model.
        path: The file.
        wanted: How to verify. If layers are compared, a note reports the first operator whose result differs; for a
            quantized file, all layers are listed instead. Limits are for quantized files.

    Raises:
        ConversionError: Either can't be read, they have other signatures, inputs or outputs (`no-such-signature`,
            `unlike-interface`), the data does not suit the model (`wrong-sample`), LiteRT rejects the file
            (`runtime-error`) or hangs (`litert-timeout`), or a file that is not quantized has limits
            (`wrong-option`).
    """
    prepared = source.importable()
    try:
        return _checked(prepared, path, wanted)
    finally:
        if prepared is not source:
            prepared.discard()


def _checked(source: Source, path: str | os.PathLike[str], wanted: Verify) -> Verification:
    content = read_file(path)
    file = outline(content)
    wiring = Matching(file)
    if not file.is_quantized:
        if wanted.judges:
            raise error(
                "wrong-option",
                f"{os.fspath(path)} is not quantized: it has to agree but for rounding",
                hint="leave min_snr and min_agreement (--min-snr, --min-agreement) out",
            )
        found = result_check.compared(source, content, wanted.data, wiring, wanted=wanted)
        if not wanted.compare_layers:
            return found
        return found.with_layers(first_difference(source, content, wanted.data, wiring))

    def ranges(interface: Interface) -> dict[int, tuple[float, float]]:
        return ranges_of(file, wiring, interface)

    quantized = Quantized(Limits.of(wanted.min_snr, wanted.min_agreement, required=True), ranges)
    found = result_check.compared(source, content, wanted.data, wiring, quantized, wanted)
    if not wanted.compare_layers or found.fidelity is None:
        return found
    fidelity = found.fidelity._replace(layers=layer_table(source, content, wanted.data, wiring, ranges))
    problem = fidelity.problem()
    others = [each for each in found.problems if problem is None or each.code != problem.code]
    return found._replace(fidelity=fidelity, problems=(*others, *([problem] if problem is not None else ())))


def ranges_of(file: Outline, wiring: Matching, interface: Interface) -> dict[int, tuple[float, float]]:
    """Returns the ranges of numbers that a function's inputs can represent in a file, by input number."""
    signature, wires = wiring.signature(interface), wiring(interface)
    tensors = file.tensors[signature.subgraph]
    quantized = {
        operator.inputs[0]: tensors[operator.outputs[0]]
        for operator in file.subgraphs[signature.subgraph]
        if operator.name == "QUANTIZE" and operator.inputs and operator.outputs and operator.outputs[0] < len(tensors)
    }
    numbers = {each.name: each.number for each in signature.inputs}
    found = {}
    for place, name in enumerate(wires.inputs):
        tensor = tensors[numbers[name]]
        known = _range(tensor if tensor.scale else quantized.get(tensor.number, tensor))
        if known is not None:
            found[place] = known
    return found


def _range(tensor: OutlineTensor) -> tuple[float, float] | None:
    """Returns the range of a tensor's numbers, or `None` if they are not stored as integers with a valid range."""
    if tensor.type not in _STORED:
        return None
    found = stored_range({"quantization": (tensor.scale, tensor.zero_point), "dtype": np.dtype(tensor.type)})
    return found if found is not None and np.isfinite(found).all() and found[0] < found[1] else None
