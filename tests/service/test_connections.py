"""Connections over sockets: what a server does with those that send too much, too little or nothing."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from tests.service.serving import Serving
from tfconvert.service import server as server_module
from tfconvert.service.server import uvicorn_config
from tfconvert.service.storage import result_name

IDLE = 1.0
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
UPLOAD = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"


class Edge:
    """A server that listens, in a thread.

    Args:
        serving: The server.
    """

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self._server = uvicorn.Server(uvicorn_config(serving.app, serving.config))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Edge:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()
        self._server.should_exit = True
        self._thread.join()

    def connect(self, content: bytes = b"") -> socket.socket:
        """Returns a new connection on which bytes were sent."""
        connection = socket.create_connection(self._listener.getsockname()[:2], timeout=20)
        self._stack.callback(connection.close)
        connection.sendall(content)
        return connection

    def status(self, content: bytes) -> int:
        """Returns the status of the only answer on a new connection, which the server closes."""
        return answers(read(self.connect(content)))[-1][0]


def read(connection: socket.socket) -> bytes:
    """Returns everything that comes until the server closes a connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(1 << 16):
            found += data
    return found


def status_of(connection: socket.socket) -> int:
    """Returns the status of the next answer on a connection that stays open."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(1 << 16) or b"HTTP/1.1 000 closed\r\ncontent-length: 0\r\n\r\n"
    head, _, body = found.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length: ")[2].split()[0]) - len(body)
    while left:
        left -= len(connection.recv(left))
    return int(head.split()[1])


def answers(content: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """Returns the status, the headers and the body of each answer; errors must be whole problem details."""
    found = []
    while content:
        head, _, rest = content.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        size = int(headers.get("content-length", 0))
        status, body = int(first.split()[1]), rest[:size]
        assert len(body) == size
        if status >= 400:
            assert headers["content-type"] == "application/problem+json"
            assert json.loads(body)["status"] == status
        found.append((status, headers, body))
        content = rest[size:]
    return found


def is_closed(connection: socket.socket) -> bool:
    """Returns whether the server has closed a connection."""
    connection.settimeout(0.01)
    try:
        return not connection.recv(1 << 16)
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def code(content: bytes) -> tuple[int, str]:
    """Returns the status and the code of one answer, after which the connection is closed."""
    ((status, headers, body),) = answers(content)
    assert headers["connection"] == "close"
    assert headers["x-content-type-options"] == "nosniff"
    return status, json.loads(body)["code"]


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    with Edge(Serving(tmp_path / "data", idle=IDLE, per_address=400)) as edge:
        yield edge


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edge]:
    """A server with room for six connections, three of which may be of one address."""
    monkeypatch.setattr(server_module, "_MAX_CONNECTIONS", 6)
    with Edge(Serving(tmp_path / "data", idle=20, per_address=3)) as edge:
        yield edge


@pytest.mark.parametrize(
    "content",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 400_000,
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 100 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
        b"GET /healthz?" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"x" * 400_000,
        b"GET / HTTP/1.1\r\n" + b"x" * 400_000,
    ],
    ids=["one", "unfinished", "lines", "unfinished lines", "path", "unfinished path", "unfinished name"],
)
def test_headers_are_bounded(edge: Edge, content: bytes) -> None:
    assert code(read(edge.connect(content))) == (431, "headers-too-large")
    assert edge.status(LAST) == 200


@pytest.mark.parametrize("trailer", [b"X: " + b"x" * 900_000, b"X: y\r\n" * 200], ids=["bytes", "lines"])
def test_trailers_are_bounded(edge: Edge, trailer: bytes) -> None:
    head = UPLOAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert code(read(edge.connect(head + b"3\r\n--b\r\n0\r\n" + trailer))) == (431, "headers-too-large")


def test_usual_headers_and_large_bodies_pass(edge: Edge) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 90 + b"Y: " + b"y" * 30_000 + b"\r\n"
    many = HEALTH * 500
    assert [status for status, _, _ in answers(read(edge.connect(many + head + b"Connection: close\r\n\r\n")))] == (
        [200] * 501
    )
    form = (
        b'--b\r\nContent-Disposition: form-data; name="model"; filename="m"\r\n\r\n'
        + b"x" * 2_000_000
        + b"\r\n--b--\r\n"
    )
    body = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(form)
    assert edge.status(UPLOAD + body + form) == 415
    chunked = b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(form)
    assert edge.status(UPLOAD + chunked + form + b"\r\n0\r\nX: y\r\n\r\n") == 415


def test_silent_connections_are_closed_and_health_is_answered(edge: Edge) -> None:
    silent = [edge.connect() for _ in range(300)]
    unfinished = [edge.connect(HEALTH[:-2] + b"X: y") for _ in range(20)]
    begin = time.monotonic()
    assert edge.status(LAST) == 200
    assert not is_closed(silent[-1])
    for connection in silent:
        assert read(connection) == b""
    for connection in unfinished:
        assert code(read(connection)) == (408, "request-timeout")
    assert time.monotonic() - begin < 15
    assert edge.status(LAST) == 200


def test_bytes_without_a_request_do_not_keep_a_connection(edge: Edge) -> None:
    empty, slow, used = edge.connect(), edge.connect(HEALTH[:-2]), edge.connect(HEALTH)
    end = time.monotonic() + 20 * IDLE
    closed: set[socket.socket] = set()
    while len(closed) < 3 and time.monotonic() < end:
        time.sleep(IDLE / 10)
        for connection, drop in ((empty, b"\r\n"), (slow, b"X: y\r\n"), (used, b"\r\n")):
            with contextlib.suppress(OSError):
                connection.sendall(drop)
            if is_closed(connection):
                closed.add(connection)
    assert len(closed) == 3


def test_a_connection_is_used_again(edge: Edge) -> None:
    connection = edge.connect()
    for _ in range(3):
        connection.sendall(HEALTH)
        assert status_of(connection) == 200
        time.sleep(IDLE / 2)
    begin = time.monotonic()
    assert read(connection) == b""
    assert time.monotonic() - begin < 10 * IDLE


def test_a_client_that_hangs_in_a_body_is_disconnected(edge: Edge) -> None:
    connection = edge.connect(UPLOAD + b"Content-Length: 1000\r\n\r\n--b\r\n")
    assert code(read(connection)) == (408, "request-timeout")


def test_the_rest_of_a_refused_body_is_discarded_for_a_while(edge: Edge) -> None:
    connection = edge.connect(UPLOAD + b"Content-Length: %d\r\n\r\n" % (1 << 40))
    assert status_of(connection) == 413
    begin = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - begin < 20 * IDLE:
            connection.sendall(b"x" * 100)
            time.sleep(IDLE / 20)
    assert time.monotonic() - begin < 15 * IDLE


@pytest.mark.parametrize(
    "content",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        UPLOAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        UPLOAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        UPLOAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 46\r\n\r\n" + HEALTH,
    ],
    ids=lambda content: repr(content[-30:]),
)
def test_invalid_requests_get_problem_details(edge: Edge, content: bytes) -> None:
    assert code(read(edge.connect(content))) == (400, "bad-request")


def test_the_protocol_is_not_changed(edge: Edge) -> None:
    request = HEALTH[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    found = answers(read(edge.connect(request + HEALTH)))
    assert [status for status, _, _ in found] == [200]
    assert found[0][1]["connection"] == "close"


def test_an_invalid_request_does_not_take_the_answer_of_another(edge: Edge) -> None:
    said = read(edge.connect(UPLOAD + b"Content-Length: 0\r\n\r\nnonsense\r\n\r\n"))
    assert b"the request is not valid HTTP" not in said


def test_the_connection_that_waits_longest_makes_room(small: Edge) -> None:
    first, second, used = small.connect(), small.connect(), small.connect()
    for connection in (used, first, second, used):
        connection.sendall(HEALTH)
        assert status_of(connection) == 200
    third = small.connect()
    assert small.status(LAST) == 200
    assert [is_closed(each) for each in (first, second, used, third)] == [True, True, False, False]


def test_probes_are_answered_beyond_the_limit(small: Edge) -> None:
    for _ in range(3):
        small.connect(UPLOAD + b"Content-Length: 1000\r\n\r\n--b\r\n")
    while small.serving.service.uploads.get("", 0) < 3:
        time.sleep(0.01)
    ((status, headers, body),) = answers(read(small.connect(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")))
    assert (status, json.loads(body)["code"]) == (503, "too-many-connections")
    assert headers["retry-after"]
    assert headers["connection"] == "close"
    assert small.status(HEALTH) == 200
    ((_, _, ready),) = answers(read(small.connect(HEALTH.replace(b"health", b"ready"))))
    assert json.loads(ready)["checks"]["database"] == "ok"


def test_streams_of_an_owner_are_counted(tmp_path: Path) -> None:
    with Edge(Serving(tmp_path / "data", max_active=2)) as edge:
        job = edge.serving.submitted()
        request = f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        streams = [edge.connect(request) for _ in range(2)]
        assert all(b" 200 OK" in stream.recv(1 << 16) for stream in streams)
        assert status_of(edge.connect(request)) == 429
        assert edge.status(LAST) == 200
        streams.pop().close()
        while edge.serving.service.streams[""] == 2:
            time.sleep(0.01)
        assert b" 200 OK" in edge.connect(request).recv(1 << 16)


def test_a_client_that_does_not_read_is_disconnected(edge: Edge) -> None:
    serving = edge.serving
    job = serving.submitted()
    serving.end(job)
    size = 30_000_000
    (serving.service.folders.result(job, 1) / result_name({})).write_bytes(b"x" * size)
    connection = edge.connect(f"GET /v1/jobs/{job}/result HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    time.sleep(3 * IDLE)
    assert len(read(connection)) < size
    whole = edge.connect(f"GET /v1/jobs/{job}/result HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert len(read(whole)) > size
