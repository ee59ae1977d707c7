"""Errors as problem details (RFC 9457), with the diagnostics of the conversion."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.error_codes import all_codes
from tfconvert.service.incidents import concealed

MEDIA_TYPE = "application/problem+json"

# The status of codes that are not in the table, which concern the model.
_DEFAULT = 422

_STATUS: Mapping[str, int] = {
    "bad-config": 400,
    "bad-request": 400,
    "token-needed": 401,
    "token-refused": 401,
    "foreign-request": 403,
    "not-allowed": 403,
    "place-not-allowed": 403,
    "job-not-found": 404,
    "no-result": 404,
    "not-found": 404,
    "token-not-found": 404,
    "method-not-allowed": 405,
    "request-timeout": 408,
    "job-state": 409,
    "upload-lost": 409,
    "archive-too-large": 413,
    "too-many-bytes": 413,
    "upload-too-large": 413,
    "foreign-format": 415,
    "keras-file": 415,
    "unknown-model": 415,
    "wrong-content-type": 415,
    "queue-full": 429,
    "too-many-jobs": 429,
    "too-many-requests": 429,
    "headers-too-large": 431,
    "internal-error": 500,
    "bad-database": 503,
    "database-away": 503,
    "disk-full": 503,
    "page-not-ready": 503,
    "service-not-ready": 503,
    "service-stopping": 503,
    "storage-failed": 503,
    "too-many-connections": 503,
}
# The codes of errors of the framework.
_CODES: Mapping[int, str] = {
    400: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    413: "upload-too-large",
    415: "wrong-content-type",
}

_RETRY_AFTER: Mapping[str, int] = {"queue-full": 5, "too-many-jobs": 5, "service-stopping": 30}
_RETRY_SECONDS = 10

_LOG = logging.getLogger(__name__)


class TryLaterError(ConversionError):
    """A request that may be repeated after a while.

    Attributes:
        seconds: The delay before the next attempt.
    """

    def __init__(self, code: str, message: str, seconds: float, hint: str = "") -> None:
        super().__init__(error(code, message, hint=hint).diagnostics)
        self.seconds = seconds


def status_of(code: str) -> int:
    """Returns the status of a response that carries an error's code."""
    return _STATUS.get(code, _DEFAULT)


def to_response(problem: ConversionError, path: str, status: int = 0, **more: Any) -> Response:
    """Returns the response for an error.

    Args:
        problem: The error.
        path: The path of the request.
        status: The status of the response; 0 for that of the code.
        **more: Further members of the problem details.
    """
    status = status or status_of(problem.code)
    explained = all_codes().get(problem.code)
    found = problem.to_dict()
    body: dict[str, Any] = {
        "type": f"/errors#{problem.code}",
        "title": explained.means if explained is not None else "The conversion failed.",
        "status": status,
        "detail": problem.diagnostics[0].message,
        "instance": path,
        "code": problem.code,
        "diagnostics": found["errors"],
        **more,
    }
    if "advice" in found:
        body["advice"] = found["advice"]
    return JSONResponse(body, status, _headers(problem, status), MEDIA_TYPE)


def _headers(problem: ConversionError, status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": 'Bearer realm="tfconvert"'}
    if isinstance(problem, TryLaterError):
        return {"Retry-After": str(math.ceil(problem.seconds))}
    if status == 408:  # More of the request could follow, which nobody would read.
        return {"Connection": "close"}
    if status in (429, 503):
        return {"Retry-After": str(_RETRY_AFTER.get(problem.code, _RETRY_SECONDS))}
    return {}


def _on_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, ConversionError)
    shown = concealed(problem)
    is_passing = shown is not problem or isinstance(problem, TryLaterError) or problem.code.startswith("service-")
    if status_of(problem.code) >= 500 and not is_passing:
        _LOG.error("%s %s: %s [%s]", request.method, request.url.path, problem, problem.code)
    return to_response(shown, request.url.path)


def _on_invalid(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    first = problem.errors()[0]
    place = first.get("loc", ())
    if tuple(place) == ("path", "id"):
        return to_response(error("job-not-found", "there is no such job"), request.url.path)
    where = ".".join(map(str, place))
    return to_response(error("bad-request", f"{where}: {first.get('msg', 'it is wrong')}"), request.url.path, 422)


def _on_refusal(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    code = _CODES.get(problem.status_code, "bad-request")
    response = to_response(error(code, f"{request.method} {request.url.path}: {problem.detail}"), request.url.path)
    response.headers.update(problem.headers or {})
    return response


def _on_client_gone(request: Request, problem: Exception) -> Response:
    return to_response(error("bad-request", "the client has left in the middle of the request"), request.url.path)


def _on_internal_error(request: Request, problem: Exception) -> Response:
    """Answers an internal error without details, which are in the server's log."""
    text = "the server had an internal error"
    return to_response(error("internal-error", text, hint="see the server's log"), request.url.path)


def add_handlers(app: FastAPI) -> None:
    """Makes an application answer every error with problem details."""
    app.add_exception_handler(ConversionError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_refusal)
    app.add_exception_handler(ClientDisconnect, _on_client_gone)
    app.add_exception_handler(Exception, _on_internal_error)
