"""Which operators of a model of floats and of its quantized form compute the same.

Names don't tell: a constant may have taken a result's name in one of the files. The order does, since quantizing only
adds operators between the others and replaces few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from tfconvert.importers.tflite.buffers import Content
from tfconvert.importers.tflite.operators import code
from tfconvert.schema.tflite.reader import Allowance, View, read_model

# Operators that only change how numbers are stored.
_BETWEEN = frozenset(("QUANTIZE", "DEQUANTIZE"))


class Layer(NamedTuple):
    """An operator that computes something.

    Attributes:
        operator: Its name.
        shapes: The shapes of its results, but for those that are left out.
        results: The indices of their tensors.
        inputs: Those of the tensors that it takes.
    """

    operator: str
    shapes: tuple[tuple[int, ...], ...]
    results: tuple[int, ...]
    inputs: tuple[int, ...] = ()


def layers_of(content: Content) -> list[Layer]:
    """Returns the operators of a file's first subgraph, in order, without those that only store numbers otherwise.

    Args:
        content: The file, which the converter wrote.
    """
    model = read_model(content.view, Allowance(len(content.view)))
    codes = [code(view) for view in model["operator_codes"] or ()]
    main = model["subgraphs"][0]
    tensors = main["tensors"] or ()
    layers = []
    for view in main["operators"] or ():
        found = codes[view["opcode_index"]]
        results = tuple(at for at in _numbers(view, "outputs") if at >= 0)
        name = found.custom or found.name.upper()
        if name not in _BETWEEN:
            shapes = tuple(_numbers(tensors[at], "shape") for at in results)
            layers.append(Layer(name, shapes, results, _numbers(view, "inputs")))
    return layers


def _numbers(view: View, name: str) -> tuple[int, ...]:
    values = view[name]
    return () if values is None else tuple(values.tolist())


def paired(floats: Sequence[Layer], quantized: Sequence[Layer]) -> Iterator[tuple[Layer, Layer]]:
    """Yields the layers that both files have, in order."""
    keys, others = ([each[:2] for each in layers] for layers in (floats, quantized))
    for block in SequenceMatcher(None, keys, others, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            yield floats[block.a + offset], quantized[block.b + offset]
