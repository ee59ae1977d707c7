"""The OpenAPI document: what the routes say of themselves, and the problems that any of them may answer with."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tfconvert.service.http.problems import MEDIA_TYPE
from tfconvert.service.http.schemas import Problem

_REFERENCE = {"$ref": "#/components/schemas/Problem"}
_WRONG = {
    400: "The request is wrong.",
    408: "The client was silent in the middle of its request.",
    413: "The request is too large.",
    422: "The request is wrong.",
    503: "The server can't do that now.",
}
_KNOWN = {
    401: "A token is needed, or the one that was sent is not known.",
    403: "That is not allowed.",
    429: "There are too many requests, or jobs.",
}
_OF_JOB = {404: "There is no such job, or not for you."}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "What `tfconvert serve token create` has printed. A server of one machine alone needs none.",
}
_OPEN = ("/healthz", "/readyz")
_STATE = {409: "The job's state doesn't allow that."}
# Operation -> problems that only it has.
_MORE: dict[str, dict[int, str]] = {
    "submit_job": {415: "It isn't a form, or the file isn't a model that can be converted here."},
    "delete_job": _STATE,
    "cancel_job": _STATE,
    "retry_job": _STATE,
    "revoke_token": {404: "There is no such token."},
}

_ABOUT = """Converts TensorFlow models to `.tflite` files for LiteRT, to StableHLO, and to programs of IREE.

A job is submitted with `POST /v1/jobs`, followed at `/v1/jobs/{id}/events`, and its result is at
`/v1/jobs/{id}/result`. Everything that goes wrong is answered with problem details (RFC 9457) with a stable `code`."""


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the document of an application."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary="Converts TensorFlow models for LiteRT.",
        description=_ABOUT,
        routes=app.routes,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        tags=[
            {"name": name, "description": told}
            for name, told in (
                ("jobs", "Conversions."),
                ("results", "What they made."),
                ("tokens", "Who may ask."),
                ("system", "The server itself."),
            )
        ],
    )
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schemas["Problem"].pop("$defs", {}))
    document["components"]["securitySchemes"] = {"token": _TOKEN}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _add_problems(path, operation)
    return document


def _add_problems(path: str, operation: dict[str, Any]) -> None:
    found = dict(_WRONG) if path not in _OPEN else {503: _WRONG[503], 408: _WRONG[408], 413: _WRONG[413]}
    if path not in _OPEN:
        found |= _KNOWN
        operation["security"] = [{"token": []}]
    if "{id}" in path:
        found |= _OF_JOB
    found |= _MORE.get(operation["operationId"], {})
    for status, told in sorted(found.items()):
        answer: dict[str, Any] = {"description": told, "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
        if status in (429, 503):
            answer["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
        operation["responses"][str(status)] = answer
