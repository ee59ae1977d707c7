"""A job's events as they happen: server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.http.access import Reader, The
from tfconvert.service.http.jobs import JobId
from tfconvert.service.http.service import Service

ROUTES = APIRouter(prefix="/v1/jobs/{id}", tags=["jobs"])

_EXAMPLE = 'id: 3\nevent: stage\ndata: {"n": 3, "type": "stage", "name": "legalize", "at": 1767225600.1}\n\n'
_LAST = Header(alias="Last-Event-ID", max_length=20, description="Go on behind the event of this number.")
_AFTER = Query(ge=0, le=1 << 53, description="The same, for those who can't set headers.")


@ROUTES.get(
    "/events",
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
    service: The,
    caller: Reader,
    last: Annotated[str, _LAST] = "",
    after: Annotated[int, _AFTER] = 0,
) -> StreamingResponse:
    """Follow a job's stages and states."""
    await run_in_threadpool(service.store.get, id, caller.sees)
    if request.method == "HEAD":  # There is nothing to wait for: no events would be in the answer.
        return StreamingResponse(iter(()), media_type="text/event-stream")
    behind = int(last) if last.isascii() and last.isdigit() else after
    return StreamingResponse(
        _lines(service, id, caller.sees, behind), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def _lines(service: Service, id: str, owner: str | None, after: int) -> AsyncIterator[str]:
    """Yields the text of the stream; it breaks off, and clients come back, if the server is asked to stop."""

    async def is_ended() -> bool:
        if service.is_stopping:
            return True
        try:
            job = await run_in_threadpool(service.store.get, id, owner)
        except ConversionError as problem:
            return problem.code == "job-not-found"
        return job.state.is_final

    yield ": the events of a job\n\n"
    async for event in service.store.events.follow(id, after, is_ended):
        if event is None:
            yield ": still here\n\n"
        else:
            yield f"id: {event.n}\nevent: {event.type}\ndata: {json.dumps(event._asdict())}\n\n"
    if not service.is_stopping:
        yield "event: end\ndata: {}\n\n"
