"""One conversion: load, open, run the stages, export, report.

Some imports are late, so that printing help or reporting a wrong option costs nothing.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tfconvert.converter.ir.op_counts import kind_of_operations
from tfconvert.converter.pipeline.runner import as_functions, is_uncut, run_stages
from tfconvert.converter.pipeline.stage import InStage, Instrument
from tfconvert.converter.pipelines import load_target
from tfconvert.converter.process.collector import paused
from tfconvert.converter.targets.target import ConvertedFile, Imported, Target
from tfconvert.importers.source import Source
from tfconvert.report.report import Recorder, Report, StageTime
from tfconvert.schema.diagnostics import TRAINING_MODE, WARNING, ConversionError, Diagnostic, error
from tfconvert.schema.files import is_file
from tfconvert.schema.limits import NOT_FOLDED, budget, limited
from tfconvert.settings.options import Options
from tfconvert.settings.targets import ODML, AnyTarget, Iree, LiteRT

if TYPE_CHECKING:
    from tfconvert.converter.ir.interface import Interface
    from tfconvert.converter.targets.litert.accelerator_check import Acceptance
    from tfconvert.report.graph import KeepGraphs
    from tfconvert.schema.ir.builtin import ModuleOp

CUSTOM_OPERATORS = "custom-operators"
"""Code of the warning about operators that the app must register."""

Result = TypeVar("Result")

_CUT = "cut"
_SOURCE_LINE = re.compile(r":\d+")
_HOW_TO_LOCATE = (
    "the model doesn't hold the lines of its source: convert the object in memory, or save it with "
    "tf.saved_model.save(model, folder, options=tf.saved_model.SaveOptions(save_debug_info=True))"
)


def instruments(options: Options) -> list[Instrument]:
    """Returns the instruments that the settings require; none, usually."""
    instruments: list[Instrument] = []
    if options.check_passes:
        from tfconvert.converter.pipeline.instruments import CheckPasses
        from tfconvert.converter.validation.pass_check import check

        checking = CheckPasses(check)
        if options.patterns:
            from tfconvert.converter.pipeline.instruments import blamed

            checking.blame = partial(blamed, options=options, check=check)
        instruments.append(checking)
    if options.verify_each:
        from tfconvert.converter.pipeline.instruments import VerifyEach

        instruments.append(VerifyEach())
    return instruments


def _graph_keeper(options: Options) -> KeepGraphs | None:
    if not options.keep_graphs:
        return None
    from tfconvert.report.graph import KeepGraphs

    return KeepGraphs()


def checked(options: Options) -> Options:
    """Returns settings that were checked, with the patterns and fusions that names in them stand for.

    Raises:
        ConversionError: One is wrong, or two contradict each other (`wrong-option`); a file can't be read
            (`bad-metadata`), or IREE's compiler is missing (`iree-missing`).
    """
    options.check()
    target = options.target
    options = replace(options, patterns=_resolved(options.patterns, "patterns"))
    if options.patterns:
        from tfconvert.converter.rewrite.user_patterns import check_custom, of_dialect

        of_dialect(options.patterns, "tf.")
        check_custom(options.patterns, isinstance(target, LiteRT) and target.allow_custom_ops)
    if isinstance(target, LiteRT):
        own = [ODML] if target.writes_composites else []
        target = replace(target, composites=[*own, *_resolved(target.fusions, "fusions")])
        _check_litert(target)
    if isinstance(target, Iree) and not target.keep_mlir:
        # Before the model is read: without the compiler, only text that is to be kept could come of it.
        from tfconvert.converter.targets.iree import compiler

        compiler.find()
    return replace(options, target=target)


def _resolved(given: Sequence[Any], what: str) -> Sequence[Any]:
    # A single pattern is a tuple of another class; whatever isn't a list is refused later.
    if type(given) not in (list, tuple) or not any(isinstance(each, str | PathLike) for each in given):
        return given
    from tfconvert.converter.composites.fusion import Fusion
    from tfconvert.converter.pipeline import plugins
    from tfconvert.converter.rewrite.pattern import Pattern

    group, kind = (plugins.PATTERNS, Pattern) if what == "patterns" else (plugins.COMPOSITES, Fusion)
    return plugins.resolved(given, group, kind, what)


def _check_litert(target: LiteRT) -> None:
    if target.fusions:
        from tfconvert.converter.composites.fusion_registry import checked as checked_fusions

        checked_fusions(target.fusions, "composites")
    if target.target_runtime:
        from tfconvert.schema.tflite.versions import parse_release

        if parse_release(target.target_runtime) is None:
            raise error(
                "wrong-option", f"target_runtime can't be {target.target_runtime!r}", hint="name a release, as 2.14"
            )
    if target.metadata is not None:
        from tfconvert.converter.targets.litert.model_metadata import read_metadata

        read_metadata(target.metadata)
    if target.tune is not None:
        from tfconvert.converter.targets.litert.tuning.tuner import check

        check(target.tune)


def run(
    source: Source,
    options: Options,
    on_stage: Callable[[str], None] = lambda name: None,
    on_import: Callable[[ModuleOp], None] = lambda module: None,
) -> tuple[ConvertedFile, Report]:
    """Converts a model: import, the passes, the file's tables.

    Args:
        source: The model.
        options: The settings, which were checked.
        on_stage: Called with each stage's name before it runs.
        on_import: Called with the imported module before anything is done to it.
    """
    with limited(options.limits), paused():
        return _run(source, options, on_stage, on_import)


def _run(
    source: Source, options: Options, on_stage: Callable[[str], None], on_import: Callable[[ModuleOp], None]
) -> tuple[ConvertedFile, Report]:
    recorder = Recorder()
    loading = 0.0

    def timed(name: str, work: Callable[[], Result]) -> Result:
        on_stage(name)
        start = time.perf_counter()
        with InStage(name):
            result = work()
        recorder.stages.append(StageTime(name, time.perf_counter() - start))
        return result

    keep = _graph_keeper(options)
    watching = instruments(options) if keep is None else [*instruments(options), keep]
    target = timed("load", lambda: _loaded(options.target))
    module = timed("import", lambda: source.open(functional=True))
    kind = kind_of_operations(module)

    def begin() -> None:
        on_import(module)
        _check(module)

    try:
        if not is_uncut(module):
            begin()
        for done in run_stages(module, target.stages, options, watching, on_stage):
            recorder.add(done.name, done.result)
            recorder.stages.append(StageTime(done.name, done.seconds))
            loading += done.loading
            if done.name == _CUT:
                begin()  # What is cut off is not looked at.
    except ConversionError as problem:
        explained = _with_cuts(_explained(problem, [*recorder.notes, *budget().notes()]), source)
        if keep is not None:
            graphs = keep.graphs_of_failure(module, explained)
            explained.report = recorder.report(source.name)._replace(graphs=graphs, failure=explained)
        raise explained from problem.__cause__
    imported = Imported(source, recorder.operations)
    file = timed("export", lambda: target.export(module, imported))
    for name, finish in target.finish(file).items():
        recorder.add(name, timed(name, finish))
    interfaces, names, input_notes = _interfaces(module, source.batch, options.target)
    recorder.notes += [*names, *budget().notes(), *target.notes(file), *_custom_notes(file.custom_operators)]
    recorder.notes += options.target.notes if isinstance(options.target, LiteRT) else ()
    recorder.stages[0] = StageTime("load", recorder.stages[0].seconds + loading)
    report = recorder.report(source.name)._replace(
        interfaces=interfaces,
        input_notes=input_notes,
        operations_kind=kind,
        arena=target.arena(file),
        graphs=None if keep is None else keep.graphs(module) | _all_acceptances(module, file, options.target),
        acceptances=_acceptances(module, file, options.target),
    )
    if isinstance(options.target, LiteRT) and options.target.tune is not None and report.tuning is None:
        from tfconvert.converter.pipeline.tuning_report import TuningReport

        report = report._replace(tuning=TuningReport(""))
    return file, _with_file(report, file)


def _with_file(report: Report, file: ConvertedFile) -> Report:
    return report._replace(
        size=file.size,
        operators=Counter(file.operators),
        bytes_by_operator=Counter(file.bytes_by_operator),
        operator_versions=file.versions,
        min_runtime_version=file.min_runtime_version,
        custom_operators=file.custom_operators,
        beside=tuple(filter(None, file.parts)),
    )


def _acceptances(module: ModuleOp, file: ConvertedFile, target: object) -> tuple[Acceptance, ...]:
    """Returns what the accelerators that a file is for take of it."""
    wanted = target.accelerator if isinstance(target, LiteRT) else ()
    if not wanted:
        return ()
    from tfconvert.converter.targets.litert.accelerator_check import check

    return tuple(check(module, name, _content(file)) for name in wanted)


# Larger files aren't read for the memory that a microcontroller needs, which has no place for them.
_MAX_FLASH = 1 << 26


def _content(file: ConvertedFile) -> Callable[[], bytes] | None:
    from tfconvert.exporters.tflite.file import TFLiteFile

    assert isinstance(file, TFLiteFile), "the target is LiteRT"
    return file.to_bytes if file.size <= _MAX_FLASH else None


def _all_acceptances(module: ModuleOp, file: ConvertedFile, target: object) -> dict[str, Any]:
    """Returns what each accelerator takes of a file, for its page."""
    if not isinstance(target, LiteRT):
        return {}
    from tfconvert.converter.targets.litert.accelerator_check import check_all

    return {"accelerators": [each.to_dict() for each in check_all(module, _content(file))]}


def _custom_notes(custom: Mapping[str, int]) -> list[Diagnostic]:
    """Returns what the report says about the operators that the app must register, if any."""
    if not custom:
        return []
    names = ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in custom.items())
    message = (
        f"the app that runs this file must register {len(custom)} custom operator{'s'[: len(custom) > 1]}: {names}"
    )
    hint = "add a kernel for each to the app's op resolver (AddCustom); without it the file doesn't load"
    return [Diagnostic(CUSTOM_OPERATORS, message, hint=hint, severity=WARNING)]


def _explained(problem: ConversionError, notes: Sequence[Diagnostic]) -> ConversionError:
    """Returns an error that also names what would have removed what fails: fusion of functions, folding, inference.

    Where ops of the graph are reported without their source lines, it says how to get these.
    """
    from tfconvert.converter.composites.marks import KEPT

    nodes = [each for each in problem.diagnostics if each.node and each.op.startswith("tf")]
    is_unlocated = bool(nodes) and not any(_SOURCE_LINE.search(each.location) for each in nodes)
    kept = (note for note in notes if note.code in (KEPT, NOT_FOLDED, TRAINING_MODE))
    return ConversionError(
        [*problem.diagnostics, *kept], [*problem.advice, *([_HOW_TO_LOCATE] if is_unlocated else [])]
    )


def _with_cuts(problem: ConversionError, source: Source) -> ConversionError:
    """Returns an error that also says how to cut off the ops in it that belong outside of a model."""
    from tfconvert.converter.targets.litert.legalize.left_over import is_about_text, side_of

    failing = {each.op for each in problem.diagnostics if each.op}
    found = [
        each
        for each in problem.diagnostics
        if (side_of(each.op) or is_about_text(each.hint)) and "--input" not in each.hint
    ]
    if not found or not source.can_be_cut:
        return problem
    from tfconvert.converter.cutting.advice import options_that_cut_off

    try:
        original = as_functions(replace(source, inputs=None, outputs=None, input_shapes=None, rename=None))
        options = options_that_cut_off(original, as_functions(source), failing, side_of)
    except ConversionError:
        return problem  # There is more to mend in the model than that.
    if options is None:
        return problem
    how = f"cut it off: {options}"
    diagnostics = [
        each._replace(hint=f"{each.hint}; or {how}" if each.hint else how) if each in found else each
        for each in problem.diagnostics
    ]
    return ConversionError(diagnostics, problem.advice)


def _interfaces(
    module: ModuleOp, batch: int | None, target: AnyTarget
) -> tuple[tuple[Interface, ...], list[Diagnostic], tuple[Diagnostic, ...]]:
    """Returns the interfaces of a module's functions, notes on their names, and on the sizes of their inputs."""
    from tfconvert.converter.ir.interface import input_notes, interfaces, signature_notes

    found = tuple(interfaces(module))
    return found, signature_notes(found), tuple(input_notes(found, batch, has_delegates=isinstance(target, LiteRT)))


def _check(module: ModuleOp) -> None:
    from tfconvert.converter.pipeline.refusals import check_graphs

    check_graphs(module)


def _loaded(settings: AnyTarget) -> Target[Any]:
    """Imports what every conversion needs, so that the report separates import time from the work's."""
    import tfconvert.importers.saved_model  # noqa: F401

    return load_target(settings)


def input_files(source: Source, options: Options) -> list[Path]:
    """Returns the files that a conversion reads: those of the model, patterns, samples, ranges and metadata."""
    quantize, verify, target = options.quantize, options.verify, options.target
    files = source.files()
    rules = list(options.patterns)
    if isinstance(target, LiteRT):
        rules += target.fusions
        if target.metadata is not None:
            from tfconvert.converter.targets.litert.model_metadata import metadata_files

            files += metadata_files(target.metadata)
        if target.tune is not None and is_file(target.tune):
            files.append(Path(target.tune))
    files += [Path(name) for name in rules if name.endswith(".py")]
    files += _sample_files(verify.data) if verify is not None else []
    if quantize is not None:
        files += [*_sample_files(quantize.samples), *_sample_files(quantize.labels)]
        if quantize.calibration is not None and Path(quantize.calibration).is_file():
            files.append(Path(quantize.calibration))
    return files


def _sample_files(samples: object) -> list[Path]:
    """Returns the files of samples that are named by their paths."""
    if samples is None:
        return []
    from tfconvert.converter.targets.litert.quantize.samples import paths_of

    return paths_of(samples)
