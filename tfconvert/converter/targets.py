"""The conversion targets, and the pipelines that can be requested by name.

The exporter's import is late, so that listing a pipeline doesn't load it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.converter.litert import stages as litert
from tfconvert.converter.options import Options
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.pipeline.stages import before

if TYPE_CHECKING:
    from tfconvert.converter.iree.program_file import IreeFile
    from tfconvert.exporters.stablehlo import StableHLOText
    from tfconvert.exporters.tflite.model import TFLiteFile
    from tfconvert.schema.ir.builtin import ModuleOp


class Target(NamedTuple):
    """A target.

    Attributes:
        stages: Its pipeline.
        load: Imports what `export` needs, so that the report separates import time from the work's.
        export: Returns the file of a module that the pipeline has rewritten.
    """

    stages: Sequence[Stage]
    load: Callable[[], None]
    export: Callable[[ModuleOp, Options], TFLiteFile | StableHLOText | IreeFile]


def _load_litert() -> None:
    import tfconvert.converter.litert.tflite_file  # noqa: F401


def _export_litert(module: ModuleOp, options: Options) -> TFLiteFile:
    from tfconvert.converter.litert.tflite_file import export_file

    describe = None
    if options.metadata is not None:
        from tfconvert.converter.model_metadata import describer

        describe = describer(options.metadata)
    return export_file(
        module,
        allow_custom_ops=options.allow_custom_ops,
        quantize=options.quantize,
        describe=describe,
        target_runtime=options.target_runtime,
        allow_flex=options.allow_flex,
    )


LITERT = Target(litert.STAGES, _load_litert, _export_litert)


def _load_stablehlo() -> None:
    import tfconvert.exporters.stablehlo  # noqa: F401


def _export_stablehlo(module: ModuleOp, options: Options) -> StableHLOText:
    from tfconvert.exporters.stablehlo import StableHLOText

    if options.mlir_weights == "arguments":
        from tfconvert.converter.stablehlo.weights import as_arguments

        as_arguments(module)
    return StableHLOText(module, inline=options.mlir_weights == "inline")


def _load_iree() -> None:
    import tfconvert.converter.iree.program_file  # noqa: F401


def _export_iree(module: ModuleOp, options: Options) -> IreeFile:
    from tfconvert.converter.iree.program_file import IreeFile
    from tfconvert.converter.iree_options import IreeOptions

    return IreeFile(module, options.iree or IreeOptions())


def target_of(options: Options) -> Target:
    """Returns the target that the settings name; those of others than LiteRT are loaded only then."""
    if options.target == "litert":
        return LITERT
    if options.target == "iree":
        from tfconvert.converter.iree import stages as iree

        embeds = options.iree is not None and options.iree.embed_weights
        return Target(iree.EMBEDDED if embeds else iree.STAGES, _load_iree, _export_iree)
    from tfconvert.converter.stablehlo.stages import STAGES

    return Target(STAGES, _load_stablehlo, _export_stablehlo)


PIPELINES: Mapping[str, Sequence[Stage]] = {
    "tflite": LITERT.stages,
    "tf-standard": before(LITERT.stages, "initialize-state"),
}
"""Pipelines that can be requested by name: the whole conversion, and its stages before the first LiteRT op."""
