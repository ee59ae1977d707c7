"""Jobs: submitted, listed, looked at, cancelled, tried again, deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from tfconvert.schema.diagnostics import error
from tfconvert.service.http.access import Reader, The, Writer
from tfconvert.service.http.schemas import JobPage, JobView
from tfconvert.service.http.submissions import FORM, receive
from tfconvert.service.job_state import JobState

ROUTES = APIRouter(prefix="/v1/jobs", tags=["jobs"])

_KEY = Header(
    alias="Idempotency-Key",
    min_length=1,
    max_length=200,
    pattern=r"^[ -~]+$",
    description="Any text of printable ASCII: a request with the same key is not a new job.",
)

JobId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="The job's ID.")]


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
    request: Request, response: Response, service: The, caller: Writer, key: Annotated[str, _KEY] = ""
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
    service: The,
    caller: Reader,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only models whose name has this in it.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many at most.")] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="`next` of the part before.")] = None,
) -> JobPage:
    """List jobs, the newest first."""
    if name is not None and "\0" in name:
        raise error("bad-request", "'name' has a character that is none")
    jobs, following = service.store.list(caller.sees, state, name, cursor, limit)
    return JobPage(jobs=[JobView.of(job) for job in jobs], next=following)


@ROUTES.get("/{id}")
def get_job(id: JobId, service: The, caller: Reader) -> JobView:
    """Look at a job."""
    return JobView.of(service.store.get(id, caller.sees))


@ROUTES.delete("/{id}", status_code=204, response_class=Response)
def delete_job(id: JobId, service: The, caller: Writer) -> None:
    """Delete a job that has ended, with all that it has made."""
    service.store.delete(id, caller.sees)


@ROUTES.post("/{id}/cancel")
def cancel_job(id: JobId, service: The, caller: Writer) -> JobView:
    """Cancel a job that waits or runs."""
    job = service.store.cancel(id, caller.sees)
    service.workers.wake()
    service.workers.urge()
    return JobView.of(job)


@ROUTES.post("/{id}/retry", status_code=202)
def retry_job(id: JobId, service: The, caller: Writer) -> JobView:
    """Try a job again that has failed or was cancelled."""
    service.check_open()
    job = service.store.retry(id, caller.sees)
    service.workers.wake()
    return JobView.of(job)
