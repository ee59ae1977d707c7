"""A job's results: the converted model, its report as data and as a page, the log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Response
from starlette.responses import FileResponse

from tfconvert.schema.diagnostics import error
from tfconvert.service.folders import LOG, PAGE, REPORT, result_name
from tfconvert.service.http.access import Reader, The
from tfconvert.service.http.headers import REPORT_POLICY
from tfconvert.service.http.jobs import JobId
from tfconvert.service.http.service import Service
from tfconvert.service.job_state import JobRecord

ROUTES = APIRouter(prefix="/v1/jobs/{id}", tags=["results"])

_ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip", ".pbtxt", ".pb", ".meta", ".mlir", ".tflite")

IfNoneMatch = Annotated[str | None, Header(description="An ETag: 304 if it is still the one.")]


class _FileResponse(FileResponse):
    """A file in large parts: a thread reads each, and the reader waits for all."""

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


@ROUTES.get("/result", response_class=Response, responses=_binary("application/octet-stream", "The result."))
def get_result(id: JobId, service: The, caller: Reader, if_none_match: IfNoneMatch = None) -> Response:
    """Download the converted model; parts of it by Range."""
    job = service.store.get(id, caller.sees)
    return _result(service, job, result_name(job.settings), if_none_match)


@ROUTES.get(
    "/result/{part}", response_class=Response, responses=_binary("application/octet-stream", "A file of the result.")
)
def get_part(
    id: JobId, part: Literal["safetensors", "mlir"], service: The, caller: Reader, if_none_match: IfNoneMatch = None
) -> Response:
    """Download a file beside the converted model: its weights, or the text that was compiled."""
    return _result(service, service.store.get(id, caller.sees), f"model.{part}", if_none_match)


def _result(service: Service, job: JobRecord, name: str, if_none_match: str | None) -> Response:
    save_as = f"{_stem(job.model_name)}{Path(name).suffix}"
    return _file(service, job, name, "application/octet-stream", if_none_match, save_as)


@ROUTES.get("/report", response_class=Response, responses=_binary("application/json", "The report as JSON."))
def get_report(id: JobId, service: The, caller: Reader, if_none_match: IfNoneMatch = None) -> Response:
    """Read the report of the conversion as data."""
    return _file(service, service.store.get(id, caller.sees), REPORT, "application/json", if_none_match)


@ROUTES.get("/report.html", response_class=Response, responses=_binary("text/html", "The report as a page."))
def get_report_page(id: JobId, service: The, caller: Reader, if_none_match: IfNoneMatch = None) -> Response:
    """Read the report of the conversion as a page."""
    response = _file(service, service.store.get(id, caller.sees), PAGE, "text/html", if_none_match)
    response.headers["Content-Security-Policy"] = REPORT_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response


@ROUTES.get("/log", response_class=Response, responses=_binary("text/plain", "What the conversion printed."))
def get_log(id: JobId, service: The, caller: Reader, if_none_match: IfNoneMatch = None) -> Response:
    """Read what the conversion printed."""
    return _file(service, service.store.get(id, caller.sees), LOG, "text/plain", if_none_match)


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
        return path.stat()
    except FileNotFoundError:
        message = f"the job has not made that: it is {job.state}"
        raise error("no-result", message, hint="wait until it has succeeded") from None


def _stem(name: str) -> str:
    """Returns a model's name without its ending."""
    for ending in _ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name or "model"
