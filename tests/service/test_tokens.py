"""Tokens are found by what only their owners have."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import TOKENS
from tfconvert.service.tokens import Role, TokenStore


@pytest.fixture
def tokens(database: Database) -> TokenStore:
    return TokenStore(database)


def test_a_token_is_found_until_it_is_revoked(tokens: TokenStore) -> None:
    token, record = tokens.create(" ci ", Role.ADMIN, max_active=3, per_minute=7, max_running=2, max_bytes=1 << 40)
    other, second = tokens.create("other")
    assert token.startswith("tfc_")
    assert (record.name, record.role, record.max_active, record.per_minute) == ("ci", "admin", 3, 7)
    assert (record.max_running, record.max_bytes) == (2, 1 << 40)
    assert (second.role, second.max_active, second.per_minute) == ("user", None, None)
    assert tokens.find(token) == record
    assert tokens.find(token[:-1]) is None
    assert tokens.find("\udc80") is None
    assert tokens.list() == [record, second]
    assert tokens.revoke("ci").revoked is not None
    assert tokens.find(token) is None
    assert tokens.revoke(second.id).revoked is not None
    assert tokens.find(other) is None
    assert len(tokens.list()) == 2


def test_tokens_are_not_kept(tokens: TokenStore, database: Database) -> None:
    token, _ = tokens.create("ci")
    with database.read() as connection:
        kept = str(connection.execute(select(TOKENS)).all())
    assert "'ci'" in kept
    assert token.removeprefix("tfc_") not in kept


@pytest.mark.parametrize(("name", "role"), [("", "user"), ("a\nb", "user"), ("x" * 101, "user"), ("a", "root")])
def test_invalid_tokens_are_rejected(tokens: TokenStore, name: str, role: str) -> None:
    with pytest.raises(ConversionError) as caught:
        tokens.create(name, role)
    assert caught.value.code == "bad-config"


def test_names_are_unique(tokens: TokenStore) -> None:
    tokens.create("ci")
    with pytest.raises(ConversionError, match="already"):
        tokens.create("ci")
    with pytest.raises(ConversionError) as caught:
        tokens.revoke("cd")
    assert caught.value.code == "token-not-found"
