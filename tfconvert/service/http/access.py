"""Authentication and authorization: bearer tokens with roles, and rate limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from tfconvert.schema.diagnostics import error
from tfconvert.service.http.problems import TryLaterError
from tfconvert.service.http.service import Service
from tfconvert.service.tokens import Role

# Maximum number of characters of a token.
_MAX_TOKEN = 200


class Caller(NamedTuple):
    """The client that has sent a request.

    Attributes:
        owner: The owner of its jobs.
        role: Its rights.
        max_active: Maximum number of its queued and running jobs.
        per_minute: Maximum number of its requests in a minute.
    """

    owner: str
    role: Role
    max_active: int
    per_minute: int

    @property
    def sees(self) -> str | None:
        """The owner whose jobs it sees; `None` for all."""
        return None if self.role == Role.ADMIN else self.owner


@contextmanager
def slot(counts: dict[str, int], caller: Caller, what: str) -> Iterator[None]:
    """A context manager that counts a request that takes long.

    Args:
        counts: The number of such requests by owner.
        caller: The client.
        what: What they are called.

    Raises:
        ConversionError: There are too many (`too-many-jobs`).
    """
    count = counts.get(caller.owner, 0)
    if count >= caller.max_active:
        raise TryLaterError("too-many-jobs", f"{count} {what} of yours are under way", 5.0)
    counts[caller.owner] = count + 1
    try:
        yield
    finally:
        counts[caller.owner] -= 1
        if not counts[caller.owner]:
            del counts[caller.owner]


# Dependencies are coroutines, since each other one is called in a thread.


async def service_of(request: Request) -> Service:
    """Returns the parts of the server."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


ServiceDep = Annotated[Service, Depends(service_of)]


async def _reader(request: Request, service: ServiceDep) -> Caller:
    """Returns the client.

    Raises:
        ConversionError: It has no token, or a wrong one, or has sent too many requests.
    """
    caller = await _identified(request, service)
    seconds = service.rates.take(caller.owner, caller.per_minute)
    if seconds:
        raise TryLaterError("too-many-requests", f"there may be {caller.per_minute} requests in a minute", seconds)
    return caller


async def _identified(request: Request, service: Service) -> Caller:
    config = service.config
    given = request.headers.getlist("authorization")
    if not given:
        if config.needs_token:
            raise error(
                "token-needed",
                "the server answers only those who have a token",
                hint="send it in the header 'Authorization: Bearer TOKEN'",
            )
        return Caller("", Role.USER, config.max_active, config.per_minute)
    scheme, _, token = given[0].partition(" ")
    known = None
    if len(given) == 1 and scheme.lower() == "bearer" and 0 < len(token) <= _MAX_TOKEN:
        known = await run_in_threadpool(service.tokens.find, token.strip())
    if known is None:
        raise error("token-refused", "the token is not known, or was revoked", hint="ask for a new one")
    max_active = config.max_active if known.max_active is None else known.max_active
    per_minute = config.per_minute if known.per_minute is None else known.per_minute
    return Caller(known.id, known.role, max_active, per_minute)


Reader = Annotated[Caller, Depends(_reader)]
"""A client that may read."""


async def _writer(caller: Reader) -> Caller:
    if caller.role == Role.READER:
        raise error("not-allowed", "this token may only look")
    return caller


Writer = Annotated[Caller, Depends(_writer)]
"""A client that may submit jobs, and change its own."""


async def _admin(caller: Reader) -> Caller:
    if caller.role != Role.ADMIN:
        raise error("not-allowed", "only administrators may do that")
    return caller


Admin = Annotated[Caller, Depends(_admin)]
"""A client that may do everything."""


async def _operator(caller: Reader, service: ServiceDep) -> Caller:
    return await _admin(caller) if service.config.needs_token else caller


Operator = Annotated[Caller, Depends(_operator)]
"""A client that may measure the server: an administrator, or anybody on a server without tokens."""
