"""Writes untrusted files into a directory: each inside the directory, once, and within limits."""

from __future__ import annotations

import io
import os
import time
import unicodedata
from pathlib import Path
from typing import NamedTuple, Protocol

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.config import ServiceConfig
from tfconvert.service.storage import storing

_MAX_DEPTH = 32
# Maximum bytes of a name in file systems.
_MAX_NAME = 255

_MAX_PATH = 2048

_MAC_FOLDER = "__MACOSX"
# The prefix of metadata files that macOS adds.
_MAC_FILE = "._"


class EntryNames:
    """The names so far, and the directories in them."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        # File systems may treat different spellings as the same name.
        self._spelling: dict[str, str] = {}

    def add(self, name: str, *, is_folder: bool) -> str:
        """Returns the relative path of an entry, or an empty string if it is omitted.

        Args:
            name: Its name in the archive.
            is_folder: Whether it is a directory.
        """
        parts = checked_parts(name)
        if not parts or parts[0] == _MAC_FOLDER or parts[-1].startswith(_MAC_FILE):
            return ""
        path = ""
        for depth, part in enumerate(parts, start=1):
            path = f"{path}/{part}" if path else part
            self._check(name, path, is_folder=is_folder or depth < len(parts))
        if not is_folder:
            self._files.add(path)
        return path

    def _check(self, name: str, path: str, *, is_folder: bool) -> None:
        key = unicodedata.normalize("NFC", path).casefold()
        first = self._spelling.get(key)
        if first is None:
            self._spelling[key] = path
            return
        if first != path:
            raise refused(f"the entries {first!r} and {path!r} differ by their spelling only")
        if path in self._files or not is_folder:
            raise refused(f"there are two entries {name!r}")


def checked_parts(name: str) -> list[str]:
    """Returns the directories and the file that a relative path names.

    Raises:
        ConversionError: It may point outside the directory, or is invalid (`bad-archive`).
    """
    if not name.isprintable() or "\\" in name:
        raise refused(f"the entry {name!r} has characters that no name may have")
    if name.startswith("/"):
        raise refused(f"the entry {name!r} is an absolute path")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise refused(f"the entry {name!r} leads out of the archive's directory")
    if len(parts) > _MAX_DEPTH:
        raise refused(f"an entry is in more than {_MAX_DEPTH} directories")
    lengths = [len(part.encode()) for part in parts]
    if lengths and (max(lengths) > _MAX_NAME or sum(lengths) > _MAX_PATH):
        raise refused(f"an entry's name is too long: {name[:_MAX_NAME]!r}")
    return parts


def refused(message: str, hint: str = "pack the model's directory again") -> ConversionError:
    """Returns the error for an archive that can't be unpacked."""
    return error("bad-archive", message, hint=hint)


_COPY_BYTES = 1 << 18
# Bytes that any archive may unpack to, regardless of its size.
_FREE = 1 << 26


class Readable(Protocol):
    """A stream that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, none at the end."""


class ArchiveLimits(NamedTuple):
    """The limits of unpacking.

    Attributes:
        size: Bytes of all files.
        entries: Files and directories.
        ratio: Maximum size of the files, relative to the archive.
        seconds: Wall time; 0 for no limit.
        keras: Whether a model may be a file of Keras.
    """

    size: int = 8 << 30
    entries: int = 10_000
    ratio: int = 200
    seconds: float = 0.0
    keras: bool = False

    @staticmethod
    def of(config: ServiceConfig) -> ArchiveLimits:
        """Returns the limits of a server."""
        return ArchiveLimits(
            config.max_unpacked, config.max_entries, config.max_ratio, config.seconds, config.takes_keras
        )


class FileTree:
    """A directory that is filled within limits.

    Args:
        folder: The directory, which exists.
        limits: The limits.
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
        """Returns the path of an entry, or `None` if it is omitted; counts it."""
        self.count(1)
        path = self._names.add(name, is_folder=is_folder)
        return self._folder / path if path else None

    def count(self, entries: int) -> None:
        """Counts entries.

        Raises:
            ConversionError: There are too many (`archive-too-large`).
        """
        self._count += entries
        if self._count > self.limits.entries:
            raise _too_large(f"it has more than {self.limits.entries} entries")

    def spend(self, size: int) -> None:
        """Counts bytes that an archive unpacks to.

        Raises:
            ConversionError: There are too many, or it takes too long (`archive-too-large`).
        """
        self._written += size
        if self._written > self.limits.size:
            raise _too_large(f"its files have more than {self.limits.size} bytes")
        if self._packed is not None and self._written > max(self._packed * self.limits.ratio, _FREE):
            raise _too_large(f"it unpacks to more than {self.limits.ratio} times its own size")
        if self._end is not None and time.monotonic() > self._end:
            raise _too_large(f"it takes more than {self.limits.seconds:g} s to write")

    def make_folder(self, path: Path) -> None:
        """Creates a directory and its parents."""
        if path not in self._made:
            self.make_folder(path.parent)
            with storing():
                path.mkdir(0o700)
            self._made.add(path)

    def make_file(self, path: Path | None, content: Readable) -> None:
        """Creates a file; if it is omitted, only reads its content."""
        if path is None:
            while data := content.read(_COPY_BYTES):
                self.spend(len(data))
            return
        self.make_folder(path.parent)
        with storing():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
            descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            while data := content.read(_COPY_BYTES):
                self.spend(len(data))
                with storing():
                    _write_all(file, data)


def _write_all(file: io.FileIO, data: bytes) -> None:
    written = file.write(data)
    while written < len(data):
        written += file.write(memoryview(data)[written:])


def _too_large(what: str) -> ConversionError:
    return error("archive-too-large", what, hint="send the model without what it doesn't need")
