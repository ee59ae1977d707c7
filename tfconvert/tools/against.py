"""Compares a .tflite file, whoever made it, with the model that it was made of."""

from __future__ import annotations

import os

import numpy as np

from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.targets.litert.quantize.figures import range_of
from tfconvert.converter.validation import result_check
from tfconvert.converter.validation.result_check import Quantized, Verification
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.outline import Outline, Tensor, outline, read_file
from tfconvert.schema.diagnostics import error
from tfconvert.schema.fidelity import Limits
from tfconvert.settings.verify_options import Verify
from tfconvert.tools.layer_table import layer_table
from tfconvert.tools.layers import first_difference
from tfconvert.tools.matching import Matching

# Types in which inputs of floats are stored.
_STORED = ("int8", "uint8", "int16")


def check(source: Source, path: str | os.PathLike[str], wanted: Verify) -> Verification:
    """Returns how a file's results differ from the model's.

    A file of floats has to agree but for rounding. A quantized one is judged by how near it is: its inputs are fed, and
    its outputs read, by their scales.

    Args:
        source: The model.
        path: The file.
        wanted: How to verify. If layers are compared, a note tells the first operator whose result differs; of a
            quantized file all layers are listed instead. Limits are for quantized files.

    Raises:
        ConversionError: Either can't be read, they have other signatures, inputs or outputs (`no-such-signature`,
            `unlike-interface`), the data is not what the model takes (`wrong-sample`), or LiteRT refuses the file
            (`runtime-error`) or hangs (`litert-timeout`); or there are limits for a file that is not quantized
            (`wrong-option`).
    """
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
        found = result_check.compared(source, content, wanted.data, wiring)
        if not wanted.compare_layers:
            return found
        return found.with_layers(first_difference(source, content, wanted.data, wiring))

    def ranges(interface: Interface) -> dict[int, tuple[float, float]]:
        return _ranges(file, wiring, interface)

    quantized = Quantized(Limits.of(wanted.min_snr, wanted.min_agreement, required=True), ranges)
    found = result_check.compared(source, content, wanted.data, wiring, quantized)
    if not wanted.compare_layers or found.fidelity is None:
        return found
    fidelity = found.fidelity._replace(layers=layer_table(source, content, wanted.data, wiring, ranges))
    problem = fidelity.problem()
    others = [each for each in found.problems if problem is None or each.code != problem.code]
    return found._replace(fidelity=fidelity, problems=(*others, *([problem] if problem is not None else ())))


def _ranges(file: Outline, wiring: Matching, interface: Interface) -> dict[int, tuple[float, float]]:
    """Returns the ranges of the numbers that a function's inputs can be in a file, by their places."""
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


def _range(tensor: Tensor) -> tuple[float, float] | None:
    """Returns the range of a tensor's numbers, `None` if they are not stored as integers, or it is no range."""
    if tensor.type not in _STORED:
        return None
    found = range_of({"quantization": (tensor.scale, tensor.zero_point), "dtype": np.dtype(tensor.type)})
    return found if found is not None and np.isfinite(found).all() and found[0] < found[1] else None
