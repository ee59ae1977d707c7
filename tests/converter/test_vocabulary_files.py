"""Vocabulary files: lines, columns, and files that are not what the model expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converter.vocabulary_files import LINE_NUMBER, WHOLE_LINE, Format, column, read_lines
from schema.diagnostics import ConversionError


def write(folder: Path, content: bytes) -> Path:
    file = folder / "words.txt"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    ("index", "dtype", "expected"),
    [
        (WHOLE_LINE, object, [b"a,1", b"", b"b,2.5"]),
        (LINE_NUMBER, np.int64, [4, 5, 6]),
    ],
)
def test_a_line_is_its_text_or_its_number(tmp_path: Path, index: int, dtype: Any, expected: list[Any]) -> None:
    form = Format(b",", offset=4)
    lines = read_lines(write(tmp_path, b"a,1\r\n\nb,2.5\n"), form)
    assert column(lines, index, np.dtype(dtype), form).tolist() == expected


def test_columns_are_texts_or_numbers(tmp_path: Path) -> None:
    form = Format(b",", size=2)
    lines = read_lines(write(tmp_path, b"a,1\nb,2.5\nc"), form)
    assert column(lines, 0, np.dtype(object), form).tolist() == [b"a", b"b"]
    assert column(lines, 1, np.dtype(np.float32), form).tolist() == [1, 2.5]


@pytest.mark.parametrize(("index", "dtype"), [(1, np.int64), (0, np.float32), (2, object)])
def test_a_column_that_is_not_there_or_no_number_is_an_error(index: int, dtype: Any) -> None:
    with pytest.raises(ConversionError) as caught:
        column([b"a,2.5"], index, np.dtype(dtype), Format(b","))
    assert caught.value.code == "bad-vocabulary"


def test_a_file_that_is_too_short_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        read_lines(write(tmp_path, b"a\nb\n"), Format(size=3))
    assert caught.value.code == "bad-vocabulary"
