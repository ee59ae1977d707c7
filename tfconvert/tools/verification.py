"""Verifies the result of a conversion, as its settings require."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfconvert.converter.pipeline.pass_result import QuantizationReport
from tfconvert.converter.validation import file_check, quantization_check, runtimes_check
from tfconvert.converter.validation.metric import function_of, labels_of
from tfconvert.converter.validation.runtimes_check import COMPILED
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.importers.source import Source
from tfconvert.report.report import Report
from tfconvert.schema.diagnostics import ERROR, WARNING, ConversionError, Diagnostic, error
from tfconvert.schema.fidelity import Fidelity
from tfconvert.schema.tflite.compiled_model import NO_COMPILED_MODEL
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT
from tfconvert.settings.verify_options import Verify
from tfconvert.tools.layers import first_difference

if TYPE_CHECKING:
    from tfconvert.converter.targets.target import ConvertedFile

_NEEDS_FLEX = Diagnostic(
    "not-verified",
    "the result was not run: LiteRT's Python package has no Flex delegate",
    hint="run it in an app that links the delegate",
    severity=WARNING,
)


@contextmanager
def prepared(options: Options) -> Iterator[Options]:
    """Yields the settings of a conversion that is verified afterwards: it keeps samples and ranges for that.

    Args:
        options: The settings as the user gave them.
    """
    target, quantize, wanted = options.target, options.quantize, options.verify
    if not isinstance(target, LiteRT) or quantize is None:
        yield options
        return
    if quantize.metric is not None:
        # What can't be read is found out before the conversion, and all samples that are measured are kept.
        quantize = replace(quantize, metric=function_of(quantize.metric), labels=labels_of(quantize.labels))
        if wanted is not None:
            options = replace(options, verify=replace(wanted, data=_repeatable(wanted.data, None)))
    most = quantization_check.MOST if quantize.metric is None else None
    quantize = replace(quantize, samples=_repeatable(quantize.samples, most))
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        is_searched = wanted is not None and wanted.compare_layers
        if is_searched and quantize.samples is not None and quantize.calibration is None:
            quantize = replace(quantize, calibration=Path(folder) / "ranges.json")
        yield replace(options, target=replace(target, quantize=quantize))


def _repeatable(samples: Any, most: int | None) -> Any:
    """Returns samples that can be read again after they were read once, at least the first `most`."""
    if isinstance(samples, Iterator):
        return _Remembered(samples, most)
    if isinstance(samples, Mapping):
        return {key: _repeatable(each, most) for key, each in samples.items()}
    return samples


class _Remembered:
    """An iterator's items; once it is exhausted, the first of them again."""

    def __init__(self, items: Iterator[Any], most: int | None) -> None:
        self._items = items
        self._most = most
        self._first: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        """Yields the remembered items, then the rest, the first of which it remembers."""
        yield from tuple(self._first)
        for item in self._items:
            if self._most is None or len(self._first) < self._most:
                self._first.append(item)
            yield item


def verified(
    source: Source,
    options: Options,
    file: ConvertedFile,
    report: Report,
    on_stage: Callable[[str], None] = lambda name: None,
) -> Report:
    """Returns the report with how the file compares with the model.

    Args:
        source: The model.
        options: The settings.
        file: What it was converted to.
        report: The report of the conversion.
        on_stage: Called with the name of what may take long beside verifying, before it begins.

    Raises:
        ConversionError: Results differ, or the file can't be run.
    """
    wanted = options.verify
    assert wanted is not None, "the settings say to verify"
    if any(note.code == "needs-flex" for note in report.notes):
        _check_measured(options.quantize, None, [_NEEDS_FLEX])
        return report._replace(notes=(*report.notes, _NEEDS_FLEX))
    if options.quantize is not None:
        assert isinstance(file, TFLiteFile), "only LiteRT's files are quantized"
        report = _quantized(source, options, options.quantize, wanted, file, report, on_stage)
        return _elsewhere(wanted, file, report)
    found = file_check.compared(source, file, wanted)
    if wanted.compare_layers:
        assert isinstance(file, TFLiteFile), "only LiteRT's files have layers to compare"
        found = found.with_layers(first_difference(source, file.to_bytes(), wanted.data))
    if found.problems:
        raise ConversionError((*found.problems, *found.notes))
    report = report._replace(verification=found.errors, notes=(*report.notes, *found.notes))
    # What could not be run here can't be run there.
    is_run = bool(found.errors or wanted.on)
    return _elsewhere(wanted, file, report) if is_run and isinstance(file, TFLiteFile) else report


def _elsewhere(wanted: Verify, file: TFLiteFile, report: Report) -> Report:
    """Returns the report with what other runtimes make of a file.

    Raises:
        ConversionError: One that was asked for does not run it, or has other results.
    """
    kinds = list(dict.fromkeys(wanted.on))
    content = file.to_bytes()
    notes = list(runtimes_check.notes_of(list(runtimes_check.outcomes(content, kinds))))
    problems = [note for note in notes if note.severity == ERROR]
    if problems:
        raise ConversionError(problems)
    is_known = any(note.code == NO_COMPILED_MODEL for note in report.notes)
    if COMPILED not in kinds and not is_known and runtimes_check.is_available(COMPILED):
        found = list(runtimes_check.outcomes(content, [COMPILED]))
        notes += runtimes_check.notes_of(found, silent=True)
    return report._replace(notes=(*report.notes, *notes))


def _quantized(
    source: Source,
    options: Options,
    quantize: Quantize,
    wanted: Verify,
    file: TFLiteFile,
    report: Report,
    on_stage: Callable[[str], None],
) -> Report:
    """Returns the report with how a quantized file compares with the same model unquantized."""
    known = report.quantization or QuantizationReport(())
    outcome = quantization_check.check(source, options, quantize, wanted, file, known.layers, on_stage)
    report = report._replace(notes=(*report.notes, *outcome.notes))
    fidelity = outcome.fidelity
    _check_measured(quantize, fidelity, outcome.notes)
    if fidelity is None:
        return report
    problem = fidelity.problem()
    if problem is not None and fidelity.is_refused:
        raise ConversionError((problem, *fidelity.worst_layers()))
    notes = (problem, *report.notes) if problem is not None else report.notes
    return report._replace(quantization=known._replace(fidelity=fidelity), notes=notes)


def _check_measured(quantize: Quantize | None, fidelity: Fidelity | None, notes: Sequence[Diagnostic]) -> None:
    """Checks that a metric that was asked for was measured.

    Raises:
        ConversionError: It was not (`wrong-metric`).
    """
    if quantize is not None and quantize.metric is not None and fidelity is None:
        why = "; ".join(note.message for note in notes)
        raise error("wrong-metric", f"the metric can't be measured: {why}", hint="leave `metric` (--metric) out")
