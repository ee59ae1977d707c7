"""Opens a database: looks whether it is whole, brings its tables up to date, and that it fits the data folder."""

from __future__ import annotations

import os
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, insert, select, text

from tfconvert.schema.diagnostics import error
from tfconvert.service.config import ServiceConfig
from tfconvert.service.database.connection import Database
from tfconvert.service.database.tables import INSTALLATION
from tfconvert.service.folders import Folders

_MIGRATIONS = Path(__file__).parent / "migrations"
# The file of the data folder that says which database it belongs to.
_MARK = "installation"


def open_database(config: ServiceConfig, folders: Folders) -> Database:
    """Returns the database of a server, with all tables.

    Args:
        config: The server's settings.
        folders: Its data folder, which is there.
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
    """Brings the tables up to date, in the transaction that is under way.

    Args:
        connection: The connection.
        revision: Up to which migration.

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
    """Ties the database to the data folder, or sees that they are tied: files of another would seem left over."""
    mark = folders.data / _MARK
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
                f"the database and the folder {folders.data} don't belong together",
                hint="name the database that was used with this folder, or another folder",
            )
    except (OSError, UnicodeDecodeError) as problem:
        raise error("bad-config", f"the folder {folders.data} can't be used: {problem}") from None


def _write(mark: Path, text: str) -> None:
    part = mark.with_suffix(".part")
    part.write_text(f"{text}\n", "ascii")
    part.replace(mark)
