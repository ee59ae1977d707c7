"""Vocabulary files: lines, columns, and files that are not what the model expects."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfconvert.converter.lookup_tables.tables import LINE_NUMBER, WHOLE_LINE, Format, column, read_lines
from tfconvert.schema.diagnostics import ConversionError


def write(folder: Path, content: bytes) -> Path:
    file = folder / "words.txt"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    ("index", "dtype", "expected"),
    [(WHOLE_LINE, object, [b"a,1", b" \r", b"b,2.5"]), (LINE_NUMBER, np.int64, [4, 5, 6])],
)
def test_a_line_is_its_text_or_its_number(tmp_path: Path, index: int, dtype: Any, expected: list[Any]) -> None:
    form = Format(b",", offset=4)
    lines = read_lines(write(tmp_path, b"a,1\r\n \r\r\nb,2.5\r"), form)
    assert column(lines, index, np.dtype(dtype), form).tolist() == expected


def test_columns_are_texts_or_numbers(tmp_path: Path) -> None:
    form = Format(b",", size=2)
    lines = read_lines(write(tmp_path, b"a,1\nb,2.5\nc"), form)
    assert column(lines, 0, np.dtype(object), form).tolist() == [b"a", b"b"]
    assert column(lines, 1, np.dtype(np.float32), form).tolist() == [1, 2.5]


@pytest.mark.parametrize(
    ("index", "dtype"), [(1, np.int64), (0, np.float32), (2, object), (3, np.int64), (3, np.float32)]
)
def test_a_column_that_is_not_there_or_no_number_is_an_error(index: int, dtype: Any) -> None:
    with pytest.raises(ConversionError) as caught:
        column([b"a,2.5" if index < 3 else b"a,2.5,,1_0"], index, np.dtype(dtype), Format(b","))
    assert caught.value.code == "bad-vocabulary"


@pytest.mark.parametrize(("content", "size"), [(b"a\nb\n", 3), (b"", -1), (b"a\n\nb\n", -1), (b"\n", -1)])
def test_a_file_with_too_few_or_empty_lines_is_an_error(tmp_path: Path, content: bytes, size: int) -> None:
    with pytest.raises(ConversionError) as caught:
        read_lines(write(tmp_path, content), Format(size=size))
    assert caught.value.code == "bad-vocabulary"


def test_empty_lines_behind_the_last_one_that_counts_are_not_read(tmp_path: Path) -> None:
    assert read_lines(write(tmp_path, b"a\nb\n\n"), Format(size=2)) == [b"a", b"b"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: None])
def test_only_files_are_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "words.txt")
    with pytest.raises(ConversionError) as caught:
        read_lines(tmp_path / "words.txt", Format())
    assert caught.value.code == "unreadable-file"
