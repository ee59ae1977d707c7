"""Jobs: submit, list, read, follow, cancel, retry and delete them, and download their results."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import FileResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.service.http.access import Reader, ServiceDep, Writer, slot
from tfconvert.service.http.middleware import REPORT_POLICY
from tfconvert.service.http.schemas import JobPage, JobView
from tfconvert.service.http.service import Service
from tfconvert.service.http.submissions import FORM, receive
from tfconvert.service.jobs import JobRecord, JobState
from tfconvert.service.storage import LOG, PAGE, REPORT, result_name
from tfconvert.service.workers import has_page

ROUTES = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_KEY = Header(
    alias="Idempotency-Key",
    min_length=1,
    max_length=200,
    pattern=r"^[ -~]+$",
    description="Any text of printable ASCII: a request with the same key is not a new job.",
)

# How long a request waits for a page; clients and proxies drop a connection that is silent for a minute.
_PAGE_SECONDS = 20.0

JobId = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{32}$", description="The job's ID.")]


async def _found(id: JobId, service: ServiceDep, caller: Reader) -> JobRecord:
    return await run_in_threadpool(service.store.get, id, caller.sees)


Found = Annotated[JobRecord, Depends(_found)]
"""The job of the request, which the client may read."""


@ROUTES.post(
    "",
    status_code=202,
    openapi_extra=FORM,
    responses={
        200: {"description": "The request was sent before; this is its job.", "model": JobView},
        202: {
            "description": "It was accepted.",
            "headers": {"Location": {"description": "The job.", "schema": {"type": "string"}}},
        },
    },
)
async def submit_job(
    request: Request, response: Response, service: ServiceDep, caller: Writer, key: Annotated[str, _KEY] = ""
) -> JobView:
    """Submit a model to be converted."""
    submission = await receive(request, service, caller, key)
    job, is_new = await run_in_threadpool(service.store.submit, submission)
    if is_new:
        service.metrics.submitted(submission.size_in, is_cached=job.is_cached)
        service.workers.wake()
    response.status_code = 202 if is_new else 200
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return JobView.of(job)


@ROUTES.get("")
def list_jobs(
    service: ServiceDep,
    caller: Reader,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only models whose name has this in it.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many at most.")] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the part before.")] = None,
) -> JobPage:
    """List jobs, the newest first."""
    if name is not None and "\0" in name:
        raise error("bad-request", "'name' contains an invalid character")
    jobs, following = service.store.list(caller.sees, state, name, cursor, limit)
    return JobPage(jobs=[JobView.of(job) for job in jobs], next=following)


@ROUTES.get("/{id}")
async def get_job(job: Found) -> JobView:
    """Look at a job."""
    return JobView.of(job)


@ROUTES.delete("/{id}", status_code=204, response_class=Response)
def delete_job(id: JobId, service: ServiceDep, caller: Writer) -> None:
    """Delete a job that has ended, with all that it has made."""
    service.store.delete(id, caller.sees)


@ROUTES.post("/{id}/cancel")
def cancel_job(id: JobId, service: ServiceDep, caller: Writer) -> JobView:
    """Cancel a job that waits or runs."""
    job = service.store.cancel(id, caller.sees)
    service.workers.wake()
    service.workers.check_cancelled()
    return JobView.of(job)


@ROUTES.post("/{id}/retry", status_code=202)
def retry_job(id: JobId, service: ServiceDep, caller: Writer) -> JobView:
    """Try a job again that has failed or was cancelled."""
    service.check_open()
    job = service.store.retry(id, caller.sees)
    service.workers.wake()
    return JobView.of(job)


_EXAMPLE = 'id: 3\nevent: stage\ndata: {"n": 3, "type": "stage", "name": "legalize", "at": 1767225600.1}\n\n'
_LAST = Header(alias="Last-Event-ID", max_length=20, description="Go on behind the event of this number.")
_AFTER = Query(ge=0, le=1 << 53, description="The same, for those who can't set headers.")


@ROUTES.get(
    "/{id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events `stage` and `state` as they happen, and `end` once the job has ended.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
async def follow_job(
    request: Request,
    id: JobId,
    service: ServiceDep,
    caller: Reader,
    last: Annotated[str, _LAST] = "",
    after: Annotated[int, _AFTER] = 0,
) -> StreamingResponse:
    """Follow a job's stages and states."""
    await run_in_threadpool(service.store.get, id, caller.sees)
    if request.method == "HEAD":  # The response has no events, so there is nothing to wait for.
        return StreamingResponse(iter(()), media_type="text/event-stream")
    behind = int(last) if last.isascii() and last.isdigit() else after
    return _EventStream(_lines(service, id, caller.sees, behind), slot(service.streams, caller, "streams of events"))


class _EventStream(StreamingResponse):
    """A stream of events.

    Args:
        lines: Its text.
        counted: Counts it while it is sent.
    """

    def __init__(self, lines: AsyncIterator[str], counted: AbstractContextManager[None]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            await super().__call__(scope, receive, send)


async def _lines(service: Service, id: str, owner: str | None, after: int) -> AsyncIterator[str]:
    """Yields the text of the stream; it ends early when the server stops, and clients then reconnect."""

    async def is_ended() -> bool:
        if service.is_stopping:
            return True
        try:
            job = await run_in_threadpool(service.store.get, id, owner)
        except ConversionError as problem:
            return problem.code == "job-not-found"
        return job.state.is_final

    yield ": the events of a job\n\n"
    async for events in service.store.events.follow(id, after, is_ended):
        # Together: each chunk is sent by itself.
        lines = [
            f"id: {each.n}\nevent: {each.type}\ndata: {json.dumps(each._asdict(), allow_nan=False)}\n\n"
            for each in events
        ]
        yield "".join(lines) or ": still here\n\n"
    if not service.is_stopping:
        yield "event: end\ndata: {}\n\n"


RESULT_ROUTES = APIRouter(prefix="/v1/jobs/{id}", tags=["results"])

_ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip", ".pbtxt", ".pb", ".meta", ".mlir", ".mlirbc", ".bin", ".tflite")

IfNoneMatch = Annotated[str | None, Header(description="An ETag: 304 if it is still the one.")]


class _FileResponse(FileResponse):
    """A file that is sent in large chunks, since a thread reads each of them."""

    chunk_size = 1 << 20


def _binary(media_type: str, what: str) -> dict[int | str, dict[str, object]]:
    schema = {"type": "string", "format": "binary"} if media_type == "application/octet-stream" else {"type": "string"}
    content = {"content": {media_type: {"schema": schema}}}
    return {
        200: {"description": what, **content},
        206: {"description": f"A part of it: {what}", **content},
        304: {"description": "It is still what the ETag says."},
        416: {"description": "There is no such part."},
    }


@RESULT_ROUTES.get("/result", response_class=Response, responses=_binary("application/octet-stream", "The result."))
def get_result(job: Found, service: ServiceDep, if_none_match: IfNoneMatch = None) -> Response:
    """Download the converted model; parts of it by Range."""
    return _result(service, job, result_name(job.settings), if_none_match)


@RESULT_ROUTES.get(
    "/result/{part}", response_class=Response, responses=_binary("application/octet-stream", "A file of the result.")
)
def get_part(
    job: Found, part: Literal["safetensors", "mlir"], service: ServiceDep, if_none_match: IfNoneMatch = None
) -> Response:
    """Download a file beside the converted model: its weights, or the text that was compiled."""
    return _result(service, job, f"model.{part}", if_none_match)


def _result(service: Service, job: JobRecord, name: str, if_none_match: str | None) -> Response:
    save_as = f"{_stem(job.model_name)}{Path(name).suffix}"
    return _file(service, job, name, "application/octet-stream", if_none_match, save_as)


@RESULT_ROUTES.get("/report", response_class=Response, responses=_binary("application/json", "The report as JSON."))
def get_report(job: Found, service: ServiceDep, if_none_match: IfNoneMatch = None) -> Response:
    """Read the report of the conversion as data."""
    return _file(service, job, REPORT, "application/json", if_none_match)


@RESULT_ROUTES.get("/report.html", response_class=Response, responses=_binary("text/html", "The report as a page."))
async def get_report_page(
    job: Found, service: ServiceDep, caller: Reader, if_none_match: IfNoneMatch = None
) -> Response:
    """Read the report of the conversion as a page, which may be made now, from the model and the report's data."""
    path = service.folders.result(job.id, job.result_attempt) / PAGE
    if job.state is JobState.SUCCEEDED and not has_page(job) and not path.exists():
        await service.pages.make(job, caller.owner, _PAGE_SECONDS)
    response = await run_in_threadpool(_file, service, job, PAGE, "text/html", if_none_match)
    response.headers["Content-Security-Policy"] = REPORT_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response


@RESULT_ROUTES.get("/log", response_class=Response, responses=_binary("text/plain", "What the conversion printed."))
def get_log(job: Found, service: ServiceDep, if_none_match: IfNoneMatch = None) -> Response:
    """Read what the conversion printed."""
    return _file(service, job, LOG, "text/plain", if_none_match)


def _file(
    service: Service, job: JobRecord, name: str, media_type: str, if_none_match: str | None, save_as: str = ""
) -> Response:
    path = service.folders.result(job.id, job.result_attempt) / name
    found = _stat(path, job)
    tag = f'"{job.id}-{job.result_attempt}-{name}"'
    if if_none_match is not None and tag in (each.strip().removeprefix("W/") for each in if_none_match.split(",")):
        return Response(status_code=304, headers={"ETag": tag})
    headers = {"ETag": tag}
    return _FileResponse(path, 200, headers, media_type, filename=save_as or None, stat_result=found)


def _stat(path: Path, job: JobRecord) -> os.stat_result:
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    if found is None or not stat.S_ISREG(found.st_mode):
        message = f"the job has not made that: it is {job.state}"
        raise error("no-result", message, hint="wait until it has succeeded")
    return found


def _stem(name: str) -> str:
    """Returns a model's name without its extension."""
    for ending in _ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name or "model"
