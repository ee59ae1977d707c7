"""One conversion: load, open, run the stages, export, report.

Imports are late where they are, so that asking for help or making a mistake costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tfconvert.converter.interpreter import COLLECTOR_PAUSE
from tfconvert.converter.options import Options
from tfconvert.converter.pipeline.features import NOTHING, presence_in
from tfconvert.converter.pipeline.stage import Instrument, apply_watched
from tfconvert.converter.pipeline.stages import steps
from tfconvert.converter.report import Report, Stage
from tfconvert.importers.open_model import import_model
from tfconvert.schema.diagnostics import ConversionError, Diagnostic

if TYPE_CHECKING:
    from tfconvert.converter.ir.interface import Interface
    from tfconvert.exporters.tflite.model import TFLiteFile
    from tfconvert.schema.ir.builtin import ModuleOp

Result = TypeVar("Result")


def instruments(options: Options) -> list[Instrument]:
    """Returns what the settings ask to be done between the passes; nothing, usually."""
    asked: list[Instrument] = []
    if options.check_passes:
        from tfconvert.converter.pipeline.instruments import CheckPasses
        from tfconvert.converter.validation.pass_check import check

        asked.append(CheckPasses(check))
    if options.verify_each:
        from tfconvert.converter.pipeline.instruments import VerifyEach

        asked.append(VerifyEach())
    return asked


def run(
    model: str | Path, options: Options, on_stage: Callable[[str], None] = lambda name: None
) -> tuple[TFLiteFile, Report]:
    """Converts a model: import, the passes, the file's tables.

    Args:
        model: What `import_model` takes.
        options: The settings.
        on_stage: Called with each stage's name before it runs.

    Raises:
        ConversionError: The model can't be converted.
    """
    report = Report(str(model))

    def timed(name: str, work: Callable[[], Result]) -> Result:
        on_stage(name)
        start = time.perf_counter()
        result = work()
        report.stages.append(Stage(name, time.perf_counter() - start))
        return result

    watching = instruments(options)
    with COLLECTOR_PAUSE:
        timed("load", lambda: _load(options))
        module = timed("import", lambda: import_model(model, options))
        try:
            for step in timed("plan", lambda: steps(options, presence_in(module, options))):
                report.add(step.run.name, timed(step.run.name, partial(apply_watched, step, module, watching)))
        except ConversionError as problem:
            raise _explained(problem, report.notes) from problem.__cause__
        file = timed("export", lambda: _export(module, options))
    report.interfaces = _interfaces(module)
    report.size = file.size
    report.operators = file.operators
    report.bytes_by_operator = file.bytes_by_operator
    return file, report


def _explained(problem: ConversionError, notes: Sequence[Diagnostic]) -> ConversionError:
    """Returns an error that also tells which functions could have been fused, so that what fails were not there."""
    from tfconvert.converter.composites.marks import KEPT

    return ConversionError([*problem.diagnostics, *(note for note in notes if note.code == KEPT)])


def _interfaces(module: ModuleOp) -> list[Interface]:
    from tfconvert.converter.ir.interface import interfaces

    return list(interfaces(module))


def _load(options: Options) -> None:
    """Imports what every conversion needs, so that the report tells this time from the work's."""
    import tfconvert.exporters.tflite.model
    import tfconvert.importers.saved_model  # noqa: F401

    steps(options, NOTHING)


def _export(module: ModuleOp, options: Options) -> TFLiteFile:
    from tfconvert.exporters.tflite.metadata import Origin
    from tfconvert.exporters.tflite.model import export
    from tfconvert.schema.dialects import tf, tf_saved_model

    version = module.attributes.get(tf.PRODUCER_VERSION)
    origin = Origin(
        model_type="TF_SAVED_MODEL" if tf_saved_model.SEMANTICS in module.attributes else "NONE",
        tensorflow_version=str(tf.python_value(version)) if version is not None else "",
        allow_custom_ops=options.allow_custom_ops,
    )
    return export(module, origin=origin)
