"""The files that a model may read: those in its own directory after all links are resolved."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

from tfconvert.schema import files
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import LARGEST, InputFile

SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
"""The files of a SavedModel's graph, binary and as text."""


def is_within(path: Path, folder: Path) -> bool:
    """Returns whether a path lies in a directory, once every link in either is resolved.

    A path that can't be resolved, such as a cycle of links or a name with a zero byte, is in no directory.

    Args:
        path: The path; the file need not exist.
        folder: The directory.
    """
    return _resolved(path, folder) is not None


def _resolved(path: Path, folder: Path) -> Path | None:
    """Returns the path without links below the directory, `None` if it isn't in the directory."""
    try:
        resolved, root = path.resolve(), folder.resolve()
        # Newer versions of Python leave a cycle of links as it is.
        if resolved.is_relative_to(root) and not resolved.is_symlink():
            return folder / resolved.relative_to(root)
        return None
    except (OSError, RuntimeError, ValueError):
        return None


class Folder(NamedTuple):
    """A model's directory, through which all of its files are opened.

    Attributes:
        path: The directory.
        follow_links: Whether links may lead out of it.
    """

    path: Path
    follow_links: bool = False

    def has(self, file: Path) -> bool:
        """Returns whether there is such a file, inside or outside of the directory."""
        return files.is_file(file)

    def holds(self, path: Path) -> bool:
        """Returns whether a path lies in the directory or may lie elsewhere."""
        return self.follow_links or is_within(path, self.path)

    def check(self, path: Path) -> Path:
        """Returns a path below the directory without links, unless they may lead anywhere.

        Raises:
            ConversionError: A link leads out of the directory (`outside-model`).
        """
        if self.follow_links:
            return path
        resolved = _resolved(path, self.path)
        if resolved is None:
            if _is_cycle(path):
                raise error("unreadable-file", f"can't read {path}: {os.strerror(errno.ELOOP)}")
            raise _outside(path)
        return resolved

    def open(self, file: Path) -> int:
        """Returns the descriptor of a regular file of the model, open for reading."""
        return files.open_file(self.check(file), follow_links=self.follow_links)

    def input(self, file: Path, *, stays_open: bool = True) -> InputFile:
        """Opens a file of the model that is read in parts; see `open`."""
        return InputFile(file, self.open(file), stays_open=stays_open)

    def read(self, file: Path, limit: int = LARGEST) -> bytes:
        """Returns the bytes of a file of the model; see `open`.

        Args:
            file: The file.
            limit: The maximum number of bytes.
        """
        return files.read_all(self.open(file), limit)


def _is_cycle(path: Path) -> bool:
    try:
        path.stat()
    except OSError as problem:
        return problem.errno == errno.ELOOP
    except ValueError:
        return False
    return False


def _outside(path: Path) -> ConversionError:
    return error(
        "outside-model",
        f"{path} is a link that leads out of the model's directory",
        hint="copy the targets of links into the directory, or pass --follow-links (follow_links=True in "
        "Python) if you trust the model",
    )
