"""Vocabulary files: the text files that fill tables, read as TensorFlow's table initialisers read them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.files import read_file

WHOLE_LINE, LINE_NUMBER = -2, -1
"""Pseudo columns of keys or values: the whole line, or its number."""

_WRONG_FILE = "the file is not of this model"


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file's lines.

    Attributes:
        delimiter: The separator of columns.
        size: Number of lines to read; -1 for all.
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
        data = read_file(path)
    except OSError as problem:
        raise error("unreadable-file", f"can't read the vocabulary {path.name}: {problem.strerror}") from None
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    if not lines[-1]:
        lines.pop()
    if form.size > len(lines) or not lines:
        expected = f"{form.size} lines" if form.size >= 0 else "some"
        raise error(
            "bad-vocabulary", f"{path.name} has {len(lines)} lines, the model expects {expected}", hint=_WRONG_FILE
        )
    lines = lines if form.size < 0 else lines[: form.size]
    if b"" in lines:
        raise error(
            "bad-vocabulary",
            f"line {lines.index(b'') + 1} of {path.name} is empty",
            hint="TensorFlow doesn't accept empty lines either",
        )
    return lines


def column(lines: list[bytes], index: int, dtype: np.dtype[Any], form: Format) -> Array:
    """Returns a column of lines.

    Args:
        lines: The lines.
        index: The column, `WHOLE_LINE` or `LINE_NUMBER`.
        dtype: The elements' dtype; `object` for strings.
        form: The format of lines.

    Raises:
        ConversionError: A line lacks the column, or its value can't be parsed (`bad-vocabulary`).
    """
    if index == LINE_NUMBER:
        return np.arange(form.offset, form.offset + len(lines)).astype(dtype)
    try:
        found = lines if index == WHOLE_LINE else [line.split(form.delimiter)[index] for line in lines]
        if dtype.kind != "O":
            return np.array([_number(each, dtype) for each in found], dtype)
    except (IndexError, ValueError, OverflowError):
        raise error(
            "bad-vocabulary", f"not every line of the vocabulary has a {dtype} in column {index}", hint=_WRONG_FILE
        ) from None
    result = np.empty(len(found), object)
    result[:] = found
    return result


def _number(text: bytes, dtype: np.dtype[Any]) -> float:
    if b"_" in text:
        raise ValueError("Python's own way of writing long numbers")
    return int(text) if dtype.kind in "iu" else float(text)
