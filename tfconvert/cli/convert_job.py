"""The command's work on a model: checks where the result goes, converts, writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.api import Model, convert_source
from tfconvert.cli.output_options import Output
from tfconvert.exporters.output_file import Parts, descriptor_of, is_c_source, only_part, places_of, write_parts
from tfconvert.importers.source import Source
from tfconvert.report.report import Report, StageTime
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic, error
from tfconvert.settings.options import Options
from tfconvert.settings.targets import LiteRT

if TYPE_CHECKING:
    from tfconvert.cli.cache import CachedReport
    from tfconvert.cli.server_options import ServerAddress
    from tfconvert.exporters.c_array import CArray


class ConvertCommand(NamedTuple):
    """A conversion to a file.

    Attributes:
        source: The model.
        output: Where the result goes.
        options: The settings.
        on_stage: Called with the name of each stage before it begins.
        server: The server that converts the model; `None` for this process.
    """

    source: Source
    output: Output
    options: Options
    on_stage: Callable[[str], None] = lambda name: None
    server: ServerAddress | None = None

    def run(self) -> Report | CachedReport:
        """Converts the model and writes the files."""
        array = self._array()
        self._check_output(array)
        report = self._made(array)
        if isinstance(report, Report) and self.server is None:
            self._show(report)
        if self.output.depfile is not None:
            from tfconvert.cli.depfile import write_depfile

            write_depfile(self.output.depfile, self.output.file, self.inputs())
        return report

    def _made(self, array: CArray | None) -> Report | CachedReport:
        """Writes the result, wherever it comes from."""
        if self.server is not None:
            from tfconvert.cli import remote

            def write(parts: Parts, size: int) -> None:
                self._write(array, parts, size)

            return remote.convert(self.source, self.options, self.server, self.on_stage, self.output.page, write)
        return self._convert(array) if self.output.cache_dir is None else self._convert_once(array)

    def _show(self, report: Report) -> None:
        """Writes the pages that show the report."""
        if self.output.page is not None:
            report.save(self.output.page)
        if self.output.explorer is not None:
            report.save_model_explorer(self.output.explorer)

    def _convert(self, array: CArray | None) -> Report:
        return self._save(convert_source(self.source, self.options, self.on_stage), array)

    def _save(self, converted: Model, array: CArray | None) -> Report:
        self.on_stage("write")
        start = time.perf_counter()
        converted.save(self.output.file, array_name=None if array is None else array.name)
        written = StageTime("write", time.perf_counter() - start)
        return converted.report._replace(stages=(*converted.report.stages, written))

    def _convert_once(self, array: CArray | None) -> Report | CachedReport:
        """Takes the result from the cache, or converts the model and puts the result there."""
        from tfconvert.cli import cache

        if self.output.needs_graphs:
            return _uncached(self._convert(array), "it keeps no graphs for pages")
        assert self.output.cache_dir is not None
        files = self.inputs()
        if reason := cache.uncached(self.source, self.options, files):
            return _uncached(self._convert(array), reason)
        self.on_stage("look in the cache")
        try:
            Path(self.output.cache_dir).mkdir(parents=True, exist_ok=True)
            before = cache.state_of(files)
            entry = cache.entry(self.output.cache_dir, self.source, self.options, files)
        except OSError as problem:
            return _uncached(self._convert(array), str(problem))
        found = entry.find(self.source.name)
        if found is not None:
            with found:
                self._write(array, found.parts, found.size)
            return found.report
        converted = convert_source(self.source, self.options, self.on_stage)
        written = self._save(converted, array)
        try:
            if cache.state_of(files) == before:
                entry.store(converted.parts, written)
        except (OSError, ConversionError) as problem:
            return _uncached(written, str(problem))
        return written

    def _write(self, array: CArray | None, parts: Parts, size: int) -> None:
        """Writes a result that comes from elsewhere: its files, and the size of its own."""
        if array is not None:
            array.save(size, only_part(parts))
            return
        if descriptor_of(self.output.file) is None:
            for place in places_of(self.output.file, parts):
                self.source.check_output(place, self.inputs)
        write_parts(self.output.file, parts)

    def inputs(self) -> list[Path]:
        """Returns the files that are read: those of the model, of rules, of samples, of ranges and of metadata."""
        quantize, verify, target = self.options.quantize, self.options.verify, self.options.target
        files = self.source.files()
        rules = list(self.options.patterns)
        if isinstance(target, LiteRT):
            rules += target.composites
            if target.metadata is not None:
                from tfconvert.converter.targets.litert.model_metadata import metadata_files

                files += metadata_files(target.metadata)
        files += [Path(name) for name in rules if name.endswith(".py")]
        files += _arrays(verify.data) if verify is not None else []
        if quantize is not None:
            files += _arrays(quantize.samples)
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
            raise error(
                "output-not-writable",
                f"won't write a model to a terminal ({self.output.name})",
                hint="send it to a file or to another program, or name a file with -o",
            )
        if self.output.depfile is not None and descriptor is not None:
            raise error(
                "wrong-option", "--depfile names the file that is made, and there is none", hint="name a file with -o"
            )
        files = [self.output.file] if array is None else list(array.files)
        for file in (*files, *([self.output.depfile] if self.output.depfile is not None else [])):
            self.source.check_output(file, self.inputs)


def _arrays(samples: object) -> list[Path]:
    """Returns the files of samples that are named by their paths."""
    files: list[Path] = []
    for path in (Path(each) for each in samples if isinstance(each, str)) if isinstance(samples, list | tuple) else ():
        files += sorted(path.glob("*.np[yz]")) if path.is_dir() else [path]
    return files


def _uncached(report: Report, reason: str) -> Report:
    note = Diagnostic("cache-not-used", f"the cache was not used: {reason}", severity=WARNING)
    return report._replace(notes=(*report.notes, note))


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False
