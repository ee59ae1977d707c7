"""Uploads are kept under the digest of their bytes, or leave nothing."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.http.protocol import Connections, Protocol
from tfconvert.service.storage import Folders, Incoming, Upload


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folders = Folders(tmp_path / "data")
    folders.create()
    return folders


def received(parts: Iterable[bytes], folders: Folders, most: int, what: str = "model") -> Upload:
    with Incoming(folders, most, what) as incoming:
        for part in parts:
            incoming.write([part])
        return incoming.keep()


def broken_off(part: bytes) -> Iterator[bytes]:
    yield part
    raise ConnectionResetError


def test_a_stream_is_kept_under_its_digest(folders: Folders) -> None:
    data = os.urandom(3_000_001)
    parts = [data[at : at + 70_000] for at in range(0, len(data), 70_000)]
    upload = received(parts, folders, len(data))
    assert upload == Upload(hashlib.sha256(data).hexdigest(), len(data))
    kept = folders.model(upload.sha256)
    assert kept.read_bytes() == data
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not list(folders.incoming.iterdir())


def test_nothing_is_an_upload_too(folders: Folders) -> None:
    upload = received([], folders, 10)
    assert folders.model(upload.sha256).read_bytes() == b""


def test_equal_uploads_are_one_file_that_is_new_again(folders: Folders) -> None:
    first = received([b"model"], folders, 10)
    path = folders.model(first.sha256)
    os.utime(path, (0, 0))
    assert received([b"mo", b"del"], folders, 10) == first
    assert path.stat().st_mtime > 0
    assert [file.name for file in folders.models.iterdir()] == [first.sha256]


@pytest.mark.parametrize("size", [11, 5_000_000])
def test_large_uploads_are_rejected_early(size: int, folders: Folders) -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += size
            yield bytes(size)

    with pytest.raises(ConversionError) as caught:
        received(endless(), folders, 10, "calibration")
    assert caught.value.code == "upload-too-large"
    assert "calibration has more than 10 bytes" in str(caught.value)
    assert read == size
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())


@pytest.mark.parametrize("at_once", [0, 1, 5, 100_000])
def test_parts_are_written_in_their_order_however_much_the_system_takes(
    at_once: int, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def some(descriptor: int, parts: Sequence[bytes]) -> int:
        return real(descriptor, b"".join(parts)[:at_once])

    monkeypatch.setattr(os, "writev", some)
    parts: list[bytes | memoryview] = [
        b"one",
        b"",
        memoryview(b"and two")[4:],
        *(b"%d" % number for number in range(100)),
    ]
    with Incoming(folders, 1 << 30) as incoming:
        incoming.write(parts[:3])
        incoming.write([])
        incoming.write(parts[3:])
        upload = incoming.keep()
    whole = b"".join(parts)
    assert folders.model(upload.sha256).read_bytes() == whole
    assert upload == Upload(hashlib.sha256(whole).hexdigest(), len(whole))


def test_interrupted_uploads_leave_nothing(folders: Folders) -> None:
    with pytest.raises(ConnectionResetError):
        received(broken_off(bytes(2 << 20)), folders, 1 << 30)
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())


def test_a_thread_that_still_writes_writes_into_no_other_file(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    incoming = Incoming(folders, 1 << 30)
    begun, ended = threading.Event(), threading.Event()
    real = os.writev

    def slow(descriptor: int, parts: Sequence[bytes]) -> int:
        begun.set()
        ended.wait(10)
        return real(descriptor, parts)

    with incoming:
        monkeypatch.setattr(os, "writev", slow)
        writer = threading.Thread(target=incoming.write, args=([b"x" * 100],))
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
            incoming.write([b"x"])
    assert caught.value.code == "storage-failed"
    assert not list(folders.incoming.iterdir())


@pytest.mark.parametrize("call", ["writev", "fsync", "replace"])
def test_a_full_disk_leaves_nothing(call: str, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path if call == "replace" else os, call, full)
    with pytest.raises(ConversionError) as caught:
        received([b"model"], folders, 10)
    assert caught.value.code == "storage-failed"
    assert "No space left" in str(caught.value)
    assert not list(folders.incoming.iterdir())
    assert not list(folders.models.iterdir())


def test_bytes_are_received_without_copies() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0)

    async def act() -> None:
        config = uvicorn.Config(app, lifespan="off")
        config.load()
        protocol = Protocol(limits=Connections(9, 9), idle=9, config=config, server_state=ServerState(), app_state={})
        transport = MagicMock(spec=asyncio.Transport)
        transport.is_closing.return_value = False
        protocol.connection_made(transport)
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n")
        first, second = os.urandom(100_000), os.urandom(100_000)
        for _ in range(2):
            protocol.on_body(first)
            message = await protocol.cycle.receive()
            assert message["type"] == "http.request"
            assert message["body"] is first
        protocol.on_body(first)
        protocol.on_body(second)
        message = await protocol.cycle.receive()
        assert message["type"] == "http.request"
        assert message["body"] == first + second

    asyncio.run(act())
