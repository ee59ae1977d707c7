"""Requests that are meant to do harm, or are just broken: refused with a reason, and nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message

from tests.batch.models import RELU
from tests.service.serving import Serving, refusal
from tfconvert.service.http.middleware import BodyLimits

FORM = "multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="model"; filename="m.mlir"\r\n\r\n'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Serving:
    return Serving(tmp_path_factory.mktemp("shared"), max_upload=100_000, idle=0.2, per_minute=0)


@pytest.fixture
def server(tmp_path: Path) -> Serving:
    return Serving(tmp_path / "data", max_upload=100_000, idle=0.2, per_minute=0)


def send(server: Serving, body: bytes, content_type: str = FORM) -> Any:
    return server.client.post("/v1/jobs", content=body, headers={"Content-Type": content_type})


def part(name: str, content: bytes, rest: str = "") -> bytes:
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{rest}\r\n\r\n'.encode() + content + b"\r\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"--b",
        b"--b--\r\n",
        PART,
        PART + b"x" * 1000,
        PART + b"x\r\n--b\r\n",
        PART + RELU.encode() + b"\r\n--c--\r\n",
        part("model", b"x") + part("model", b"y") + b"--b--\r\n",
        part("options", b"{}") + part("options", b"{}") + part("model", RELU.encode()) + b"--b--\r\n",
        part("other", b"x") + b"--b--\r\n",
        part("", b"x") + b"--b--\r\n",
        part("options", b"{}") + b"--b--\r\n",
        part("model", RELU.encode()) + part("place", b"/x") + b"--b--\r\n",
        part("place", b"/x\0y") + b"--b--\r\n",
        part("options", b"\xff") + part("model", RELU.encode()) + b"--b--\r\n",
        b"--b\r\n\r\nx\r\n--b--\r\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
        b"--b\r\n" + b"X-Long: " + b"x" * 50_000 + b"\r\n\r\nx\r\n--b--\r\n",
        b"--b\r\n" + b"A: b\r\n" * 10_000 + b"\r\nx\r\n--b--\r\n",
        b"\r\n" * 1000 + b"--b--\r\n",
    ],
    ids=lambda body: repr(body[-40:]),
)
def test_broken_forms_are_refused(shared: Serving, body: bytes) -> None:
    assert refusal(send(shared, body)) == (400, "bad-request")
    assert not shared.leftovers()
    assert not list(shared.service.folders.models.iterdir())


@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain", "multipart/mixed; boundary=b", "é"])
def test_other_bodies_are_refused(shared: Serving, content_type: str) -> None:
    headers = [(b"Content-Type", content_type.encode("latin-1"))]
    response = shared.client.post("/v1/jobs", content=PART, headers=headers)
    assert refusal(response) == (415, "wrong-content-type")


@pytest.mark.parametrize("parameters", ["", "; boundary=", "; boundary=" + "x" * 5000, '; boundary="', "; boundary*=b"])
def test_odd_boundaries_are_refused(shared: Serving, parameters: str) -> None:
    assert refusal(send(shared, PART, f"multipart/form-data{parameters}")) == (400, "bad-request")


def test_bodies_are_bounded(server: Serving) -> None:
    assert refusal(send(server, part("options", b" " * 300_000) + b"--b--\r\n")) == (413, "upload-too-large")
    assert refusal(send(server, part("model", b"x" * 100_001) + b"--b--\r\n")) == (413, "upload-too-large")
    assert refusal(send(server, b"x" * (1 << 21))) == (413, "upload-too-large")
    for length in ("9" * 30, "1048576000"):
        headers = {"Content-Type": FORM, "Content-Length": length}
        assert refusal(server.client.post("/v1/jobs", content=b"", headers=headers)) == (413, "upload-too-large")
    admin = server.token("admin", "admin")
    body = json.dumps({"name": "x" * 100_000})
    assert refusal(server.client.post("/v1/tokens", content=body, headers=admin)) == (413, "upload-too-large")
    assert not server.leftovers()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 20_000, b'{"name": NaN}', b"\xff\xfe", b'{"name": "\\ud800"}', b"1"]
)
def test_invalid_json_is_rejected(server: Serving, body: bytes) -> None:
    headers = {"Content-Type": "application/json", **server.token("admin", "admin")}
    status, code = refusal(server.client.post("/v1/tokens", content=body, headers=headers))
    assert status in (400, 422)
    assert code == "bad-request"


async def _call(app: ASGIApp, messages: Sequence[dict[str, Any]]) -> tuple[int, bytes]:
    """Sends a request whose body stops where the messages do; returns the response's status and body."""
    coming = iter(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        message = next(coming, None)
        return message if message is not None else await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", FORM.encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/jobs",
        "raw_path": b"/v1/jobs",
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8750),
        "asgi": {"version": "3.0", "spec_version": "2.4"},
    }
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_a_client_that_hangs_is_cut_off(server: Serving) -> None:
    first = {"type": "http.request", "body": PART + b"x" * 1000, "more_body": True}
    status, body = asyncio.run(asyncio.wait_for(_call(server.app, [first]), 20))
    assert (status, json.loads(body)["code"]) == (408, "request-timeout")
    assert not server.leftovers()
    assert not server.service.uploads


def test_a_client_that_drips_is_cut_off(server: Serving) -> None:
    app = BodyLimits(server.app, 1 << 20, 20, lambda: False, max_seconds=0.0)
    drops = [{"type": "http.request", "body": b"x", "more_body": True}] * 1000
    status, body = asyncio.run(asyncio.wait_for(_call(app, drops), 20))
    assert (status, json.loads(body)["code"]) == (408, "request-timeout")


def test_a_client_that_leaves_leaves_nothing(server: Serving) -> None:
    first = {"type": "http.request", "body": PART + b"x" * 50_000, "more_body": True}
    asyncio.run(asyncio.wait_for(_call(server.app, [first, {"type": "http.disconnect"}]), 20))
    assert not server.leftovers()
    assert not server.service.uploads


def test_uploads_of_an_owner_are_counted(tmp_path: Path) -> None:
    server = Serving(tmp_path, max_active=2, idle=5.0)

    async def several() -> list[tuple[int, bytes]]:
        first = {"type": "http.request", "body": PART, "more_body": True}
        hanging = [asyncio.create_task(_call(server.app, [first])) for _ in range(2)]
        while server.service.uploads.get("") != 2:
            await asyncio.sleep(0.01)
        refused = await _call(server.app, [first])
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        return [refused]

    ((status, body),) = asyncio.run(asyncio.wait_for(several(), 20))
    assert (status, json.loads(body)["code"]) == (429, "too-many-jobs")
    assert not server.leftovers()


def test_a_repeated_request_is_one_job_even_at_once(server: Serving) -> None:
    ids: list[str] = []

    def submit() -> None:
        ids.append(server.submit(headers={"Idempotency-Key": "same"}).json()["id"])

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_uploads_are_refused_early_while_the_disk_is_low(server: Serving) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield PART
        raise AssertionError("the body was read")

    server.service.min_free_bytes = 1 << 62
    headers = {"Content-Type": FORM}
    response = server.client.post("/v1/jobs", content=body(), headers=headers)
    assert refusal(response) == (503, "storage-failed")
    assert response.headers["Retry-After"]
    assert server.client.get("/readyz").json()["checks"]["disk"] == "full"
    free = shutil.disk_usage(server.service.folders.data).free
    server.service.min_free_bytes = free - 50_000
    response = server.client.post("/v1/jobs", content=body(), headers=headers | {"Content-Length": "150000"})
    assert refusal(response) == (503, "storage-failed")
    assert not server.leftovers()


@pytest.mark.parametrize("is_announced", [True, False])
def test_uploads_beyond_the_quota_are_not_kept(tmp_path: Path, is_announced: bool) -> None:
    server = Serving(tmp_path, max_bytes=1000)
    form = part("model", RELU.encode().ljust(1001), '; filename="m.mlir"') + b"--b--\r\n"

    async def body() -> AsyncIterator[bytes]:
        yield form

    content = form if is_announced else body()
    assert refusal(server.client.post("/v1/jobs", content=content, headers={"Content-Type": FORM})) == (
        413,
        "too-many-bytes",
    )
    assert not server.leftovers()
    assert not list(server.service.folders.models.iterdir())
    server.submitted()
    server.service.store.check_size("other", 1000)


def test_a_large_file_is_never_in_memory(tmp_path: Path) -> None:
    server = Serving(tmp_path)
    block = b"\0" * (1 << 20)
    seen = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal seen
        yield part("model", b"x")[:-3]
        for _ in range(64):
            (file,) = server.service.folders.incoming.glob("*/*") if seen else (None,)
            # All but a few blocks are on the disk while the rest is still coming.
            assert file is None or file.stat().st_size >= (seen - 3) * len(block)
            seen += 1
            yield block
        yield b"\r\n--b--\r\n"

    response = server.client.post("/v1/jobs", content=body(), headers={"Content-Type": FORM})
    assert refusal(response)[0] == 415
    assert seen == 64


def test_odd_queries_do_no_harm(server: Serving) -> None:
    for path in (
        "/v1/ops?pattern=[",
        "/v1/ops?pattern=" + "*" * 100,
        "/v1/ops?pattern=%00",
        "/v1/jobs?limit=1e3",
        "/v1/jobs?" + "&".join(["name=x"] * 2000),
        "/v1/jobs?name=%ff%fe",
        "/v1/jobs/%ff",
        "//v1//jobs",
        "/v1/jobs?limit=" + "9" * 5000,
    ):
        assert server.client.get(path).status_code < 500, path
