"""`tfconvert serve` starts with nothing but its name, keeps tokens, and ends on a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from tests.batch.models import RELU
from tfconvert.cli.main import main
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service import server
from tfconvert.service.config import ServiceConfig


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "tfconvert" / "service"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["serve", *arguments])


def test_tokens_are_kept(place: Path) -> None:
    made = run("token", "create", "ci", "--role", "reader", "--per-minute", "9")
    assert made.exit_code == 0
    assert server.open_tokens(ServiceConfig(place)).find(made.stdout.strip()) is not None
    assert run("--data", str(place), "token", "list").stdout.split() == ["ci", "reader"]
    (listed,) = json.loads(run("token", "list", "--json", "--data", str(place)).stdout)["tokens"]
    assert (listed["name"], listed["per_minute"], listed["revoked"]) == ("ci", 9, None)
    again = run("token", "create", "ci")
    assert again.exit_code == 2
    assert "there is a token 'ci' already" in again.stderr
    assert run("token", "revoke", "ci").exit_code == 0
    assert "revoked" in run("token", "list").stdout
    assert "[token-not-found]" in run("token", "revoke", "nobody").stderr


@pytest.mark.parametrize("command", [("list",), ("revoke", "ci")])
def test_looking_at_tokens_creates_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    data = tmp_path / "new"
    done = run("--data", str(data), "token", *command)
    assert (done.exit_code, "is not the data directory of a server" in done.stderr) == (2, True)
    assert not data.exists()
    data.mkdir()
    assert "[bad-config]" in run("--data", str(data), "token", *command).stderr
    assert not any(data.iterdir())


def test_settings_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text("porrt = 1\n")
    for arguments, code, status in (
        (("--config", str(tmp_path / "wrong.toml")), "bad-config", 2),
        (("--config", str(tmp_path / "missing.toml")), "bad-config", 2),
        (("--database", "mysql://x"), "bad-config", 2),
        (("--host", "no.such.host.invalid", "--admin-token", str(tmp_path / "t")), "address-in-use", 1),
        (("--data", str(tmp_path / "wrong.toml" / "x")), "storage-failed", 1),
    ):
        done = run(*arguments)
        assert (done.exit_code, f"[{code}]" in done.stderr) == (status, True), done.output
    assert run("--port", "65536").exit_code == 2


def test_others_need_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[no-token]" in run("--host", "0.0.0.0").stderr
    monkeypatch.setenv("TFCONVERT_SERVICE_REQUIRE_TOKEN", "no")
    assert "'require_token' can't be off on 0.0.0.0" in run("--host", "0.0.0.0").stderr


def test_a_first_token_is_written(tmp_path: Path) -> None:
    config = ServiceConfig(tmp_path / "data", host="0.0.0.0", admin_token=str(tmp_path / "token"))
    server.prepare_access(config)
    path = tmp_path / "token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (known,) = server.open_tokens(config).list()
    assert (known.name, known.role) == ("admin", "admin")
    assert server.open_tokens(config).find(path.read_text().strip()) == known
    server.prepare_access(config)
    server.prepare_access(config._replace(admin_token=""))
    server.open_tokens(config).revoke("admin")
    with pytest.raises(ConversionError, match="nobody has a token"):
        server.prepare_access(config._replace(admin_token=""))
    with pytest.raises(ConversionError, match="can't create"):
        server.prepare_access(config)


def test_without_its_packages_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("tfconvert.service.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("tfconvert.service.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("token", "list")
    assert done.exit_code == 1
    assert "[service-missing]" in done.stderr
    assert re.search(r"pip install .*\[service\]'", done.stderr)


def test_help_loads_nothing_of_the_service() -> None:
    code = """
import sys
import time
from tfconvert.__main__ import main
sys.argv = ["tfconvert", "serve", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Run the conversion service" in done.stdout
    assert not {"fastapi", "uvicorn", "sqlalchemy", "numpy", "tfconvert.service.config"} & set(done.stdout.split())


class Started:
    """The real command.

    Args:
        folder: Where it keeps its data.
        *arguments: What follows its name.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "tfconvert", "serve", "--port", "0", "--data", str(folder), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]

    def end(self) -> tuple[int, str]:
        """Asks it to end; returns its exit status and what it has said on the error stream."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    with ExitStack() as stack:

        def start(*arguments: Any) -> Started:
            started = Started(*arguments)
            stack.enter_context(started.process)
            stack.callback(started.process.kill)
            return started

        yield start


def test_it_converts_and_ends(tmp_path: Path, start: Callable[..., Started]) -> None:
    started = start(tmp_path / "data", "--workers", "1", "--grace", "5")
    with httpx.Client(base_url=started.url, timeout=60) as client:
        job = client.post("/v1/jobs", files={"model": ("relu.mlir", RELU)}).raise_for_status().json()
        events = client.get(f"/v1/jobs/{job['id']}/events").text
        job = client.get(f"/v1/jobs/{job['id']}").json()
        assert job["state"] == "succeeded", job
        assert "event: stage" in events
        assert events.endswith("event: end\ndata: {}\n\n")
        result = client.get(f"/v1/jobs/{job['id']}/result").content
        assert result[4:8] == b"TFL3"
        assert job["summary"]["size"] == len(result)
        assert client.get(f"/v1/jobs/{job['id']}/report").json()
        assert "<html" in client.get(f"/v1/jobs/{job['id']}/report.html").text
        again = client.post("/v1/jobs", files={"model": ("relu.mlir", RELU)}).json()
        assert (again["state"], again["is_cached"]) == ("succeeded", True)
    incoming = tmp_path / "data" / "incoming"
    with _begun(started.url):
        while not list(incoming.iterdir()):
            time.sleep(0.01)
        status, said = started.end()
    assert status == 0, said
    assert "Traceback" not in said
    assert not list(incoming.iterdir())
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def _begun(url: str) -> socket.socket:
    """Returns a connection with the beginning of a request: it must not keep the server from ending."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
        b'Content-Disposition: form-data; name="model"\r\n\r\n'
    )
    return connection


def test_two_can_not_listen_at_one_place(tmp_path: Path, start: Callable[..., Started]) -> None:
    started = start(tmp_path / "data", "--workers", "0")
    port = started.url.rpartition(":")[2]
    done = run("--port", port, "--data", str(tmp_path / "other"))
    assert (done.exit_code, "[address-in-use]" in done.stderr) == (1, True)
    os.kill(started.process.pid, 0)
    assert started.end()[0] == 0
