"""Tokens and their rights. The database has digests of them only."""

from __future__ import annotations

import hashlib
import secrets
import time
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from tfconvert.schema.diagnostics import error
from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import TOKENS

PREFIX = "tfc_"
"""The prefix of every token, by which secret scanners find leaked ones."""


class Role(StrEnum):
    """The rights of a token."""

    ADMIN = "admin"
    USER = "user"
    READER = "reader"


class TokenRecord(NamedTuple):
    """A token in the database; times are seconds since the epoch.

    Attributes:
        id: The owner of the jobs that are submitted with it.
        name: Its name.
        role: Admins see all jobs and manage tokens, users have their own jobs, readers only look at theirs.
        max_active: Maximum number of queued and running jobs; `None` for the server's setting, like the next three.
        per_minute: Maximum number of requests in a minute.
        max_running: Maximum number of running jobs; 0 for no limit, like the next.
        max_bytes: Maximum sum of the uploads of its jobs, in bytes.
        created: When it was created.
        revoked: When it was revoked, or `None`.
    """

    id: str
    name: str
    role: Role
    max_active: int | None
    per_minute: int | None
    max_running: int | None
    max_bytes: int | None
    created: float
    revoked: float | None = None


class TokenStore:
    """The tokens of a database.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        role: Role | str = Role.USER,
        *,
        max_active: int | None = None,
        per_minute: int | None = None,
        max_running: int | None = None,
        max_bytes: int | None = None,
    ) -> tuple[str, TokenRecord]:
        """Returns a new token, which is not stored, and its record, to which the arguments are attributes.

        Raises:
            ConversionError: The name is taken or not fit, or there is no such role (`bad-config`).
        """
        name = name.strip()
        if not name.isprintable() or not 0 < len(name) <= 100:
            raise error("bad-config", "the name of a token is 1 to 100 letters, digits or other signs that are seen")
        if role not in list(Role):
            raise error("bad-config", f"the role {role!r} is not known", hint=f"known are: {', '.join(Role)}")
        token = PREFIX + secrets.token_urlsafe(32)
        quotas = (max_active, per_minute, max_running, max_bytes)
        record = TokenRecord(secrets.token_hex(16), name, Role(role), *quotas, time.time())
        try:
            with self._database.write() as connection:
                connection.execute(insert(TOKENS).values(**record._asdict(), hash=_hash(token)))
        except IntegrityError:
            raise error("bad-config", f"there is a token {name!r} already", hint="choose another name") from None
        return token, record

    def find(self, token: str) -> TokenRecord | None:
        """Returns the record of a token, or `None` if it is unknown or revoked."""
        query = select(TOKENS).where(TOKENS.c.hash == _hash(token), TOKENS.c.revoked.is_(None))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _record(row)

    def list(self) -> list[TokenRecord]:
        """Returns all tokens, including revoked ones."""
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(select(TOKENS).order_by(TOKENS.c.created, TOKENS.c.id))]

    def revoke(self, name: str) -> TokenRecord:
        """Revokes a token, by its name or ID; its jobs go on.

        Raises:
            ConversionError: It does not exist (`token-not-found`).
        """
        is_it = (TOKENS.c.name == name) | (TOKENS.c.id == name)
        with self._database.write() as connection:
            connection.execute(update(TOKENS).where(is_it, TOKENS.c.revoked.is_(None)).values(revoked=time.time()))
            row = connection.execute(select(TOKENS).where(is_it)).one_or_none()
        if row is None:
            raise error("token-not-found", f"there is no token {name!r}")
        return _record(row)


def _hash(token: str) -> str:
    # The token has 256 random bits, which can't be guessed: a fast digest is enough.
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def _record(row: Any) -> TokenRecord:
    values = {name: getattr(row, name) for name in TokenRecord._fields}
    return TokenRecord(**{**values, "role": Role(values["role"])})
