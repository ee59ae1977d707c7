"""The names of an archive's entries, each of which must become a file or folder of its own below one folder."""

from __future__ import annotations

import unicodedata

from tfconvert.schema.diagnostics import ConversionError, error

_MAX_DEPTH = 32
# Bytes of a name, as file systems have it.
_LONGEST = 255

_LONGEST_PATH = 2048

_MAC_FOLDER = "__MACOSX"
# How macOS calls what only it needs.
_MAC_FILE = "._"


class EntryNames:
    """The names that were seen so far, and the folders that they imply."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        # A system may take different spellings for the same name.
        self._spelling: dict[str, str] = {}

    def add(self, name: str, *, is_folder: bool) -> str:
        """Returns the path below the folder that an entry goes to; empty if it is left out.

        Args:
            name: As the archive has it.
            is_folder: Whether it is a folder's.
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
    """Returns the folders and the file that a relative path names.

    Raises:
        ConversionError: It may lead out of the folder that it is in, or no file can have such a name (`bad-archive`).
    """
    if not name.isprintable() or "\\" in name:
        raise refused(f"the entry {name!r} has characters that no name may have")
    if name.startswith("/"):
        raise refused(f"the entry {name!r} is an absolute path")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise refused(f"the entry {name!r} leads out of the archive's folder")
    if len(parts) > _MAX_DEPTH:
        raise refused(f"an entry is in more than {_MAX_DEPTH} folders")
    lengths = [len(part.encode()) for part in parts]
    if lengths and (max(lengths) > _LONGEST or sum(lengths) > _LONGEST_PATH):
        raise refused(f"an entry's name is too long: {name[:_LONGEST]!r}")
    return parts


def refused(message: str, hint: str = "pack the model's folder again") -> ConversionError:
    """Returns the error that an archive can't be unpacked."""
    return error("bad-archive", message, hint=hint)
