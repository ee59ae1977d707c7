"""StableHLO as a target: texts, and portable artifacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.targets.stablehlo.artifact_file import ArtifactFile
from tfconvert.converter.targets.stablehlo.stages import STAGES
from tfconvert.converter.targets.stablehlo.weights import as_arguments
from tfconvert.converter.targets.target import Imported, Target
from tfconvert.exporters.mlir import StableHLOText
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.targets import StableHLO


class StableHLOTarget(Target[StableHLOText | ArtifactFile]):
    """StableHLO text, or a portable artifact."""

    def __init__(self, settings: StableHLO) -> None:
        self._settings = settings

    @property
    def stages(self) -> Sequence[Stage]:
        return STAGES

    def export(self, module: ModuleOp, imported: Imported) -> StableHLOText | ArtifactFile:
        if self._settings.weights == "arguments":
            as_arguments(module)
        if self._settings.artifact:
            return ArtifactFile(module)
        return StableHLOText(module, inline=self._settings.weights == "inline")

    def finish(self, file: StableHLOText | ArtifactFile) -> Mapping[str, Callable[[], PassResult]]:
        return {"serialize": file.serialize} if isinstance(file, ArtifactFile) else {}
