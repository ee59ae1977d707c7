"""The application: its routes, the middleware before them, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from tfconvert.schema.versions import own_version
from tfconvert.service.config import ServiceConfig
from tfconvert.service.http import jobs, pages, system
from tfconvert.service.http.middleware import BodyLimits, ForeignRequestGuard, MetricsMiddleware, SecurityHeaders
from tfconvert.service.http.problems import MEDIA_TYPE, add_handlers
from tfconvert.service.http.schemas import Problem
from tfconvert.service.http.service import Service

_REFERENCE = {"$ref": "#/components/schemas/Problem"}
_WRONG = {
    400: "The request is wrong.",
    408: "The client was silent in the middle of its request.",
    413: "The request is too large.",
    422: "The request is wrong.",
    431: "The headers are too large.",
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
    "submit_job": {
        404: "The job whose model is to be used again is not known.",
        415: "It isn't a form, or the file isn't a model that can be converted here.",
    },
    "delete_job": _STATE,
    "cancel_job": _STATE,
    "retry_job": _STATE,
    "revoke_token": {404: "There is no such token."},
}

_ABOUT = """Converts TensorFlow and JAX models to `.tflite` files for LiteRT, to StableHLO, and to programs of IREE.

A job is submitted with `POST /v1/jobs`, followed at `/v1/jobs/{id}/events`, and its result is at
`/v1/jobs/{id}/result`. Everything that goes wrong is answered with problem details (RFC 9457) with a stable `code`."""


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the document of an application."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary="Converts TensorFlow and JAX models for LiteRT.",
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
    found = dict(_WRONG) if path not in _OPEN else {status: _WRONG[status] for status in (408, 413, 431, 503)}
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


# Bytes of a form beside its files.
_FORM = 1 << 20


def create_app(config: ServiceConfig) -> FastAPI:
    """Returns the application of a server, which begins to run jobs when it is started.

    Args:
        config: Its settings.
    """
    service = Service(config)
    app = FastAPI(
        title="tfconvert",
        version=own_version(),
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(service),
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,
    )
    app.state.service = service
    for routes in (jobs.ROUTES, jobs.RESULT_ROUTES, system.TOKEN_ROUTES, system.ROUTES, pages.ROUTES):
        app.include_router(routes)
        app.include_router(_heads_of(routes))
    add_handlers(app)
    # A request passes the last one first.
    app.add_middleware(
        BodyLimits, max_size=2 * config.max_upload + _FORM, idle=config.idle, is_stopping=lambda: service.is_stopping
    )
    if not config.needs_token:
        app.add_middleware(ForeignRequestGuard)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(MetricsMiddleware, metrics=service.metrics)
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(describe(app))
        return document

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def _heads_of(routes: APIRouter) -> APIRouter:
    """Returns routes that answer HEAD where others answer GET, without a body; the description leaves them out."""
    heads = APIRouter()
    for route in routes.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            heads.add_api_route(
                route.path,
                route.endpoint,
                methods=["HEAD"],
                include_in_schema=False,
                status_code=route.status_code,
                response_model=route.response_model,
                response_class=route.response_class,
            )
    return heads


def _operation_id(route: APIRoute) -> str:
    return route.name


def _lifespan(service: Service) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(service.start)
        yield
        await run_in_threadpool(service.stop, 0.0)
        await run_in_threadpool(service.close)

    return lifespan
