"""A directory of results, so that the same conversion again is a copy.

An entry is the files of the result, and a note with their checksums and the report of the conversion. Each is written
atomically, under a name that is the key of the conversion: several processes may fill one directory, and an entry with
a wrong checksum is replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tfconvert.api import Model, convert_source
from tfconvert.batch.cache_key import cache_key
from tfconvert.conversion import input_files
from tfconvert.converter.targets.output_form import Form
from tfconvert.exporters.output_file import Parts, Write, places_of, write_whole
from tfconvert.exporters.safetensors import PARAMETERS
from tfconvert.importers.source import Source
from tfconvert.report.report import Report, head
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic
from tfconvert.schema.files import open_file, read_file
from tfconvert.schema.json_text import json_text
from tfconvert.settings import data
from tfconvert.settings.options import Options

# Version of the entries; entries of another version are replaced.
_FORM = 4

_BLOCK = 1 << 20

State = tuple[tuple[int, int, int], ...]
"""Which files there are, and when they were changed."""


class CachedReport(NamedTuple):
    """The report of the conversion that made an entry.

    Attributes:
        source: The path of the model.
        data: The report as data.
        texts: The report as text, short and verbose, without the line with the file names.
    """

    source: str
    data: Mapping[str, Any]
    texts: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data, with `cached` in it."""
        return {**self.data, "source": self.source, "cached": True}

    def to_text(self, output_file: str = "", *, verbose: bool = False) -> str:
        """Returns the report as text for a terminal."""
        first = head(self.source, output_file, self.data.get("beside", ()))
        return f"{first}\n  from the cache; the conversion that made it:\n{self.texts[verbose]}"


class Found(NamedTuple):
    """A result that is in the cache; a context manager, which closes its files.

    Attributes:
        streams: Its files, open and checked, by their extensions.
        report: The report of the conversion that made it.
    """

    streams: Mapping[str, BufferedReader]
    report: CachedReport

    @property
    def parts(self) -> Parts:
        """How its files are written elsewhere."""
        return {ending: partial(copy, stream) for ending, stream in self.streams.items()}

    @property
    def size(self) -> int:
        """The size of the result's own file."""
        return os.fstat(self.streams[""].fileno()).st_size

    def __enter__(self) -> Found:
        return self

    def __exit__(self, *problem: object) -> None:
        for stream in self.streams.values():
            stream.close()


class CacheEntry(NamedTuple):
    """The place of a result.

    Attributes:
        file: The result's own file; those beside it have other extensions.
        note: What is known about them.
    """

    file: Path
    note: Path

    def find(self, source: str) -> Found | None:
        """Returns the result, open and checked; `None` if the entry isn't there or is damaged.

        Args:
            source: The path of the model, for the report.
        """
        with ExitStack() as opened:
            try:
                note = json.loads(read_file(self.note))
                checksums: dict[str, str] = note["sha256"]
                if note["form"] != _FORM or not all(map(_is_ending, checksums)):
                    return None
                report = CachedReport(source, dict(note["report"]), [str(text) for text in note["texts"]])
                streams: dict[str, BufferedReader] = {}
                for ending, place in zip(checksums, places_of(self.file, checksums), strict=True):
                    streams[ending] = opened.enter_context(os.fdopen(open_file(place), "rb"))
                    if hashlib.file_digest(streams[ending], "sha256").hexdigest() != checksums[ending]:
                        return None
                    streams[ending].seek(0)
            except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return None
            if "" not in streams or len(report.texts) != 2:
                return None
            opened.pop_all()
        return Found(streams, report)

    def store(self, parts: Parts, report: Report) -> None:
        """Makes the entry.

        Args:
            parts: The files of the result.
            report: The report of the conversion.
        """
        checksums = {}
        for ending, place in zip(parts, places_of(self.file, parts), strict=True):
            checksum = hashlib.sha256()
            write_whole(place, partial(_write_hashed, parts[ending], checksum))
            checksums[ending] = checksum.hexdigest()
        texts = [report.to_text(verbose=verbose).partition("\n")[2] for verbose in (False, True)]
        note = {"form": _FORM, "sha256": checksums, "report": report.to_dict(), "texts": texts}
        write_whole(self.note, lambda stream: stream.writelines([json_text(note).encode()]))


def _is_ending(text: str) -> bool:
    return text in ("", PARAMETERS, ".mlir")


def _write_hashed(write: Write, checksum: Any, stream: BinaryIO) -> None:
    write(_Hashed(stream, checksum))  # type: ignore[arg-type]  # only `write` of it is used


class _Hashed(NamedTuple):
    """A file whose checksum is worked out while it is written."""

    stream: BinaryIO
    checksum: Any

    def write(self, data: bytes | memoryview) -> int:
        """Writes a block."""
        self.checksum.update(data)
        return self.stream.write(data)


def copy(source: BinaryIO, target: BinaryIO) -> None:
    """Copies an open file, a block at a time."""
    while block := source.read(_BLOCK):
        target.write(block)


def copy_file(path: Path, target: BinaryIO) -> None:
    """Copies a file, a block at a time."""
    with path.open("rb") as source:
        copy(source, target)


def state_of(files: Iterable[Path]) -> State:
    """Returns inodes, sizes and times of files: they change when a file does."""
    found = [file.stat() for file in files]
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)


def uncached(source: Source, options: Options, files: Sequence[Path]) -> str:
    """Returns why a conversion's result can't be kept; empty if it can.

    Args:
        source: The model.
        options: The settings.
        files: All files that the conversion reads.
    """
    if source.prepared is not None or not files:
        return "the model is not in files"
    return data.uncached(source, options)


def entry(folder: str, source: Source, options: Options, files: Sequence[Path]) -> CacheEntry:
    """Returns the place of a conversion's result in a directory.

    Args:
        folder: The directory.
        source: The model.
        options: The settings.
        files: All files that the conversion reads.
    """
    # Not the model's path, but the contents of its files make the result.
    digests = [[file.name, _digest(file)] for file in files]
    form, settings = Form.of(options.target), data.to_data(source, options)
    is_run = options.quantize is not None or options.verify is not None
    place = Path(folder, cache_key(form, settings, [_FORM, *digests], is_run=is_run))
    return CacheEntry(place.with_suffix(form.ending), place.with_suffix(".json"))


def _digest(file: Path) -> str:
    with os.fdopen(open_file(file), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Conversion(NamedTuple):
    """A conversion whose result may be in a cache.

    Attributes:
        source: The model.
        options: The settings.
        on_stage: Called with the name of each stage before it begins.
    """

    source: Source
    options: Options
    on_stage: Callable[[str], None]

    def cached(
        self, directory: str, save: Callable[[Model], Report], write: Callable[[Parts, int], None]
    ) -> Report | CachedReport:
        """Copies the result from a cache, or converts the model and stores the result there.

        Args:
            directory: The cache, which is created.
            save: Writes a result that was converted.
            write: Writes a cached result from its parts and size.
        """
        files = input_files(self.source, self.options)
        if reason := uncached(self.source, self.options, files):
            return uncached_report(save(self._converted()), reason)
        self.on_stage("look in the cache")
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
            before = state_of(files)
            place = entry(directory, self.source, self.options, files)
        except OSError as problem:
            return uncached_report(save(self._converted()), str(problem))
        found = place.find(self.source.name)
        if found is not None:
            with found:
                write(found.parts, found.size)
            return found.report
        converted = self._converted()
        report = save(converted)
        try:
            if state_of(files) == before:
                place.store(converted.parts, report)
        except (OSError, ConversionError) as problem:
            return uncached_report(report, str(problem))
        return report

    def _converted(self) -> Model:
        return convert_source(self.source, self.options, self.on_stage)


def uncached_report(report: Report, reason: str) -> Report:
    """Returns a report with the note that the cache was not used."""
    note = Diagnostic("cache-not-used", f"the cache was not used: {reason}", severity=WARNING)
    return report._replace(notes=(*report.notes, note))
