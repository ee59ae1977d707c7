"""Vocabulary files: the text files that fill tables, read as TensorFlow's table initialisers read them (design §8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schema.diagnostics import error

Array = np.ndarray[Any, np.dtype[Any]]

WHOLE_LINE, LINE_NUMBER = -2, -1
"""What stands for a column where a key or value is all of a line, or its number."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a file's lines are to be understood.

    Attributes:
        delimiter: What stands between columns.
        size: How many lines to read; -1 for all.
        offset: The number of the first line.
    """

    delimiter: bytes = b"\t"
    size: int = -1
    offset: int = 0


def read_lines(path: Path, form: Format) -> list[bytes]:
    """Returns a file's lines.

    Raises:
        ConversionError: The file can't be read (`unreadable-file`) or is too short (`bad-vocabulary`).
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise error("unreadable-file", f"can't read the vocabulary {path.name}: {problem.strerror}") from None
    lines = data.replace(b"\r", b"").split(b"\n")
    if not lines[-1]:
        lines.pop()
    if form.size > len(lines):
        raise error("bad-vocabulary", f"{path.name} has {len(lines)} lines, the model expects {form.size}",
                    hint="the file is not of this model")  # fmt: skip
    return lines if form.size < 0 else lines[: form.size]


def column(lines: list[bytes], index: int, dtype: np.dtype[Any], form: Format) -> Array:
    """Returns a column of lines.

    Args:
        lines: The lines.
        index: The column, `WHOLE_LINE` or `LINE_NUMBER`.
        dtype: The elements' dtype; `object` for strings.
        form: How lines are to be understood.

    Raises:
        ConversionError: A line has no such column, or something else in it (`bad-vocabulary`).
    """
    if index == LINE_NUMBER:
        return np.arange(form.offset, form.offset + len(lines)).astype(dtype)
    try:
        found = lines if index == WHOLE_LINE else [line.split(form.delimiter)[index] for line in lines]
        if dtype.kind != "O":
            return np.array([int(each) if dtype.kind in "iu" else float(each) for each in found], dtype)
    except (IndexError, ValueError, OverflowError):
        raise error("bad-vocabulary", f"not every line of the vocabulary has a {dtype} in column {index}",
                    hint="the file is not of this model") from None  # fmt: skip
    result = np.empty(len(found), object)
    result[:] = found
    return result
