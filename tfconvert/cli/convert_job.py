"""The command's work on a model: checks where the result goes, converts, writes."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tfconvert.api import Model, convert_source
from tfconvert.cli.output_options import Output
from tfconvert.cli.streams import say
from tfconvert.exporters.output_file import (
    Parts,
    check_directory,
    descriptor_of,
    is_c_source,
    only_part,
    places_of,
    write_parts,
    write_whole,
)
from tfconvert.importers.source import Source
from tfconvert.report.report import Report, StageTime
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.batch.result_cache import CachedReport
    from tfconvert.cli.output_options import ServerAddress
    from tfconvert.exporters.c_array import CArray


class ConvertCommand(NamedTuple):
    """A conversion to a file."""

    source: Source  # The model.
    output: Output  # Where the result goes.
    options: Options  # The settings.
    on_stage: Callable[[str], None] = lambda name: None  # Called with the name of each stage before it begins.
    server: ServerAddress | None = None  # The server that converts the model; `None` for this process.
    imports: tuple[str, ...] = ()  # Files of the user's code that the model needs.
    began: float | None = None  # When the process began, by `time.perf_counter`; `None` if that is of no interest.

    def run(self) -> Report | CachedReport:
        """Converts the model and writes the files."""
        array = self._array()
        self._check_output(array)
        try:
            report = self._made(array)
        except ConversionError as problem:
            self._show_failure(problem)
            raise
        if isinstance(report, Report) and self.server is None:
            self._show(report)
        self._open()
        if self.output.depfile is not None:
            write_depfile(self.output.depfile, self.output.file, self.inputs())
        return report

    def _made(self, array: CArray | None) -> Report | CachedReport:
        """Writes the result, wherever it comes from."""
        if self.server is not None:
            from tfconvert.cli import remote

            def write(parts: Parts, size: int) -> None:
                self._write(array, parts, size)

            return remote.convert(self.source, self.options, self.server, self.on_stage, self.output.page, write)
        if self.output.cache_dir is None:
            return self._convert(array)
        from tfconvert.batch.result_cache import Conversion, uncached_report

        if self.output.needs_graphs:
            return uncached_report(self._convert(array), "it keeps no graphs for pages")
        conversion = Conversion(self.source, self.options, self.on_stage)
        return conversion.cached(
            self.output.cache_dir,
            lambda model: self._save(model, array),
            lambda parts, size: self._write(array, parts, size),
        )

    def _show(self, report: Report) -> None:
        """Writes the pages that show the report."""
        if self.output.page is not None:
            report.save(self.output.page, self._latency() if self.output.bench else None)
        if self.output.explorer is not None:
            report.save_model_explorer(self.output.explorer)

    def _show_failure(self, problem: ConversionError) -> None:
        """Writes the page of a conversion that failed, with what it failed on."""
        if self.output.page is not None:
            report: Report = problem.report or Report(self.source.name, failure=problem)
            report.save(self.output.page)
            say(f"tfconvert: note: {self.output.page} shows what failed", sys.stderr)
            self._open()

    def _latency(self) -> list[float | None]:
        """Returns the time of each operator of the file that was written."""
        from tfconvert.tools.bench import measure

        return [each.milliseconds for each in measure(self.output.file).operators]

    def _open(self) -> None:
        if self.output.opens and self.output.page is not None:
            from tfconvert.cli.browser import open_page

            open_page(self.output.page)

    def _convert(self, array: CArray | None) -> Report:
        starting = [] if self.began is None else [StageTime("start", time.perf_counter() - self.began)]
        report = self._save(convert_source(self.source, self.options, self.on_stage), array)
        return report._replace(stages=(*starting, *report.stages))

    def _save(self, converted: Model, array: CArray | None) -> Report:
        self.on_stage("write")
        start = time.perf_counter()
        converted.save(self.output.file, array_name=None if array is None else array.name)
        written = StageTime("write", time.perf_counter() - start)
        return converted.report._replace(stages=(*converted.report.stages, written))

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
        """Returns the files that the conversion reads."""
        from tfconvert.conversion import input_files

        return [*input_files(self.source, self.options), *map(Path, self.imports)]

    def _array(self) -> CArray | None:
        if is_c_source(self.output.file):
            from tfconvert.exporters.c_array import c_array

            return c_array(self.output.file, self.output.array_name)
        if self.output.array_name is not None:
            raise error("wrong-option", "--array-name is for C arrays", hint="let -o end in .cc, .c or .h")
        return None

    def _check_output(self, array: CArray | None) -> None:
        """Checks the files to be written before the conversion begins."""
        descriptor = descriptor_of(self.output.file)
        if descriptor is not None and _is_terminal(descriptor):
            raise error(
                "output-not-writable",
                f"won't write a model to a terminal ({self.output.name})",
                hint="send it to a file or to another program, or name a file with -o",
            )
        if self.output.bench and (descriptor is not None or array is not None or self.server is not None):
            raise error("wrong-option", "--bench measures a .tflite file here", hint="name one with -o")
        if self.output.depfile is not None and descriptor is not None:
            raise error("wrong-option", "--depfile names the output, which is not a file", hint="name a file with -o")
        files = [self.output.file] if array is None else list(array.files)
        for file in (*files, *([self.output.depfile] if self.output.depfile is not None else [])):
            self.source.check_output(file, self.inputs)
        for place in (self.output.file, self.output.depfile, self.output.page, self.output.explorer):
            if place is not None and descriptor_of(place) is None:
                check_directory(place)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


# Characters that both programs take as the end of a name; backslashes before it count, those elsewhere don't.
_BACKSLASHES = re.compile(r"(\\*)([ \t#:])")


def depfile_text(output: str, inputs: Iterable[str | os.PathLike[str]]) -> str:
    """Returns a rule that an output depends on inputs; each input has an empty rule, so that it may vanish.

    Args:
        output: The file that is made, as the build system names it.
        inputs: The files that were read.
    """
    names = [_escaped(os.fspath(each)) for each in dict.fromkeys(inputs)]
    rule = " \\\n  ".join([f"{_escaped(output)}:", *names])
    return "\n".join([rule, *(f"\n{name}:" for name in names if "%" not in name), ""])


def write_depfile(path: str, output: str, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Writes the rule; see `depfile_text`."""
    content = depfile_text(output, inputs).encode("utf-8", "surrogateescape")
    write_whole(path, lambda stream: stream.writelines([content]))


def _escaped(name: str) -> str:
    if "\n" in name:
        raise error("wrong-option", f"--depfile can't express {name!r}", hint="rename the file")
    return _BACKSLASHES.sub(lambda match: f"{match[1] * 2}\\{match[2]}", name.replace("$", "$$"))
