"""Uploads are kept under the digest of their bytes, or leave nothing."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from tfconvert.converter.service.folders import Folders
from tfconvert.converter.service.uploads import Incoming, Upload, receive
from tfconvert.schema.diagnostics import ConversionError


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folders = Folders(tmp_path / "data")
    folders.create()
    return folders


async def stream(parts: Iterable[bytes], end: BaseException | None = None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if end is not None:
        raise end


def test_a_stream_is_kept_under_its_digest(folders: Folders) -> None:
    data = os.urandom(3_000_001)
    parts = [data[at : at + 70_000] for at in range(0, len(data), 70_000)]
    upload = asyncio.run(receive(stream(parts), folders, len(data)))
    assert upload == Upload(hashlib.sha256(data).hexdigest(), len(data))
    kept = folders.model(upload.sha256)
    assert kept.read_bytes() == data
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not list(folders.incoming.iterdir())


def test_nothing_is_an_upload_too(folders: Folders) -> None:
    upload = asyncio.run(receive(stream([]), folders, 10))
    assert folders.model(upload.sha256).read_bytes() == b""


def test_equal_uploads_are_one_file_that_is_new_again(folders: Folders) -> None:
    first = asyncio.run(receive(stream([b"model"]), folders, 10))
    path = folders.model(first.sha256)
    os.utime(path, (0, 0))
    assert asyncio.run(receive(stream([b"mo", b"del"]), folders, 10)) == first
    assert path.stat().st_mtime > 0
    assert [file.name for file in folders.models.iterdir()] == [first.sha256]


@pytest.mark.parametrize("size", [11, 5_000_000])
def test_too_much_is_refused_before_it_is_read_to_its_end(size: int, folders: Folders) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += size
            yield bytes(size)

    with pytest.raises(ConversionError) as caught:
        asyncio.run(receive(endless(), folders, 10, "calibration"))
    assert caught.value.code == "upload-too-large"
    assert "calibration has more than 10 bytes" in str(caught.value)
    assert read <= (2 << 20) + size
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())


def test_what_breaks_off_leaves_nothing(folders: Folders) -> None:
    with pytest.raises(ConnectionResetError):
        asyncio.run(receive(stream([bytes(2 << 20)], ConnectionResetError()), folders, 1 << 30))
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())


def test_what_is_cancelled_leaves_nothing(folders: Folders) -> None:
    async def hanging() -> AsyncIterator[bytes]:
        yield bytes(2 << 20)
        await asyncio.sleep(60)

    async def cut_off() -> None:
        async with asyncio.timeout(0.2):
            await receive(hanging(), folders, 1 << 30)

    with pytest.raises(TimeoutError):
        asyncio.run(cut_off())
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())


def test_a_thread_that_still_writes_writes_into_no_other_file(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    incoming = Incoming(folders, 1 << 30)
    begun, ended = threading.Event(), threading.Event()
    real = os.write

    def slow(descriptor: int, data: bytes) -> int:
        begun.set()
        ended.wait(10)
        return real(descriptor, data)

    with incoming:
        monkeypatch.setattr(os, "write", slow)
        writer = threading.Thread(target=incoming.write, args=(b"x" * 100,))
        writer.start()
        begun.wait(10)
        closer = threading.Thread(target=incoming.discard)
        closer.start()
        closer.join(0.1)
        assert closer.is_alive()
        ended.set()
        writer.join(10)
        closer.join(10)
        with pytest.raises(ConversionError) as caught:
            incoming.write(b"x")
    assert caught.value.code == "storage-failed"
    assert not list(folders.incoming.iterdir())


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_nothing(call: str, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path if call == "replace" else os, call, full)
    with pytest.raises(ConversionError) as caught:
        asyncio.run(receive(stream([b"model"]), folders, 10))
    assert caught.value.code == "storage-failed"
    assert "No space left" in str(caught.value)
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())
