"""Files appear whole or not at all, however many write them at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from tfconvert.exporters.output_file import write_whole
from tfconvert.schema.diagnostics import ConversionError


def _content(first: int) -> Callable[[BinaryIO], None]:
    def write(stream: BinaryIO) -> None:
        for _ in range(50):
            stream.write(bytes([first]) * 1000)
            stream.flush()

    return write


def test_a_writer_is_not_disturbed_by_another(tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    begun, done = threading.Event(), threading.Event()

    def slow(stream: BinaryIO) -> None:
        stream.write(b"first ")
        stream.flush()
        begun.set()
        assert done.wait(60)
        stream.write(b"half")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_whole, target, slow)
        assert begun.wait(60)
        write_whole(target, lambda stream: stream.writelines([b"other"]))
        assert target.read_bytes() == b"other"
        done.set()
        writing.result()
    assert target.read_bytes() == b"first half"
    assert list(tmp_path.iterdir()) == [target]


def test_many_threads_write_one_file(tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    target.write_bytes(b"\0" * 50_000)

    def write(number: int) -> None:
        write_whole(target, _content(number))
        found = target.read_bytes()
        assert found == found[:1] * 50_000

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 101)))
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path, problem: BaseException) -> None:
    target = tmp_path / "model.tflite"
    target.write_bytes(b"old")

    def write(stream: BinaryIO) -> None:
        stream.write(b"new")
        raise problem

    with pytest.raises((ConversionError, KeyboardInterrupt)):
        write_whole(target, write)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_large_array_is_written_whole(tmp_path: Path) -> None:
    array = np.arange(1_000_003, dtype=np.uint32)
    write_whole(tmp_path / "weights", lambda stream: stream.write(array.data))
    assert (tmp_path / "weights").read_bytes() == array.tobytes()


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConversionError, match="can't write"):
        write_whole(tmp_path / "folder", _content(1))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    write_whole(target, _content(1))
    assert target.stat().st_size == 50_000
