"""LiteRT as a target: `.tflite` files."""

from __future__ import annotations

from collections.abc import Sequence

from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.litert.tflite_file import export_file
from tfconvert.converter.targets.target import Imported, Target
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.targets import LiteRT

# Beginnings of the names of ops that say with which ranges a model was trained.
_TRAINED = ("FakeQuantWithMinMax", "QuantizeAndDequantize")


class LiteRTTarget(Target[TFLiteFile]):
    """Files for LiteRT."""

    def __init__(self, settings: LiteRT) -> None:
        self._settings = settings

    @property
    def stages(self) -> Sequence[Stage]:
        return STAGES

    def export(self, module: ModuleOp, imported: Imported) -> TFLiteFile:
        was_trained = any(name.startswith(_TRAINED) for name in imported.operations)
        return export_file(module, self._settings, model_type=imported.source.kind, was_trained=was_trained)

    def arena(self, file: TFLiteFile) -> int | None:
        return file.arena

    def notes(self, file: TFLiteFile) -> Sequence[Diagnostic]:
        return file.notes
