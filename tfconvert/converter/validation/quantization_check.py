"""Compares a quantized model with the float model on samples, and searches for layers to exclude from quantization.

The search finds the fewest layers that make the model close enough to the float model. A layer whose result suits its
type badly is excluded together with the readers of the result: the result is stored as integers if any of them reads
integers. The layers with the largest loss in the last trial come first. When the fidelity is sufficient, the search
drops exclusions that aren't needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import escape
from itertools import chain, islice
from typing import Any, NamedTuple

from tfconvert.converter.ir.interface import interface_of
from tfconvert.converter.pipeline.pass_result import FLOAT, LayerReport
from tfconvert.converter.pipeline.runner import opened, run_stages
from tfconvert.converter.pipeline.stages import before
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.quantize import comparison
from tfconvert.converter.targets.litert.quantize.candidates import is_constant, is_float
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.quantize.samples import Entry, Sample, entries_of
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.litert.tflite_file import export_file
from tfconvert.converter.validation import inputs, result_check
from tfconvert.converter.validation.metric import Metric, Results
from tfconvert.converter.validation.result_check import Verification
from tfconvert.converter.validation.wires import own_wiring
from tfconvert.converter.validation.witness import in_litert, witness_of
from tfconvert.exporters.tflite.model import Place, TFLiteFile, export
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.fidelity import Exclusions, Fidelity, LayerFidelity, Limits
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import limited
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT
from tfconvert.settings.verify_options import Verify


class ExclusionTrial(NamedTuple):
    """A quantized model with some layers excluded."""

    fidelity: Fidelity  # Its fidelity.
    nodes: frozenset[str]  # The nodes that are integers.
    # Returns its layers, those with the largest loss first; slow, and rarely called.
    layers: Callable[[], Sequence[LayerFidelity]]


class _OutOfTimeError(Exception):
    """There is no time left."""


class Search:
    """A search.

    Args:
        measure: Quantizes the model with nodes excluded and measures it; raises an error if that is impossible.
        readers: For each node, those that read its results.
        seconds: The time limit.
        clock: Returns the time.
    """

    def __init__(
        self,
        measure: Callable[[Sequence[str]], ExclusionTrial],
        readers: Mapping[str, Sequence[str]],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._measure, self._readers, self._clock = measure, readers, clock
        self._end = clock() + seconds
        self._trials = 0

    def run(self, first: ExclusionTrial) -> Exclusions:
        """Returns the layers to exclude.

        Args:
            first: The model without exclusions.
        """
        try:
            found = self._grown(first)
        except _OutOfTimeError:
            return Exclusions((), trials=self._trials, ran_out=True)
        if found is None:
            return Exclusions((), trials=self._trials)
        nodes, trial, ran_out = self._pruned(*found)
        exclude, fidelity = tuple(escape(node) for node in nodes), trial.fidelity
        metric = None if fidelity.metric is None else fidelity.metric.quantized
        return Exclusions(exclude, fidelity.snr, fidelity.agreement, self._trials, ran_out, metric)

    def _grown(self, known: ExclusionTrial) -> tuple[list[str], ExclusionTrial] | None:
        """Returns sufficient nodes, perhaps more than needed, and the trial; `None` if no nodes are sufficient."""
        excluded: list[str] = []
        failed: set[str] = set()
        step = 1
        worst = self._worst_first(known)
        while True:
            groups = [group for node in worst if node not in failed and (group := self._group(node, known))]
            if not groups:
                return None
            # Groups that share layers are one step.
            added = list(dict.fromkeys(node for group in groups[:step] for node in group))
            trial = self._trial([*excluded, *added])
            if trial is None:
                failed.update(added)
                continue
            excluded += [node for node in added if node not in excluded]
            if not trial.fidelity.is_low:
                return excluded, trial
            # If one more layer doesn't help, several may; the last step excludes all.
            step = 1 if _gains(trial.fidelity, known.fidelity) else 2 * step
            known = trial
            worst = self._worst_first(known)

    def _worst_first(self, known: ExclusionTrial) -> list[str]:
        listed = [layer.node for layer in known.layers() if layer.node]
        return list(dict.fromkeys([*listed, *sorted(known.nodes)]))

    def _group(self, node: str, known: ExclusionTrial) -> list[str]:
        """Returns a node and the readers of its results, as far as they are integers."""
        return [each for each in (node, *self._readers.get(node, ())) if each in known.nodes]

    def _pruned(self, nodes: list[str], trial: ExclusionTrial) -> tuple[list[str], ExclusionTrial, bool]:
        """Removes unnecessary nodes, several at once first; also returns whether time ran out."""
        size = max(1, len(nodes) // 2)
        try:
            while True:
                for start in range(len(nodes) - size, -size, -size):
                    fewer = nodes[: max(start, 0)] + nodes[start + size :]
                    found = self._trial(fewer) if fewer else None
                    if found is not None and not found.fidelity.is_low:
                        nodes, trial = fewer, found
                if size == 1:
                    return nodes, trial, False
                size = (size + 1) // 2
        except _OutOfTimeError:
            return nodes, trial, True

    def _trial(self, nodes: Sequence[str]) -> ExclusionTrial | None:
        """Returns the model with nodes excluded, or `None` if it can't be made.

        Raises:
            _OutOfTimeError: The time limit is reached.
        """
        if self._clock() >= self._end:
            raise _OutOfTimeError
        self._trials += 1
        try:
            return self._measure([escape(node) for node in nodes])
        except ConversionError:
            return None


# Minimum gain in dB that counts as an improvement.
_GAIN = 0.5


def _gains(fidelity: Fidelity, known: Fidelity) -> bool:
    """Returns whether a model is closer to the float model than another; few samples hide that from a metric."""
    one, other = fidelity.metric, known.metric
    is_better = one is not None and other is not None and one.loss < other.loss
    return is_better or fidelity.snr > known.snr + _GAIN


_FLOATS = before(STAGES, "prepare-quantize")
_REST = STAGES[len(_FLOATS) :]


class FloatForm(NamedTuple):
    """The float file."""

    file: TFLiteFile  # The file.
    nodes: Mapping[int, str]  # The nodes of the tensors of its first subgraph.
    readers: Mapping[str, Sequence[str]]  # For each node, those that read its results.


class QuantizedForm(NamedTuple):
    """A quantized file."""

    file: TFLiteFile  # The file.
    nodes: frozenset[str]  # The nodes that became integers, at least in part.


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
) -> QuantizationOutcome:
    """Compares a quantized file with the float model, which has to agree with its witness, and optionally their layers.

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
    data = quantize.samples if wanted.data is None else wanted.data
    metric = None if quantize.metric is None else Metric(quantize)
    runtime.require()
    with LiteRTProcess(as_floats=True) as litert:
        declined = result_check.not_loaded(litert, file.to_bytes())
        if declined is not None:
            return QuantizationOutcome(None, (declined,))
        agreement = _agreement(source, floats.file, data, wanted)
        module = opened(source)
        functions, entries = entries_of(module)
        own = _given(entries, data() if callable(data) else data, MOST if metric is None else None)
        head = list(islice(own, 1))
        samples: Iterable[Sample] = chain(head, own)
        if not head and metric is None:
            samples = list(_random(module, functions, litert, floats.file.to_bytes()))
        elif wanted.compare_layers:
            samples = list(samples)
    if samples == []:
        return QuantizationOutcome(None, (*agreement.notes, _NO_INPUTS))
    limits = Limits.of(wanted.min_snr, wanted.min_agreement)

    def judged(file: TFLiteFile, nodes: Mapping[int, str] | None, *, is_whole: bool = True) -> Fidelity:
        """Returns the fidelity of a quantized file, by all that it is judged by."""
        runs: list[Results] = []
        taker = None if metric is None else runs.append
        found = comparison.compare(floats.file, file, samples, entries, nodes, inner=is_whole, taker=taker)
        if metric is not None:
            found = found._replace(metric=metric.measured(runs, has_interval=is_whole))
        return found._replace(limits=limits)

    found = judged(file, floats.nodes if wanted.compare_layers else None)
    found = found._replace(is_random=not head, witness=_name_of(agreement))
    is_hopeless = found.metric is not None and found.metric.is_out_of_reach
    if not (wanted.compare_layers and wanted.search_seconds and found.is_low) or is_hopeless:
        return QuantizationOutcome(found, agreement.notes)
    few = list(islice(samples, _FEW))

    def trial(exclude: Sequence[str]) -> ExclusionTrial:
        form = forms.quantized(exclude)

        def layers_of() -> Sequence[LayerFidelity]:
            return comparison.compare(floats.file, form.file, few, entries, floats.nodes).layers

        return ExclusionTrial(judged(form.file, None, is_whole=False), form.nodes, layers_of)

    on_stage("search-exclusions")
    search = Search(trial, floats.readers, wanted.search_seconds)
    first = ExclusionTrial(found, forms.nodes(layers), lambda: found.layers)
    return QuantizationOutcome(found._replace(exclusions=search.run(first)), agreement.notes)


class QuantizationOutcome(NamedTuple):
    """The outcome of a check."""

    fidelity: Fidelity | None  # How close the file is to the float model; `None` if it could not be run.
    notes: tuple[Diagnostic, ...] = ()  # What could not be compared.


_NO_INPUTS = Diagnostic(
    "not-verified",
    "the result was not verified: no random inputs suit it",
    hint="pass inputs of your own (--verify-data)",
    severity=NOTE,
)


def _agreement(source: Source, floats: TFLiteFile, data: Any, wanted: Verify) -> Verification:
    """Returns how the float model agrees with its witness; nothing if only the reference executor, which is slow, is.

    Raises:
        ConversionError: It does not agree (`verification-failed`).
    """
    with witness_of(source, wanted.witness) as witness:
        if witness is None:
            return Verification()
    found = result_check.compared(source, floats.to_bytes(), data, wanted=wanted)
    if found.problems:
        raise ConversionError((*found.problems, *found.notes))
    return found


def _name_of(agreement: Verification) -> str:
    names = " and ".join(dict.fromkeys(each.witness for each in agreement.errors))
    return f"the float model in LiteRT, which agrees with {names}," if names else "the float model in LiteRT"


def _given(entries: Sequence[Entry], given: Any, most: int | None) -> Iterator[Sample]:
    for number in range(len(entries)) if given is not None else ():
        for values in result_check.samples_of(given, entries, number, most=most):
            yield Sample(number, list(values))


def _random(module: ModuleOp, functions: Sequence[FuncOp], litert: LiteRTProcess, content: bytes) -> Iterator[Sample]:
    """Yields inputs that the float file accepts."""
    for number, function in enumerate(functions):
        interface = interface_of(function)
        names = [tensor.name for tensor in interface.inputs]
        answer = in_litert(own_wiring(interface), litert, content)
        for values in inputs.Drawing(module, function, names, answer).values():
            yield Sample(number, list(values))
