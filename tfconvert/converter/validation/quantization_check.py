"""Compares a quantized model with the same model of floats on samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from tfconvert.converter.fidelity import Fidelity, Limits
from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.litert.quantize import comparison
from tfconvert.converter.litert.quantize.entries import entries_of
from tfconvert.converter.litert.quantize.samples import read
from tfconvert.converter.options import Options
from tfconvert.converter.quantization import Quantize
from tfconvert.converter.validation import inputs
from tfconvert.converter.validation.exclusion_search import Search, Trial
from tfconvert.converter.validation.quantized_forms import Forms
from tfconvert.converter.verify_options import Verify
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.importers.source import Source
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.ir.builtin import ModuleOp

MOST = 32
"""How many samples are compared."""


def check(
    source: Source, options: Options, quantize: Quantize, wanted: Verify, file: TFLiteFile, nodes: frozenset[str]
) -> Fidelity:
    """Compares a quantized file with the model of floats; if that is wished, layer by layer.

    Args:
        source: The model.
        options: The settings of the conversion.
        quantize: Those of the quantization.
        wanted: How to verify.
        file: The quantized file.
        nodes: The nodes that became integers in it.

    Raises:
        ConversionError: LiteRT is not installed (`litert-missing`), or can't run one of the files (`runtime-error`); or
            the data is not what the model takes (`wrong-sample`).
    """
    forms = Forms(source, options, quantize)
    floats = forms.floats()
    samples, is_random = _samples(source.open(), quantize.samples if wanted.data is None else wanted.data)
    if wanted.compare_layers:
        samples = list(samples)
    limits = Limits.of(wanted.min_snr, wanted.min_agreement)

    def measured(form: TFLiteFile) -> Fidelity:
        found = comparison.compare(floats.file, form, samples, floats.nodes if wanted.compare_layers else None)
        return found._replace(limits=limits, is_random=is_random)

    def trial(exclude: Sequence[str]) -> Trial:
        form = forms.quantized(exclude)
        return Trial(measured(form.file), form.nodes)

    found = measured(file)
    if wanted.compare_layers and wanted.search_seconds and found.is_low:
        search = Search(trial, floats.readers, wanted.search_seconds)
        found = found._replace(exclusions=search.run(Trial(found, nodes)))
    return found


def _samples(module: ModuleOp, given: Any) -> tuple[Iterable[Sequence[Array]], bool]:
    """Returns inputs for the first signature, and whether they are random since there are none of the user's."""
    functions, signatures = entries_of(module)
    own: Iterator[Sequence[Array]] = iter(())
    if given is not None:
        own = (sample.values for sample in read(given, signatures) if sample.entry == 0)
    first = next(own, None)
    if first is not None:
        return islice(chain([first], own), MOST), False
    function = functions[0]
    names = [tensor.name for tensor in interface_of(function).inputs]
    return islice(inputs.drawn(module, function, names), MOST), True
