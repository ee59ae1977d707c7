"""Folders filled with foreign files: each below the folder, once, and within limits."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import NamedTuple

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.archive_streams import Readable
from tfconvert.service.config import ServiceConfig
from tfconvert.service.entry_names import EntryNames
from tfconvert.service.storage import storing

_CHUNK = 1 << 18
# Bytes that anything may unpack to: so little does no harm, whatever it was packed to.
_FREE = 1 << 26


class ArchiveLimits(NamedTuple):
    """The limits of unpacking.

    Attributes:
        size: Bytes of all files.
        entries: Files and folders.
        ratio: How many times larger than the archive the files may be.
        seconds: Wall time; 0 for no limit.
    """

    size: int = 8 << 30
    entries: int = 10_000
    ratio: int = 200
    seconds: float = 0.0

    @staticmethod
    def of(config: ServiceConfig) -> ArchiveLimits:
        """Returns a server's."""
        return ArchiveLimits(config.most_unpacked, config.most_entries, config.most_ratio, config.seconds)


class FileTree:
    """A folder that is filled, and what was spent on it so far.

    Args:
        folder: The folder, which is there.
        limits: What may be spent.
        packed: The archive's bytes; `None` if the files come from elsewhere.
    """

    __slots__ = ("_count", "_end", "_folder", "_made", "_names", "_packed", "_written", "limits")

    def __init__(self, folder: Path, limits: ArchiveLimits, packed: int | None = None) -> None:
        self.limits = limits
        self._folder = folder
        self._made = {folder}
        self._packed = packed
        self._names = EntryNames()
        self._count = self._written = 0
        self._end = time.monotonic() + limits.seconds if limits.seconds else None

    def place(self, name: str, *, is_folder: bool) -> Path | None:
        """Returns where an entry goes, `None` if it is left out; counts it."""
        self.count(1)
        path = self._names.add(name, is_folder=is_folder)
        return self._folder / path if path else None

    def count(self, entries: int) -> None:
        """Counts entries.

        Raises:
            ConversionError: They are too many (`archive-too-large`).
        """
        self._count += entries
        if self._count > self.limits.entries:
            raise _too_large(f"it has more than {self.limits.entries} entries")

    def spend(self, size: int) -> None:
        """Counts bytes that an archive unpacks to.

        Raises:
            ConversionError: They are too many, or it takes too long (`archive-too-large`).
        """
        self._written += size
        if self._written > self.limits.size:
            raise _too_large(f"its files have more than {self.limits.size} bytes")
        if self._packed is not None and self._written > max(self._packed * self.limits.ratio, _FREE):
            raise _too_large(f"it unpacks to more than {self.limits.ratio} times its own size")
        if self._end is not None and time.monotonic() > self._end:
            raise _too_large(f"it takes more than {self.limits.seconds:g} s to write")

    def make_folder(self, path: Path) -> None:
        """Creates a folder, and those that it is in."""
        if path not in self._made:
            self.make_folder(path.parent)
            with storing():
                path.mkdir(0o700)
            self._made.add(path)

    def make_file(self, path: Path | None, content: Readable) -> None:
        """Creates a file; only reads its content if it is left out."""
        if path is None:
            while data := content.read(_CHUNK):
                self.spend(len(data))
            return
        self.make_folder(path.parent)
        with storing():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
            descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            while data := content.read(_CHUNK):
                self.spend(len(data))
                with storing():
                    _write(file, data)


def _write(file: io.FileIO, data: bytes) -> None:
    written = file.write(data)
    while written < len(data):
        written += file.write(memoryview(data)[written:])


def _too_large(what: str) -> ConversionError:
    return error("archive-too-large", what, hint="send the model without what it doesn't need")
