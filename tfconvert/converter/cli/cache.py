"""A folder of results by what they were made from, so that the same conversion again is a copy.

An entry is two files: the `.tflite` file, and a note with its checksum and the report of the conversion. Both appear
whole, under names that follow from their contents' origin: several processes may fill one folder, and an entry whose
checksum is wrong is made again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tfconvert.converter.composites.registry import ENTRY_POINTS
from tfconvert.converter.options import Options
from tfconvert.converter.report import Report
from tfconvert.converter.versions import own_version
from tfconvert.exporters.output_file import write_whole
from tfconvert.importers.source import Source
from tfconvert.schema.files import open_file, read_file

_FORM = 1
"""Of an entry; entries of another form are made again."""

_BLOCK = 1 << 20

_BESIDE = "progress"
"""The field that doesn't change a result."""

State = tuple[tuple[int, int, int], ...]
"""Which files there are, and when they were changed."""


class CachedReport(NamedTuple):
    """The report of the conversion that made an entry.

    Attributes:
        source: The path of the model.
        data: The report as data.
        texts: The report as text, the short and the long one, without the line of the files' names.
    """

    source: str
    data: Mapping[str, Any]
    texts: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data, with `cached` in it."""
        return {**self.data, "source": self.source, "cached": True}

    def to_text(self, output_file: str = "", *, verbose: bool = False) -> str:
        """Returns the report as text for a terminal."""
        head = f"{self.source} -> {output_file}" if output_file else self.source
        return f"{head}\n  from the cache; the conversion that made it:\n{self.texts[verbose]}"


class Entry(NamedTuple):
    """The place of a result.

    Attributes:
        file: The `.tflite` file.
        note: What is known about it.
    """

    file: Path
    note: Path

    def find(self, source: str) -> tuple[BinaryIO, CachedReport] | None:
        """Returns the file, open and checked, and its report; `None` if the entry isn't there or is damaged.

        Args:
            source: The path of the model, for the report.
        """
        try:
            note = json.loads(read_file(self.note))
            form, checksum = note["form"], note["sha256"]
            report = CachedReport(source, dict(note["report"]), [str(text) for text in note["texts"]])
            stream = os.fdopen(open_file(self.file), "rb")
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if form == _FORM and len(report.texts) == 2 and hashlib.file_digest(stream, "sha256").hexdigest() == checksum:
            stream.seek(0)
            return stream, report
        stream.close()
        return None

    def store(self, write: Any, report: Report) -> None:
        """Makes the entry.

        Args:
            write: Writes the file's contents to a file.
            report: The report of the conversion.

        Raises:
            ConversionError: The folder can't be written to (`output-not-writable`), or the weights can't be read.
        """
        checksum = hashlib.sha256()

        def hashed(stream: BinaryIO) -> None:
            write(_Hashed(stream, checksum))

        write_whole(self.file, hashed)
        texts = [report.to_text(verbose=verbose).partition("\n")[2] for verbose in (False, True)]
        note = {"form": _FORM, "sha256": checksum.hexdigest(), "report": report.to_dict(), "texts": texts}
        write_whole(self.note, lambda stream: stream.writelines([json.dumps(note).encode()]))


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


def state_of(files: Iterable[Path]) -> State:
    """Returns what changes when a file does, without reading any.

    Raises:
        OSError: A file isn't there any more.
    """
    found = [file.stat() for file in files]
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)


def entry(folder: str, source: Source, options: Options, files: Sequence[Path]) -> Entry | None:
    """Returns the place of a conversion's result in a folder; `None` if the result doesn't follow from files alone.

    Args:
        folder: The folder.
        source: The model.
        options: The settings.
        files: All files that the conversion reads.

    Raises:
        OSError: A file can't be read.
    """
    # Not the model's path, but the contents of its files make the result.
    settings = _plain([source._replace(model=None)._asdict(), options._asdict()])
    is_made = source.temporary is not None
    has_code = options.patterns or options.composites
    writes_ranges = options.quantize is not None and options.quantize.calibration and options.quantize.samples
    if settings is None or not files or writes_ranges or has_code or is_made:
        return None
    points = sorted(f"{each.name} {each.value} {each.dist}" for each in entry_points(group=ENTRY_POINTS))
    key = hashlib.sha256(json.dumps([_FORM, own_version(), points, settings], sort_keys=True).encode())
    for file in files:
        with os.fdopen(open_file(file), "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        key.update(json.dumps([file.name, digest]).encode())
    place = Path(folder, key.hexdigest())
    return Entry(place.with_suffix(".tflite"), place.with_suffix(".json"))


def _plain(value: object) -> Any:
    """Returns settings as plain data, `None` if there is code of the user's among them."""
    if value is None or isinstance(value, str | int | float):
        return [value]
    if isinstance(value, os.PathLike):
        return [os.fspath(value)]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name != _BESIDE]
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        value = [[str(name), each] for name, each in value.items()]
    if not isinstance(value, list | tuple):
        return None
    parts = [_plain(each) for each in value]
    return None if None in parts else parts
