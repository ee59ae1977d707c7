"""A small server with the routes of the service, for tests of its page and of its client: it converts for real."""

from __future__ import annotations

import asyncio
import json
import secrets
import tarfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tfconvert.converter.batch.job import Job
from tfconvert.converter.batch.run_job import run_job
from tfconvert.converter.batch.settings import check_settings
from tfconvert.converter.service.page.files import FILES, INDEX
from tfconvert.schema.diagnostics import ConversionError

ENDED = ("succeeded", "failed", "cancelled")


class StandIn:
    """The server's state.

    Attributes:
        app: The ASGI application.
        token: What requests must carry, empty for nothing.
        open: While it is not set, jobs wait.
        jobs: All jobs by ID, the oldest first.
        asked: Requests that came in, as method and path.
    """

    def __init__(self, folder: Path, token: str = "") -> None:
        self.folder = folder
        self.token = token
        self.open = threading.Event()
        self.open.set()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        one = "/v1/jobs/{id}"
        self.app = Starlette(routes=[
            Route("/", self.page), Route("/page/{name}", self.page), Route("/healthz", self.health),
            Route("/v1/ops", self.ops), Route("/v1/jobs", self.submit, methods=["POST"]), Route("/v1/jobs", self.list),
            Route(one, self.delete, methods=["DELETE"]), Route(one, self.get),
            Route(f"{one}/cancel", self.cancel, methods=["POST"]), Route(f"{one}/retry", self.retry, methods=["POST"]),
            Route(f"{one}/events", self.events), Route(f"{one}/{{part}}", self.part),
        ])  # fmt: skip

    async def page(self, request: Request) -> Response:
        name = request.path_params.get("name")
        file = INDEX if name is None else FILES[name]
        return Response(file.read(), headers={"Content-Type": file.media_type, "Content-Security-Policy": file.policy})

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ops(self, request: Request) -> Response:
        return JSONResponse({"ops": [{"op": "AddV2"}]})

    def problem(self, status: int, code: str, text: str, **headers: str) -> Response:
        """Returns problem details."""
        body = {"type": f"/errors#{code}", "title": text, "status": status, "detail": text, "code": code,
                "diagnostics": [{"code": code, "message": text, "hint": "look again"}]}  # fmt: skip
        return JSONResponse(body, status, headers, media_type="application/problem+json")

    def refusal(self, request: Request) -> Response | None:
        """Returns the answer to who has no token."""
        self.asked.append((request.method, request.url.path))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self.problem(401, "unauthorized", "a token is needed")
        return None

    async def submit(self, request: Request) -> Response:
        if (refused := self.refusal(request)) is not None:
            return refused
        async with request.form() as form:
            settings = json.loads(str(form.get("options") or "{}"))
            try:
                check_settings(settings, allow_paths=False)
            except ConversionError as problem:
                return self.problem(400, problem.code, problem.diagnostics[0].message)
            key = request.headers.get("Idempotency-Key", "")
            if key in self.keys:
                return JSONResponse(self.jobs[self.keys[key]])
            upload: Any = form["model"]
            number = self.keys[key] = secrets.token_hex(16)
            place = self.folder / number
            place.mkdir(parents=True)
            (place / "upload").write_bytes(await upload.read())
            samples: Any = form.get("calibration")
            if samples is not None:
                (place / "samples.npz").write_bytes(await samples.read())
                quantize = settings["quantize"]
                quantize = {"mode": quantize} if isinstance(quantize, str) else quantize
                settings["quantize"] = {**quantize, "samples": [str(place / "samples.npz")]}
            self.jobs[number] = {
                "id": number,
                "model_name": upload.filename,
                "settings": settings,
                "created": time.time(),
            }
        self.begin(number)
        return JSONResponse(self.jobs[number], 202, {"Location": f"/v1/jobs/{number}"})

    def begin(self, id: str) -> None:
        """Starts a job."""
        job = self.jobs[id]
        job |= {"state": "queued", "problem": None, "summary": {}, "seconds": 0, "attempt": job.get("attempt", 0) + 1}
        job["events"] = []
        self.tell(id, "state", "queued")
        threading.Thread(target=self.run, args=[id], daemon=True).start()

    def tell(self, id: str, type: str, name: str) -> None:
        """Notes an event."""
        events = self.jobs[id]["events"]
        events.append({"n": len(events) + 1, "type": type, "name": name, "at": time.time()})
        if type == "state":
            self.jobs[id]["state"] = name

    def run(self, id: str) -> None:
        """Converts."""
        job, place = self.jobs[id], self.folder / id
        out = place / "model.tflite"
        self.open.wait()
        if job["state"] != "queued":
            return
        self.tell(id, "state", "running")
        start = time.perf_counter()
        try:
            with tarfile.open(place / "upload") as archive:
                archive.extractall(place / "model", filter="data")
            (model,) = (each.parent for each in (place / "model").rglob("saved_model.pb"))
            files = {"report": str(place / "report.json"), "page": str(place / "report.html")}
            job["summary"] = run_job(Job(str(model), str(out), job["settings"], **files),
                                     lambda name: self.tell(id, "stage", name))  # fmt: skip
            (place / "log.txt").write_text("nothing to say\n")
            state = "succeeded"
        except tarfile.ReadError:
            job["problem"] = {"errors": [{"code": "bad-archive", "message": "it is not an archive"}]}
            state = "failed"
        except ConversionError as problem:
            job["problem"] = problem.to_dict()
            state = "failed"
        job["seconds"] = time.perf_counter() - start
        self.tell(id, "state", state)

    async def list(self, request: Request) -> Response:
        if (refused := self.refusal(request)) is not None:
            return refused
        query = request.query_params
        state, name = query.get("state", ""), query.get("name", "")
        found = [job for job in reversed(self.jobs.values()) if job["state"].startswith(state)]
        found = [job for job in found if name in job["model_name"]]
        start, limit = int(query.get("cursor", 0)), int(query.get("limit", 50))
        more = str(start + limit) if len(found) > start + limit else None
        return JSONResponse({"jobs": found[start : start + limit], "next": more})

    def found(self, request: Request) -> dict[str, Any] | Response:
        """Returns the job that a request names, or the answer to it."""
        if (refused := self.refusal(request)) is not None:
            return refused
        job = self.jobs.get(request.path_params["id"])
        return self.problem(404, "job-not-found", "there is no such job") if job is None else job

    async def get(self, request: Request) -> Response:
        job = self.found(request)
        return job if isinstance(job, Response) else JSONResponse(job)

    async def delete(self, request: Request) -> Response:
        job = self.found(request)
        if isinstance(job, Response):
            return job
        del self.jobs[job["id"]]
        return Response(status_code=204)

    async def cancel(self, request: Request) -> Response:
        job = self.found(request)
        if isinstance(job, Response):
            return job
        self.tell(job["id"], "state", "cancelled")
        return JSONResponse(job)

    async def retry(self, request: Request) -> Response:
        job = self.found(request)
        if isinstance(job, Response):
            return job
        self.begin(job["id"])
        return JSONResponse(job, 202)

    async def events(self, request: Request) -> Response:
        job = self.found(request)
        if isinstance(job, Response):
            return job

        async def lines() -> AsyncIterator[str]:
            sent = int(request.headers.get("Last-Event-ID", 0))
            yield ": hello\n\n"
            while True:
                ended = job["state"] in ENDED
                for event in job["events"][sent:]:
                    yield f"id: {event['n']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
                sent = max(sent, len(job["events"]))
                if ended:
                    yield "event: end\ndata: {}\n\n"
                    return
                await asyncio.sleep(0.02)

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def part(self, request: Request) -> Response:
        job = self.found(request)
        if isinstance(job, Response):
            return job
        names = {"result": "model.tflite", "report": "report.json", "report.html": "report.html", "log": "log.txt"}
        return FileResponse(self.folder / job["id"] / names[request.path_params["part"]])


class Server:
    """The stand-in behind a real socket.

    Attributes:
        state: What it knows.
        url: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.state = StandIn(folder)
        config = uvicorn.Config(self.state.app, port=0, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/"
        return self

    def __exit__(self, *problem: object) -> None:
        self.state.open.set()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
