"""The service's own storage: a file that can't be written is the server's failure, not the client's."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfconvert.schema.diagnostics import error


@contextmanager
def storing() -> Iterator[None]:
    """A context in which files of the service are written.

    Raises:
        ConversionError: That fails (`storage-failed`).
    """
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or os.strerror(errno.EIO)
        raise error(
            "storage-failed", f"the server can't keep files: {reason}", hint="make room on its disk, or try again later"
        ) from problem


def sync(path: Path) -> None:
    """Writes a file, or the names in a folder, to the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
