"""Compares a quantized model with the same model of floats on samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.litert.quantize import comparison
from tfconvert.converter.litert.quantize.entries import entries_of
from tfconvert.converter.litert.quantize.samples import read
from tfconvert.converter.quantization_report import Fidelity
from tfconvert.converter.validation import inputs
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.schema.ir.builtin import ModuleOp

MOST = 32
"""How many samples are compared."""


def check(module: ModuleOp, floats: TFLiteFile, quantized: TFLiteFile, samples: Any) -> Fidelity:
    """Compares two files of one model.

    Args:
        module: The model as it was imported.
        floats: Its file without quantization.
        quantized: The file with it.
        samples: The user's samples; random ones are used where there are none.
    """
    return comparison.compare(floats, quantized, islice(_values(module, samples), MOST))


def _values(module: ModuleOp, samples: Any) -> Iterator[Sequence[Any]]:
    """Yields inputs for the first signature."""
    functions, signatures = entries_of(module)
    any_sample = False
    if samples is not None:
        for sample in read(samples, signatures):
            if sample.entry == 0:
                any_sample = True
                yield sample.values
    if not any_sample:
        function = functions[0]
        names = [tensor.name for tensor in interface_of(function).inputs]
        yield from inputs.drawn(module, function, names)
