"""Compares a quantized model with the float model on samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.pipeline.pass_result import FLOAT, LayerReport
from tfconvert.converter.pipeline.runner import opened, run_stages
from tfconvert.converter.pipeline.stages import before
from tfconvert.converter.targets.litert.quantize import comparison
from tfconvert.converter.targets.litert.quantize.candidates import is_constant, is_float
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.samples import Entry, Sample, entries_of
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.litert.tflite_file import export_file
from tfconvert.converter.validation import inputs, result_check
from tfconvert.converter.validation.exclusion_search import Search, Trial
from tfconvert.exporters.tflite.model import Place, TFLiteFile, export
from tfconvert.importers.source import Source
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.fidelity import Fidelity, LayerFidelity, Limits
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import limited
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT
from tfconvert.settings.verify_options import Verify

_FLOATS = before(STAGES, "prepare-quantize")
_REST = STAGES[len(_FLOATS) :]


class FloatForm(NamedTuple):
    """The float file.

    Attributes:
        file: The file.
        nodes: The nodes of the tensors of its first subgraph.
        readers: For each node, those that read its results.
    """

    file: TFLiteFile
    nodes: Mapping[int, str]
    readers: Mapping[str, Sequence[str]]


class QuantizedForm(NamedTuple):
    """A quantized file.

    Attributes:
        file: The file.
        nodes: The nodes that became integers, at least in part.
    """

    file: TFLiteFile
    nodes: frozenset[str]


class Forms:
    """A model before it is quantized.

    Args:
        source: The model.
        options: The settings of its conversion.
        quantize: Those of its quantization; samples that can be read only once are not read again.
    """

    def __init__(self, source: Source, options: Options, quantize: Quantize) -> None:
        self._options = replace(options, keep_graphs=False, check_passes=False)
        assert isinstance(options.target, LiteRT), "only LiteRT's files are quantized"
        self._target = options.target
        # The ranges are known from the conversion itself, if they were kept.
        samples = quantize.samples if quantize.calibration is None else None
        self._quantize = replace(quantize, samples=samples, progress=None)
        with limited(options.limits):
            self._module = source.open(functional=True)
            for _ in run_stages(self._module, _FLOATS, self._options):
                pass

    def nodes(self, layers: Iterable[LayerReport], exclude: Sequence[str] = ()) -> frozenset[str]:
        """Returns the nodes that are quantized, at least in part.

        Args:
            layers: The layers that quantizing activations has reported.
            exclude: Patterns of nodes that stay float, in addition to those of the conversion.
        """
        if self._quantize.is_static:
            return frozenset(layer.node for layer in layers if layer.form != FLOAT and layer.node)
        exclusion = Exclusion((*self._quantize.exclude, *exclude))
        weighted = (
            op for op in _ops(self._module) if any(is_constant(value) and is_float(value) for value in op.operands)
        )
        return frozenset(node_of(op.location) for op in weighted if not exclusion.excludes(op)) - {""}

    def floats(self) -> FloatForm:
        """Returns the float model."""
        module = self._module.clone({})
        with limited(self._options.limits):
            for _ in run_stages(module, _REST, self._with(None)):
                pass
            places: dict[Value, Place] = {}
            file = export(module, places=places, restate=True)
        nodes = {
            place.tensor: node_of(value.owner.location)
            for value, place in places.items()
            if place.subgraph == 0 and isinstance(value.owner, Operation)
        }
        return FloatForm(file, nodes, _readers(module))

    def quantized(self, exclude: Sequence[str]) -> QuantizedForm:
        """Returns the quantized model with additional float layers.

        Args:
            exclude: Patterns of them.
        """
        module = self._module.clone({})
        quantize = replace(self._quantize, exclude=(*self._quantize.exclude, *exclude))
        layers: list[LayerReport] = []
        with limited(self._options.limits):
            for done in run_stages(module, _REST, self._with(quantize)):
                layers += done.result.layers
            file = export_file(module, LiteRT(allow_custom_ops=self._target.allow_custom_ops, quantize=quantize))
        return QuantizedForm(file, self.nodes(layers, exclude))

    def _with(self, quantize: Quantize | None) -> Options:
        """Returns the settings with those of another quantization."""
        return replace(self._options, target=replace(self._target, quantize=quantize))


def _readers(module: ModuleOp) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for op in _ops(module):
        for use in (use for result in op.results for use in result.uses):
            if isinstance(use.operation, tfl.TFLOp):
                found.setdefault(node_of(op.location), {})[node_of(use.operation.location)] = None
    return {node: [each for each in readers if each and each != node] for node, readers in found.items()}


def _ops(module: ModuleOp) -> Iterator[Operation]:
    """Yields the operators that compute something."""
    return (op for op in module.walk() if isinstance(op, tfl.TFLOp) and op.op_name not in tfl.BESIDE)


MOST = result_check.MOST
"""Maximum number of samples per signature that are compared."""

# Number of samples for comparing layers during the search for exclusions.
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
    """Compares a quantized file with the float model, and optionally their layers.

    Args:
        source: The model.
        options: The settings of the conversion.
        quantize: Those of the quantization.
        wanted: How to verify.
        file: The quantized file.
        layers: The layers that quantizing activations has reported.
        on_stage: Called with a name before the search for exclusions.
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
    """Returns inputs for the signatures, and whether they are random because the user gave none."""
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
