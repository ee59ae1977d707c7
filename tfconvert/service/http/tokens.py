"""Tokens, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from tfconvert.service.http.access import Admin, The
from tfconvert.service.http.schemas import CreatedToken, NewToken, TokenList, TokenView

ROUTES = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@ROUTES.get("")
def list_tokens(service: The, caller: Admin) -> TokenList:
    """List all tokens, revoked ones as well."""
    return TokenList(tokens=[TokenView.of(each) for each in service.tokens.list()])


@ROUTES.post("", status_code=201)
def create_token(wanted: NewToken, service: The, caller: Admin) -> CreatedToken:
    """Create a token; it is shown this once."""
    token, record = service.tokens.create(wanted.name, wanted.role, wanted.most_active, wanted.per_minute)
    return CreatedToken.model_construct(**TokenView.of(record).model_dump(), token=token)


@ROUTES.delete("/{name}", status_code=204, response_class=Response)
def revoke_token(
    name: Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9._@-]+$")], service: The, caller: Admin
) -> None:
    """Revoke a token: nobody gets in with it any more."""
    service.tokens.revoke(name)
