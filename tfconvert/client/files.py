"""Results that are written as they come: beside their place, and moved there once they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tfconvert.schema.diagnostics import error


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Gives a file to write to, which takes its place when the body of the `with` ends well.

    Raises:
        ConversionError: It can't be written there (`output-not-writable`).
    """
    place = Path(path)
    beside = place.with_name(f".tfconvert-{os.urandom(8).hex()}.part")
    try:
        try:
            with beside.open("xb") as stream:
                yield stream
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        raise error(
            "output-not-writable",
            f"can't write {place}: {problem.strerror or problem}",
            hint="check that the folder exists, and that the disk has room",
        ) from None
