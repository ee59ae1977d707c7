"""The application: routes, and what stands before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from tfconvert.schema.versions import own_version
from tfconvert.service.config import ServiceConfig
from tfconvert.service.http import downloads, events, jobs, pages, system, tokens
from tfconvert.service.http.guard import Guard
from tfconvert.service.http.headers import SecurityHeaders
from tfconvert.service.http.intake import Intake
from tfconvert.service.http.metrics import Measured
from tfconvert.service.http.openapi import describe
from tfconvert.service.http.problems import add_handlers
from tfconvert.service.http.service import Service

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
    for routes in (jobs.ROUTES, events.ROUTES, downloads.ROUTES, tokens.ROUTES, system.ROUTES, pages.ROUTES):
        app.include_router(routes)
        app.include_router(_heads_of(routes))
    add_handlers(app)
    # The last is the first that a request comes to.
    app.add_middleware(
        Intake, most=2 * config.most_upload + _FORM, idle=config.idle, is_stopping=lambda: service.is_stopping
    )
    if not config.needs_token:
        app.add_middleware(Guard)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Measured, metrics=service.metrics)
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
