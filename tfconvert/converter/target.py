"""The conversion targets, and the pipelines that can be requested by name.

Exporters, and what compares their files with models, are imported late, so that listing a pipeline doesn't load them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.pipeline.stages import before
from tfconvert.converter.targets.litert import stages as litert
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.converter.targets.iree.program_file import IreeFile
    from tfconvert.converter.targets.stablehlo.artifact_file import ArtifactFile
    from tfconvert.converter.validation.result_check import Verification
    from tfconvert.exporters.mlir import StableHLOText
    from tfconvert.exporters.tflite.model import TFLiteFile
    from tfconvert.schema.ir.builtin import ModuleOp

    ConvertedFile = TFLiteFile | StableHLOText | ArtifactFile | IreeFile


# Beginnings of the names of ops that say with which ranges a model was trained.
_TRAINED = ("FakeQuantWithMinMax", "QuantizeAndDequantize")


class Imported(NamedTuple):
    """What is known of a model when its file is made.

    Attributes:
        source: The model.
        operations: Its TensorFlow ops, by name.
    """

    source: Source
    operations: Counter[str]


class Target(NamedTuple):
    """A target.

    Attributes:
        stages: Its pipeline.
        load: Imports what `export` needs, so that the report separates import time from the work's.
        export: Returns the file of a module that the pipeline has rewritten, with what is known of the model.
        compare: Returns how what a file computes compares with the model, on the user's inputs or random ones.
        finish: What is still to be done with the file, by name: each is a stage of the report.
        notes: Returns what users of a file should know.
    """

    stages: Sequence[Stage]
    load: Callable[[], None]
    export: Callable[[ModuleOp, Options, Imported], ConvertedFile]
    compare: Callable[[Source, Any, Any], Verification]
    finish: Mapping[str, Callable[[Any], PassResult]] = {}
    notes: Callable[[Any], Sequence[Diagnostic]] = lambda file: ()


def _load_litert() -> None:
    import tfconvert.converter.targets.litert.tflite_file  # noqa: F401


def _export_litert(module: ModuleOp, options: Options, imported: Imported) -> TFLiteFile:
    from tfconvert.converter.targets.litert.tflite_file import export_file

    describe = None
    if options.metadata is not None:
        from tfconvert.converter.targets.litert.model_metadata import describer

        describe = describer(options.metadata)
    kind = imported.source.kind
    origin = None if options.origin is None else {**({"model_type": kind} if kind else {}), **options.origin}
    return export_file(
        module,
        allow_custom_ops=options.allow_custom_ops,
        quantize=options.quantize,
        describe=describe,
        target_runtime=options.target_runtime,
        allow_flex=options.allow_flex,
        origin=origin,
        was_trained=any(name.startswith(_TRAINED) for name in imported.operations),
        is_sparse=options.sparse_weights,
        official_names=options.names == "official",
    )


def _compare_litert(source: Source, file: TFLiteFile, data: Any) -> Verification:
    from tfconvert.converter.validation import result_check

    return result_check.compared(source, file.to_bytes(), data)


def _litert_notes(file: TFLiteFile) -> Sequence[Diagnostic]:
    return file.notes


LITERT = Target(litert.STAGES, _load_litert, _export_litert, _compare_litert, notes=_litert_notes)


def _load_stablehlo() -> None:
    import tfconvert.exporters.mlir  # noqa: F401


def _export_stablehlo(module: ModuleOp, options: Options, imported: Imported) -> StableHLOText:
    from tfconvert.exporters.mlir import StableHLOText

    if options.mlir_weights == "arguments":
        from tfconvert.converter.targets.stablehlo.weights import as_arguments

        as_arguments(module)
    return StableHLOText(module, inline=options.mlir_weights == "inline")


def _load_artifact() -> None:
    import tfconvert.converter.targets.stablehlo.artifact_file  # noqa: F401


def _export_artifact(module: ModuleOp, options: Options, imported: Imported) -> ArtifactFile:
    from tfconvert.converter.targets.stablehlo.artifact_file import ArtifactFile

    if options.mlir_weights == "arguments":
        from tfconvert.converter.targets.stablehlo.weights import as_arguments

        as_arguments(module)
    return ArtifactFile(module)


def _serialize(file: ArtifactFile) -> PassResult:
    return file.serialize()


def _compare_artifact(source: Source, file: ArtifactFile, data: Any) -> Verification:
    return _compare_stablehlo(source, file.text, data)


def _compare_stablehlo(source: Source, file: StableHLOText, data: Any) -> Verification:
    from tfconvert.converter.validation import text_check

    return text_check.compared(source, file.to_bytes(), data, file.weights)


def _load_iree() -> None:
    import tfconvert.converter.targets.iree.program_file  # noqa: F401


def _export_iree(module: ModuleOp, options: Options, imported: Imported) -> IreeFile:
    from tfconvert.converter.targets.iree.program_file import IreeFile
    from tfconvert.settings.iree_options import IreeOptions

    return IreeFile(module, options.iree or IreeOptions())


def _compile_iree(file: IreeFile) -> PassResult:
    return file.compile()


def _compare_iree(source: Source, file: IreeFile, data: Any) -> Verification:
    from tfconvert.converter.targets.iree.runtime_process import Runtime
    from tfconvert.converter.validation import result_check

    with Runtime(file) as engine:
        return result_check.compared_in(engine, source, b"", data)


def target_of(options: Options) -> Target:
    """Returns the target that the settings name; those of others than LiteRT are loaded only then."""
    if options.target == "litert":
        return LITERT
    if options.target == "iree":
        from tfconvert.converter.targets.iree import stages as iree

        embeds = options.iree is not None and options.iree.embed_weights
        stages = iree.EMBEDDED if embeds else iree.STAGES
        return Target(stages, _load_iree, _export_iree, _compare_iree, {"compile": _compile_iree})
    from tfconvert.converter.targets.stablehlo.stages import STAGES

    if options.mlir_artifact:
        return Target(STAGES, _load_artifact, _export_artifact, _compare_artifact, {"serialize": _serialize})
    return Target(STAGES, _load_stablehlo, _export_stablehlo, _compare_stablehlo)


PIPELINES: Mapping[str, Sequence[Stage]] = {
    "tflite": LITERT.stages,
    "tf-standard": before(LITERT.stages, "initialize-state"),
}
"""Pipelines that can be requested by name: the whole conversion, and its stages before the first LiteRT op."""
