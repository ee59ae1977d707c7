"""Writes untrusted files into a directory: each inside the directory, once, and within limits."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Protocol

from tfconvert.importers.archive import ArchiveLimits, Unpacked
from tfconvert.service.storage import storing

_COPY_BYTES = 1 << 18


class Readable(Protocol):
    """A stream that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes, none at the end."""


class FileTree(Unpacked):
    """A directory that is filled within limits.

    Args:
        folder: The directory, which exists.
        limits: The limits.
        packed: The archive's bytes; `None` if the files come from elsewhere.

    Attributes:
        folder: The directory.
    """

    __slots__ = ("_made", "folder")

    def __init__(self, folder: Path, limits: ArchiveLimits, packed: int | None = None) -> None:
        super().__init__(limits, packed)
        self.folder = folder
        self._made = {folder}

    def place(self, name: str, *, is_folder: bool) -> Path | None:
        """Returns the path of an entry, or `None` if it is omitted; counts it."""
        path = self.path(name, is_folder=is_folder)
        return self.folder / path if path else None

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
