"""How what a converted file computes compares with the model, whatever the target is."""

from __future__ import annotations

from typing import Any

from tfconvert.converter.targets.iree.program_file import IreeFile
from tfconvert.converter.targets.iree.runtime_process import Runtime
from tfconvert.converter.targets.stablehlo.artifact_file import ArtifactFile
from tfconvert.converter.targets.target import ConvertedFile
from tfconvert.converter.validation import result_check, text_check
from tfconvert.converter.validation.result_check import Verification
from tfconvert.exporters.mlir import StableHLOText
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.importers.source import Source


def compared(source: Source, file: ConvertedFile, data: Any) -> Verification:
    """Returns how a file compares with a model.

    Args:
        source: The model.
        file: The file.
        data: The user's inputs, `None` for random ones.
    """
    if isinstance(file, IreeFile):
        with Runtime(file) as engine:
            return result_check.compared_in(engine, source, b"", data)
    if isinstance(file, ArtifactFile):
        file = file.text
    if isinstance(file, StableHLOText):
        return text_check.compared(source, file.to_bytes(), data, file.weights)
    assert isinstance(file, TFLiteFile), "there is no other kind of file"
    return result_check.compared(source, file.to_bytes(), data)
