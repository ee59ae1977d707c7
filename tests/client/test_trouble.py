"""The client when the server is busy, away, or something else; connections that break."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tfconvert.client import AsyncClient, Client, Patience
from tfconvert.schema.diagnostics import ConversionError

JOB = {"id": "a" * 32, "state": "succeeded", "model_name": "m", "later": "field"}
CONTENT = bytes(range(256)) * 1000
Handler = Callable[[httpx.Request], httpx.Response]


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that breaks off."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        raise httpx.ReadError("cut")

    async def __aiter__(self) -> Any:
        for chunk in self.chunks:
            yield chunk
        raise httpx.ReadError("cut")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns how long the client has waited, which it doesn't really do."""
    found: list[float] = []

    async def note(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("tfconvert.client.connection.time.sleep", found.append)
    monkeypatch.setattr("tfconvert.client.connection.asyncio.sleep", note)
    return found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.pb"
    path.write_bytes(b"graph")
    return path


def _client(handler: Handler, **patience: float) -> Client:
    return Client("http://service/below", "", transport=httpx.MockTransport(handler), patience=Patience(**patience))  # type: ignore[arg-type]


def _problem(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"detail": "told", "diagnostics": [{"code": code, "message": "told", "node": "n"}], "advice": ["do it"]}
    return httpx.Response(status, headers=headers, json=body)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_busy_server_is_asked_again_when_it_says(pauses: list[float], model: Path, is_async: bool) -> None:
    requests = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append((request.headers["Idempotency-Key"], request.url.path, request.headers["Content-Length"]))
        answers = {1: _problem(429, "queue-full", **{"Retry-After": "7"}), 2: _problem(503, "stopping")}
        if len(requests) == 3:
            raise httpx.ConnectError("refused")
        return answers.get(len(requests), httpx.Response(202, json=JOB))

    async def submit() -> str:
        transport = httpx.MockTransport(handle)
        async with AsyncClient("http://service/below", "", transport=transport) as client:
            return (await client.submit(model, batch=2)).id

    if is_async:
        assert asyncio.run(submit()) == JOB["id"]
    else:
        assert _client(handle).submit(model, batch=2).id == JOB["id"]
    assert pauses == [7, 2, 0.5]
    assert len(requests) == 4
    assert len(set(requests)) == 1
    assert requests[0][1] == "/below/v1/jobs"


def test_patience_ends(pauses: list[float], model: Path) -> None:
    def busy(request: httpx.Request) -> httpx.Response:
        return _problem(429, "too-many-jobs", **{"Retry-After": "100"})

    with pytest.raises(ConversionError, match="told") as caught:
        _client(busy, seconds=50).submit(model)
    assert (caught.value.code, caught.value.diagnostics[0].node) == ("too-many-jobs", "n")
    assert caught.value.advice == ("do it",)
    assert pauses == []

    requests = []

    def away(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if len(requests) == 1:
            return _problem(503, "stopping")
        raise httpx.ConnectTimeout("")

    with pytest.raises(ConversionError, match=r"http://service/below can't be reached: ConnectTimeout") as caught:
        _client(away, attempts=4).submit(model)
    assert caught.value.code == "server-unreachable"
    assert pauses == [2, 0.5, 1, 2]


@pytest.mark.parametrize("problem", [httpx.ConnectError("Connection refused"), httpx.ConnectTimeout("timed out")])
def test_a_server_that_never_answered_is_not_waited_for(
    pauses: list[float], model: Path, problem: httpx.TransportError
) -> None:
    def absent(request: httpx.Request) -> httpx.Response:
        raise problem

    with pytest.raises(ConversionError, match=f"http://service/below can't be reached: {problem}") as caught:
        _client(absent).submit(model)
    assert caught.value.code == "server-unreachable"
    assert pauses == []


def test_the_form_is_one(model: Path, tmp_path: Path) -> None:
    bodies = []

    def handle(request: httpx.Request) -> httpx.Response:
        kind = request.headers["Content-Type"]
        assert kind.startswith("multipart/form-data")
        bodies.append(re.sub(kind.partition("boundary=")[2].encode(), b"B", request.read()))
        return httpx.Response(202, json=JOB)

    client = _client(handle)
    client.submit(model, batch=2)
    client.submit(place="s3://models/m")
    assert b'name="model"; filename="model.pb"' in bodies[0]
    assert b"graph" in bodies[0]
    assert b'name="options"\r\n\r\n{"batch": 2}\r\n' in bodies[0]
    assert b'name="place"' in bodies[1]
    assert b"s3://models/m" in bodies[1]
    assert b'name="model"' not in bodies[1]


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="<h1>a page</h1>"),
        httpx.Response(200, json=[JOB]),
        httpx.Response(200, json={"id": 1, "state": "queued"}),
        httpx.Response(502, text="\x1b[2J" * 1000),
        httpx.Response(301, headers={"Location": "https://elsewhere"}),
        httpx.Response(400, json={"diagnostics": [{"message": "no code"}]}),
        httpx.Response(400, json={"diagnostics": ["text"], "advice": "text"}),
        httpx.Response(400, content=b"[" * 100_000),
    ],
)
def test_what_is_no_service_is_told_apart(response: httpx.Response) -> None:
    with pytest.raises(ConversionError) as caught:
        _client(lambda request: response).job("a" * 32)
    assert caught.value.code == "server-refused"
    assert len(str(caught.value)) < 2000
    assert "\x1b" not in str(caught.value)


def test_a_failed_job_has_its_reasons() -> None:
    problem: Any = {"errors": [{"code": "unsupported-op", "message": "no", "op": "tf.X", "new": "field"}], "advice": []}
    job: dict[str, Any] = {**JOB, "state": "failed"}
    client = _client(lambda request: httpx.Response(200, json=job))
    for data, code in ((problem, "unsupported-op"), (None, "server-refused"), ({"errors": []}, "server-refused")):
        job["problem"] = data
        with pytest.raises(ConversionError) as caught:
            client.job("a").wait()
        assert caught.value.code == code


def test_events_go_on_where_they_broke_off(pauses: list[float]) -> None:
    asked: list[str | None] = []

    def event(number: int) -> bytes:
        return b'id: %d\r\nevent: stage\r\ndata: {"name": "stage %d"}\r\n\r\n' % (number, number)

    def handle(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            return httpx.Response(200, json={**JOB, "state": "succeeded" if len(asked) == 4 else "running"})
        asked.append(request.headers.get("Last-Event-ID"))
        half = event(3)
        streams = {
            1: Body(b": hello\n\n", event(1), event(2)[:9], event(2)[9:], half[:20]),
            2: Body(),
            3: httpx.ByteStream(half),
        }
        stream = streams.get(len(asked), httpx.ByteStream(event(4) + b"event: end\ndata: {}\n\n" + event(5)))
        return httpx.Response(200, stream=stream)

    stages: list[str] = []
    job = _client(handle, attempts=3).job("a")
    assert job.wait(stages.append).info.state == "succeeded"
    assert stages == [f"stage {number}" for number in range(1, 5)]
    assert asked == [None, "2", "2", "3"]
    assert pauses == [0.5, 1, 0.5]


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_download_goes_on_where_it_broke_off(
    pauses: list[float], tmp_path: Path, is_async: bool, is_changed: bool
) -> None:
    asked = []

    def handle(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/result"):
            return httpx.Response(200, json=JOB)
        asked.append((request.headers.get("Range"), request.headers.get("If-Range")))
        headers = {"ETag": '"one"', "Content-Length": str(len(CONTENT))}
        if len(asked) == 1:
            return httpx.Response(200, headers=headers, stream=Body(b"old" if is_changed else CONTENT[:3]))
        if is_changed:
            return httpx.Response(200, headers=headers, content=CONTENT)
        start = int(asked[-1][0].removeprefix("bytes=").rstrip("-"))
        return httpx.Response(206, headers={"ETag": '"one"'}, content=CONTENT[start:])

    async def save() -> None:
        async with AsyncClient("http://service", "", transport=httpx.MockTransport(handle)) as client:
            await (await client.job("a")).save(tmp_path / "model.tflite")

    if is_async:
        asyncio.run(save())
    else:
        _client(handle).job("a").save(tmp_path / "model.tflite")
    assert (tmp_path / "model.tflite").read_bytes() == CONTENT
    assert asked == [(None, None), ("bytes=3-", '"one"')]


def test_a_download_is_whole_or_not_there(pauses: list[float], tmp_path: Path) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/result"):
            return httpx.Response(200, stream=Body(b"half"))
        return httpx.Response(200, json=JOB)

    (tmp_path / "model.tflite").write_bytes(b"before")
    job = _client(handle, attempts=1).job("a")
    with pytest.raises(ConversionError) as caught:
        job.save(tmp_path / "model.tflite")
    assert caught.value.code == "server-unreachable"
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("model.tflite", b"before")]
    with pytest.raises(ConversionError) as caught:
        job.save(tmp_path / "missing" / "model.tflite")
    assert caught.value.code == "output-not-writable"


def test_a_refused_download_tells_why(pauses: list[float]) -> None:
    answers = iter(
        [
            _problem(503, "service-stopping", **{"Retry-After": "1"}),
            _problem(409, "no-result"),
            httpx.Response(404, stream=Body(b"not", b" whole")),
        ]
    )
    client = _client(
        lambda request: next(answers) if request.url.path.endswith("/result") else httpx.Response(200, json=JOB)
    )
    for code in ("no-result", "server-refused"):
        with pytest.raises(ConversionError) as caught:
            client.job("a").result()
        assert caught.value.code == code
    assert pauses == [1]


def test_ids_of_others_stay_in_their_place() -> None:
    asked = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path)
        return httpx.Response(200, content=json.dumps(JOB))

    _client(handle).job("../../healthz?x#y")
    assert asked == [b"/below/v1/jobs/..%2F..%2Fhealthz%3Fx%23y"]


def test_the_client_that_blocks_works_inside_of_an_event_loop() -> None:
    async def ask() -> tuple[str, bytes]:
        def handle(request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/result"):
                return httpx.Response(200, content=CONTENT)
            return httpx.Response(200, json=JOB)

        job = _client(handle).job("a")
        return job.id, job.result()

    assert asyncio.run(ask()) == (JOB["id"], CONTENT)
