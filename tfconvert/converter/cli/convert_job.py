"""What the command does with a model: checks where the result goes, converts, writes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.converter.api import convert_source
from tfconvert.converter.cli.output_options import Output
from tfconvert.converter.options import Options
from tfconvert.converter.report import Report, StageTime
from tfconvert.exporters.output_file import descriptor_of, is_c_source
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import error

if TYPE_CHECKING:
    from tfconvert.exporters.c_array import CArray


class Job(NamedTuple):
    """A conversion to a file.

    Attributes:
        source: The model.
        output: Where the result goes.
        options: The settings.
    """

    source: Source
    output: Output
    options: Options

    def run(self) -> Report:
        """Converts the model and writes the files.

        Raises:
            ConversionError: The model can't be converted, or a file can't be written.
        """
        array = self._array()
        self._check_output(array)
        converted = convert_source(self.source, self.options)
        start = time.perf_counter()
        converted.save(self.output.file, array_name=None if array is None else array.name)
        written = StageTime("write", time.perf_counter() - start)
        return replace(converted.report, stages=(*converted.report.stages, written))

    def inputs(self) -> list[Path]:
        """Returns the files that are read: the model's, those that it is quantized with, and its metadata."""
        quantize, metadata = self.options.quantize, self.options.metadata
        files = self.source.files()
        if metadata is not None:
            from tfconvert.converter.model_metadata import metadata_files

            files += metadata_files(metadata)
        if quantize is not None:
            samples = quantize.samples if isinstance(quantize.samples, list) else []
            for path in (Path(each) for each in samples if isinstance(each, str)):
                files += sorted(path.glob("*.np[yz]")) if path.is_dir() else [path]
            if quantize.calibration is not None and Path(quantize.calibration).is_file():
                files.append(Path(quantize.calibration))
        return files

    def _array(self) -> CArray | None:
        if is_c_source(self.output.file):
            from tfconvert.exporters.c_array import c_array

            return c_array(self.output.file, self.output.array_name)
        if self.output.array_name is not None:
            raise error("wrong-option", "--array-name is for C arrays", hint="let -o end in .cc, .c or .h")
        return None

    def _check_output(self, array: CArray | None) -> None:
        """Checks what can be known about the files to be written before the work begins."""
        descriptor = descriptor_of(self.output.file)
        if descriptor is not None and _is_terminal(descriptor):
            raise error("output-not-writable", f"won't write a model to a terminal ({self.output.name})",
                        hint="send it to a file or to another program, or name a file with -o")  # fmt: skip
        for file in (self.output.file,) if array is None else array.files:
            self.source.check_output(file, self.inputs if self.options.quantize or self.options.metadata else list)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False
