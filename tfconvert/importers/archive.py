"""Untrusted archives: the names of their entries, what they unpack to, and the directories of zips, within limits.

An archive's names, sizes and compression may be hostile. The limits count what is unpacked, and a directory is read
only as far as the allowed number of entries needs.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
import unicodedata
import zipfile
import zlib
from pathlib import Path
from typing import IO, NamedTuple

from tfconvert.importers.foreign_files import KERAS_FILES, is_keras_file
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import open_file

_MAX_DEPTH = 32
# Maximum bytes of a name in file systems.
_MAX_NAME = 255

_MAX_PATH = 2048

_MAC_FOLDER = "__MACOSX"
# The prefix of metadata files that macOS adds.
_MAC_FILE = "._"


# Bytes that any archive may unpack to, regardless of its size.
_FREE = 1 << 26

# Bytes of a zip's directory for each entry that it may have, and of any read.
_NAME_BYTES, _MAX_READ = 512, 1 << 20

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# Exceptions that Python's readers raise for damaged archives.
DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


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


class Unpacked:
    """Counts what an archive unpacks to.

    Args:
        limits: The limits.
        packed: The archive's bytes; `None` if the files come from elsewhere.
    """

    __slots__ = ("_count", "_end", "_names", "_packed", "_written", "limits")

    def __init__(self, limits: ArchiveLimits, packed: int | None = None) -> None:
        self.limits = limits
        self._packed = packed
        self._names = EntryNames()
        self._count = self._written = 0
        self._end = time.monotonic() + limits.seconds if limits.seconds else None

    def path(self, name: str, *, is_folder: bool) -> str:
        """Returns the relative path of an entry, or an empty string if it is omitted; counts it."""
        self.count(1)
        return self._names.add(name, is_folder=is_folder)

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


class DirectoryReader(io.RawIOBase):
    """A zip file, which is limited in the size of its central directory.

    Args:
        file: The file.
        entries: How many entries it may have.
    """

    def __init__(self, file: IO[bytes], entries: int) -> None:
        super().__init__()
        self._file = file
        self._max_read = max(entries * _NAME_BYTES, _MAX_READ)

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes.

        Raises:
            ConversionError: The read is too large (`bad-archive`).
        """
        if size > self._max_read:
            raise too_much()
        data = self._file.read(size if size >= 0 else self._max_read + 1)
        if len(data) > self._max_read:
            raise too_much()
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to a position, and returns it."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def checked_entries(archive: zipfile.ZipFile, unpacked: Unpacked) -> list[tuple[zipfile.ZipInfo, str]]:
    """Returns the entries of a zip with their relative paths, before any is read; those that are omitted have none."""
    entries = archive.infolist()
    if len(entries) > unpacked.limits.entries:
        unpacked.count(len(entries))
    if sum(entry.file_size for entry in entries) > unpacked.limits.size:
        unpacked.spend(unpacked.limits.size + 1)
    paths = [(entry, unpacked.path(entry.orig_filename, is_folder=entry.is_dir())) for entry in entries]
    for entry in entries:
        _check_entry(entry)
    return paths


def _check_entry(entry: zipfile.ZipInfo) -> None:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise refused(f"the entry {entry.filename!r} is a link or a device")
    if entry.flag_bits & 1:
        raise refused(f"the entry {entry.filename!r} is encrypted", "pack the model's directory without a password")
    if entry.compress_type not in _METHODS:
        raise refused(f"the entry {entry.filename!r} is compressed in another way than by deflating it")


# Keras can write weights in this file, too, but loads none of it: they are pickles.
_PICKLES = "model.weights.npz"
# The directory of further files, such as vocabularies.
_ASSETS = "assets"
# Bytes of a file by which its format is known.
_HEAD = 64


def check_keras(path: Path, limits: ArchiveLimits) -> None:
    """Checks a file of Keras 3, a zip that Keras unpacks, like an archive.

    Args:
        path: The file.
        limits: The limits.

    Raises:
        ConversionError: It is too large (`archive-too-large`), has files that Keras doesn't write (`bad-archive`) or
            pickles (`unsafe-model`), or is damaged (`damaged-model`, `not-a-keras-model`).
    """
    unpacked = Unpacked(limits, path.stat().st_size)
    with os.fdopen(open_file(path), "rb") as file:
        is_keras = is_keras_file(file.read(_HEAD))
        try:
            with zipfile.ZipFile(DirectoryReader(file, limits.entries)) as archive:
                entries = checked_entries(archive, unpacked)
        except DAMAGED as problem:
            if not is_keras:
                raise error("not-a-keras-model", "it is damaged or has another format", hint=_SAVE) from None
            raise error("damaged-model", f"it is damaged: {reason_of(problem)}", hint=_SAVE) from None
    # Without a configuration it is another kind of zip, which nothing unpacks.
    if "config.json" in archive.namelist():
        for entry, place in entries:
            if place == _PICKLES:
                raise error("unsafe-model", f"its weights are pickles, {_PICKLES}, which may hold code", hint=_SAVE)
            is_asset = place.startswith(f"{_ASSETS}/") or (entry.is_dir() and place == _ASSETS)
            if place and place not in KERAS_FILES and not is_asset:
                raise refused(f"the entry {entry.filename!r} is not one that Keras writes", _SAVE)
    # Python's reader, which Keras uses, unpacks no more of an entry than this.
    unpacked.spend(sum(entry.file_size for entry, _ in entries))


_SAVE = "save the model again with model.save"


def reason_of(problem: BaseException) -> str:
    """Returns what a reader says of a damaged archive, in one line."""
    # The text of a system error contains the path.
    reason = (problem.strerror if isinstance(problem, OSError) else str(problem)) or type(problem).__name__
    return " ".join(reason.split())


def too_much() -> ConversionError:
    return refused("the archive says more of its entries than a model's directory needs")


def _too_large(what: str) -> ConversionError:
    return error("archive-too-large", what, hint="send the model without what it doesn't need")
