"""Sources: slices of mapped files and buffers, whole, in boxes and in blocks."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfconvert.schema import files
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import boxes
from tfconvert.schema.dialects.sources import BufferSource, FileSlice
from tfconvert.schema.files import InputFile

F32 = np.dtype(np.float32)


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shard") / "shard"
    path.write_bytes(np.arange(-1, 5000, dtype=np.float32).tobytes())
    return path


def slice_of(path: Path, count: int, crc32c: int | None = None) -> FileSlice:
    return FileSlice(InputFile(path), 4, 4 * count, crc32c, "w")


def checksum(count: int) -> int:
    value: int = google_crc32c.value(np.arange(count, dtype=np.float32).tobytes())
    return value


@given(st.integers(0, 5000), st.sampled_from([1, 3, 4, 60, 4096, 1 << 20]), st.booleans(), st.booleans())
def test_blocks_of_a_file(shard: Path, count: int, size: int, checked: bool, twice: bool) -> None:
    source = slice_of(shard, count, checksum(count) if checked else None)
    for _ in range(1 + twice):
        blocks = list(source.blocks(F32, (count,), size))
        assert all(block.nbytes <= max(4, size) for block in blocks)
        assert b"".join(block.tobytes() for block in blocks) == np.arange(count, dtype=F32).tobytes()


@pytest.mark.parametrize("size", [4, 512, 4096, 1 << 20])
def test_damage_is_known_after_the_last_block(shard: Path, size: int) -> None:
    source = slice_of(shard, 1000, checksum(1000) ^ 1)
    blocks = source.blocks(F32, (1000,), size)
    read = list(itertools.islice(blocks, -(-4000 // size)))
    assert sum(block.nbytes for block in read) == 4000
    with pytest.raises(ConversionError, match="'w'") as caught:
        next(blocks)
    assert caught.value.code == "bad-checksum"
    with pytest.raises(ConversionError):
        source.part(F32, (1000,), (slice(0, 1),))
    with pytest.raises(ConversionError):
        list(source.blocks(F32, (1000,), size))


def test_the_checksum_is_worked_out_once(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    extend = google_crc32c.extend

    def count(crc32c: int, data: Any) -> int:
        nonlocal counted
        counted += len(data)
        result: int = extend(crc32c, data)
        return result

    monkeypatch.setattr(google_crc32c, "extend", count)
    for first in ("blocks", "part", "array"):
        counted = 0
        source = slice_of(shard, 1000, checksum(1000))
        if first == "blocks":
            list(source.blocks(F32, (1000,), 100))
        elif first == "part":
            source.part(F32, (10, 100), (slice(0, 1), slice(0, 100)))
        else:
            source.array(F32, (1000,))
        assert counted == 4000
        list(source.blocks(F32, (1000,), 100))
        source.part(F32, (1000,), (slice(3, 7),))
        assert counted == 4000


def test_a_whole_value_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1 << 19
    data = np.arange(count, dtype=np.float32)
    (tmp_path / "shard").write_bytes(bytes(4) + data.tobytes())
    sizes: list[int] = []
    read_into = InputFile.read_into

    def read(file: InputFile, offset: int, target: memoryview) -> None:
        sizes.append(len(target))
        read_into(file, offset, target)

    monkeypatch.setattr(InputFile, "read_into", read)
    whole = slice_of(tmp_path / "shard", count, google_crc32c.value(data.tobytes()))
    assert np.array_equal(whole.array(F32, (count,)), data)
    assert sum(sizes) == data.nbytes
    for box in ((slice(0, count),), (slice(2, 5),)):
        with pytest.raises(ConversionError, match="'w'") as caught:
            slice_of(tmp_path / "shard", count, 1).part(F32, (count,), box)
        assert caught.value.code == "bad-checksum"


def test_blocks_that_were_not_all_read_check_nothing(shard: Path) -> None:
    source = slice_of(shard, 1000, checksum(1000) ^ 1)
    next(source.blocks(F32, (1000,), 100))
    with pytest.raises(ConversionError):
        source.array(F32, (1000,))


@given(st.lists(st.integers(0, 4), max_size=4).map(tuple), st.sampled_from([1, 8, 20, 100, 1000]))
def test_splitting_covers_a_box_in_order(shape: tuple[int, ...], size: int) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    parts = list(boxes.split(boxes.whole(shape), shape, 4, size))
    assert [number for box in parts for number in numbers[box].ravel()] == numbers.ravel().tolist()
    assert all(numbers[box].size * 4 <= max(4, size) for box in parts)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3)])
def test_blocks_of_a_buffer(shape: tuple[int, ...]) -> None:
    value = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    blocks = list(BufferSource(value).blocks(F32, shape, 4))
    assert b"".join(block.tobytes() for block in blocks) == value.tobytes()


def test_a_fingerprint_takes_no_copy_of_zeros() -> None:
    """State begins with zeros of any size, which take no memory."""
    zeros = BufferSource(np.broadcast_to(np.zeros((), np.int8), (1 << 24,)))
    again = BufferSource(np.zeros(1 << 24, np.int8))
    assert zeros.fingerprint() == again.fingerprint()
    assert max(block.nbytes for block in zeros.blocks(np.dtype(np.int8), (1 << 24,))) < 1 << 24


def test_a_file_is_closed_after_the_names_of_its_module_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So they are at exit, if whatever refers to the file is cleared last."""
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    (tmp_path / "model").write_bytes(b"model")
    descriptor = os.open(tmp_path / "model", os.O_RDONLY)
    kept = InputFile(tmp_path / "model", descriptor)
    with monkeypatch.context() as leaving:
        leaving.setattr(files, "os", None)
        del kept
    assert not ignored
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
