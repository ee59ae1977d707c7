"""Verifies the result of a conversion, as its settings require."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfconvert.converter import conversion
from tfconvert.converter.files.layers import first_difference
from tfconvert.converter.options import Options
from tfconvert.converter.quantization import Quantize
from tfconvert.converter.quantization_report import QuantizationReport
from tfconvert.converter.report import Report
from tfconvert.converter.targets import target_of
from tfconvert.converter.validation import quantization_check
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic

if TYPE_CHECKING:
    from tfconvert.converter.targets import ConvertedFile

_NEEDS_FLEX = Diagnostic(
    "not-verified",
    "the result was not run: LiteRT's Python package has no Flex delegate",
    hint="run it in an app that links the delegate",
    severity=WARNING,
)


def verified(source: Source, options: Options, file: ConvertedFile, report: Report) -> Report:
    """Returns the report with how the file compares with the model.

    Args:
        source: The model.
        options: The settings.
        file: What it was converted to.
        report: The report of the conversion.

    Raises:
        ConversionError: Results differ, or the file can't be run.
    """
    if options.allow_flex and any(note.code == "needs-flex" for note in report.notes):
        return report._replace(notes=(*report.notes, _NEEDS_FLEX))
    if options.quantize is not None:
        return _quantized(source, options, options.quantize, file, report)
    found = target_of(options).compare(source, file, options.verify_data)
    notes = found.notes
    if options.compare_layers:
        assert isinstance(file, TFLiteFile)
        notes = (*notes, *first_difference(source, file.to_bytes(), options.verify_data))
    if found.problems:
        raise ConversionError((*found.problems, *notes))
    return report._replace(verification=found.errors, notes=(*report.notes, *notes))


def _quantized(source: Source, options: Options, quantize: Quantize, file: ConvertedFile, report: Report) -> Report:
    """Returns the report with how a quantized file compares with the same model unquantized."""
    floats, _ = conversion.run_litert(source, options._replace(quantize=None, keep_graphs=False))
    assert isinstance(file, type(floats))
    data = quantize.samples if options.verify_data is None else options.verify_data
    fidelity = quantization_check.check(source.open(), floats, file, data)
    known = report.quantization or QuantizationReport(())
    return report._replace(quantization=known._replace(fidelity=fidelity))
