"""IREE as a target: compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.stage import Stage
from tfconvert.converter.targets.iree.program_file import IreeFile
from tfconvert.converter.targets.iree.stages import EMBEDDED, STAGES
from tfconvert.converter.targets.target import Imported, Target
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.targets import Iree


class IreeTarget(Target[IreeFile]):
    """Programs of IREE."""

    def __init__(self, settings: Iree) -> None:
        self._settings = settings

    @property
    def stages(self) -> Sequence[Stage]:
        return EMBEDDED if self._settings.embed_weights else STAGES

    def export(self, module: ModuleOp, imported: Imported) -> IreeFile:
        return IreeFile(module, self._settings)

    def finish(self, file: IreeFile) -> Mapping[str, Callable[[], PassResult]]:
        return {"compile": file.compile}
