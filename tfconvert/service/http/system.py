"""Endpoints about the server: supported ops, health, metrics, and tokens."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.versions import own_version
from tfconvert.service.http.access import Admin, Reader, ServiceDep
from tfconvert.service.http.schemas import (
    CreatedToken,
    FunctionView,
    Health,
    NewToken,
    Ops,
    OpView,
    OpWay,
    Readiness,
    TokenList,
    TokenView,
)
from tfconvert.service.http.service import Service
from tfconvert.tools import op_support

ROUTES = APIRouter(tags=["system"])


@ROUTES.get("/healthz")
async def get_health() -> Health:
    """Ask whether the server answers."""
    return Health(status="ok", version=_version())


@ROUTES.get("/readyz")
def get_readiness(service: ServiceDep) -> Readiness:
    """Ask whether jobs can be taken and run."""
    checks = {
        "server": "stopping" if service.is_stopping else "ok",
        "database": _database(service),
        "workers": "ok" if service.workers.is_alive else "dead",
        "disk": _disk(service),
    }
    wrong = ", ".join(f"{name}: {state}" for name, state in checks.items() if state != "ok")
    if wrong:
        raise error("service-not-ready", f"the server can't take jobs: {wrong}")
    return Readiness(status="ready", checks=checks)


def _database(service: Service) -> str:
    try:
        service.database.check()
    except ConversionError as problem:
        return problem.code
    return "ok"


def _disk(service: Service) -> str:
    try:
        free = shutil.disk_usage(service.folders.data).free
    except OSError as problem:
        return problem.strerror or "away"
    return "ok" if free >= service.min_free_bytes else "full"


_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@ROUTES.get("/metrics", response_class=PlainTextResponse, responses=_METRICS)
def get_metrics(service: ServiceDep, caller: Reader) -> Response:
    """Read what is measured, in Prometheus' text format."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@ROUTES.get("/v1/ops")
def list_ops(
    caller: Reader,
    pattern: Annotated[str | None, Query(max_length=100, description="A part of a name, or a pattern with *.")] = None,
) -> Ops:
    """List TensorFlow's ops with what becomes of each."""
    everything = _ops()
    if pattern is None:
        return everything
    wanted = {each.op for each in op_support.matching(pattern, op_support.supported_ops())}
    return Ops.model_construct(
        ops=[each for each in everything.ops if each.op in wanted], functions=everything.functions
    )


@cache
def _version() -> str:
    return own_version()


@cache
def _ops() -> Ops:
    ops = [
        OpView(
            **{
                **each._asdict(),
                "ways": [OpWay(becomes=list(way.becomes), dtypes=list(way.dtypes), note=way.note) for way in each.ways],
            }
        )
        for each in op_support.supported_ops()
    ]
    functions = [FunctionView(**each._asdict()) for each in op_support.supported_functions()]
    return Ops(ops=ops, functions=functions)


TOKEN_ROUTES = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@TOKEN_ROUTES.get("")
def list_tokens(service: ServiceDep, caller: Admin) -> TokenList:
    """List all tokens, revoked ones as well."""
    return TokenList(tokens=[TokenView.of(each) for each in service.tokens.list()])


@TOKEN_ROUTES.post("", status_code=201)
def create_token(wanted: NewToken, service: ServiceDep, caller: Admin) -> CreatedToken:
    """Create a token; it is shown this once."""
    token, record = service.tokens.create(wanted.name, wanted.role, wanted.max_active, wanted.per_minute)
    return CreatedToken.model_construct(**TokenView.of(record).model_dump(), token=token)


@TOKEN_ROUTES.delete("/{name}", status_code=204, response_class=Response)
def revoke_token(
    name: Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9._@-]+$")], service: ServiceDep, caller: Admin
) -> None:
    """Revoke a token: it is refused from then on."""
    service.tokens.revoke(name)
