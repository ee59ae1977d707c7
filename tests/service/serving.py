"""Servers without workers, in this process: what requests meet before anything is converted."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import update

from tests.batch.models import RELU
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.tables import JOBS
from tfconvert.service.http.app import create_app
from tfconvert.service.http.service import Service
from tfconvert.service.storage import LOG, PAGE, REPORT, result_name
from tfconvert.service.tokens import Role

# The results that a job is made to have.
MADE = {result_name({}): b"0123456789" * 10, REPORT: b'{"ok": true}', PAGE: b"<!doctype html>hello", LOG: b"said\n"}


class Client:
    """Sends requests to an application in this process.

    Args:
        app: The application.
    """

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Sends a request, and returns the response once it is complete."""

        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url="http://localhost:8750") as client:
                return await client.request(method, path, **content)

        return asyncio.run(send())

    def get(self, path: str, **content: Any) -> httpx.Response:
        """Reads something."""
        return self.request("GET", path, **content)

    def post(self, path: str, **content: Any) -> httpx.Response:
        """Sends something."""
        return self.request("POST", path, **content)

    def delete(self, path: str, **content: Any) -> httpx.Response:
        """Deletes something."""
        return self.request("DELETE", path, **content)


class Serving:
    """A server and a client of it.

    Args:
        data: The data folder.
        **settings: Settings of the server.
    """

    def __init__(self, data: Path, **settings: Any) -> None:
        self.config = ServiceConfig(data, workers=0, **settings)
        self.app = create_app(self.config)
        self.client = Client(self.app)
        service = self.app.state.service
        assert isinstance(service, Service)
        self.service = service

    def token(self, name: str, role: str = "user", **limits: int) -> dict[str, str]:
        """Returns the header of a new token."""
        token, _ = self.service.tokens.create(name, Role(role), **limits)
        return {"Authorization": f"Bearer {token}"}

    def submit(
        self,
        content: bytes = RELU.encode(),
        options: Any = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        """Submits a model."""
        files: dict[str, Any] = {"model": ("model.mlir", content)}
        files |= {name: (None, value) for name, value in fields.items()}
        if options is not None:
            files["options"] = (None, options if isinstance(options, str) else json.dumps(options))
        return self.client.post("/v1/jobs", files=files, headers=dict(headers or {}))

    def submitted(self, *arguments: Any, **keywords: Any) -> str:
        """Submits a model and returns the job's ID."""
        response = self.submit(*arguments, **keywords)
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    def end(self, job: str, state: str = "succeeded", **values: Any) -> None:
        """Makes a job have ended, with what it has made."""
        with self.service.database.write() as connection:
            connection.execute(update(JOBS).where(JOBS.c.id == job).values(state=state, result_attempt=1, **values))
        if state == "succeeded":
            folder = self.service.folders.result(job, 1)
            folder.mkdir(parents=True)
            for name, content in MADE.items():
                (folder / name).write_bytes(content)

    def leftovers(self) -> list[str]:
        """Returns what lies where uploads in flight are."""
        return sorted(path.name for path in self.service.folders.incoming.iterdir())


def packed(name: str = "model.mlir", content: bytes = RELU.encode()) -> bytes:
    """Returns an archive of one file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def refusal(response: Any) -> tuple[int, str]:
    """Returns the status and the code of problem details, which must be whole."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert body["status"] == response.status_code
    assert body["type"] == f"/errors#{body['code']}"
    assert body["diagnostics"][0]["code"] == body["code"]
    assert body["title"]
    assert body["detail"]
    return response.status_code, body["code"]
