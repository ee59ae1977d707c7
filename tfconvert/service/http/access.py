"""Who asks, and what they may do: bearer tokens with roles, and how many requests of each."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from tfconvert.schema.diagnostics import error
from tfconvert.service.http.problems import TryLaterError
from tfconvert.service.http.service import Service
from tfconvert.service.tokens import Role

# Characters of a header that may hold a token.
_LONGEST = 200


class Caller(NamedTuple):
    """Who asks.

    Attributes:
        owner: Whose jobs theirs are.
        role: What they may do.
        most_active: Jobs of theirs that may wait or run.
        per_minute: Requests of theirs in a minute.
    """

    owner: str
    role: Role
    most_active: int
    per_minute: int

    @property
    def sees(self) -> str | None:
        """Whose jobs they see; `None` for everybody's."""
        return None if self.role == Role.ADMIN else self.owner


def the_service(request: Request) -> Service:
    """Returns what the server consists of."""
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


The = Annotated[Service, Depends(the_service)]


def _reader(request: Request, service: The) -> Caller:
    """Returns who asks.

    Raises:
        ConversionError: They have no token, or a wrong one, or have asked too often.
    """
    caller = _identified(request, service)
    seconds = service.rates.take(caller.owner, caller.per_minute)
    if seconds:
        raise TryLaterError("too-many-requests", f"there may be {caller.per_minute} requests in a minute", seconds)
    return caller


def _identified(request: Request, service: Service) -> Caller:
    config = service.config
    given = request.headers.getlist("authorization")
    if not given:
        if config.needs_token:
            raise error(
                "token-needed",
                "the server answers only those who have a token",
                hint="send it in the header 'Authorization: Bearer TOKEN'",
            )
        return Caller("", Role.USER, config.most_active, config.per_minute)
    scheme, _, token = given[0].partition(" ")
    known = None
    if len(given) == 1 and scheme.lower() == "bearer" and 0 < len(token) <= _LONGEST:
        known = service.tokens.find(token.strip())
    if known is None:
        raise error("token-refused", "the token is not known, or was revoked", hint="ask for a new one")
    most_active = config.most_active if known.most_active is None else known.most_active
    per_minute = config.per_minute if known.per_minute is None else known.per_minute
    return Caller(known.id, known.role, most_active, per_minute)


Reader = Annotated[Caller, Depends(_reader)]
"""Whoever may look."""


def _writer(caller: Reader) -> Caller:
    if caller.role == Role.READER:
        raise error("not-allowed", "this token may only look")
    return caller


Writer = Annotated[Caller, Depends(_writer)]
"""Whoever may submit jobs, and change their own."""


def _admin(caller: Reader) -> Caller:
    if caller.role != Role.ADMIN:
        raise error("not-allowed", "only administrators may do that")
    return caller


Admin = Annotated[Caller, Depends(_admin)]
"""Whoever may do everything."""
