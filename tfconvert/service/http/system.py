"""Endpoints about the server: supported ops, health, metrics, and tokens."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from tfconvert.converter.process import sandbox
from tfconvert.schema.diagnostics import error
from tfconvert.schema.versions import own_version
from tfconvert.service.http.access import Admin, Operator, Reader, ServiceDep
from tfconvert.service.http.problems import to_response
from tfconvert.service.http.readiness import run_checks
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
from tfconvert.tools import op_support

ROUTES = APIRouter(tags=["system"])


@ROUTES.get("/healthz")
async def get_health() -> Health:
    """Ask whether the server answers."""
    return Health(status="ok", version=_version())


@ROUTES.get("/readyz", response_model=Readiness)
def get_readiness(request: Request, service: ServiceDep) -> Any:
    """Ask whether jobs can be taken and run."""
    found = run_checks(service.checks)
    if not found.missing:
        return Readiness(status="ready", checks=dict(found.checks), sandbox=dict(sandbox.parts()))
    wrong = ", ".join(f"{name}: {problem}" for name, problem in found.missing.items())
    problem = error("service-not-ready", f"the server can't take jobs: {wrong}")
    return to_response(problem, request.url.path, checks=found.checks)


_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@ROUTES.get("/metrics", response_class=PlainTextResponse, responses=_METRICS)
def get_metrics(service: ServiceDep, caller: Operator) -> Response:
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
    token, record = service.tokens.create(**wanted.model_dump())
    return CreatedToken.model_construct(**TokenView.of(record).model_dump(), token=token)


@TOKEN_ROUTES.delete("/{name}", status_code=204, response_class=Response)
def revoke_token(
    name: Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9._@-]+$")], service: ServiceDep, caller: Admin
) -> None:
    """Revoke a token: it is refused from then on."""
    service.tokens.revoke(name)
