"""How what a converted file computes compares with the model, whatever the target is."""

from __future__ import annotations

from tfconvert.converter.targets.iree.program_file import IreeFile
from tfconvert.converter.targets.iree.runtime_process import Runtime
from tfconvert.converter.targets.stablehlo.artifact_file import ArtifactFile
from tfconvert.converter.targets.target import ConvertedFile
from tfconvert.converter.validation import result_check, text_check
from tfconvert.converter.validation.result_check import Verification
from tfconvert.converter.validation.witness import witness_of
from tfconvert.exporters.mlir import StableHLOText
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.importers.source import Source
from tfconvert.settings.verify_options import Verify


def compared(source: Source, file: ConvertedFile, wanted: Verify) -> Verification:
    """Returns how a file compares with a model.

    Args:
        source: The model.
        file: The file.
        wanted: How to verify.
    """
    data, seconds = wanted.data, wanted.seconds
    if isinstance(file, TFLiteFile):
        return result_check.compared(source, file.to_bytes(), data, wanted=wanted)
    with witness_of(source, wanted.witness) as witness:
        if isinstance(file, IreeFile):
            with Runtime(file) as engine:
                return result_check.compared_in(engine, source, b"", data, witness=witness, seconds=seconds)
        if isinstance(file, ArtifactFile):
            file = file.text
        assert isinstance(file, StableHLOText), "there is no other kind of file"
        return text_check.compared(source, file.to_bytes(), data, file.weights, witness, seconds)
