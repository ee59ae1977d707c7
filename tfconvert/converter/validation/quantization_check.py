"""Compares a quantized model with the same model of floats on samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.pipeline.pass_result import LayerReport
from tfconvert.converter.pipeline.runner import opened
from tfconvert.converter.targets.litert.quantize import comparison
from tfconvert.converter.targets.litert.quantize.samples import Entry, Sample, entries_of
from tfconvert.converter.validation import inputs, result_check
from tfconvert.converter.validation.exclusion_search import Search, Trial
from tfconvert.converter.validation.quantized_forms import Forms
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.importers.source import Source
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.fidelity import Fidelity, LayerFidelity, Limits
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.verify_options import Verify

MOST = result_check.MOST
"""How many samples of each signature are compared."""

# On how many the layers are compared while searching for those to exclude.
_FEW = 4


def check(
    source: Source,
    options: Options,
    quantize: Quantize,
    wanted: Verify,
    file: TFLiteFile,
    layers: Sequence[LayerReport],
    on_stage: Callable[[str], None] = lambda name: None,
) -> Fidelity:
    """Compares a quantized file with the model of floats; if that is wished, layer by layer.

    Args:
        source: The model.
        options: The settings of the conversion.
        quantize: Those of the quantization.
        wanted: How to verify.
        file: The quantized file.
        layers: The layers that quantizing activations has reported.
        on_stage: Called with a name before the search for layers to exclude begins.
    """
    forms = Forms(source, options, quantize)
    floats = forms.floats()
    module = opened(source)
    functions, entries = entries_of(module)
    samples, is_random = _samples(module, functions, entries, quantize.samples if wanted.data is None else wanted.data)
    if wanted.compare_layers:
        samples = list(samples)
    limits = Limits.of(wanted.min_snr, wanted.min_agreement)

    listed = floats.nodes if wanted.compare_layers else None
    found = comparison.compare(floats.file, file, samples, entries, listed)
    found = found._replace(limits=limits, is_random=is_random)
    if not (wanted.compare_layers and wanted.search_seconds and found.is_low):
        return found
    few = list(islice(samples, _FEW))

    def trial(exclude: Sequence[str]) -> Trial:
        form = forms.quantized(exclude)

        def layers_of() -> Sequence[LayerFidelity]:
            return comparison.compare(floats.file, form.file, few, entries, floats.nodes).layers

        fidelity = comparison.compare(floats.file, form.file, samples, entries, inner=False)
        return Trial(fidelity._replace(limits=limits), form.nodes, layers_of)

    on_stage("search-exclusions")
    search = Search(trial, floats.readers, wanted.search_seconds)
    first = Trial(found, forms.nodes(layers), lambda: found.layers)
    return found._replace(exclusions=search.run(first))


def _samples(
    module: ModuleOp, functions: Sequence[FuncOp], entries: Sequence[Entry], given: Any
) -> tuple[Iterable[Sample], bool]:
    """Returns inputs for the signatures, and whether they are random since there are none of the user's."""
    own = _given(entries, given() if callable(given) else given)
    first = next(own, None)
    return (_random(module, functions), True) if first is None else (chain([first], own), False)


def _given(entries: Sequence[Entry], given: Any) -> Iterator[Sample]:
    for number in range(len(entries)) if given is not None else ():
        for values in result_check.samples_of(given, entries, number):
            yield Sample(number, list(values))


def _random(module: ModuleOp, functions: Sequence[FuncOp]) -> Iterator[Sample]:
    for number, function in enumerate(functions):
        names = [tensor.name for tensor in interface_of(function).inputs]
        for values in inputs.drawn(module, function, names):
            yield Sample(number, list(values))
