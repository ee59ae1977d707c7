"""The database: transactions, errors with codes, migrations, and the check that it fits the data directory."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, insert, make_url, select, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.json_text import json_text
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.tables import INSTALLATION
from tfconvert.service.storage import Folders

_BUSY_MILLISECONDS = 10_000
# The number of PostgreSQL's advisory lock that exclusive transactions hold.
_LOCK = zlib.crc32(b"tfconvert.service")

_KINDS = ("sqlite", "postgresql")
_FULL = ("disk is full", "No space left on device", "disk I/O error")
_DAMAGED = ("malformed", "not a database", "file is encrypted")
# What SQLite says if the database may answer later.
_AWAY = ("locked", "unable to open", "busy")
# The classes of PostgreSQL's states for which the same holds: failed connections, conflicts, too few resources, an
# operator's intervention, and errors of its system.
_AWAY_STATES = ("08", "40", "53", "57", "58")


class Database:
    """A database, used by several threads and processes at once.

    Args:
        url: A SQLAlchemy URL of SQLite or PostgreSQL.

    Raises:
        ConversionError: The URL can't be used (`bad-config`), or a package is missing (`database-away`).
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        # Writers of SQLite wait for each other by sleeping; a lock has a queue.
        self._writer = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with _translated(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, is_exclusive: bool = False) -> Iterator[Connection]:
        """A transaction that is committed at its end, or rolled back after an exception.

        Args:
            is_exclusive: Whether no other exclusive transaction of any server may run meanwhile; on SQLite there is
                never another that writes.
        """
        with (
            _translated(),
            self._writer if self._is_sqlite else nullcontext(),
            self.engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            if is_exclusive and not self._is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection

    def check(self) -> None:
        """Checks that the database answers."""
        with self.read() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in _KINDS:
            raise ArgumentError("neither SQLite nor PostgreSQL")
        engine = create_engine(
            parsed,
            pool_size=16,
            max_overflow=48,
            pool_pre_ping=parsed.get_backend_name() != "sqlite",
            json_serializer=json_text,
            # Rows of earlier versions may have numbers that JSON lacks.
            json_deserializer=partial(json.loads, parse_constant=lambda name: None),
        )
    except (ArgumentError, NoSuchModuleError) as problem:
        # The URL may contain a password, and so may the message.
        hint = "such as sqlite:///FILE, or postgresql://USER@HOST/NAME"
        is_other = "SQLite" in str(problem)
        what = "it names a database that is not supported" if is_other else "it isn't the URL of a database"
        raise error("bad-config", f"'database' can't be used: {what}", hint=hint) from None
    except ImportError as problem:
        hint = "pip install tfconvert[postgresql]"
        raise error("database-away", f"a package for this database is missing: {problem}", hint=hint) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up)
        event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: sqlite3.Connection, record: Any) -> None:
    # Transactions are begun explicitly: one that writes must begin so, since it could not wait for others later.
    connection.isolation_level = None
    for pragma in (f"busy_timeout={_BUSY_MILLISECONDS}", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    is_write = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")


@contextmanager
def _translated() -> Iterator[None]:
    """Turns exceptions of the database into diagnostics; violations of uniqueness are for the caller."""
    try:
        yield
    except IntegrityError:
        raise
    except (StatementError, PoolTimeout) as problem:
        raise _explained(problem) from problem


def _explained(problem: SQLAlchemyError) -> ConversionError:
    origin = problem.orig if isinstance(problem, StatementError) and problem.orig is not None else problem
    message = " ".join(str(origin).split())
    if any(sign in message for sign in _FULL):
        return error("storage-failed", f"the database can't be written: {message}")
    if any(sign in message for sign in _DAMAGED):
        return error("bad-database", f"the database is damaged: {message}", hint="restore it from a backup")
    if _is_away(problem, origin, message):
        return error("database-away", f"the database can't be used: {message}")
    return error("internal-error", f"the database refuses a statement: {message}")


def _is_away(problem: SQLAlchemyError, origin: BaseException, message: str) -> bool:
    """Returns whether the same statement may succeed later."""
    if isinstance(problem, PoolTimeout) or (isinstance(problem, DBAPIError) and problem.connection_invalidated):
        return True
    if isinstance(origin, sqlite3.Error):
        return any(sign in message for sign in _AWAY)
    state = getattr(origin, "sqlstate", None)
    # An error without a state comes from the client, which can't connect.
    return str(state).startswith(_AWAY_STATES) if state else isinstance(problem, OperationalError | InterfaceError)


_MIGRATIONS = Path(__file__).parent / "migrations"


def open_database(config: ServiceConfig, folders: Folders) -> Database:
    """Returns the database of a server, with all tables.

    Args:
        config: The server's settings.
        folders: Its data directory, which exists.
    """
    database = Database(config.database or f"sqlite:///{folders.database}")
    is_opened = False
    try:
        with database.write(is_exclusive=True) as connection:
            if connection.dialect.name == "sqlite":
                _check(connection)
            migrate(connection)
            _match(connection, folders)
        is_opened = True
    finally:
        if not is_opened:
            database.close()
    return database


def migrate(connection: Connection, revision: str = "head") -> None:
    """Migrates the tables, in the current transaction.

    Args:
        connection: The connection.
        revision: The last migration to apply.

    Raises:
        ConversionError: A newer version of the program has changed them (`bad-database`).
    """
    config = Config()
    config.set_main_option("script_location", os.fspath(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as problem:
        raise error(
            "bad-database",
            f"the database was made by another version: {problem}",
            hint="install the newest version of tfconvert",
        ) from None


def _check(connection: Connection) -> None:
    found = connection.execute(text("PRAGMA quick_check(1)")).scalar_one()
    if found != "ok":
        hint = "restore it from a backup"
        raise error("bad-database", f"the database is damaged: {' '.join(str(found).split())}", hint=hint)


def _match(connection: Connection, folders: Folders) -> None:
    """Ties the database to the data directory, or checks this, since files of another database would be removed."""
    mark = folders.installation
    known = connection.execute(select(INSTALLATION.c.id)).scalar()
    try:
        marked = mark.read_text("ascii").strip() if mark.exists() else ""
        if known is None and (not marked or folders.is_empty):
            known = os.urandom(16).hex()
            connection.execute(insert(INSTALLATION).values(id=known))
            _write(mark, known)
        elif known is not None and not marked and folders.is_empty:
            _write(mark, known)
        elif known != marked:
            raise error(
                "bad-database",
                f"the database and the directory {folders.data} don't belong together",
                hint="name the database that was used with this directory, or another directory",
            )
    except (OSError, UnicodeDecodeError) as problem:
        raise error("bad-config", f"the directory {folders.data} can't be used: {problem}") from None


def _write(mark: Path, text: str) -> None:
    part = mark.with_suffix(".part")
    part.write_text(f"{text}\n", "ascii")
    part.replace(mark)
